package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// A display shows a run as --display asks. The mode is live, plain, json or none.
type display struct {
	process *process
	mode    string
	begun   func() // called when the run has begun; may be nil
	unsound func() // lists the tasks that are not sound
	store   string
	keys    *terminal.Keyboard // nil if keys are not read
	mu      sync.Mutex
}

var _ session.Display = (*display)(nil)

// Start implements [session.Display].
func (d *display) Start(s session.Start) {
	if d.begun != nil && s.Pending > 0 {
		defer d.begun()
	}
	switch {
	case d.mode == "json":
		d.object(s)
	case d.mode == "none" || s.Pending == 0:
	case s.Done > 0:
		d.warn("experiment %s: %d trials planned, %d done before, %d pending; results go to %s",
			s.Experiment, s.Planned, s.Done, s.Pending, s.Store)
	default:
		d.warn("experiment %s: %d trials planned; results go to %s",
			s.Experiment, s.Planned, s.Store)
	}
	if (d.mode == "plain" || d.mode == "live") && s.Pending > 0 {
		d.introduce(s.Models)
	}
	if (d.mode == "plain" || d.mode == "live") && len(s.Changed) > 0 {
		d.warn("%s", changesText(s.Library, s.Changed, s.Pending))
	}
	if d.mode != "none" && d.mode != "json" && s.MeantEasy && s.Pending > 0 {
		d.warn("note: earlier runs of %s were at difficulty easy, which a file without difficulties meant "+
			"before; now it means medium, so these trials are new\nhint: difficulties: [easy] in the file "+
			"goes on with the earlier ones", s.Experiment)
	}
	if d.mode != "none" && s.Pending > 0 {
		d.unsound()
	}
	if (d.mode == "plain" || d.mode == "live") && s.Range.Unknown != "" {
		d.warn("expected time: %s (%s)", wallText(s.Forecast, s.Range), s.Range.Unknown)
	}
}

// introduce says what the simulated models do that stand for people's.
func (d *display) introduce(models []string) {
	for _, m := range models {
		if does := sim.About(m); does != "" {
			d.warn("  %-12s %s", m, does)
		}
	}
}

// Show implements [session.Display].
func (d *display) Show(ctx context.Context, run session.Live) {
	view := d.view()
	if t, ok := view.(*terminal.Terminal); ok && d.keys != nil {
		t.Footer(shortHelp)
		go listen(ctx, d.keys, d.store, t, run)
		defer d.keys.Restore()
	}
	terminal.Run(ctx, run.Progress, view, d.interval)
}

// Stopping implements [session.Display].
func (d *display) Stopping() {
	if d.mode == "plain" {
		d.warn("stopping: episodes in flight finish; Ctrl-C again aborts them")
	}
}

// NoLog implements [session.Display]. The other views show the reason as a note.
func (d *display) NoLog(reason string) {
	if d.mode == "none" {
		d.warn("assay: %s", reason)
	}
}

func (d *display) warn(format string, args ...any) {
	fmt.Fprintf(d, format+"\n", args...)
}

// Write writes to the standard error for several goroutines.
func (d *display) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.process.err.Write(b)
}

func (d *display) object(fields any) {
	b, err := json.Marshal(fields)
	if err != nil {
		panic("assay: event: " + err.Error())
	}
	fmt.Fprintf(d.process.out, "%s\n", b)
}

func (d *display) view() terminal.View {
	switch d.mode {
	case "live":
		return terminal.New(d.process.err)
	case "json":
		return &terminal.JSON{W: d.process.out}
	case "none":
		return terminal.None{}
	}
	return &terminal.Plain{W: d}
}

// interval returns the time to the next snapshot. A long run prints plain lines less often, to
// keep its output readable.
func (d *display) interval(elapsed time.Duration) time.Duration {
	switch {
	case d.mode == "live":
		return 250 * time.Millisecond
	case d.mode == "json":
		return time.Second
	case elapsed < time.Minute:
		return 5 * time.Second
	case elapsed < 10*time.Minute:
		return 20 * time.Second
	}
	return time.Minute
}

// say prints a sentence. It is wrapped if the output is a terminal.
func (p *process) say(format string, args ...any) { p.item("", fmt.Sprintf(format, args...)) }

// item prints an item of a list. Its further lines are indented like the text after the label.
func (p *process) item(label, text string) {
	if p.terminal.Width > 0 {
		label, text = "", p.terminal.Hang(label, text)
	}
	fmt.Fprintln(p.out, label+text)
}
