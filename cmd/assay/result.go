package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/result/sections"
	"github.com/assay-eval/assay/internal/result/stat"
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

// print prints the important facts about an unfinished run, and the headline.
func (r *runResult) print(ctx context.Context) error {
	if r.flags.quiet {
		r.printDone()
		return nil
	}
	experiments, err := chooseExperiments(ctx, r.db, []string{r.sum.Experiment})
	if err != nil {
		return err
	}
	found, err := analyze(ctx, r.process, r.db, r.job, experiments[0], r.documentFlags())
	if err != nil {
		return err
	}
	unfinished := r.unfinished(found.CommandLine("status"))
	fmt.Fprintln(r.out)
	for _, line := range unfinished {
		r.say("%s", line)
	}
	if len(unfinished) > 0 {
		fmt.Fprintln(r.out)
	}
	files, err := r.writeFiles(ctx, found)
	if err != nil {
		return err
	}
	lines := found.Headline
	run := slices.IndexFunc(lines, func(p document.Point) bool { return p.Label == sections.RunLine })
	lines[run].Text += fmt.Sprintf("; more: `%s`; files: %s", found.CommandLine("report"), files)
	return (&document.Document{Headline: lines}).WriteText(r.out, r.terminal)
}

// documentFlags returns the flags of the report that the quickstart writes.
func (r *runResult) documentFlags() documentFlags {
	return documentFlags{
		store: r.flags.store, format: "html", cluster: stat.Auto, transcripts: 3,
		output: filepath.Join(filepath.Dir(r.flags.store), quickstartReport),
	}
}

// writeFiles writes the report of the quickstart, and names the files with results.
func (r *runResult) writeFiles(ctx context.Context, found *query.Report) (string, error) {
	if !r.flags.quickstart {
		return r.flags.store, nil
	}
	f := r.documentFlags()
	found = found.Lasting()
	err := f.write(r.process, found, func() (*document.Document, error) {
		return found.Document(ctx, f.transcripts)
	})
	return r.flags.store + ", " + f.output, err
}

func (r *runResult) printDone() {
	s := r.sum
	if s.Settled == 0 && s.Done == s.Planned {
		r.say("%s", r.nothingToRun())
		return
	}
	r.say("%d of %d trials done, %d in this run, in %s with %d requests.",
		s.Done, s.Planned, s.Settled, sections.Duration(s.Wall), s.Requests)
	if s.Unfinished() > 0 {
		for _, line := range budgetLines(s) {
			r.say("%s", line)
		}
	}
	if s.Stillness != "" {
		r.say("WARNING: %s", s.Stillness)
	}
}

// nothingToRun says that all trials that were asked for had been done.
func (r *runResult) nothingToRun() string {
	text := fmt.Sprintf("All %d trials of %s were", r.sum.Planned, r.sum.Experiment)
	if r.sum.Planned == 1 {
		text = fmt.Sprintf("The trial of %s was", r.sum.Experiment)
	}
	text += " done already, so nothing was run. "
	if r.flags.limit > 0 {
		return text + "--limit counts them, too: raise it to go on."
	}
	return text + "--again repeats them."
}

// unfinished lists the facts that come before the headline: closed lanes, stopped parts, and which
// trials have no outcome, with the reasons. The status command lists more.
func (r *runResult) unfinished(status string) (lines []string) {
	s := r.sum
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if s.Settled == 0 && s.Done == s.Planned {
		add("%s", r.nothingToRun())
	}
	if s.Stillness != "" {
		add("WARNING: %s", s.Stillness)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Closed)) {
		isLane := func(l session.LaneSpeed) bool { return l.Lane == name }
		switch {
		case slices.Contains(s.GivenUp, name):
			add("%s was given up: %s. `%s` shows what it prints; correct it, and run again.",
				name, s.Closed[name], r.flags.tryFirst)
		case slices.ContainsFunc(s.Lanes, isLane):
			add("WARNING: lane %s was closed: %s", name, s.Closed[name])
		default:
			add("%s stopped because all of its lanes are closed: %s", name, s.Closed[name])
		}
	}
	for _, stop := range s.StoppedEarly {
		add("%s (%d outcomes, %d trials skipped)", stop, stop.Outcomes, stop.Skipped)
	}
	if s.Unfinished() == 0 {
		return lines
	}
	switch {
	case s.Stopped && s.Unsaved > 0:
		add("The run was interrupted before it could save %s.", assay.Counted(s.Unsaved, "attempt"))
	case s.Stopped:
		add("The run was interrupted; every finished trial is saved.")
	}
	var parts []string
	if s.Pending > 0 {
		parts = append(parts, fmt.Sprintf("%d pending", s.Pending))
	}
	if s.Parked > 0 {
		parts = append(parts, fmt.Sprintf("%d parked after faults", s.Parked))
	}
	if len(s.BrokenScripts) > 0 {
		add("%s unfinished (%s).", assay.Counted(s.Unfinished(), "trial"), strings.Join(parts, ", "))
		lines = append(lines, r.brokenScripts()...)
	} else {
		goOn := "; run the same command again to go on"
		if len(s.Exhausted) > 0 {
			goOn = ""
		}
		add("%s unfinished (%s)%s.", assay.Counted(s.Unfinished(), "trial"), strings.Join(parts, ", "), goOn)
	}
	if s.Cancelled > 0 {
		add("%s.", countedVerb(s.Cancelled, "trial", "was cancelled", "were cancelled"))
	}
	lines = append(lines, budgetLines(s)...)
	for _, reason := range slices.Sorted(maps.Keys(s.NotRun)) {
		isStop := func(stop job.Stop) bool { return stop.Reason == reason }
		isBudget := func(b job.Exhausted) bool { return b.Reason == reason }
		if reason != "cancelled" && !slices.ContainsFunc(s.StoppedEarly, isStop) &&
			!slices.ContainsFunc(s.Exhausted, isBudget) {
			add("%d of them did not start: %s", s.NotRun[reason], reason)
		}
	}
	if why, n := r.parkedFor(); n > 0 {
		add("%d of them parked: %s (`%s` lists all reasons)", n, why, status)
	}
	return lines
}

// budgetLines names the budgets that stopped trials, and says how to go on.
func budgetLines(s *session.Summary) (lines []string) {
	const most = 5
	for _, b := range s.Exhausted[:min(most, len(s.Exhausted))] {
		lines = append(lines, strings.ToUpper(b.String()[:1])+b.String()[1:]+".")
	}
	if more := len(s.Exhausted) - most; more > 0 {
		lines = append(lines, assay.Counted(more, "more budget")+" stopped trials.")
	}
	if len(lines) > 0 {
		lines = append(lines, "The same command goes on with a fresh budget. To do more in one run, raise "+
			"the budget in the experiment file.")
	}
	return lines
}

// parkedFor returns the most frequent reason why trials are parked, and how many it explains. Reasons
// of closed models and agents are listed apart.
func (r *runResult) parkedFor() (why string, n int) {
	listed := slices.Collect(maps.Values(r.sum.Closed))
	for _, reason := range slices.Sorted(maps.Keys(r.sum.ParkedFor)) {
		if r.sum.ParkedFor[reason] > n && !slices.Contains(listed, reason) {
			why, n = reason, r.sum.ParkedFor[reason]
		}
	}
	return why, n
}

// brokenScripts lists the functions of the user that broke, with advice.
func (r *runResult) brokenScripts() (lines []string) {
	const most = 5
	broken := r.sum.BrokenScripts
	for _, text := range broken[:min(most, len(broken))] {
		lines = append(lines, "  "+sanitize(text))
	}
	if more := len(broken) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more", more))
	}
	return append(lines, fmt.Sprintf("Running again without a change breaks again. Correct the "+
		"script, try it with `%s`, then run again. The trials of a changed script are new, because "+
		"results of different scripts are never mixed.", validateCommand+r.job.LibraryPath()))
}

// quickstartReport is the name of the report that the quickstart writes next to its store.
const quickstartReport = "quickstart-report.html"

// wallText returns a forecast, as a range if it is one.
func wallText(wall float64, r job.Range) string {
	if r.Unknown == "" {
		return sections.Duration(wall)
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
