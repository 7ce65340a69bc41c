package sections

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

// pairedTable shows comparisons of A with B. Every difference is B minus A: positive means that B did
// better. The table begins with columns of names, which of fills.
func pairedTable(all []report.Paired, heads []string, of func(report.Paired) []string) *document.Table {
	type row = report.Paired
	var columns []column[row]
	add := func(head, hint string, cell func(row) document.Cell) {
		columns = append(columns, fixed(document.Column{Head: head, Hint: hint}, cell))
	}
	for i, head := range heads {
		columns = append(columns, fixed(label(head), func(p row) document.Cell { return text(of(p)[i]) }))
	}
	add("tasks", "that both sides tried", func(p row) document.Cell { return whole(p.Tasks) })
	add("A", "", func(p row) document.Cell { return points(p.RateA) })
	add("B", "", func(p row) document.Cell { return points(p.RateB) })
	add("B − A", "in percentage points; positive if B did better", differenceCell)
	add("95 % interval", "", func(p row) document.Cell {
		return sorted(signed("%+.1f to %+.1f", 100*p.Interval.Low, 100*p.Interval.High), p.Interval.Low)
	})
	add("A only", "tasks on which A did better", func(p row) document.Cell { return whole(p.OnlyA) })
	add("B only", "tasks on which B did better", func(p row) document.Cell { return whole(p.OnlyB) })
	add("h", "Cohen's effect size: 0.2 is small, 0.5 medium, 0.8 large",
		func(p row) document.Cell { return decimal(p.CohenH, "%+.2f") })
	add("p", "", func(p row) document.Cell { return sorted(report.Probability(p.P), p.P) })
	add("q", "p adjusted for the other tests (Benjamini–Hochberg)",
		func(p row) document.Cell { return sorted(report.Probability(p.Q), p.Q) })
	add("detectable", "smallest difference found with 80 % power, in points",
		func(p row) document.Cell { return sorted(fmt.Sprintf("%.1f", 100*p.Detectable), p.Detectable) })
	t, _ := tableBy(all, columns)
	return t
}

// differenceCell shows the difference of two sides, marked if it is significant.
func differenceCell(p report.Paired) document.Cell {
	d := decimal(100*p.Difference, "%+.1f")
	switch {
	case p.Significant() && p.Difference > 0:
		d.Tone = document.Good
	case p.Significant():
		d.Tone = document.Bad
	}
	return d
}

// variantDifferences compares each variant with the reference.
func (a analysis) variantDifferences() *document.Section {
	if len(a.Variants) == 0 {
		return nil
	}
	notes := a.pairedNotes(a.Variants)
	if alone := a.incomparable(); len(alone) > 0 {
		notes = append(notes, "Not compared, because no other variant of the model has tasks "+
			"under the same conditions: "+strings.Join(alone, "; ")+".")
	}
	heads := []string{"model", "A: reference", "B: variant"}
	return &document.Section{
		ID: "variant-differences", Title: "What each variant changes",
		Lead: fmt.Sprintf("Differences from %s on the same tasks, under the same conditions, in "+
			"percentage points.", a.reference()),
		Chart: a.heatChart(), Notes: notes,
		Table: pairedTable(a.Variants, heads, func(p report.Paired) []string {
			return []string{p.Model, report.Readable(p.A), report.Readable(p.B)}
		}),
	}
}

// reference names the variant that others are compared with.
func (a analysis) reference() string {
	if differ(a.Variants, func(p report.Paired) string { return p.A }) {
		return "the model's optimal plans or, without those, its first variant"
	}
	return report.Readable(a.Variants[0].A)
}

// incomparable lists variants that no comparison has, of models with several variants.
func (a analysis) incomparable() (alone []string) {
	variantOf := a.variantText()
	for i, r := range a.Rows.All() {
		name := variantOf(r.Cell)
		same := func(s report.GridRow) bool { return s.Model == r.Model && variantOf(s.Cell) == name }
		other := func(s report.GridRow) bool { return s.Model == r.Model && variantOf(s.Cell) != name }
		if slices.ContainsFunc(a.Rows.All()[:i], same) || !slices.ContainsFunc(a.Rows.All(), other) {
			continue
		}
		compared := slices.ContainsFunc(a.Variants, func(p report.Paired) bool {
			return p.Model == r.Model && (p.A == name || p.B == name)
		})
		if !compared {
			alone = append(alone, r.Model+" "+report.Readable(name))
		}
	}
	return alone
}

func (a analysis) modelDifferences() *document.Section {
	if len(a.Models) == 0 {
		return nil
	}
	return &document.Section{
		ID: "model-differences", Title: "Models against each other",
		Lead: "Each pair of the compared models on the same trials, with " + a.Condition + ".",
		Table: pairedTable(a.Models, []string{"A", "B"}, func(p report.Paired) []string {
			return []string{p.A, p.B}
		}),
		Notes: []string{
			fmt.Sprintf("%d of %d pairs differ significantly: q is at most .05. It is the p-value of "+
				"the ranking on the first screen, adjusted for all pairs (max-T over changes of signs, "+
				"Westfall and Young 1993, closed over the order), and p is that of the pair alone.",
				len(a.Ranking.Pairs), len(a.Models)),
			methodNote(a.Models[0].Method) + " " + weightNote, populationNote(a.Population),
		},
	}
}

func (a analysis) pairedNotes(all []report.Paired) []string {
	methods := make(map[string]bool)
	var uneven []string
	for _, p := range all {
		methods[p.Method] = true
		if p.Uneven() {
			uneven = append(uneven, fmt.Sprintf("%s and %s (%s)", report.Readable(p.A),
				report.Readable(p.B), cmp.Or(p.Model, named("p", p.PConditions))))
		}
	}
	notes := []string{
		fmt.Sprintf("%d of %d comparisons are significant: q is below .05, which holds the share "+
			"of false discoveries at 5 %% (Benjamini and Hochberg, 1995). The %s of this report "+
			"are one family, and each q is adjusted for all.",
			significant(all), len(all), assay.Counted(a.Tests, "test")),
		methodNote(slices.Sorted(maps.Keys(methods))...) + " " + weightNote + " A only and B only " +
			"count tasks on which one side did better.",
		populationNote(a.Population),
	}
	if len(uneven) > 0 {
		notes = append(notes, "The difference depends on the condition (p is below .05 for the "+
			"same difference under all), so the mean hides something: "+
			strings.Join(uneven, "; ")+".")
	}
	return notes
}

// weightNote explains how trials are averaged.
const weightNote = "A task's rate is the mean of its rates under the conditions that both sides " +
	"have, and each task weighs the same."

// populationNote describes the tasks that intervals and tests are about.
func populationNote(p report.Population) string {
	switch {
	case p.Cluster == stat.BySequence:
		return fmt.Sprintf("Intervals and tests are about tasks at large. The %s here have %s of "+
			"tools, which count as the independent observations.",
			assay.Counted(p.Tasks, "task"), assay.Counted(p.Sequences, "sequence"))
	case p.Sequences < p.Tasks:
		return fmt.Sprintf("Intervals and tests are about more tasks like these %d, which have %s "+
			"of tools. For tasks at large, choose `--cluster sequence`.",
			p.Tasks, assay.Counted(p.Sequences, "sequence"))
	}
	return fmt.Sprintf("Intervals and tests are about more tasks like these %d.", p.Tasks)
}

func significant(all []report.Paired) (n int) {
	for _, p := range all {
		if p.Significant() {
			n++
		}
	}
	return n
}

// methodNote names the tests that intervals and p come from.
func methodNote(methods ...string) string {
	return "Intervals and p come from Student's " + strings.Join(methods, ", or from ") + "."
}
