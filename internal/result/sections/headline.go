package sections

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

// Duration formats seconds for people.
func Duration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", seconds)
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", seconds)
	case d < 48*time.Hour:
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%.1f days", d.Hours()/24)
}

// RunLine labels the line about the run, which every headline has.
const RunLine = "Run"

// maxNamed is how many models a line of the headline names.
const maxNamed = 5

// Headline answers a reader's first questions in a few lines: how the models rank, which loss is
// the largest, how reliable they are if the experiment asks for that, why trials fail, which trial shows
// it, the time and cost of the run, and what it has left unfinished. It leaves out lines without text.
func Headline(figures *report.Analysis) (lines []document.Point) {
	a := analysis{figures}
	for _, p := range []document.Point{
		{Label: "Full success", Text: a.orderText()},
		{Label: "Largest loss", Text: lossText(a.Losses)},
		{Label: "Reliability", Text: a.reliabilityText()},
		{Label: "Failures", Text: a.causesText()},
		{Label: "To look at", Text: a.exampleText()},
		{Label: RunLine, Text: a.extentText()},
		{Label: "Unfinished", Text: a.begunText()},
		{Label: "Lost", Text: a.MissingJournal},
	} {
		if p.Text != "" {
			lines = append(lines, p)
		}
	}
	return lines
}

// orderText orders the models by their rates, and says for which conditions.
func (a analysis) orderText() string {
	if len(a.Standings) == 0 {
		return ""
	}
	text := a.chainText()
	if len(a.Standings) == 1 {
		s := a.Standings[0]
		text = fmt.Sprintf("%s of %s (95 %% interval %.0f to %s)", rateOfModel(s),
			assay.Counted(s.Ranked, "trial"), 100*s.Success.Interval.Low, roughly(s.Success.Interval.High))
	}
	if a.Condition != "" {
		text = "with " + a.Condition + ": " + text
	}
	if a.Replaced > 0 {
		text += fmt.Sprintf("; %s took the place of earlier ones (`--retry`)",
			assay.Counted(a.Replaced, "outcome"))
	}
	var without []string
	for _, m := range a.Main.All() {
		if m.Int(report.Done) == 0 {
			without = append(without, m.Model)
		}
	}
	if n := len(without); n > 0 {
		text += "; no outcome yet: " + strings.Join(without[:min(n, maxNamed)], ", ")
	}
	return text
}

// reliabilityText has the main figures of reliability of an experiment with replays, stated confidence or
// other conditions than flawed plans and failing tools, which the table below has.
func (a analysis) reliabilityText() string {
	var models []string
	profile := known(report.ConsistentReplay)(a) || known(report.Brier)(a)
	if !profile && a.Robustness == nil {
		return ""
	}
	for _, s := range a.Standings {
		of := func(r report.GridRow) bool { return r.Model == s.Model }
		var figures []string
		for _, row := range a.Profile.Only(of).Rows {
			figures = figuresOf(row, "", report.ConsistentOutcome, report.ConsistentReplay, report.Brier)
		}
		for _, row := range a.Robustness.Only(of).Rows {
			if kept := figuresOf(row, "with ", report.KeptPhrasings, report.KeptInterfaces); kept != nil {
				figures = append(figures, "successes left "+strings.Join(kept, ", "))
			}
		}
		for _, row := range a.Safety.Only(of).Rows {
			figures = append(figures, figuresOf(row, "", report.Compliance)...)
		}
		if len(figures) > 0 {
			models = append(models, s.Model+": "+strings.Join(figures, ", "))
		}
	}
	text := strings.Join(models[:min(len(models), maxNamed)], "; ")
	if n := len(models) - maxNamed; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	return text
}

// figuresOf writes the measures of a row that are known, with their intervals.
func figuresOf(row report.GridRow, before string, measures ...*report.Measure) (texts []string) {
	for _, m := range measures {
		if v := row.Get(m); v.Known {
			span := fmt.Sprintf("%.0f to %.0f", 100*v.Interval.Low, 100*v.Interval.High)
			if v.Interval.High == stat.MostKept {
				span = fmt.Sprintf("%.0f or more", 100*v.Interval.Low)
			}
			texts = append(texts, fmt.Sprintf("%s%s %s (%s)", before, m.Heads[0], roughly(v.Number), span))
		}
	}
	return texts
}

func rateOfModel(s report.Standing) string { return s.Model + " " + roughly(s.Success.Rate) }

// The signs between two models.
const (
	better = ">"
	alike  = "≈"
	apart  = "|"
)

// chainText lists models with signs that say whether all models on the left of one are better than
// all on its right.
func (a analysis) chainText() string {
	text, sign := "", ""
	seen := make(map[string]bool)
	last := 0.
	for i, s := range a.Standings[:min(len(a.Standings), maxNamed)] {
		if i > 0 {
			if sign = apart; s.Compared && a.Ranking != nil {
				sign = alike
				if a.Ranking.Splits(i - 1) {
					sign = better
					last = max(last, a.Ranking.P(a.Ranking.Order[i-1], a.Ranking.Order[i]))
				}
			}
			seen[sign] = true
			text += " " + sign + " "
		}
		text += rateOfModel(s)
	}
	if n := len(a.Standings) - maxNamed; n > 0 {
		text += fmt.Sprintf(", and %d more", n)
	}
	return text + a.signsText(seen, last)
}

func (a analysis) signsText(seen map[string]bool, last float64) string {
	var parts []string
	if seen[better] {
		parts = append(parts, "> is significant, "+atMost(last))
	}
	if seen[alike] {
		text := "≈ may be chance"
		if p := a.beatenApart(seen[better]); p != nil {
			text += fmt.Sprintf(", but %s > %s, %s", p.A, p.B, named("adjusted p", p.P))
		}
		parts = append(parts, text)
	}
	if seen[apart] {
		text := "| is not compared"
		if a.Standings[0].Own {
			text = "| have no trial in common"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// beatenApart returns a pair of models that differ although no sign between neighbours says so: the
// first model and the best one that it beats.
func (a analysis) beatenApart(split bool) *report.RankedPair {
	if split || a.Ranking == nil || len(a.Ranking.Pairs) == 0 {
		return nil
	}
	return &a.Ranking.Pairs[0]
}

func atMost(p float64) string { return strings.Replace(named("adjusted p", p), "=", "≤", 1) }

// lossText says what costs most.
func lossText(l report.Losses) string {
	switch {
	case l.Compared == 0:
		return ""
	case l.Largest != nil:
		return fmt.Sprintf("%s loses at least %s %s (%s in these trials)", l.Largest.Model,
			boundText(l.Largest.AtLeast), whereText(l.Largest), pointsText(l.Largest.Points))
	}
	text := "none is beyond chance"
	if l.Compared > 1 {
		text = fmt.Sprintf("none is beyond chance if all %d comparisons are taken together", l.Compared)
	}
	if l.Clusters < l.ClustersNeeded {
		text += fmt.Sprintf("; a level needs %d independent tasks to show one, and there are %d",
			l.ClustersNeeded, l.Clusters)
	}
	return text
}

// pointsText writes a difference in whole points, of which there is at least one.
func pointsText(share float64) string {
	return assay.Counted(max(1, int(math.Round(100*share))), "point")
}

// boundText writes the least that a difference can be, which is above 0: in whole points, or to one digit, which
// is no more than it is, below a point.
func boundText(share float64) string {
	points := 100*share + 1e-9
	if points >= 1 {
		return pointsText(share)
	}
	digit := math.Pow(10, math.Floor(math.Log10(points)))
	return fmt.Sprintf("%.*f points", int(math.Round(-math.Log10(digit))), math.Floor(points/digit)*digit)
}

// whereText describes the level that costs something.
func whereText(l *report.Loss) string {
	level := report.Readable(l.Level)
	switch l.Factor {
	case taskType:
		return "on tasks of type " + level + ", compared with its other tasks"
	case report.Task:
		return "on task " + l.Level + ", compared with its other tasks"
	case reliability:
		return fmt.Sprintf("at reliability %s instead of %s", l.Level, l.Against)
	case difficulty:
		return fmt.Sprintf("on %s tasks instead of %s ones", level, report.Readable(l.Against))
	case faultMix:
		return fmt.Sprintf("with faults of tools %s instead of %s", l.Level, l.Against)
	case interfaces:
		return fmt.Sprintf("with the %s interface of tools instead of the %s one", l.Level, l.Against)
	case phrasing:
		return fmt.Sprintf("with the phrasing %s instead of %s", level, l.Against)
	case report.Tools:
		return fmt.Sprintf("with failing tools (%s) instead of %s", l.Level, l.Against)
	}
	if report.IsFlawed(l.Level) {
		level = "the flawed plan " + level
	} else {
		level = "variant " + level
	}
	return fmt.Sprintf("with %s instead of %s", level, report.Readable(l.Against))
}

// causesText names each model's most frequent cause, in the order of the models. Models with the same
// cause are together.
func (a analysis) causesText() string {
	e := a.Errors
	succeeds := func(r report.ErrorRow) bool { return r.Total == 0 }
	rows := slices.DeleteFunc(slices.Clone(e.Rows), succeeds)
	place := func(r report.ErrorRow) uint { // a missing one is last
		return uint(slices.IndexFunc(a.Standings, func(s report.Standing) bool { return s.Model == r.Model }))
	}
	slices.SortStableFunc(rows, func(r, s report.ErrorRow) int { return cmp.Compare(place(r), place(s)) })
	var kinds []assay.Cause
	by := make(map[assay.Cause][]string)
	for _, r := range rows[:min(len(rows), maxNamed)] {
		main := mainError(r)
		if by[main.Cause] == nil {
			kinds = append(kinds, main.Cause)
		}
		by[main.Cause] = append(by[main.Cause],
			fmt.Sprintf("%s %d of %d", r.Model, main.Count, r.Total))
	}
	var parts []string
	for _, cause := range kinds {
		parts = append(parts, causeText(cause)+": "+strings.Join(by[cause], ", "))
	}
	if n := len(rows) - maxNamed; n > 0 {
		parts = append(parts, "and "+assay.Counted(n, "more model"))
	}
	return strings.Join(parts, "; ")
}

func causeText(c assay.Cause) string { return cmp.Or(c.Text(), "without a cause") }

// exampleText names the command that shows a failed trial, and describes the trial.
func (a analysis) exampleText() string {
	e := a.Example
	if e == nil {
		return ""
	}
	variant := a.variantText()(*e.Cell)
	where := []string{e.Cell.Model, report.Readable(variant)}
	if e.Cell.TaskType != "" {
		where = append(where, report.Readable(e.Cell.TaskType))
	}
	return fmt.Sprintf("`%s %s`: %s, reliability %s: %s",
		cmp.Or(a.Show, "assay show"), e.Trial[:min(8, len(e.Trial))],
		strings.Join(where, ", "), assay.FormatReliability(e.Cell.Reliability),
		causeText(e.Cause))
}

// doubted reports whether costs of any model may be unknown, because a run was killed.
func (a analysis) doubted() bool { return a.Killed > 0 || a.MissingJournal != "" }

// begunText says what the attempts have that have begun and have not ended, or returns "".
func (a analysis) begunText() string {
	if a.Begun == nil {
		return ""
	}
	return a.Begun.Text
}

// extentText counts the trials that are done, and gives their time, faults, cost and warnings.
func (a analysis) extentText() string {
	text := fmt.Sprintf("%d of %d trials done", a.Done, a.Planned)
	if a.Skipped > 0 {
		text += fmt.Sprintf(" (%d skipped)", a.Skipped)
	}
	if a.Seconds > 0 {
		text += " in "
		if a.AtLeast {
			text += "at least "
		}
		text += Duration(a.Seconds)
	}
	if a.Runs > 1 {
		text += fmt.Sprintf(" over %d runs", a.Runs)
	}
	text += ", " + a.Met.Text()
	var usd float64
	var unpriced []string
	var ofUser, ofJudge part
	for _, r := range a.Effort.All() {
		agent, user, judge := r.Get(report.Spent), r.Get(report.UserCost), r.Get(report.JudgeCost)
		usd = assay.RoundUSD(usd + agent.Number + user.Number + judge.Number)
		ofUser.add(user)
		ofJudge.add(judge)
		byKill := a.doubted() && (agent.Number > 0 || !agent.AtLeast) &&
			r.Int(report.Unpriced)+r.Int(report.UserUnpriced)+r.Int(report.JudgeUnpriced) == 0
		if (agent.AtLeast || user.AtLeast || judge.AtLeast) && !byKill {
			unpriced = append(unpriced, r.Model)
		}
	}
	if a.Killed > 0 && usd > 0 {
		unpriced = append(unpriced, assay.Counted(a.Killed, "killed run"))
	}
	if a.MissingJournal != "" {
		unpriced = append(unpriced, "the lost attempts")
	}
	cost := assay.CostText(usd, 2, unpriced...)
	if strings.HasPrefix(cost, "$") {
		cost = "cost " + cost
	}
	text += ", " + cost
	text += ofUser.text("the simulated user") + ofJudge.text("judging")
	if n := len(a.Warnings); n > 0 {
		text += ", " + assay.Counted(n, "warning")
	}
	return text
}

// A part is what some of a cost was for.
type part struct {
	usd   float64
	least bool
}

func (p *part) add(v report.Value) {
	p.usd, p.least = assay.RoundUSD(p.usd+v.Number), p.least || v.AtLeast
}

// text returns the part in parentheses, or "" if it is nothing.
func (p part) text(of string) string {
	if p.usd == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s for %s)", assay.DollarsText(p.usd, 2, p.least), of)
}
