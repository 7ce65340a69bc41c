package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/store"
)

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
			all, unplanned := []job.Status{}, []error{}
			for _, e := range chosen {
				s, err := job.StatusOf(cmd.Context(), db, e)
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

func writeStatus(p *process, all []job.Status) error {
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
		if err := writeParked(w, s.ParkedFor); err != nil {
			return err
		}
	}
	return nil
}

// coverageMatrix has a row for each model and condition, and a column for each
// variant; it is empty for a single one, which the table of models shows.
func coverageMatrix(all []job.Coverage, on document.Terminal) string {
	type row struct {
		model, difficulty string
		reliability       float64
	}
	var rows []row
	var variants []string
	cells := make(map[row]map[string]job.Coverage)
	for _, c := range all {
		r := row{c.Model, c.Difficulty, c.Reliability}
		name := strings.TrimPrefix(c.Variant, "flawed_")
		if c.Severity != "" && c.Severity != assay.Severe {
			name += ",\n" + c.Severity
		}
		if cells[r] == nil {
			cells[r] = make(map[string]job.Coverage)
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

func lastRun(s job.Status) string {
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
