package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay/internal/result/exhibit"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/run/gate"
	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/store"
)

// A runResult prints the end of `assay run`.
type runResult struct {
	*process
	job   *job.Job
	db    *store.DB
	sum   *session.Summary
	flags runFlags
}

// print prints the table, the progress and speed of the run, and the next commands.
func (r *runResult) print(ctx context.Context) error {
	if r.flags.quiet {
		r.printDone()
		return nil
	}
	table, err := r.job.Tables(ctx, r.db)
	if err != nil {
		return err
	}
	fmt.Fprintln(r.out)
	if err := exhibit.WriteTable(r.out, table.Table, r.terminal); err != nil {
		return err
	}
	fmt.Fprintln(r.out)
	r.printWarnings(table.Warnings)
	if note := r.job.SimNote(); note != "" {
		r.say("%s", note)
		fmt.Fprintln(r.out)
	}

	r.printDone()
	r.printSpeed()
	r.printUnfinished()

	path := r.flags.store
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	fmt.Fprintf(r.out, "Results are in %s\n", path)
	if r.flags.quickstart {
		if err := r.writeReport(ctx); err != nil {
			return err
		}
	}
	r.printNext()
	return nil
}

func (r *runResult) printDone() {
	s := r.sum
	if s.Settled == 0 && s.Done == s.Planned {
		r.say("All %d trials of %s were done already, so nothing was run. "+
			"--again repeats them.", s.Planned, s.Experiment)
		return
	}
	r.say("%d of %d trials done, %d in this run, in %s with %d requests.",
		s.Done, s.Planned, s.Settled, duration(s.Wall), s.Requests)
	if n := s.SecondRequests; n > 0 {
		r.say("%s sent because replies were late; %d got a reply.",
			countedVerb(n, "second request", "was", "were"), s.SecondReplies)
	}
}

// printWarnings lists the titles of warnings. Pending trials are mentioned later anyway.
func (r *runResult) printWarnings(all []report.Warning) {
	all = slices.DeleteFunc(slices.Clone(all), func(w report.Warning) bool {
		return w.Kind == "incomplete"
	})
	if len(all) == 0 {
		return
	}
	r.say("%s (details: `%s report`):", counted(len(all), "warning"), r.name)
	for _, w := range all {
		more := ""
		if n := len(w.Where); n > 1 {
			more = fmt.Sprintf(", and %d more", n-1)
		}
		r.item("  ", fmt.Sprintf("%s: %s%s", w.Title, w.Where[0], more))
	}
	fmt.Fprintln(r.out)
}

// printSpeed compares the time of the run with its forecast and with the shortest possible time,
// and names each model's bottleneck.
func (r *runResult) printSpeed() {
	s := r.sum
	if s.Settled == 0 { // nothing was fast or slow
		return
	}
	ratio := func(seconds float64) string {
		return fmt.Sprintf("%s (%.2f×)", duration(seconds), s.Wall/seconds)
	}
	var parts []string
	if s.Least > 0 {
		parts = append(parts, "fastest possible: "+ratio(s.Least))
	}
	switch {
	case s.Stopped || len(s.NotRun) > 0 || s.ForecastWall == 0:
	case s.ForecastRange.Unknown != "":
		parts = append(parts, "forecast: "+wallText(s.ForecastWall, s.ForecastRange))
	default:
		parts = append(parts, "forecast: "+ratio(s.ForecastWall))
	}
	if len(parts) > 0 {
		r.say("It took %s; %s.", duration(s.Wall), strings.Join(parts, ", "))
	}
	for _, m := range s.Speeds {
		r.say("%s", speedText(m))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Closed)) {
		isLane := func(l session.LaneSpeed) bool { return l.Lane == name }
		if slices.ContainsFunc(s.Lanes, isLane) {
			r.say("WARNING: lane %s was closed: %s", name, s.Closed[name])
		} else {
			r.say("%s stopped because all of its lanes are closed: %s", name, s.Closed[name])
		}
	}
	for _, l := range s.Lanes {
		if l.Found != "" {
			r.say("%s: %s", l.Lane, l.Found)
		}
	}
}

// speedText describes how busy a model's lanes were, and its bottleneck.
func speedText(m session.ModelSpeed) string {
	text := fmt.Sprintf("%s: %.0f %% of its lanes' time used", m.Model, 100*m.Used)
	if m.Lost >= 0.01 {
		text += fmt.Sprintf(", %.0f %% of it without a reply", 100*m.Lost)
	}
	if m.Bottleneck != "" {
		text += "; bottleneck: " + m.Bottleneck
	}
	if m.Waited > 0 {
		text += fmt.Sprintf(" (waited %s)", duration(m.Waited.Seconds()))
	}
	return text
}

// printUnfinished lists the trials that have no outcome, with the reasons.
func (r *runResult) printUnfinished() {
	s := r.sum
	for _, stop := range s.StoppedEarly {
		r.say("%s (%d outcomes, %d trials skipped)", stop, stop.Outcomes, stop.Skipped)
	}
	if s.Unfinished() == 0 {
		return
	}
	var parts []string
	if s.Pending > 0 {
		parts = append(parts, fmt.Sprintf("%d pending", s.Pending))
	}
	if s.Parked > 0 {
		parts = append(parts, fmt.Sprintf("%d parked after faults", s.Parked))
	}
	r.say("%s unfinished (%s); run again to retry.",
		counted(s.Unfinished(), "trial"), strings.Join(parts, ", "))
	for _, reason := range slices.Sorted(maps.Keys(s.NotRun)) {
		isStop := func(stop gate.Stop) bool { return stop.Reason == reason }
		if reason != "cancelled" && !slices.ContainsFunc(s.StoppedEarly, isStop) {
			r.say("%d of them did not start: %s", s.NotRun[reason], reason)
		}
	}
}

// quickstartReport is the name of the report that the quickstart writes next to its store.
const quickstartReport = "quickstart-report.html"

// writeReport writes a report, to show newcomers one.
func (r *runResult) writeReport(ctx context.Context) error {
	experiments, err := chooseExperiments(ctx, r.db, []string{r.sum.Experiment})
	if err != nil {
		return err
	}
	path := filepath.Join(filepath.Dir(r.flags.store), quickstartReport)
	f := documentFlags{format: "html", output: path, transcripts: 3}
	if err := writeReport(ctx, r.process, r.db, experiments[0], f); err != nil {
		return err
	}
	fmt.Fprintf(r.out, "The report is in %s\n", path)
	return nil
}

// printNext suggests commands that work as they are.
func (r *runResult) printNext() {
	flag := ""
	if r.flags.store != defaultStore {
		flag = " --store " + r.flags.store
	}
	fmt.Fprintf(r.out, "\nNext:\n  %s status%s\n", r.name, flag)
	if id := r.sum.Example; id != "" {
		fmt.Fprintf(r.out, "  %s show %s%s\n", r.name, id[:8], flag)
	}
	fmt.Fprintf(r.out, "  %s report --format html --output report.html%s\n", r.name, flag)
}

// duration formats seconds for people.
func duration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", seconds)
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", seconds)
	case d < 48*time.Hour:
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%.1f days", d.Hours()/24)
}

// wallText returns a forecast, as a range if it is one.
func wallText(wall float64, r job.Range) string {
	if r.Unknown == "" {
		return duration(wall)
	}
	return roughly(r.Low) + " to " + roughly(r.High)
}

// roughly returns a time that is known roughly, such as "1 h 10 min".
func roughly(seconds float64) string {
	switch minutes := math.Round(seconds / 60); {
	case seconds < 99:
		return fmt.Sprintf("%.0f s", math.Ceil(seconds))
	case minutes < 60:
		return fmt.Sprintf("%.0f min", minutes)
	case minutes < 48*60:
		tens := int(math.Round(seconds/600)) * 10
		return strings.TrimSuffix(fmt.Sprintf("%d h %d min", tens/60, tens%60), " 0 min")
	}
	return fmt.Sprintf("%.1f days", seconds/86400)
}
