package sections

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

// GateCommands are commands that a verdict names: Show shows a trial by its ID, and Plan plans the
// gate.
type GateCommands struct{ Show, Plan string }

// Gate lays out the verdict of a gate, and the comparison behind it.
func Gate(g *report.Gate, commands GateCommands) *document.Document {
	v := gateView{g, commands}
	d := &document.Document{Title: "Gate: " + g.Candidate.Name, Summary: retries(g.Candidate)}
	d.Warnings = comparisonWarnings(0, []report.Side{g.Candidate})
	if g.Comparison != nil {
		d = Comparison(g.Comparison, nil)
		d.Title = fmt.Sprintf("Gate: %s, measured against %s", g.B.Name, g.A.Name)
		d.Warnings = slices.DeleteFunc(d.Warnings, func(w document.Warning) bool {
			return w.Title == incompleteTitle // the verdict has the same reason
		})
		d.Summary = d.Summary[1:] // the first point is the verdict of the comparison
		d.Sections = slices.DeleteFunc(d.Sections, func(s document.Section) bool {
			return s.ID == "flips" || g.Verdict == report.Pass && s.ID != "whole"
		})
	}
	d.Summary = append(v.points(), d.Summary...)
	if len(g.Changed) > 0 {
		d.Sections = append(d.Sections, v.changeSection())
	}
	return d
}

// A gateView shows a gate.
type gateView struct {
	*report.Gate
	commands GateCommands
}

// A verdictPart is the comparison with the baseline or a demand.
type verdictPart struct {
	label, name string
	report.Verdict
	text string
}

// parts returns the parts of the verdict.
func (g gateView) parts() (all []verdictPart) {
	if a := g.Answer(); a != nil {
		all = append(all, verdictPart{"Compared", fmt.Sprintf("%s is worse than %s by less than %s points",
			g.B.Name, g.A.Name, marginText(a.Test.Margin)), a.Verdict, g.compared(a)})
	}
	if r := g.AtLeast; r != nil {
		all = append(all, verdictPart{
			"At least", g.Candidate.Name + " fully succeeds in at least " + report.Percent(r.Least),
			r.Verdict, g.rateText(r),
		})
	}
	for _, t := range g.Always {
		all = append(all, verdictPart{
			"Always", fmt.Sprintf("%s always succeeds", t.Task), t.Verdict, g.alwaysText(t),
		})
	}
	for _, d := range g.Faults {
		all = append(all, verdictPart{
			"Fault", fmt.Sprintf("%s costs %s at most %s points", d.Fault, d.Model, marginText(d.Most)),
			d.Verdict, faultText(d),
		})
	}
	if g.Reason != "" {
		for i := range all {
			if all[i].Verdict != report.Fail || all[i].label != "Always" {
				all[i].Verdict = report.Inconclusive
			}
		}
	}
	return all
}

// points begins with the verdict and its first reason.
func (g gateView) points() (points []document.Point) {
	parts := g.parts()
	first := slices.IndexFunc(parts, func(p verdictPart) bool { return p.Verdict == g.Verdict })
	if g.Reason != "" && g.Verdict != report.Fail {
		first = -1
	}
	text := g.openText()
	if first >= 0 {
		text = parts[first].text
	}
	points = append(points, document.Point{Label: gateLabels[g.Verdict], Text: text})
	if g.Answer() != nil {
		points = append(points, document.Point{Label: "About", Text: g.aboutText()})
	}
	for i, p := range parts {
		if i != first && (g.Reason == "" || p.Verdict == report.Fail) {
			text := fmt.Sprintf("%s: %s", report.Capital(string(p.Verdict)), p.text)
			points = append(points, document.Point{Label: p.label, Text: text})
		}
	}
	if next := g.nextText(); next != "" {
		points = append(points, document.Point{Label: "Next", Text: next})
	}
	if text := g.powerText(); text != "" {
		points = append(points, document.Point{Label: "Power", Text: text})
	}
	return points
}

var gateLabels = map[report.Verdict]string{
	report.Pass: "PASS", report.Fail: "FAIL", report.Inconclusive: "INCONCLUSIVE",
}

// openText is why there is no verdict at all.
func (g gateView) openText() string {
	if g.Reason == "" {
		return "The demands are about all trials, and some are still to run."
	}
	measured := "There is "
	if g.Comparison != nil {
		measured = g.measured() + " so far; "
	}
	return fmt.Sprintf("%s. %sno verdict before at least %.0f %% are done.",
		report.Capital(g.Reason), measured, 100*(1-report.MaxPending))
}

// measured is the difference over the units of the test that decides.
func (g gateView) measured() string {
	t := g.Answer().Test
	text := fmt.Sprintf("%s %s %s on %s", g.B.Name, scored(t.Difference), g.A.Name,
		assay.Counted(g.Whole.Tasks, "task"))
	if g.Tasks == report.Similar && g.Population.Cluster == stat.BySequence {
		text += fmt.Sprintf(" of %s, each of which counts once", g.units(t.Units))
	}
	return text
}

// units are what the question that decides counts as independent.
func (g gateView) units(n int) string {
	switch {
	case g.Tasks == report.These:
		return assay.Counted(n, "pair") + " of trials"
	case g.Population.Cluster == stat.BySequence:
		return assay.Counted(n, "sequence") + " of tools"
	}
	return assay.Counted(n, "task")
}

func marginText(margin float64) string { return fmt.Sprintf("%.1f", 100*margin) }

// compared is the answer that decides, in a sentence.
func (g gateView) compared(a *report.Answer) string {
	t, measured := a.Test, g.measured()
	worst := signed("at worst %+.1f points, with 95 %% confidence", 100*t.Lower)
	switch {
	case a.Verdict == report.Pass:
		return fmt.Sprintf("%s: %s. A loss of %s points is ruled out (%s%s).",
			measured, worst, marginText(t.Margin), named("p", t.PPass), lookText(g.Look, g.Look.Pass))
	case a.Verdict == report.Fail:
		return fmt.Sprintf("%s, which is significant (%s%s).", measured,
			named("p", t.PFail), lookText(g.Look, g.Look.Fail))
	case a.CannotLose:
		return measured + ". " + cannotLose(g.A.Name, g.Whole.RateA, t.BaselineLower, t.Margin)
	case a.Least > 0:
		return fmt.Sprintf("%s. %s cannot rule out a loss of less than %s points%s, even if nothing "+
			"is lost.", measured, g.units(t.Units), leastText(a.Least), g.whatever())
	}
	return fmt.Sprintf("%s: %s. Neither a loss of %s points is ruled out (%s), nor is any loss "+
		"shown (%s).", measured, worst, marginText(t.Margin), named("p", t.PPass),
		named("p", t.PFail))
}

func (g gateView) whatever() string {
	if g.Tasks == report.These {
		return ""
	}
	return ", whatever the repeats"
}

// leastText rounds up.
func leastText(least float64) string { return fmt.Sprintf("%.1f", math.Ceil(1000*least-1e-6)/10) }

// cannotLose says why a baseline that hardly succeeds has no verdict.
func cannotLose(name string, rate, lower, margin float64) string {
	if rate == 0 {
		return fmt.Sprintf("Nothing could be lost: %s never succeeded, so the margin of %s points "+
			"says nothing.", name, marginText(margin))
	}
	return fmt.Sprintf("%s succeeds too rarely to lose %s points: its rate is %s, and may be as low "+
		"as %s.", name, marginText(margin), report.Percent(rate), report.Percent(lower))
}

// TooFew says that a number of tasks or sequences cannot rule out the margin, or "" if it can.
func TooFew(n int, cluster string, margin, level float64) string {
	needed := stat.UnitsNeeded(margin, level)
	if n >= needed {
		return ""
	}
	unit := "task"
	if cluster == stat.BySequence {
		unit = "sequence"
	}
	least := stat.LeastLoss(n, level)
	return fmt.Sprintf("%s cannot rule out a loss of less than %s points, whatever the repeats: use "+
		"%d or more, `--margin %spt`, or `--tasks these`", assay.Counted(n, unit), leastText(least),
		needed, leastText(least))
}

// aboutText names the question that was answered, and the answer to the other question.
func (g gateView) aboutText() string {
	these := fmt.Sprintf("these %s", assay.Counted(g.Whole.Tasks, "task"))
	if g.Whole.Tasks == 1 {
		these = "this task"
	}
	first, second, other, flag := these, "more tasks like these", g.Similar, report.Similar
	if g.Tasks == report.Similar {
		first, second, other, flag = second, "just "+these, g.These, report.These
	}
	verdict := string(other.Verdict)
	if g.Reason != "" {
		verdict = string(report.Inconclusive)
	}
	text := fmt.Sprintf("This is about %s; about %s: %s.", first, second, verdict)
	if !g.Chosen && g.Verdict != report.Pass && verdict != string(report.Inconclusive) {
		text += fmt.Sprintf(" `--tasks %s` decides by that.", flag)
	}
	return text
}

func (g gateView) rateText(r *report.RateDemand) string {
	text := fmt.Sprintf("%s succeeded in %d of %s", g.Candidate.Name, r.Full,
		assay.Counted(r.Trials, "trial"))
	least := report.Percent(r.Least)
	switch r.Verdict {
	case report.Pass:
		return fmt.Sprintf("%s: at least %s, with 95 %% confidence; %s was demanded.", text,
			report.Percent(r.Lower), least)
	case report.Fail:
		return fmt.Sprintf("%s: at most %s, with 99.5 %% confidence; %s was demanded.", text,
			report.Percent(r.Upper), least)
	}
	text = fmt.Sprintf("%s: between %s and %s. Neither is it shown to reach %s, nor to miss it.", text,
		report.Percent(r.Lower), report.Percent(r.Upper), least)
	if r.Needed > 0 {
		text += fmt.Sprintf(" %s with this rate would show it.",
			assay.Counted(twoDigits(r.Needed), "trial"))
	}
	return text
}

func faultText(d report.FaultDemand) string {
	text := fmt.Sprintf("The fault %s costs %s %.1f points where it strikes (%s of %s)", d.Fault, d.Model, 100*d.Lost,
		assay.Counted(d.Calls, "call"), assay.Counted(d.Tasks, "task"))
	most := fmt.Sprintf("at most %s were demanded", marginText(d.Most))
	switch {
	case d.Verdict == report.Pass:
		return fmt.Sprintf("%s: at most %.1f, with 95 %% confidence; %s.", text, 100*d.Upper, most)
	case d.Verdict == report.Fail:
		return fmt.Sprintf("%s: at least %.1f, with 99.5 %% confidence; %s.", text, 100*d.Lower, most)
	case d.Pending > 0:
		return fmt.Sprintf("%s, and %d forks are still to play; %s.", text, d.Pending, most)
	case d.CannotLose:
		return fmt.Sprintf("%s, and it succeeds too rarely without the fault to lose %s.", text, marginText(d.Most))
	}
	return fmt.Sprintf("%s: at least %.1f, with 99.5 %% confidence, and at most %.1f, with 95 %%. Neither is it shown "+
		"that it costs at most %s, nor that it costs more.", text, 100*d.Lower, 100*d.Upper, marginText(d.Most))
}

func (g gateView) alwaysText(t report.TaskDemand) string {
	text := fmt.Sprintf("%s succeeded in %d of %s", t.Task, t.Full, assay.Counted(t.Trials, "trial"))
	switch {
	case t.Verdict == report.Fail:
		return fmt.Sprintf("%s; it must always do. `%s` shows a failure.", text, g.showing(t.Failed, t.FailedAttempt))
	case t.Pending > 0:
		return fmt.Sprintf("%s, and %d are still to run; it must always do.", text, t.Pending)
	}
	return text + "."
}

// showing is the command that shows a trial, or an attempt at it that was superseded.
func (g gateView) showing(id assay.TrialID, attempt int) string {
	what := string(id[:min(8, len(id))])
	if attempt > 0 {
		what += fmt.Sprintf(" --attempt %d", attempt)
	}
	return fmt.Sprintf(g.commands.Show, what)
}

// lookText adds the level that an early look asks for.
func lookText(l report.Look, level float64) string {
	if l.Number == l.Of {
		return ""
	}
	return fmt.Sprintf(", where look %d of %d asks for %.2g", l.Number, l.Of, level)
}

// nextText is the next step after a verdict other than a pass.
func (g gateView) nextText() string {
	a := g.Answer()
	switch {
	case g.Verdict == report.Pass:
		return ""
	case g.Reason != "":
		return "Run the experiment again, as it was run, to finish what is pending."
	case g.Verdict == report.Fail && a != nil && a.Verdict == report.Fail:
		return "The tasks that changed are below; `assay compare` has the trials that flipped."
	case a != nil && a.Verdict == report.Inconclusive && a.CannotLose:
		if g.Whole.RateB > g.Whole.RateA {
			return "Choose a baseline that succeeds, or ask for a rate with --at-least."
		}
		if g.Whole.RateA == 0 {
			return "Choose easier tasks."
		}
		return "Choose easier tasks, or a smaller margin."
	case a != nil && a.Verdict == report.Inconclusive && a.Least > 0:
		return g.enough(a)
	case a != nil && a.Verdict == report.Inconclusive:
		return fmt.Sprintf("`%s` says how many trials decide it.", g.commands.Plan)
	}
	return ""
}

// enough says what can rule out the margin.
func (g gateView) enough(a *report.Answer) string {
	text := fmt.Sprintf("At least %s can, or `--margin %spt`", g.units(a.Needed), leastText(a.Least))
	if g.Tasks == report.Similar && g.These.Verdict != report.Inconclusive {
		text += fmt.Sprintf(", or `--tasks these`, which is about just these %s",
			assay.Counted(g.Whole.Tasks, "task"))
	}
	return fmt.Sprintf("%s. `%s` says how many decide it.", text, g.commands.Plan)
}

// powerText predicts the verdict on more data like these.
func (g gateView) powerText() string {
	p := g.Power
	if p == nil {
		return ""
	}
	return fmt.Sprintf("Data like these pass %s of 100 equal candidates, and find a loss of %s points "+
		"in %s if it is spread evenly over the tasks, and in %s if it is in whole tasks.",
		share(p.Passing), marginText(g.Answer().Test.Margin), share(p.Finds), share(p.FindsWhole))
}

// share is a share of 100, or a range of them.
func share(s stat.Share) string {
	low, high := fmt.Sprintf("%.0f", 100*s.Low), fmt.Sprintf("%.0f", 100*s.High)
	if low == high {
		return low
	}
	return low + " to " + high
}

// maxChanges limits the tasks that are listed.
const maxChanges = 10

// changeSection lists the tasks that changed.
func (g gateView) changeSection() document.Section {
	shown := g.Changed[:min(maxChanges, len(g.Changed))]
	s := document.Section{
		ID: "tasks", Title: "Tasks that changed",
		Lead: "The largest loss comes first. The trial is a failure of a task that lost, and a success " +
			"of one that gained.",
		Table: tableOf(names("task", "successes", "trial"), shown,
			func(c report.Change) []document.Cell {
				return []document.Cell{
					text(string(c.Task)),
					text(fmt.Sprintf("%d of %d → %d of %d", c.FullA, c.A, c.FullB, c.B)),
					text(g.showing(c.See, c.SeeAttempt)),
				}
			}),
	}
	if more := len(g.Changed) - len(shown); more > 0 {
		s.Notes = []string{fmt.Sprintf("And %d more.", more)}
	}
	return s
}

// junit is a test suite as continuous integration systems read it.
type junit struct {
	XMLName  xml.Name   `xml:"testsuite"`
	Name     string     `xml:"name,attr"`
	Tests    int        `xml:"tests,attr"`
	Failures int        `xml:"failures,attr"`
	Errors   int        `xml:"errors,attr"`
	Cases    []testCase `xml:"testcase"`
}

type testCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Error   *junitMessage `xml:"error,omitempty"`
	Output  string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
}

// WriteJUnit writes the verdict as a JUnit file with a test case for the comparison and for each
// demand. A fail is a failure, and an inconclusive verdict is an error.
func WriteJUnit(w io.Writer, g *report.Gate, commands GateCommands) error {
	v := gateView{g, commands}
	suite := junit{Name: "assay gate"}
	for _, p := range v.parts() {
		c := testCase{Class: "assay.gate", Name: p.name}
		if p.label == "Compared" {
			c.Output = v.powerText()
		}
		switch p.Verdict {
		case report.Fail:
			suite.Failures++
			c.Failure = &junitMessage{p.text}
		case report.Inconclusive:
			suite.Errors++
			why := p.text
			if g.Reason != "" {
				why = v.openText()
			}
			c.Error = &junitMessage{strings.TrimSpace(why + " " + v.nextText())}
		}
		suite.Cases = append(suite.Cases, c)
	}
	suite.Tests = len(suite.Cases)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// twoDigits rounds a large number to two digits.
func twoDigits(n int) int {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return (n + unit/2) / unit * unit
}
