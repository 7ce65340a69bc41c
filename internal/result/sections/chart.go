package sections

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
)

// charts.json has Vega-Lite specifications, and parts that several of them share. A text that
// begins with $ is the name of a value to fill in, or else of a shared part. The page adds sizes,
// fonts and colours, except where a colour has a meaning in the file.
//
//go:embed charts.json
var chartsJSON []byte

var templates = func() (all object) {
	if err := json.Unmarshal(chartsJSON, &all); err != nil {
		panic("sections: charts.json: " + err.Error())
	}
	return all
}()

type object = map[string]any

// filled returns a copy of a part of a template with values for its names.
func filled(part any, values object) any {
	switch part := part.(type) {
	case object:
		out := make(object, len(part))
		for name, p := range part {
			out[name] = filled(p, values)
		}
		return out
	case []any:
		out := make([]any, len(part))
		for i, p := range part {
			out[i] = filled(p, values)
		}
		return out
	case string:
		if name, found := strings.CutPrefix(part, "$"); found {
			if v, known := values[name]; known {
				return v
			}
			return filled(templates[name], values)
		}
	}
	return part
}

// chart draws rows by the template of a name.
func chart(name, text string, rows []object, values object) *document.Chart {
	spec := filled(templates[name], values).(object)
	spec["data"] = object{"values": rows}
	b, err := json.Marshal(spec)
	if err != nil {
		panic("sections: chart: " + err.Error()) // specifications are plain values
	}
	return &document.Chart{Text: text, Spec: b}
}

// rateRow is the data of a rate with its interval.
func rateRow(model, level string, c report.PivotCell) object {
	return object{
		"model": model, "level": level, "rate": c.Rate,
		"low": c.Interval.Low, "high": c.Interval.High, "n": c.Done,
	}
}

// distinct appends a name unless it is in the list.
func distinct(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// chart shows a pivot's rates as grouped dots.
func (p pivot) chart() *document.Chart {
	var rows []object
	var heads, models []string
	for _, l := range p.Levels {
		heads = append(heads, report.Readable(l))
	}
	for _, r := range p.Rows {
		models = append(models, r.Model)
		for i, c := range r.Cells {
			if c.Done > 0 {
				rows = append(rows, rateRow(r.Model, heads[i], c))
			}
		}
	}
	if len(rows) == 0 {
		return nil
	}
	factor := report.Readable(p.Factor)
	text := fmt.Sprintf("Rates of full success by %s for %s, with 95 %% intervals.", factor,
		assay.Counted(len(models), "model"))
	return chart("pivot", text, rows, object{"factor": factor, "levels": heads, "models": models})
}

// heatChart shows the differences of variants from the reference, by model.
func (a analysis) heatChart() *document.Chart {
	var rows []object
	var variants, models []string
	for _, p := range a.Variants {
		star := ""
		if p.Significant() {
			star = "*"
		}
		rows = append(rows, object{
			"model": p.Model, "variant": report.Readable(p.B), "against": report.Readable(p.A),
			"points": 100 * p.Difference, "label": signed("%+.0f%s", 100*p.Difference, star),
			"q": p.Q, "tasks": p.Tasks, "rate": p.RateB, "reference": p.RateA,
		})
		variants, models = distinct(variants, report.Readable(p.B)), distinct(models, p.Model)
	}
	text := fmt.Sprintf("Differences of variants (%d) from %s in percentage points, by model "+
		"(%d). A star marks significant ones.", len(variants), a.reference(), len(models))
	return chart("variants", text, rows, object{"variants": variants, "models": models})
}

// curveChart shows success by reliability and the ceiling above it, with a view for each
// variant.
func (a analysis) curveChart() *document.Chart {
	var rows []object
	var variants, models []string
	for _, c := range a.Curves {
		name := report.Readable(c.Variant)
		variants, models = distinct(variants, name), distinct(models, c.Model)
		for _, p := range c.Points {
			if p.Done == 0 {
				continue
			}
			row := object{
				"model": c.Model, "variant": name, "reliability": p.Reliability, "rate": p.Rate,
				"low": p.Interval.Low, "high": p.Interval.High, "n": p.Done,
			}
			if p.Best != nil {
				row["best"] = *p.Best
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	text := fmt.Sprintf("Full success of %s by reliability, below the dashed ceiling of the "+
		"best policy.", assay.Counted(len(models), "model"))
	name := "curves"
	if len(variants) > 1 {
		name = "curves by variant"
	}
	return chart(name, text, rows, object{"models": models, "variants": variants})
}

func errorChart(e report.Errors) *document.Chart {
	var rows []object
	var models, causes []string
	for _, c := range e.Causes {
		causes = append(causes, causeText(c))
	}
	for _, r := range e.Rows {
		if r.Total == 0 {
			continue
		}
		models = append(models, r.Model)
		for _, c := range r.Cells {
			if c.Count > 0 {
				rows = append(rows, object{
					"model": r.Model, "cause": causeText(c.Cause),
					"share": c.Rate, "count": c.Count,
				})
			}
		}
	}
	text := fmt.Sprintf("Reasons why trials of %s failed.", assay.Counted(len(models), "model"))
	return chart("errors", text, rows, object{"models": models, "causes": causes})
}

// binChart shows how a figure of an episode is distributed, by model. Of several values of a model, each
// row of the chart has what row returns for a value and the outcomes up to it.
func (a analysis) binChart(
	name, text string, bins func(report.GridRow) []report.Bin, row func(b report.Bin, sum int) object,
) *document.Chart {
	var rows []object
	var models []string
	for _, r := range a.Effort.All() {
		if r.Int(report.Done) == 0 {
			continue
		}
		models = append(models, r.Model)
		sum := 0
		for _, b := range bins(r) {
			sum += b.Outcomes
			o := row(b, sum)
			o["model"], o["share"] = r.Model, float64(o["outcomes"].(int))/r.Get(report.Done).Number
			rows = append(rows, o)
		}
	}
	return chart(name, fmt.Sprintf(text, assay.Counted(len(models), "model")), rows,
		object{"models": models, "dashes": dashes(models)})
}

func (a analysis) turnChart() *document.Chart {
	return a.binChart("turns", "Turns of the outcomes of %s.", report.GridRow.Turns,
		func(b report.Bin, _ int) object { return object{"turns": b.Value, "outcomes": b.Outcomes} })
}

// tokenChart shows the share of outcomes that took at most a number of tokens.
func (a analysis) tokenChart() *document.Chart {
	return a.binChart("tokens", "Tokens of the outcomes of %s: the share of outcomes that took at most as many.",
		report.GridRow.Tokens, func(b report.Bin, sum int) object {
			return object{"tokens": max(1, b.Value), "outcomes": sum}
		})
}

// colours is the number of line colours of a page. Further lines are dashed.
const colours = 14

func dashes(models []string) (patterns [][]int) {
	kinds := [][]int{{1, 0}, {6, 3}, {2, 2}, {8, 3, 2, 3}}
	for i := range models {
		patterns = append(patterns, kinds[i/colours%len(kinds)])
	}
	return patterns
}

func (a analysis) costChart() *document.Chart {
	var rows []object
	for _, s := range a.Standings {
		if s.PerTrial > 0 {
			rows = append(rows, object{
				"model": s.Model, "cost": s.PerTrial,
				"rate": s.Success.Rate, "n": s.Common,
				"low": s.Success.Interval.Low, "high": s.Success.Interval.High,
			})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	text := fmt.Sprintf("Cost of a trial against full success, for %s.",
		assay.Counted(len(rows), "model"))
	return chart("cost", text, rows, nil)
}

// profileChart shows a model's figures as dots.
func (a analysis) profileChart() *document.Chart { return dotChart("profile", a.Profile) }

func (a analysis) robustnessChart() *document.Chart {
	return dotChart("robustness", a.Robustness)
}

// dotChart shows the measures of a table as dots, by model.
func dotChart(table string, g *report.Grid) *document.Chart {
	var rows []object
	var models, measures []string
	var dots []document.Dot
	for _, r := range g.All() {
		name := r.Model
		if slices.Contains(g.By, faultMix) {
			name += ", " + r.Faults
		}
		for _, m := range report.Tables[table] {
			v := r.Get(m)
			if !v.Known || v.Interval == nil {
				continue
			}
			low, high := max(0, v.Interval.Low), min(1, v.Interval.High)
			rows = append(rows, object{
				"model": name, "measure": m.Heads[0], "value": min(1, max(0, v.Number)), "low": low, "high": high, "n": v.N,
			})
			models, measures = distinct(models, name), distinct(measures, m.Heads[0])
			dots = append(dots, document.Dot{Group: name, Label: m.Heads[0], Value: v.Number, Low: low, High: high})
		}
	}
	what := "model"
	if slices.Contains(g.By, faultMix) {
		what = "model and mix of faults"
	}
	text := fmt.Sprintf("%s by %s, with 95 %% intervals.", report.Capital(table), what)
	picture := chart("profile", text, rows, object{
		"models": models, "measures": measures, "step": 12,
	})
	picture.Dots = dots
	return picture
}

// confidenceChart is the reliability diagram: how often runs succeeded, by their stated confidence.
func (a analysis) confidenceChart() *document.Chart {
	var rows []object
	var models []string
	var dots []document.Dot
	for _, r := range a.Profile.All() {
		for _, b := range r.Diagram() {
			models = distinct(models, r.Model)
			rows = append(rows, object{
				"model": r.Model, "confidence": b.Confidence, "rate": b.Rate, "low": b.Interval.Low,
				"high": b.Interval.High, "n": b.Runs,
			})
			dots = append(dots, document.Dot{
				Group: r.Model, Label: fmt.Sprintf("stated %3.0f %%", 100*b.Confidence),
				Value: b.Rate, Low: b.Interval.Low, High: b.Interval.High,
			})
		}
	}
	text := fmt.Sprintf("Full success of %s by the confidence that was stated, with 95 %% intervals. Perfect "+
		"calibration is the diagonal.", assay.Counted(len(models), "model"))
	picture := chart("confidence", text, rows, object{"models": models})
	picture.Dots = dots
	return picture
}

func (a analysis) laneChart() *document.Chart {
	var rows []object
	for _, l := range a.Lanes {
		rows = append(rows, object{
			"lane": l.Model + " on " + l.Lane, "run": shortHash(string(l.Run)),
			"occupancy": l.Occupancy, "requests": l.Requests,
		})
	}
	text := fmt.Sprintf("Utilisation of %s while work was waiting.", assay.Counted(len(rows), "lane"))
	return chart("lanes", text, rows, nil)
}

// maxBars limits the conditions in a chart.
const maxBars = 16

// chart shows the first of the conditions, which have the largest differences.
func (c comparison) chart() *document.Chart {
	if len(c.Cells) < 2 {
		return nil
	}
	var rows []object
	for _, p := range c.Cells[:min(len(c.Cells), maxBars)] {
		certainty := "not significant"
		if p.Significant() {
			certainty = "significant"
		}
		rows = append(rows, object{
			"condition": p.Condition, "significant": certainty, "q": p.Q, "tasks": p.Tasks,
			"points": 100 * p.Difference,
			"low":    100 * p.Interval.Low, "high": 100 * p.Interval.High,
		})
	}
	text := fmt.Sprintf("%s minus %s in percentage points, with 95 %% intervals, in %d of %d "+
		"conditions.",
		c.B.Name, c.A.Name, len(rows), len(c.Cells))
	return chart("conditions", text, rows, nil)
}
