package exhibit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

func waitedText(l report.Lane) string {
	var waited []string
	for _, reason := range slices.Sorted(maps.Keys(l.WaitedS)) {
		waited = append(waited, fmt.Sprintf("%s %.0f s", reason, l.WaitedS[reason]))
	}
	return strings.Join(waited, ", ")
}

func (a analysis) repeatSection() *document.Section {
	if len(a.Repeats) == 0 {
		return nil
	}
	all := make(map[int]bool)
	for _, r := range a.Repeats {
		for _, p := range r.Passes {
			all[p.K] = true
		}
	}
	ks := slices.Sorted(maps.Keys(all))
	return &document.Section{
		ID: "repeats", Title: "Repeats of a task",
		Table: tableOf(repeatColumns(ks), a.Repeats, func(r report.Repeat) []document.Cell {
			return repeatRow(r, ks)
		}),
		Notes: append([]string{
			"pass@k is the unbiased estimate of the chance that at least one of k trials fully " +
				"succeeds (Chen et al., 2021). pass^k estimates the chance that all k do (Yao et " +
				"al., 2024). Both are means over tasks, and a task's value is the mean of its " +
				"cells.",
			"Chance alone explains a difference between two runs that stays within the noise.",
		}, a.averagedNote()...),
	}
}

func repeatColumns(ks []int) []document.Column {
	columns := append(names("model"), figures("tasks")...)
	for _, c := range []struct{ name, hint string }{
		{"pass@%d", "chance that one of %d trials succeeds"},
		{"pass^%d", "chance that all of %d trials succeed"},
	} {
		for _, k := range ks {
			columns = append(columns, document.Column{
				Head: fmt.Sprintf(c.name, k), Hint: fmt.Sprintf(c.hint, k),
			})
		}
	}
	return append(columns,
		document.Column{Head: "flips", Hint: "chance that two repeats end differently"},
		document.Column{
			Head: "noise",
			Hint: "95 % of differences between two runs of one repeat stay within it, in points",
		})
}

func repeatRow(r report.Repeat, ks []int) []document.Cell {
	at, hat := make(map[int]document.Cell), make(map[int]document.Cell)
	for _, k := range ks {
		at[k], hat[k] = unknown, unknown
	}
	for _, p := range r.Passes {
		at[p.K], hat[p.K] = rate(p.At, p.Tasks, p.AtInterval), rate(p.Hat, p.Tasks, p.HatInterval)
	}
	row := []document.Cell{text(r.Model), whole(r.Noise.Tasks)}
	for _, cells := range []map[int]document.Cell{at, hat} {
		for _, k := range ks {
			row = append(row, cells[k])
		}
	}
	return append(row, rate(r.Noise.Flip, r.Noise.Repeated, r.Noise.FlipInterval),
		decimal(100*r.Noise.Limit, "± %.2f"))
}

func (a analysis) pilotSection() *document.Section {
	if len(a.Pilot.Rows) == 0 {
		return nil
	}
	heads := figures("n", "executor", "paper", "batch")
	row := func(r report.PilotRow) []document.Cell {
		return []document.Cell{
			text(r.Model), text(report.Readable(r.Variant)), whole(r.Done),
			rateOf(r.Executor, r.Done), rateOf(r.Paper, r.Done), rateOf(r.Batch, r.Done),
		}
	}
	t := tableOf(append(names("model", "variant"), heads...), a.Pilot.Rows, row)
	notes := []string{
		"The 2025 original published numbers of all three under the one name of full success.",
		"Executor requires all required tools in order. Paper also requires output and a claim " +
			"to be done. Batch requires a workflow score and a phase 2 score of at least 0.8.",
	}
	if averaged := a.Pilot.Averaged; len(averaged) > 0 {
		notes = append(notes, "They average over "+report.ReadableList(averaged)+".")
	}
	return &document.Section{
		ID: "pilot", Title: "Full success by the original's three definitions",
		Table: t, Notes: notes,
	}
}

func otherSections(others []report.Other) (all []document.Section) {
	for i, o := range others {
		columns := append(names("model", "variant", "difficulty"),
			figures("reliability", "n", "full success", "95 % interval", "partial")...)
		all = append(all, document.Section{
			ID: fmt.Sprintf("other-%d", i+1), Title: "From another system: " + o.Name,
			Lead: o.Source + ". Another system reported these aggregates. They are not trials of " +
				"this experiment and are not counted anywhere else.",
			Table: tableOf(columns, o.Rows, otherRow),
			Notes: []string{o.Note, "Figures with * are corrected; see the import's report."},
		})
	}
	return all
}

func otherRow(r report.OtherRow) []document.Cell {
	n := whole(r.N)
	if r.Corrected {
		n.Text += " *"
		n.Hint = "corrected: the file counted outcomes twice"
	}
	partial := float64(r.Partial) / float64(max(1, r.N))
	return []document.Cell{
		text(r.Model), text(report.Readable(r.Variant)), text(report.Readable(r.Difficulty)),
		decimal(r.Reliability, "%g"), n, withoutNote(rate(r.FullRate, r.N, r.Interval)),
		sorted(intervalText(r.Interval), r.Interval.Low),
		rate(partial, r.N, stat.Wilson(r.Partial, r.N, stat.Z95)),
	}
}
