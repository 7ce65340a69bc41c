package exhibit

import (
	"fmt"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
)

// GatePlan lays out how large a run has to be for a verdict.
func GatePlan(p *report.GatePlan) *document.Document {
	table := tableOf([]document.Column{
		{Head: "tasks"},
		{Head: "trials of a task", Hint: "on each side, under all conditions together"},
		{Head: "trials", Hint: "of the candidate; the baseline needs as many"},
		{Head: "dollars", Hint: "for the candidate's trials, at the baseline's mean cost"},
		{Head: "losses found", Hint: "of 100 candidates that are worse by the margin"},
		{Head: "equals passed", Hint: "of 100 candidates that are equal"},
		{Head: "smallest loss", Hint: "in points, that is found in 80 of 100 cases"},
	}, p.Sizes, func(s report.GateSize) []document.Cell {
		smallest := text("none")
		if s.Found < 1 {
			smallest = decimal(100*s.Found, "%.1f")
		}
		return []document.Cell{
			whole(s.Tasks), whole(s.Repeats), whole(s.Trials),
			dollars(s.USD, p.Unpriced > 0, "%.2f"),
			decimal(100*s.Power, "%.0f"), decimal(100*s.Passing, "%.0f"), smallest,
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
				"The first row has the baseline's size. A candidate that is worse is taken to lose " +
					"the same share of its successes on each task.",
				"Of equal candidates at most 1 in 100 fails, and of candidates that are worse by " +
					"the margin at most 5 in 100 pass, whatever the size.",
			},
		}},
	}
}

func gatePlanText(p *report.GatePlan) string {
	last := p.Sizes[len(p.Sizes)-1]
	switch {
	case !p.Enough && p.TasksNeeded == 0:
		return fmt.Sprintf("The baseline's full success is %s, so a loss of %.1f points is "+
			"impossible. Choose a smaller margin, or easier tasks.",
			report.Percent(p.Rate), 100*p.Margin)
	case !p.Enough:
		return fmt.Sprintf("About %s with the repeats of the baseline. With %s, no number of "+
			"repeats finds a loss of %.1f points in 80 of 100 cases.",
			assay.Counted(twoDigits(p.TasksNeeded), "task"), assay.Counted(last.Tasks, "task"), 100*p.Margin)
	}
	text := fmt.Sprintf("%s on each side, %d of each task, find a loss of %.1f points in %.0f of "+
		"100 cases.", assay.Counted(last.Trials, "trial"), last.Repeats, 100*p.Margin, 100*last.Power)
	if last.USD > 0 {
		about := "about"
		if p.Unpriced > 0 {
			about = "at least"
		}
		text += fmt.Sprintf(" The candidate's cost %s $%.2f.", about, last.USD)
	}
	if len(p.Sizes) == 1 {
		text += " The baseline has that many."
	}
	if p.Tasks == report.These {
		text += " This is about these tasks; `--tasks similar` plans for more tasks like these."
	}
	return text
}

func gatePlanBase(p *report.GatePlan) string {
	text := fmt.Sprintf("%s settled, full success %s; repeats of a task correlate by %.2f. ",
		assay.Counted(p.Trials, "trial"), report.Percent(p.Rate), p.Within)
	if p.Apart > 0 && p.Tasks == report.Similar {
		return text + fmt.Sprintf("The candidate's trials so far show that the sides differ by "+
			"%.0f points from task to task, beyond chance.", 100*p.Apart)
	}
	return text + "The candidate is taken to find the same tasks hard."
}

// twoDigits rounds a large number to two digits.
func twoDigits(n int) int {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return (n + unit/2) / unit * unit
}
