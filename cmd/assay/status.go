package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/run/gate"
	"github.com/assay-eval/assay/internal/run/plan"
	"github.com/assay-eval/assay/internal/store"
)

// experimentStatus is what `status` says of one experiment.
type experimentStatus struct {
	Name     string        `json:"experiment"`
	World    string        `json:"world"`
	Library  string        `json:"library"`
	Planned  int           `json:"planned"`
	Done     int           `json:"done"`
	Pending  int           `json:"pending"`
	Parked   int           `json:"parked"`
	Skipped  int           `json:"skipped"`
	Stopped  []gate.Stop   `json:"stopped_early"`
	Faults   int           `json:"faults"`
	Models   []modelStatus `json:"models"`
	Coverage []coverage    `json:"coverage"`
	LastRun  store.Run     `json:"last_run"`
	Runs     int           `json:"runs"`
	// Unplanned counts attempts of other plans of this name, at trials that this one
	// does not have.
	Unplanned int `json:"unplanned"`
	parkedFor map[string]int
}

type modelStatus struct {
	Model   string `json:"model"`
	Planned int    `json:"planned"`
	Done    int    `json:"done"`
	Pending int    `json:"pending"`
	// Parked counts trials that the latest run gave up, each for its faults or
	// all for want of a lane.
	Parked int `json:"parked"`
	// Skipped counts trials that a stop rule gives up.
	Skipped int                     `json:"skipped"`
	Faults  map[assay.FaultKind]int `json:"faults"`
}

// coverage tells how far cells of all task types are, together.
type coverage struct {
	Model       string  `json:"model"`
	Variant     string  `json:"variant"`
	Severity    string  `json:"severity"`
	Difficulty  string  `json:"difficulty"`
	Reliability float64 `json:"reliability"`
	Planned     int     `json:"planned"`
	Done        int     `json:"done"`
}

func newStatus(p *process) *cobra.Command {
	var path string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [EXPERIMENT]",
		Short: "Show what is done, pending and parked",
		Example: `  assay status
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
			all, unplanned := []experimentStatus{}, []error{}
			for _, e := range chosen {
				s, err := statusOf(cmd.Context(), db, e)
				if err != nil {
					// One experiment whose library is gone must not hide the others.
					unplanned = append(unplanned, fmt.Errorf("experiment %s cannot be planned again: %w", e.Name, err))
					continue
				}
				all = append(all, s)
			}
			defer func() { err = errors.Join(append([]error{err}, unplanned...)...) }()
			if asJSON {
				return json.NewEncoder(p.out).Encode(all)
			}
			if len(chosen) == 0 {
				_, err := fmt.Fprintf(p.out, "%s holds no experiment yet.\n", path)
				return err
			}
			if err := writeStatus(p, all); err != nil || db.Skipped() == 0 {
				return err
			}
			_, err = fmt.Fprintf(p.out, "\n%s and count as pending: \"assay verify\" says what is wrong, \"assay recover\" copies what is whole.\n", unread(db.Skipped()))
			return err
		},
	}
	storeFlag(cmd, &path)
	cmd.ValidArgsFunction = namesIn(&path, experimentNames)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON array")
	return cmd
}

// chooseExperiments returns the named experiment, or all.
func chooseExperiments(ctx context.Context, db *store.DB, args []string) ([]store.Experiment, error) {
	all, err := db.Experiments(ctx)
	if err != nil || len(args) == 0 {
		return all, err
	}
	var names []string
	for _, e := range all {
		if e.Name == args[0] {
			return []store.Experiment{e}, nil
		}
		names = append(names, e.Name)
	}
	err = fmt.Errorf("the store has no experiment %q", args[0])
	if hint := assay.NameHint(args[0], names); hint != "" {
		err = fmt.Errorf("%w\nhint: %s", err, hint)
	}
	return nil, err
}

// reopen plans a stored experiment again.
func reopen(ctx context.Context, e store.Experiment) (*job, error) {
	if e.Lost() {
		return nil, fmt.Errorf("the text of experiment %s was lost with what was damaged\nhint: `assay run` with its file stores it again", e.Name)
	}
	var spec plan.Experiment
	if err := json.Unmarshal(e.Spec, &spec); err != nil {
		return nil, fmt.Errorf("experiment %s in the store: %w", e.Name, err)
	}
	return openJob(ctx, &spec, 0)
}

func statusOf(ctx context.Context, db *store.DB, e store.Experiment) (s experimentStatus, err error) {
	j, err := reopen(ctx, e)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	settled, err := db.Settled(ctx)
	if err != nil {
		return s, err
	}
	runs, err := db.Runs(ctx, e.Name)
	if err != nil {
		return s, err
	}
	s = experimentStatus{Name: e.Name, World: j.experiment.World, Library: j.experiment.Library, Runs: len(runs), parkedFor: make(map[string]int)}
	if len(runs) > 0 {
		s.LastRun = runs[len(runs)-1]
	}
	rules := gate.New(plan.Budgets{}, j.experiment.Stop)
	if err := j.judge(ctx, db, rules); err != nil {
		return s, err
	}
	index := make(map[string]*modelStatus)
	for _, name := range j.experiment.Models {
		m := modelStatus{Model: name, Planned: j.plan.Planned(name), Faults: make(map[assay.FaultKind]int)}
		at := make(map[assay.Cell]int)
		for t := range j.plan.Trials(name) {
			cell := t.Cell
			cell.TaskType = ""
			place, ok := at[cell]
			if !ok {
				place = len(s.Coverage)
				at[cell] = place
				s.Coverage = append(s.Coverage, coverage{Model: name, Variant: cell.Variant, Severity: cell.Severity, Difficulty: cell.Difficulty, Reliability: cell.Reliability})
			}
			c := &s.Coverage[place]
			c.Planned++
			if settled.Has(t.ID) {
				m.Done++
				c.Done++
			} else if _, rule := rules.Skip(t.Cell); rule {
				m.Skipped++
			}
		}
		s.Models = append(s.Models, m)
	}
	for i := range s.Models {
		index[s.Models[i].Model] = &s.Models[i]
	}
	for a, err := range db.Attempts(ctx, store.Filter{Experiment: e.Name, OnlyFaults: true}) {
		if err != nil {
			return s, err
		}
		m := index[a.Model]
		if m == nil {
			continue // the file no longer names the model
		}
		m.Faults[a.FaultKind]++
		s.Faults++
		if a.Parked && a.Run == s.LastRun.ID && !settled.Has(a.ID) {
			m.Parked++
			s.parkedFor[a.FaultDetail]++
		}
	}
	closed, err := closedIn(s.LastRun)
	if err != nil {
		return s, err
	}
	if s.Unplanned, _, err = j.unplanned(ctx, db, e); err != nil {
		return s, err
	}
	s.Stopped = slices.DeleteFunc(rules.Stops(), func(stop gate.Stop) bool { return stop.Skipped == 0 })
	for i := range s.Models {
		m := &s.Models[i]
		m.Pending = m.Planned - m.Done - m.Parked - m.Skipped
		if why, ok := closed[m.Model]; ok && m.Pending > 0 {
			s.parkedFor[why] += m.Pending
			m.Parked, m.Pending = m.Parked+m.Pending, 0
		}
		s.Skipped += m.Skipped
		s.Planned += m.Planned
		s.Done += m.Done
		s.Pending += m.Pending
		s.Parked += m.Parked
	}
	return s, nil
}

// unplanned counts the attempts that runs with other plans of the experiment's name
// made at trials which this plan does not have, by model and variant.
func (j *job) unplanned(ctx context.Context, db *store.DB, e store.Experiment) (total int, where []string, err error) {
	if e.Plans < 2 {
		return 0, nil, nil
	}
	planned := make(map[assay.TrialID]bool, j.planned())
	for t := range j.trials() {
		planned[t.ID] = true
	}
	counts := make(map[string]int)
	for a, err := range db.Attempts(ctx, store.Filter{Experiment: e.Name}) {
		if err != nil {
			return 0, nil, err
		}
		if !planned[a.ID] {
			counts[a.Model+", "+report.PromptKey(a.Variant, a.Severity)]++
			total++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		where = append(where, name+": "+counted(counts[name], "attempt"))
	}
	return total, where, nil
}

// closedIn says which models a run could serve no more, and why.
func closedIn(r store.Run) (map[string]string, error) {
	var summary struct {
		Closed map[string]string `json:"closed"`
	}
	if len(r.Summary) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(r.Summary, &summary); err != nil {
		return nil, fmt.Errorf("summary of run %s: %w", r.ID, err)
	}
	return summary.Closed, nil
}

func writeStatus(p *process, all []experimentStatus) error {
	w := p.out
	for i, s := range all {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "experiment %s  (world %s, library %s)\n\n", s.Name, s.World, s.Library)
		t := document.NewTextTable("model", "", "planned", "done", "pending", "parked", "skipped", "faults")
		for _, m := range s.Models {
			t.Row(m.Model, "", fmt.Sprint(m.Planned), fmt.Sprint(m.Done), fmt.Sprint(m.Pending), fmt.Sprint(m.Parked), fmt.Sprint(m.Skipped), faultText(m.Faults))
		}
		fmt.Fprintf(w, "%s\n\n", t)
		if matrix := coverageMatrix(s.Coverage, p.terminal); matrix != "" {
			fmt.Fprintf(w, "coverage: done of planned\n\n%s\n\n", matrix)
		}
		fmt.Fprintln(w, lastRun(s))
		if s.Unplanned > 0 {
			fmt.Fprintf(w, "%s at trials that the latest plan of this name does not have are not shown: other models were named, the file was edited, or stores were merged.\n", counted(s.Unplanned, "attempt"))
		}
		for _, stop := range s.Stopped {
			fmt.Fprintf(w, "%s; n = %d, and %d trials are skipped\n", stop, stop.Outcomes, stop.Skipped)
		}
		if err := writeParked(w, s.parkedFor); err != nil {
			return err
		}
	}
	return nil
}

// coverageMatrix has a row for each model and condition, and a column for each
// variant; it is empty for a single one, which the table of models shows.
func coverageMatrix(all []coverage, on document.Terminal) string {
	type row struct {
		model, difficulty string
		reliability       float64
	}
	var rows []row
	var variants []string
	cells := make(map[row]map[string]coverage)
	for _, c := range all {
		r := row{c.Model, c.Difficulty, c.Reliability}
		name := strings.TrimPrefix(c.Variant, "flawed_")
		if c.Severity != "" && c.Severity != assay.Severe {
			name += ",\n" + c.Severity
		}
		if cells[r] == nil {
			cells[r] = make(map[string]coverage)
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
		line := []string{r.model, strings.ReplaceAll(r.difficulty, "_", " "), assay.FormatReliability(r.reliability)}
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

func lastRun(s experimentStatus) string {
	r := s.LastRun
	state := "has not ended: it is running, or it was killed"
	if !r.FinishedAt.IsZero() {
		state = "ended after " + r.FinishedAt.Sub(r.StartedAt).Round(time.Second).String()
	}
	runs := "1 run, which began"
	if s.Runs > 1 {
		runs = fmt.Sprintf("%d runs; the latest began", s.Runs)
	}
	return fmt.Sprintf("%s %s and %s.", runs, r.StartedAt.Format(time.RFC3339), state)
}

// writeParked lists the reasons for which trials are parked, most frequent
// first.
func writeParked(w io.Writer, reasons map[string]int) error {
	const most = 5
	var lines []string
	for reason, n := range reasons {
		lines = append(lines, fmt.Sprintf("%6d parked: %s", n, strings.ReplaceAll(reason, "\n", " ")))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(b, a) })
	for i, l := range lines {
		if i == most {
			l = fmt.Sprintf("       and %d more reasons", len(lines)-most)
		}
		if _, err := fmt.Fprintln(w, l); err != nil || i == most {
			return err
		}
	}
	return nil
}

func faultText(by map[assay.FaultKind]int) string {
	var parts []string
	for _, k := range assay.FaultKinds {
		if n := by[k]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, k))
		}
	}
	if len(parts) == 0 {
		return "–"
	}
	return strings.Join(parts, ", ")
}
