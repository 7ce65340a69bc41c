package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/session"
)

// writeCoverage shows which trials of a store are done: models by experiments, and then cells.
func writeCoverage(p *process, all []session.Status) {
	if len(all) == 0 {
		return
	}
	heads := []string{"model", ""}
	done := make(map[string][]string) // by model, with an entry for each experiment
	var models []string
	var cells []session.Coverage
	for i, s := range all {
		heads = append(heads, s.Name)
		cells = append(cells, s.Coverage...)
		for _, m := range s.Models {
			if done[m.Model] == nil {
				models = append(models, m.Model)
				done[m.Model] = slices.Repeat([]string{"–"}, len(all))
			}
			done[m.Model][i] = fmt.Sprintf("%d/%d", m.Done, m.Planned)
		}
	}
	fmt.Fprint(p.out, "done of planned trials\n\n")
	t := p.table(heads...)
	for _, m := range models {
		t.Row(append([]string{m, ""}, done[m]...)...)
	}
	fmt.Fprintf(p.out, "%s\n", t)
	slices.SortStableFunc(cells, func(a, b session.Coverage) int {
		return cmp.Compare(slices.Index(models, a.Model), slices.Index(models, b.Model))
	})
	fmt.Fprintf(p.out, "\n%s\n", strings.TrimSuffix(cellTable(p, cells), "\n"))
}

// cellTable has a row for each cell, except that task types are added up.
func cellTable(p *process, cells []session.Coverage) string {
	t := p.table("model", "experiment", "variant", "severity", "difficulty", "reli-\nability", "done")
	for _, c := range cells {
		t.Row(c.Model, c.Experiment, c.Variant, cmp.Or(c.Severity, "–"), c.Difficulty,
			assay.FormatReliability(c.Reliability), fmt.Sprintf("%d/%d", c.Done, c.Planned))
	}
	return t.String()
}
