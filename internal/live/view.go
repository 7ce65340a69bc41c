package live

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// A View shows snapshots. Its methods are called by one goroutine.
type View interface {
	Show(Snapshot)
	// Close shows the last state and gives the screen back.
	Close(last Snapshot)
}

// Run shows snapshots until ctx ends, and then the last one. Every gives the
// time to the next snapshot from the time since the start.
func Run(ctx context.Context, meter *Meter, view View, every func(elapsed time.Duration) time.Duration) {
	for {
		s := meter.Snapshot()
		view.Show(s)
		timer := time.NewTimer(every(s.Elapsed))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			view.Close(meter.Snapshot())
			return
		}
	}
}

// Plain writes a line now and then, for a file or a pipe.
type Plain struct {
	W     io.Writer
	noted int
}

// Show implements [View].
func (p *Plain) Show(s Snapshot) {
	for _, note := range s.Notes[p.noted:] {
		fmt.Fprintln(p.W, "note: "+note)
	}
	p.noted = len(s.Notes)
	t := s.Total()
	line := fmt.Sprintf("%s  %d/%d done, %d in flight, %s tokens/min", clock(s.Elapsed), t.Done, t.Planned, t.InFlight, count(t.TokensPerMinute))
	if f := faults(t.Faults); f != "" {
		line += ", faults: " + f
	}
	if t.Parked > 0 {
		line += fmt.Sprintf(", %d parked", t.Parked)
	}
	if w := waits(s); w != "" {
		line += ", waiting: " + w
	}
	if t.Left > 0 && t.Owed() > 0 {
		line += ", about " + clock(t.Left) + " left"
	}
	fmt.Fprintln(p.W, line)
}

// Close implements [View].
func (p *Plain) Close(s Snapshot) { p.Show(s) }

// JSON writes one object a line, as the contract of --display json says.
type JSON struct {
	W     io.Writer
	noted int
}

// Show implements [View].
func (j *JSON) Show(s Snapshot) {
	for _, note := range s.Notes[j.noted:] {
		j.write(map[string]string{"event": "note", "text": note})
	}
	j.noted = len(s.Notes)
	type model struct {
		Model           string                  `json:"model"`
		Planned         int                     `json:"planned"`
		Done            int                     `json:"done"`
		Owed            int                     `json:"owed"`
		Parked          int                     `json:"parked"`
		InFlight        int                     `json:"in_flight"`
		Requests        int                     `json:"requests"`
		Faults          map[assay.FaultKind]int `json:"faults"`
		TokensPerMinute float64                 `json:"tokens_per_minute"`
		Waits           string                  `json:"waits"`
		LeftSeconds     float64                 `json:"left_s"`
	}
	object := struct {
		Event   string  `json:"event"`
		Elapsed float64 `json:"elapsed_s"`
		Models  []model `json:"models"`
	}{"progress", s.Elapsed.Seconds(), []model{}}
	for _, m := range s.Models {
		object.Models = append(object.Models, model{
			m.Name, m.Planned, m.Done, m.Owed(), m.Parked, m.InFlight, m.Requests, m.Faults,
			m.TokensPerMinute, m.Waits, m.Left.Seconds(),
		})
	}
	j.write(object)
}

func (j *JSON) write(object any) {
	b, err := json.Marshal(object)
	if err != nil {
		panic("live: " + err.Error())
	}
	fmt.Fprintf(j.W, "%s\n", b)
}

// Close implements [View].
func (j *JSON) Close(s Snapshot) { j.Show(s) }

// None shows nothing.
type None struct{}

// Show implements [View].
func (None) Show(Snapshot) {}

// Close implements [View].
func (None) Close(Snapshot) {}

func waits(s Snapshot) string {
	var all []string
	for _, m := range s.Models {
		if m.Waits != "" {
			all = append(all, m.Name+" "+m.Waits)
		}
	}
	return strings.Join(all, "; ")
}

// faults lists counts by kind, most frequent first.
func faults(by map[assay.FaultKind]int) string {
	kinds := slices.SortedFunc(maps.Keys(by), func(a, b assay.FaultKind) int {
		if by[a] != by[b] {
			return by[b] - by[a]
		}
		return strings.Compare(string(a), string(b))
	})
	var parts []string
	for _, k := range kinds {
		parts = append(parts, fmt.Sprintf("%d %s", by[k], k))
	}
	return strings.Join(parts, ", ")
}

// clock writes a duration as people read it: 8s, 2m05s, 3h04m.
func clock(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
}

// count writes a number with k and M.
func count(n float64) string {
	switch {
	case n >= 999_500:
		return fmt.Sprintf("%.1fM", n/1e6)
	case n >= 9_995:
		return fmt.Sprintf("%.0fk", n/1e3)
	case n >= 1000:
		return fmt.Sprintf("%.1fk", n/1e3)
	}
	return fmt.Sprintf("%.0f", n)
}
