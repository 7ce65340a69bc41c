package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/run/engine"
	"github.com/assay-eval/assay/internal/run/gate"
	"github.com/assay-eval/assay/internal/run/live"
)

func (s *session) displayMode() string {
	if s.flags.display != "auto" {
		return s.flags.display
	}
	if s.process.errTerminal {
		return "live"
	}
	return "plain"
}

func (s *session) view() live.View {
	switch s.displayMode() {
	case "live":
		return live.NewTerminal(s.process.err)
	case "json":
		return &live.JSON{W: s.process.out}
	case "none":
		return live.None{}
	}
	return &live.Plain{W: s.process.err}
}

// interval is the time to the next snapshot. Plain lines become fewer in a long
// run, whose log somebody will read.
func (s *session) interval(elapsed time.Duration) time.Duration {
	switch mode := s.displayMode(); {
	case mode == "live":
		return 250 * time.Millisecond
	case mode == "json":
		return time.Second
	case elapsed < time.Minute:
		return 5 * time.Second
	case elapsed < 10*time.Minute:
		return 20 * time.Second
	}
	return time.Minute
}

// announce says what is about to happen.
func (s *session) announce(pending int) {
	if s.displayMode() == "json" {
		s.object(map[string]any{
			"event": "start", "experiment": s.Experiment.Name, "run": s.id, "program": version(), "store": s.flags.store,
			"planned": s.Planned(), "done": s.Planned() - pending, "pending": pending, "models": s.Experiment.Models,
		})
		return
	}
	if s.displayMode() == "none" {
		return
	}
	text := fmt.Sprintf("experiment %s: %d trials planned", s.Experiment.Name, s.Planned())
	if done := s.Planned() - pending; done > 0 {
		text += fmt.Sprintf(", %d done before, %d pending", done, pending)
	}
	fmt.Fprintf(s.process.err, "%s; results go to %s\n", text, s.flags.store)
}

func (s *session) object(fields map[string]any) {
	b, err := json.Marshal(fields)
	if err != nil {
		panic("assay: event: " + err.Error())
	}
	fmt.Fprintf(s.process.out, "%s\n", b)
}

// finish closes the run in the store, prints what came out and chooses the
// exit code.
func (s *session) finish(ctx context.Context, summary engine.Summary, runErr error) error {
	snapshot := s.meter.Snapshot()
	total := snapshot.Total()
	for _, m := range snapshot.Models {
		if summary.Closed[m.Name] != nil { // no lane is left: nothing of it can run
			total.Parked += m.Pending()
		}
	}
	open := total.Planned - total.Done - total.Skipped // pending or parked
	wall := time.Since(s.started)
	done := map[string]any{
		"event": "done", "experiment": s.Experiment.Name, "run": s.id, "store": s.flags.store,
		"planned": total.Planned, "done": total.Done, "pending": total.Pending(), "parked": total.Parked,
		"settled": summary.Settled, "faults": summary.Faulted, "request_faults": s.faults, "requests": s.requests,
		"tokens": s.tokens, "cost_usd": s.cost, "wall_s": wall.Seconds(), "stopped": summary.Stopped,
		"lanes": s.speeds(), "skipped": total.Skipped, "not_run": summary.Skipped, "stopped_early": s.gate.Stops(),
		"closed": closedText(summary.Closed), "least_s": s.least().Seconds(), "forecast_s": s.forecast.Wall, "forecast": s.forecast.Models,
	}
	if runErr == nil && s.id != "" {
		runErr = s.end(ctx, done)
	}
	if runErr != nil {
		done["error"] = runErr.Error()
	}
	s.closeLog(done, runErr)
	if s.displayMode() == "json" {
		s.object(done)
	} else if err := s.print(ctx, summary, total, wall); err != nil && !errors.Is(err, syscall.EPIPE) {
		return errors.Join(runErr, err)
	}
	switch {
	case runErr != nil:
		return runErr
	case summary.Stopped && open > 0:
		return &codedError{code: exitInterrupted}
	case open > 0:
		return &codedError{code: exitIncomplete}
	}
	return nil
}

// end stores that the run has ended, with its summary.
func (s *session) end(ctx context.Context, summary map[string]any) error {
	b, err := json.Marshal(summary)
	if err != nil {
		return fmt.Errorf("encode summary: %w", err)
	}
	return s.db.EndRun(ctx, s.id, b)
}

// print shows the table and what to do next.
func (s *session) print(ctx context.Context, summary engine.Summary, total live.ModelState, wall time.Duration) error {
	table, err := tablesOf(ctx, s.Job, s.db)
	if err != nil {
		return err
	}
	w := s.process.out
	fmt.Fprintln(w)
	if err := table.WriteText(w, s.process.terminal); err != nil {
		return err
	}
	fmt.Fprintln(w)
	writeAlarms(w, s.process.name, table.Alarms)
	if summary.Settled == 0 && total.Done == total.Planned {
		fmt.Fprintf(w, "All %d trials of %s are done; nothing was run.\n", total.Planned, s.Experiment.Name)
	} else {
		fmt.Fprintf(w, "%d of %d trials done, %d in this run, in %s with %d requests.\n",
			total.Done, total.Planned, summary.Settled, wall.Round(100*time.Millisecond), s.requests)
	}
	s.printSpeed(w, summary, wall)
	for _, stop := range s.gate.Stops() {
		fmt.Fprintf(w, "%s; n = %d, and %d trials were skipped\n", stop, stop.Outcomes, stop.Skipped)
	}
	if total.Done+total.Skipped < total.Planned {
		fmt.Fprintf(w, "%d trials are still pending", total.Pending())
		if total.Parked > 0 {
			fmt.Fprintf(w, " and %d are parked", total.Parked)
		}
		fmt.Fprintln(w, "; the same command runs them.")
		for _, reason := range slices.Sorted(maps.Keys(summary.Skipped)) {
			if reason != "cancelled" && !s.isStop(reason) {
				fmt.Fprintf(w, "%d of them were not run: %s\n", summary.Skipped[reason], reason)
			}
		}
	}
	path := s.flags.store
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	fmt.Fprintf(w, "Results are in %s\n", path)
	if s.flags.quickstart {
		if err := s.writeReport(ctx); err != nil {
			return err
		}
	}
	fmt.Fprint(w, "\nNext:\n")
	s.next()
	return nil
}

// writeAlarms names the alarms of which a report tells more. What is pending is told
// below the table anyway.
func writeAlarms(w io.Writer, name string, all []report.Alarm) {
	all = slices.DeleteFunc(slices.Clone(all), func(a report.Alarm) bool { return a.Kind == "incomplete" })
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(w, "%s, of which `%s report` tells more:\n", counted(len(all), "alarm"), name)
	for _, a := range all {
		more := ""
		if n := len(a.Where); n > 1 {
			more = fmt.Sprintf(", and %d more", n-1)
		}
		fmt.Fprintf(w, "  %s: %s%s\n", a.Title, a.Where[0], more)
	}
	fmt.Fprintln(w)
}

// printSpeed tells the truth about speed: how long it took against what was
// forecast and what the limits alone would allow, and what bound each model.
func (s *session) printSpeed(w io.Writer, summary engine.Summary, wall time.Duration) {
	if s.id == "" {
		return
	}
	ratio := func(part time.Duration) string {
		return fmt.Sprintf("%s (%.2f×)", duration(part.Seconds()), wall.Seconds()/part.Seconds())
	}
	var against []string
	if least := s.least(); least > 0 {
		against = append(against, "the least that its limits and replies allow is "+ratio(least))
	}
	if s.forecast.Wall > 0 && !summary.Stopped && len(summary.Skipped) == 0 {
		against = append(against, "forecast was "+ratio(time.Duration(s.forecast.Wall*float64(time.Second))))
	}
	if len(against) > 0 {
		fmt.Fprintf(w, "It took %s; %s.\n", duration(wall.Seconds()), strings.Join(against, ", "))
	}
	for _, m := range s.Experiment.Models {
		if text := speedText(m, s.pools.ByModel[m].Ledgers(), wall); text != "" {
			fmt.Fprintln(w, text)
		}
		if err := summary.Closed[m]; err != nil {
			fmt.Fprintf(w, "%s stopped: no lane is left: %v\n", m, err)
		}
	}
	for _, l := range s.learnedLimits(false) {
		fmt.Fprintf(w, "learned: %s allows %s\n", l.Lane, limitText(l.Bucket, l.Value))
	}
}

// isStop reports whether a reason for skipping is a stop rule's.
func (s *session) isStop(reason string) bool {
	return slices.ContainsFunc(s.gate.Stops(), func(stop gate.Stop) bool { return stop.Reason == reason })
}

func closedText(closed map[string]error) map[string]string {
	out := make(map[string]string, len(closed))
	for model, err := range closed {
		out[model] = err.Error()
	}
	return out
}

// quickstartReport is the file that the quickstart leaves beside its store.
const quickstartReport = "quickstart-report.html"

// writeReport shows newcomers what a report is.
func (s *session) writeReport(ctx context.Context) error {
	experiments, err := chooseExperiments(ctx, s.db, []string{s.Experiment.Name})
	if err != nil {
		return err
	}
	path := filepath.Join(filepath.Dir(s.flags.store), quickstartReport)
	if err := writeReport(ctx, s.process, s.db, experiments[0], documentFlags{format: "html", output: path, transcripts: 3}); err != nil {
		return err
	}
	fmt.Fprintf(s.process.out, "A report of them is in %s\n", path)
	return nil
}

// next suggests commands that work as they stand.
func (s *session) next() {
	flag := ""
	if s.flags.store != "assay.db" {
		flag = " --store " + s.flags.store
	}
	w, name := s.process.out, s.process.name
	fmt.Fprintf(w, "  %s status%s\n", name, flag)
	if id := s.example(); id != "" {
		fmt.Fprintf(w, "  %s show %s%s\n", name, id[:8], flag)
	}
	fmt.Fprintf(w, "  %s report --format html --output report.html%s\n", name, flag)
}

// example is some trial of the experiment that is done, "" without one.
func (s *session) example() assay.TrialID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lastDone != "" {
		return s.lastDone
	}
	for t := range s.Trials() {
		if s.settled.Has(t.ID) {
			return t.ID
		}
	}
	return ""
}
