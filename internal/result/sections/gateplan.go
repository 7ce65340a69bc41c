package sections

import (
	"fmt"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

// GatePlan lays out how large a run has to be for a verdict.
func GatePlan(p *report.GatePlan) *document.Document {
	table := tableOf([]document.Column{
		{Head: "tasks"},
		{Head: "trials of a task", Hint: "on each side, under all conditions together"},
		{Head: "trials", Hint: "of the candidate; the baseline needs as many"},
		{Head: "dollars", Hint: "for the candidate's trials, at the baseline's mean cost"},
		{Head: "equals passed", Hint: "of 100 candidates that are equal"},
		{Head: "losses found", Hint: "of 100 candidates that lose the margin, the same share on each task"},
		{Head: "in whole tasks", Hint: "the same, if some tasks lose all and others nothing"},
	}, p.Sizes, func(s report.GateSize) []document.Cell {
		return []document.Cell{
			whole(s.Tasks), whole(s.Repeats), whole(s.Trials),
			dollars(s.USD, p.AtLeast, "%.2f"),
			text(share(s.Passing)), text(share(s.Finds)), text(share(s.FindsWhole)),
		}
	})
	return &document.Document{
		Title: fmt.Sprintf("Plan of a gate against %s, margin %.1f points", p.Baseline,
			100*p.Margin),
		Summary: []document.Point{
			{Label: "Needed", Text: gatePlanText(p)},
			{Label: "Baseline", Text: gatePlanBase(p)},
		},
		Sections: []document.Section{{
			ID: "sizes", Title: "Sizes of a run", Table: table,
			Notes: []string{
				"The first row has the baseline's size. Each row is simulated 500 times with the " +
					"rule of the verdict.",
				"Of candidates that are equally good at every task at most 1 in 100 fails, and of " +
					"candidates that are worse by the margin at most 5 in 100 pass, whatever the size.",
			},
		}},
	}
}

func gatePlanText(p *report.GatePlan) string {
	var parts []string
	if p.Least > 0 {
		unit := "task"
		if p.Cluster == stat.BySequence {
			unit = "sequence"
		}
		parts = append(parts, fmt.Sprintf("%s cannot rule out a loss of less than %s points, whatever "+
			"the repeats; %d or more can, and `--tasks these` asks about just these tasks.",
			assay.Counted(p.Clusters, unit), leastText(p.Least), p.Needed))
	}
	switch {
	case p.CannotLose:
		return fmt.Sprintf("No size decides: full success is %s, so %s succeeds too rarely to lose %.1f "+
			"points. Choose easier tasks, or a smaller margin.", report.Percent(p.Rate), p.Baseline,
			100*p.Margin)
	case p.Advised < 0:
		parts = append(parts, "No size that was tried passes 80 of 100 equal candidates. Choose a "+
			"larger margin.")
		return strings.Join(parts, " ")
	}
	s := p.Sizes[p.Advised]
	text := fmt.Sprintf("%s on each side, %d of each of %s, pass %s of 100 equal candidates, and find "+
		"a loss of %.1f points in %s if it is spread evenly, and in %s if it is in whole tasks.",
		assay.Counted(s.Trials, "trial"), s.Repeats, assay.Counted(s.Tasks, "task"), share(s.Passing),
		100*p.Margin, share(s.Finds), share(s.FindsWhole))
	if s.USD > 0 {
		about := "about"
		if p.AtLeast {
			about = "at least"
		}
		text += fmt.Sprintf(" The candidate's cost %s $%.2f.", about, s.USD)
	}
	if p.Library > 0 && s.Tasks > p.Library {
		text += fmt.Sprintf(" The library has only %s.", assay.Counted(p.Library, "task"))
	}
	if p.Advised == 0 {
		text += " The baseline has that many."
	}
	if p.Tasks == report.These {
		text += " This is about these tasks; `--tasks similar` plans for more tasks like these."
	}
	return strings.Join(append([]string{text}, parts...), " ")
}

func gatePlanBase(p *report.GatePlan) string {
	text := fmt.Sprintf("%s settled, full success %s; ", assay.Counted(p.Trials, "trial"),
		report.Percent(p.Rate))
	if p.Unrepeated {
		text += "no task was repeated, so how far tasks differ is unknown, and the shares are ranges. "
	} else {
		text += fmt.Sprintf("repeats of a task correlate by %.2f. ", p.Within)
	}
	if p.Luck > 0 {
		return text + fmt.Sprintf("In %.0f of 100 pairs, the candidate's trials so far ended like the "+
			"baseline's because they met the same luck.", 100*p.Luck)
	}
	return text + "The candidate is taken to meet luck of its own."
}
