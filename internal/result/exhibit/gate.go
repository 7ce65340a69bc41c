package exhibit

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
)

// Gate lays out the verdict of a gate, and the comparison behind it.
func Gate(g *report.Gate) *document.Document {
	d := Comparison(g.Comparison, nil)
	if g.Verdict == report.Pass {
		d.Sections = d.Sections[:1] // `assay compare` shows the rest
	}
	d.Title = fmt.Sprintf("Gate: %s, measured against %s", g.B.Name, g.A.Name)
	points := []document.Point{{Label: gateLabels[g.Verdict], Text: gateText(g)}}
	if g.Verdict != report.Pass {
		points = append(points, document.Point{Label: "Next", Text: gateNext(g)})
	}
	points = append(points, document.Point{Label: "Power", Text: powerText(g)})
	d.Summary = append(points, d.Summary[1:]...) // the first point is the verdict of the comparison
	return d
}

var gateLabels = map[report.Verdict]string{
	report.Pass: "PASS", report.Fail: "FAIL", report.Inconclusive: "INCONCLUSIVE",
}

func gateText(g *report.Gate) string {
	t := g.Test
	measured := fmt.Sprintf("%s %s %s on %s", g.B.Name, scored(g.Whole.Difference), g.A.Name,
		counted(g.Whole.Tasks, "task"))
	worst := fmt.Sprintf("at worst %+.1f points, with 95 %% confidence", 100*t.Lower)
	switch {
	case g.Reason != "":
		return fmt.Sprintf("%s. %s so far; no verdict before at least %.0f %% are done.",
			sentenceCase(g.Reason), measured, 100*(1-report.MostPending))
	case g.Verdict == report.Pass:
		return fmt.Sprintf("%s: %s. A loss of %.1f points is ruled out (%s%s).",
			measured, worst, 100*t.Margin, named("p", t.PPass), lookText(g.Look, g.Look.Pass))
	case g.Verdict == report.Fail:
		return fmt.Sprintf("%s: at best %+.1f points, with 99.5 %% confidence (%s%s).",
			measured, 100*t.Upper, named("p", t.PFail), lookText(g.Look, g.Look.Fail))
	}
	return fmt.Sprintf("%s: %s. Neither a loss of %.1f points is ruled out (%s), nor is any loss "+
		"shown (%s).", measured, worst, 100*t.Margin, named("p", t.PPass), named("p", t.PFail))
}

// lookText adds the level that an early look asks for.
func lookText(l report.Look, level float64) string {
	if l.Number == l.Of {
		return ""
	}
	return fmt.Sprintf(", where look %d of %d asks for %.2g", l.Number, l.Of, level)
}

// gateNext is what to do after a verdict other than a pass.
func gateNext(g *report.Gate) string {
	switch {
	case g.Reason != "":
		return "`assay run` runs what is pending."
	case g.Verdict == report.Fail:
		return "The conditions and the trials that flipped are below; `assay compare` has their " +
			"transcripts."
	}
	return fmt.Sprintf("More repeats or tasks decide it: `assay gate --plan --margin %gpt` says "+
		"how many.", math.Round(1000*g.Test.Margin)/10)
}

func powerText(g *report.Gate) string {
	return fmt.Sprintf("Data like these find a candidate that is worse by %.1f points in %.0f of "+
		"100 cases, and pass %.0f of 100 equal ones.",
		100*g.Test.Margin, 100*g.Test.Finds, 100*g.Test.Passing)
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
	Class   string   `xml:"classname,attr"`
	Name    string   `xml:"name,attr"`
	Failure *message `xml:"failure,omitempty"`
	Error   *message `xml:"error,omitempty"`
	Output  string   `xml:"system-out,omitempty"`
}

type message struct {
	Message string `xml:"message,attr"`
}

// WriteJUnit writes the verdict as a JUnit file with one test case. A fail is a failure, and an
// inconclusive verdict is an error.
func WriteJUnit(w io.Writer, g *report.Gate) error {
	c := testCase{
		Class: "assay.gate", Output: powerText(g),
		Name: fmt.Sprintf("%s is worse than %s by less than %.1f points",
			g.B.Name, g.A.Name, 100*g.Test.Margin),
	}
	suite := junit{Name: "assay gate", Tests: 1}
	switch g.Verdict {
	case report.Fail:
		suite.Failures, c.Failure = 1, &message{gateText(g)}
	case report.Inconclusive:
		suite.Errors, c.Error = 1, &message{gateText(g) + " " + gateNext(g)}
	}
	suite.Cases = []testCase{c}
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
