package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/result/sections"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/store"
)

func newStatus(p *process) *cobra.Command {
	var path string
	var asJSON, coverage, watch bool
	cmd := &cobra.Command{
		Use:   "status [EXPERIMENT]",
		Short: "Show how many trials are done, pending and parked",
		Example: `  assay status
  assay status --watch
  assay status --coverage
  assay status quickstart --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			db, err := p.openToRead(cmd.Context(), path)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			chosen, err := chooseExperiments(cmd.Context(), db, args)
			if err != nil {
				return err
			}
			if len(chosen) == 0 && !asJSON {
				p.say("%s has no experiment yet.", path)
				return nil
			}
			if watch {
				if err := watchRun(cmd.Context(), p, db, path); err != nil {
					return err
				}
				return endOfWatch(cmd.Context(), p, db, path, chosen)
			}
			return showStatus(cmd.Context(), p, db, path, chosen, asJSON, coverage)
		},
	}
	storeFlag(cmd, &path)
	cmd.ValidArgsFunction = namesIn(&path, experimentNames)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	cmd.Flags().BoolVar(&coverage, "coverage", false,
		"show which cells of which models are done, over all experiments")
	cmd.Flags().BoolVar(&watch, "watch", false,
		"follow the run until it ends; exit code 3 if trials are left")
	cmd.MarkFlagsMutuallyExclusive("watch", "json")
	cmd.MarkFlagsMutuallyExclusive("watch", "coverage")
	return interruptible(p, cmd)
}

// showStatus prints the status of experiments. One that cannot be planned again, for example
// because its library is gone, makes the command fail but does not hide the others.
func showStatus(
	ctx context.Context, p *process, db *store.DB, path string, chosen []store.Experiment,
	asJSON, coverage bool,
) error {
	all, failed := []session.Status{}, []error{}
	for _, e := range chosen {
		s, err := session.StatusOf(ctx, db, e)
		if err != nil {
			failed = append(failed, fmt.Errorf("cannot plan experiment %s again: %w", e.Name, err))
			continue
		}
		if s.Working {
			s.Follow(liveState(ctx, path, s.LastRun.ID))
		}
		all = append(all, s)
	}
	switch {
	case asJSON && coverage:
		cells := []session.Coverage{}
		for _, s := range all {
			cells = append(cells, s.Coverage...)
		}
		return errors.Join(append([]error{json.NewEncoder(p.out).Encode(cells)}, failed...)...)
	case asJSON:
		return errors.Join(append([]error{json.NewEncoder(p.out).Encode(all)}, failed...)...)
	case coverage:
		writeCoverage(p, all)
		all = nil
	}
	for i, s := range all {
		if i > 0 {
			fmt.Fprintln(p.out)
		}
		writeStatus(p, assay.StorePath(path), s)
	}
	if n := db.Skipped(); n > 0 {
		fmt.Fprintln(p.out)
		p.say("%s and count as pending. `assay store verify%[2]s` explains what is wrong; "+
			"`assay store recover%[2]s` copies what is intact.", unread(n), assay.StorePath(path).Option())
	}
	return errors.Join(failed...)
}

// chooseExperiments returns the named experiment, or all.
func chooseExperiments(
	ctx context.Context, db *store.DB, args []string,
) ([]store.Experiment, error) {
	if len(args) == 0 {
		return db.Experiments(ctx)
	}
	e, err := query.FindExperiment(ctx, db, args[0])
	if err != nil {
		return nil, err
	}
	return []store.Experiment{e}, nil
}

func writeStatus(p *process, path assay.StorePath, s session.Status) {
	p.say("experiment %s (world %s, library %s)", s.Name, s.World, s.Library)
	fmt.Fprintln(p.out)
	t := p.table("model", "", "planned", "done", "pending", "parked", "skipped", "faults")
	for _, m := range s.Models {
		t.Row(m.Model, "", fmt.Sprint(m.Planned), fmt.Sprint(m.Done), fmt.Sprint(m.Pending),
			fmt.Sprint(m.Parked), fmt.Sprint(m.Skipped), cmp.Or(m.Brief(), "–"))
	}
	fmt.Fprintf(p.out, "%s\n\n", t)
	if matrix := coverageMatrix(s.Coverage, p.terminal); matrix != "" {
		fmt.Fprintf(p.out, "coverage: done of planned\n\n%s\n\n", matrix)
	}
	p.say("%s", lastRun(path, s))
	p.say("Attempts on disk: %s, %s, %d tokens.", s.FaultCount.Text(), s.CostText(), s.Spent.Tokens)
	writeLive(p, s.Live)
	if text := s.Begun.String(); text != "" && s.Live == nil {
		p.say("%s.", text)
	}
	if s.MissingJournal != nil {
		p.say("WARNING: %s.", s.MissingJournal)
	}
	aside := func(who string, all []store.AsideUse) {
		for _, u := range all {
			var unpriced []string
			if u.Unpriced > 0 {
				unpriced = []string{u.Model}
			}
			p.say("The %s %s took %s with %d tokens, %s, apart from what the agents cost.", who,
				u.Model, assay.Counted(u.Requests, "request"), u.Tokens, assay.CostText(u.CostUSD, 2, unpriced...))
		}
	}
	aside("simulated user", s.Users)
	aside("judge", s.Judges)
	if s.Unplanned > 0 {
		p.say("%s at trials that the latest plan of this name does not have are not shown, "+
			"because the file or its models changed or because stores were merged.",
			assay.Counted(s.Unplanned, "attempt"))
	}
	if s.Stillness != "" {
		p.say("In the latest run, %s.", s.Stillness)
	}
	for _, b := range s.Exhausted {
		p.say("In the latest run, %s.", b)
	}
	for _, stop := range s.Stopped {
		p.say("%s (%d outcomes, %d trials skipped)", stop, stop.Outcomes, stop.Skipped)
	}
	for _, what := range slices.Sorted(maps.Keys(s.OtherSettings)) {
		p.say("%s, as the endpoint reported in %s", what, assay.Counted(s.OtherSettings[what], "attempt"))
	}
	writeParked(p, s.ParkedFor)
	for _, name := range slices.Sorted(maps.Keys(s.Closed)) {
		if why := s.Closed[name]; s.ParkedFor[why] == 0 { // else the line above has the reason
			p.item("       ", fmt.Sprintf("%s was closed: %s", name, strings.ReplaceAll(why, "\n", " ")))
		}
	}
}

// coverageMatrix has a row for each model and condition, and a column for each variant. It is
// empty if there is a single cell, because the table of models shows it already.
func coverageMatrix(all []session.Coverage, on document.Terminal) string {
	type row struct {
		model, difficulty string
		reliability       float64
	}
	var rows []row
	var variants []string
	cells := make(map[row]map[string]session.Coverage)
	for _, c := range all {
		r := row{c.Model, c.Difficulty, c.Reliability}
		name := strings.TrimPrefix(c.Variant, "flawed_")
		if c.Severity != "" && c.Severity != assay.Severe {
			name += ",\n" + c.Severity
		}
		if cells[r] == nil {
			cells[r] = make(map[string]session.Coverage)
			rows = append(rows, r)
		}
		cells[r][name] = c
		if !slices.Contains(variants, name) {
			variants = append(variants, name)
		}
	}
	if len(variants) < 2 && len(rows) < 2 {
		return ""
	}
	heads := []string{"model", "difficulty", "reli-\nability"}
	for _, v := range variants {
		heads = append(heads, strings.ReplaceAll(v, "_", "\n"))
	}
	t := document.NewScreenTable(on, 3, heads...)
	for _, r := range rows {
		difficulty := strings.ReplaceAll(r.difficulty, "_", " ")
		line := []string{r.model, difficulty, assay.FormatReliability(r.reliability)}
		for _, v := range variants {
			text := "–"
			if c, ok := cells[r][v]; ok {
				text = fmt.Sprintf("%d/%d", c.Done, c.Planned)
			}
			line = append(line, text)
		}
		t.Row(line...)
	}
	return t.String()
}

func lastRun(path assay.StorePath, s session.Status) string {
	r := s.LastRun
	state := "ended without writing its end: it was killed, or could not write to its store; " +
		"`assay " + plan.RunVerb(s.Name) + path.Option() + "` goes on with it"
	switch {
	case s.Again:
		state = strings.Replace(state, "` goes", " --again` goes", 1)
	case s.Begun.Again > 0:
		state += ", with the same `--retry`"
	}
	switch {
	case !r.FinishedAt.IsZero():
		state = "ended after " + sections.Duration(r.FinishedAt.Sub(r.StartedAt).Seconds())
	case s.Working:
		state = "is working"
	}
	runs := "1 run. It began"
	if s.Runs > 1 {
		runs = fmt.Sprintf("%d runs. The latest began", s.Runs)
	}
	return fmt.Sprintf("%s at %s and %s.", runs, r.StartedAt.Format(time.RFC3339), state)
}

// writeParked lists the reasons why trials are parked, the most frequent first.
func writeParked(p *process, reasons map[string]int) {
	const most = 5
	names := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(reasons[b]-reasons[a], strings.Compare(a, b))
	})
	for i, reason := range names {
		if i == most {
			p.item("       ", fmt.Sprintf("and %d more reasons", len(names)-most))
			return
		}
		text := strings.ReplaceAll(reason, "\n", " ")
		p.item(fmt.Sprintf("%6d ", reasons[reason]), "parked: "+text)
	}
}
