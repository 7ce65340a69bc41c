package exhibit

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

// mostNamed is how many models a line of the headline names.
const mostNamed = 5

// Headline answers a reader's first questions in at most five lines: how the models rank, which
// loss is the largest, why trials fail, which trial shows it, and the time and cost of the run. It
// leaves out lines without text.
func Headline(figures *report.Analysis) (lines []document.Point) {
	a := analysis{figures}
	for _, p := range []document.Point{
		{Label: "Full success", Text: a.orderText()},
		{Label: "Largest loss", Text: lossText(a.Loss)},
		{Label: "Failures", Text: causesText(a.Errors)},
		{Label: "To look at", Text: a.exampleText()},
		{Label: "Run", Text: a.extentText()},
	} {
		if p.Text != "" {
			lines = append(lines, p)
		}
	}
	return lines
}

// orderText ranks the models.
func (a analysis) orderText() string {
	text := ""
	switch len(a.Standings) {
	case 0:
		return ""
	case 1:
		s := a.Standings[0]
		text = fmt.Sprintf("%s of %s (95 %% interval %.0f to %s)", rateOfModel(s),
			assay.Counted(s.Common, "trial"), 100*s.Success.Interval.Low, roughly(s.Success.Interval.High))
	case 2:
		text = a.pairText()
	default:
		text = a.chainText()
	}
	if slices.ContainsFunc(a.Standings, func(s report.Standing) bool { return s.Common < s.Done }) {
		text += ", on what all have done"
	}
	var without []string
	for _, m := range a.Main.All() {
		if m.Int(report.Done) == 0 {
			without = append(without, m.Model)
		}
	}
	if n := len(without); n > 0 {
		text += "; no outcome yet: " + strings.Join(without[:min(n, mostNamed)], ", ")
	}
	return text
}

func rateOfModel(s report.Standing) string { return s.Model + " " + roughly(s.Success.Rate) }

// next compares the model in a place with the following one, its side B. It returns nil if the two
// have no task in common.
func (a analysis) next(place int) *report.Paired {
	return report.Between(a.Models, a.Standings[place].Model, a.Standings[place+1].Model)
}

// chainText puts a sign between models that shows whether they differ.
func (a analysis) chainText() string {
	text, worst := "", 0.0
	seen := make(map[string]bool)
	for i, s := range a.Standings[:min(len(a.Standings), mostNamed)] {
		text += rateOfModel(s)
		switch i + 1 {
		case len(a.Standings):
			continue
		case mostNamed:
			text += fmt.Sprintf(", and %d more", len(a.Standings)-mostNamed)
			continue
		}
		next := a.next(i)
		sign := signOf(next)
		if sign == better {
			worst = max(worst, next.Q)
		}
		seen[sign] = true
		text += " " + sign + " "
	}
	return text + signsText(seen, worst)
}

// The signs between two models.
const (
	better = ">"
	alike  = "≈"
	apart  = "|"
)

// signOf returns the sign between a model and the following one.
func signOf(p *report.Paired) string {
	switch {
	case p == nil:
		return apart
	case p.Significant() && p.Difference < 0: // B minus A
		return better
	}
	return alike
}

func signsText(seen map[string]bool, worst float64) string {
	var parts []string
	if seen[better] {
		parts = append(parts, "> is more than chance, "+atMost(worst))
	}
	if seen[alike] {
		parts = append(parts, "≈ may be chance")
	}
	if seen[apart] {
		parts = append(parts, "| have no task in common")
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

func atMost(q float64) string {
	return strings.Replace(named("q", q), "=", "≤", 1)
}

// pairText compares two models.
func (a analysis) pairText() string {
	first, second, next := rateOfModel(a.Standings[0]), rateOfModel(a.Standings[1]), a.next(0)
	switch signOf(next) {
	case apart:
		return first + ", " + second + "; they have no task in common"
	case better:
		return fmt.Sprintf("%s > %s, which is more than chance (%s)", first, second,
			named("q", next.Q))
	}
	text := fmt.Sprintf("%s and %s cannot be told apart (%s)", first, second,
		named("q", next.Q))
	if n := tasksToSeparate(*next); n > 0 {
		text += fmt.Sprintf("; about %.0f tasks may be enough", n)
	}
	return text
}

func lossText(l *report.Loss) string {
	if l == nil {
		return ""
	}
	points := fmt.Sprintf("%s (%.0f to %.0f)", assay.Counted(int(math.Round(100*l.Points)), "point"),
		100*l.Interval.Low, 100*l.Interval.High)
	if !l.Significant {
		return fmt.Sprintf("none is more than chance; the largest is %s for %s %s", points,
			l.Model, whereText(l))
	}
	return fmt.Sprintf("%s loses %s %s", l.Model, points, whereText(l))
}

// whereText describes the level that costs something.
func whereText(l *report.Loss) string {
	level := report.Readable(l.Level)
	switch l.Factor {
	case taskType:
		return "on tasks of type " + level + ", compared with the others"
	case report.Task:
		return "on task " + l.Level + ", compared with the others"
	case reliability:
		return fmt.Sprintf("at reliability %s instead of %s", l.Level, l.Against)
	case difficulty:
		return fmt.Sprintf("on %s tasks instead of %s ones", level, report.Readable(l.Against))
	case faultMix:
		return fmt.Sprintf("with faults of tools %s instead of %s", l.Level, l.Against)
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

// causesText names each model's most frequent cause. Models with the same cause are together.
func causesText(e report.Errors) string {
	succeeds := func(r report.ErrorRow) bool { return r.Total == 0 }
	rows := slices.DeleteFunc(slices.Clone(e.Rows), succeeds)
	var kinds []assay.Cause
	by := make(map[assay.Cause][]string)
	for _, r := range rows[:min(len(rows), mostNamed)] {
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
	if n := len(rows) - mostNamed; n > 0 {
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

// extentText counts the trials that are done, and gives their time, faults, cost and warnings.
func (a analysis) extentText() string {
	text := fmt.Sprintf("%d of %d trials done", a.Done, a.Planned)
	if a.Skipped > 0 {
		text += fmt.Sprintf(" (%d skipped)", a.Skipped)
	}
	switch {
	case a.Runs == 1:
		text += " in " + Duration(a.Seconds)
	case a.Runs > 1:
		text += fmt.Sprintf(" in %s over %d runs", Duration(a.Seconds), a.Runs)
	}
	faults := a.faults()
	if faults == 0 {
		text += ", no faults"
	} else {
		text += ", " + assay.Counted(faults, "fault")
	}
	var usd, ofUser float64
	var unpriced []string
	leastOfUser := ""
	for _, r := range a.Effort.All() {
		agent, user := r.Get(report.Spent), r.Get(report.UserCost)
		usd = assay.RoundUSD(usd + agent.Number + user.Number)
		ofUser = assay.RoundUSD(ofUser + user.Number)
		if user.AtLeast {
			leastOfUser = "at least "
		}
		if agent.AtLeast || user.AtLeast {
			unpriced = append(unpriced, r.Model)
		}
	}
	if a.Killed > 0 && usd > 0 {
		unpriced = append(unpriced, "runs that did not write their end")
	}
	cost := assay.CostText(usd, 2, unpriced...)
	if strings.HasPrefix(cost, "$") {
		cost = "cost " + cost
	}
	text += ", " + cost
	if ofUser > 0 {
		text += fmt.Sprintf(" (%s%s for the simulated user)", leastOfUser, assay.CostText(ofUser, 2))
	}
	if n := len(a.Warnings); n > 0 {
		text += ", " + assay.Counted(n, "warning")
	}
	return text
}
