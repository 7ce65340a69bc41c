package sections

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
)

// standingSection has a row for each model, below a chart of the cost of flaws and failing tools.
func (a analysis) standingSection() *document.Section {
	all := a.Standings
	if len(all) == 0 {
		return nil
	}
	table, caption := standingTable(all)
	notes := append(aboutNotes(all), strings.TrimSpace(a.commonText()+" "+caption))
	if slices.ContainsFunc(all, func(s report.Standing) bool {
		return costCell(s.FlawedPlan).Tone != "" || costCell(s.FailingTools).Tone != ""
	}) {
		notes = append(notes, "Losses are marked if they are beyond chance (q < .05), all losses of this "+
			"table taken together. The line of the largest loss takes types of tasks and single tasks "+
			"together with them.")
	}
	if note := a.unpairedNote(); note != "" {
		notes = append(notes, note)
	}
	if a.Skilless {
		notes = append(notes, "These tasks leave little room between policies without skill and the best "+
			"possible, so that they cannot show skill. Harder tasks, or trials without a plan, can.")
	}
	return &document.Section{
		ID: "models", Title: "Models", Lead: strings.TrimSpace(a.bestText() + "\n" + a.nextText()),
		Chart: standingChart(all), Table: table, Notes: notes,
	}
}

// unpairedNote says why there is no column about flawed plans although they were tried.
func (a analysis) unpairedNote() string {
	compared := slices.ContainsFunc(a.Standings, func(s report.Standing) bool { return s.FlawedPlan != nil })
	rows := a.Rows.All()
	tried := func(is func(string) bool) bool {
		return slices.ContainsFunc(rows, func(r report.GridRow) bool {
			return is(r.Variant) && r.Int(report.Done) > 0
		})
	}
	if compared || !tried(report.IsFlawed) {
		return ""
	}
	if tried(func(v string) bool { p, _ := assay.PlainOf(v); return p == assay.Optimal }) {
		return "What flawed plans cost is not shown, because no model has tried one at the same task and under " +
			"the same conditions as the right plan."
	}
	return "What flawed plans cost is not shown, because no trial has the right plan. The variant `optimal` " +
		"adds such trials."
}

// aboutNotes say what simulated models do that stand for people's.
func aboutNotes(all []report.Standing) (notes []string) {
	for _, s := range all {
		if does := plan.About(s.Model); does != "" {
			notes = append(notes, s.Model+" "+does+".")
		}
	}
	return notes
}

// commonText says which trials the rows are about.
func (a analysis) commonText() string {
	all := a.Standings
	low, high, complete := all[0].Common, all[0].Common, true
	for _, s := range all {
		low, high = min(low, s.Common), max(high, s.Common)
		complete = complete && s.Common == s.Done
	}
	text := ""
	switch n := assay.Counted(high, "trial"); {
	case all[0].Own && len(all) > 1:
		text = "The models have no trial in common, so that each row is about other trials."
	case complete && low == high && len(all) > 1:
		text = fmt.Sprintf("Each row is about the same %s.", n)
	case complete:
		text = "Each row is about all trials that are done."
	case low == high:
		text = fmt.Sprintf("Each row is about the same %s, which all compared models have done.", n)
	default:
		text = fmt.Sprintf("Each row is about trials that all compared models have done, %d to %d of each "+
			"model.", low, high)
	}
	if a.Condition != "" {
		text += fmt.Sprintf(" Success is about those with %s, and each task weighs the same.",
			a.Condition)
	}
	return text
}

// bestText names the best model and the certainty of that claim.
func (a analysis) bestText() string {
	var best, others, unable []string
	compared, simulated := 0, 0
	real := slices.ContainsFunc(a.Standings, func(s report.Standing) bool { return !report.Simulated(s.Model) })
	for _, s := range a.Standings {
		switch {
		case real && report.Simulated(s.Model):
			simulated++
		case s.Selected != "":
			unable = append(unable, fmt.Sprintf("%s lacks trials that are not missing by chance (%s)",
				s.Model, s.Selected))
		case s.Done*20 < s.Planned*19:
			unable = append(unable, fmt.Sprintf("%s has done %s of its trials", s.Model,
				roughly(float64(s.Done)/float64(s.Planned))))
		case s.Compared:
			compared++
			if s.Best {
				best = append(best, s.Model)
			} else {
				others = append(others, s.Model)
			}
		}
	}
	text := ""
	switch {
	case len(unable) > 0 && compared < 2:
		text = "No model can be called the best yet."
	case compared < 2:
	case len(best) == 0 && compared > 1 && a.Standings[0].Success.Rate == 0:
		text = "No model succeeds, so that none is the best."
	case len(best) == 0 && compared > 1:
		text = a.tooFew()
	case len(best) > 1:
		text = fmt.Sprintf("Too close to call: %s.", listed(best))
		if p := a.tied(); p != nil {
			text += fmt.Sprintf(" %s %s %s on the same %s (%s).", p.B, scored(p.Difference), p.A,
				assay.Counted(p.Tasks, "task"), named("adjusted p", p.Q))
		}
	case len(others) > 0:
		text = fmt.Sprintf("Best: %s. It is significantly better than %s.", best[0],
			listed(others))
	}
	if len(unable) > 0 {
		text += " Out of the comparison: " + strings.Join(unable, "; ") + "."
	}
	if simulated > 0 {
		text += " Simulated models are not compared with others; `assay compare` does."
	}
	return strings.TrimSpace(text)
}

// listed joins the first names, and counts the others.
func listed(names []string) string {
	n := min(len(names), maxNamed)
	text := strings.Join(names[:n], ", ")
	if more := len(names) - n; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// tied compares the first two of several models that may be the best. The difference is not
// negative. It returns nil if there are not several.
func (a analysis) tied() *report.Paired {
	if len(a.Standings) < 2 || !a.Standings[0].Best || !a.Standings[1].Best {
		return nil
	}
	return report.Between(a.Models, a.Standings[1].Model, a.Standings[0].Model)
}

// standingTable shows the figures of models, and explains those that are shown.
func standingTable(all []report.Standing) (*document.Table, string) {
	type row = report.Standing
	columns := []column[row]{fixed(label("model"), func(s row) document.Cell { return text(s.Model) })}
	// A column shows that a figure was sought, even if none of the models can have it.
	add := func(m *report.Measure, sought func(row) bool, cell func(row) document.Cell) {
		if slices.ContainsFunc(all, sought) {
			c := shows(m, cell)
			c.fixed = true
			columns = append(columns, c)
		}
	}
	flawed := func(s row) bool { return s.FlawedPlan != nil }
	failing := func(s row) bool { return s.FailingTools != nil }
	add(report.StandingSuccess, func(row) bool { return true },
		func(s row) document.Cell { return rateOf(s.Success, s.Ranked) })
	add(report.StandingSkill, func(s row) bool { return s.Skill != nil }, skillCell)
	add(report.FlawedPlan, flawed, func(s row) document.Cell { return costCell(s.FlawedPlan) })
	add(report.WorstFlaw, flawed, func(s row) document.Cell { return worstCell(s.FlawedPlan) })
	add(report.ToolFailures, failing, func(s row) document.Cell { return costCell(s.FailingTools) })
	add(report.WorstKind, failing, func(s row) document.Cell { return worstCell(s.FailingTools) })
	add(report.Recovery, func(s row) bool { return s.Hit > 0 },
		func(s row) document.Cell { return rateOf(s.Recovery, s.Hit) })
	add(report.FalseSuccess, func(s row) bool { return s.Failed > 0 },
		func(s row) document.Cell { return rateOf(s.FalseSuccess, s.Failed) })
	add(report.DollarsPerSuccess, func(s row) bool { return s.Price != nil }, priceCell)
	add(report.Finished, func(s row) bool { return s.Done < s.Planned }, func(s row) document.Cell {
		return sorted(roughly(float64(s.Done)/float64(s.Planned)), float64(s.Done))
	})
	return tableBy(all, columns)
}

// skillCell shows the skill above its interval. A figure that is surely below the floor has no
// meaning.
func skillCell(s report.Standing) document.Cell {
	k := s.Skill
	if k == nil {
		return unknown
	}
	cell := sorted("below 0", k.Rate)
	if k.Interval.High >= 0 {
		low := "below 0"
		if k.Interval.Low >= 0 {
			low = fmt.Sprintf("%.0f", 100*k.Interval.Low)
		}
		cell = sorted(strings.TrimPrefix(lossOf(-k.Rate), "+"), k.Rate)
		cell.Note = fmt.Sprintf("%s–%.0f", low, min(100, 100*k.Interval.High))
	}
	cell.Hint = fmt.Sprintf("floor %s, ceiling %s", report.Percent(k.Floor), report.Percent(k.Ceiling))
	return cell
}

// costCell shows the share of its success that a model loses, above its interval.
func costCell(c *report.Cost) document.Cell {
	if c == nil || c.Lost.Share == nil {
		return unknown
	}
	cell := sorted(lossOf(*c.Lost.Share), *c.Lost.Share)
	if l := c.Lost; l.High != nil {
		low := "…"
		if l.Low != nil {
			low = lossOf(*l.Low)
		}
		cell.Note = strings.TrimSuffix(lossOf(*l.High), " %") + " to " + strings.TrimSuffix(low, " %")
		cell.Hint = fmt.Sprintf("95 %% interval; %.1f points on %s", 100*c.Difference,
			assay.Counted(c.Tasks, "task"))
	}
	if c.Significant() {
		cell.Tone = document.Bad
		if *c.Lost.Share < 0 {
			cell.Tone = document.Good
		}
	}
	return cell
}

// lossOf writes a loss as a change, such as "−23 %".
func lossOf(share float64) string {
	text := signed("%+.0f %%", -100*share)
	if text == "+0 %" || text == "−0 %" {
		return "0 %"
	}
	return text
}

// worstCell names the kind that costs most, with its loss.
func worstCell(c *report.Cost) document.Cell {
	if c == nil {
		return unknown
	}
	worst := c
	if len(c.Kinds) > 0 {
		worst = &c.Kinds[0]
	}
	if worst.Difference >= 0 {
		return text("none")
	}
	cell := text(kindText(worst.Level, c))
	if worst.Lost.Share != nil {
		cell.Note = lossOf(*worst.Lost.Share)
	}
	return cell
}

// kindText names a flaw or a kind of failing tools as short as it can without confusion.
func kindText(level string, among *report.Cost) string {
	name, tail, cut := strings.Cut(level, ", ")
	name = strings.TrimSuffix(report.Readable(name), "=1")
	for _, k := range among.Kinds {
		if _, other, _ := strings.Cut(k.Level, ", "); cut && other != tail {
			return name + ", " + tail
		}
	}
	return name
}

// priceCell shows the price of a success above its interval. Without a success, only the lower
// bound is known.
func priceCell(s report.Standing) document.Cell {
	switch {
	case s.Price == nil || s.Price.Dollars == nil && s.Price.Low == nil:
		return unknown
	case s.Price.Dollars == nil:
		return sorted(fmt.Sprintf("over %.4f", *s.Price.Low), *s.Price.Low)
	}
	cell := dollars(*s.Price.Dollars, s.AtLeast, "%.4f")
	if p := s.Price; p.Low != nil {
		high := "…"
		if p.High != nil {
			high = fmt.Sprintf("%.4f", *p.High)
		}
		cell.Note = fmt.Sprintf("%.4f–%s", *p.Low, high)
	}
	return cell
}

// standingChart shows the rates of each model's conditions with their intervals.
func standingChart(all []report.Standing) *document.Chart {
	var rows []object
	var dots []document.Dot
	var models, conditions []string
	for _, s := range all {
		models = append(models, s.Model)
		for _, c := range s.Conditions {
			dots = append(dots, document.Dot{
				Group: s.Model, Label: c.Name, Value: c.Rate, Low: c.Interval.Low, High: c.Interval.High,
			})
			conditions = distinct(conditions, c.Name)
			rows = append(rows, rateRow(s.Model, c.Name, report.PivotCell{
				Done: c.Done, Rate: c.Rate, Interval: c.Interval,
			}))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	picture := chart("standings",
		"Rates of full success by model and condition, with 95 % intervals.", rows, object{
			"step": max(12, 22-4*len(conditions)), "models": models, "conditions": conditions,
			"factor": "condition",
		})
	picture.Dots = dots
	return picture
}
