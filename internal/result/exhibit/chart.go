package exhibit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
)

// The charts are Vega-Lite specifications. Sizes, fonts and colours are those of the
// page, but for what a colour means here.

type object = map[string]any

type list = []any

func chart(text string, spec object) *document.Chart {
	b, err := json.Marshal(spec)
	if err != nil {
		panic("exhibit: chart: " + err.Error()) // of plain values
	}
	return &document.Chart{Text: text, Spec: b}
}

func values(rows []object) object { return object{"values": rows} }

func nominal(field, title string, order []string) object {
	o := object{"field": field, "type": "nominal", "title": title}
	if order != nil {
		o["sort"] = order
	}
	return o
}

func tip(field, title, format string) object {
	o := object{"field": field, "title": title, "type": "nominal"}
	if format != "" {
		o["type"], o["format"] = "quantitative", format
	}
	return o
}

var percentScale = object{"domain": list{0, 1}}

// successChart shows each model's rate in each variant, or at all.
func (a analysis) successChart() *document.Chart {
	var rows []object
	var models, variants []string
	for _, c := range a.Rates {
		if c.Done == 0 {
			continue
		}
		model, variant := c.Model, c.Level
		rows = append(rows, object{"model": model, "variant": report.Readable(variant), "rate": c.Rate, "low": c.Interval.Low, "high": c.Interval.High, "n": c.Done})
		if !slices.Contains(models, model) {
			models = append(models, model)
		}
		if v := report.Readable(variant); !slices.Contains(variants, v) {
			variants = append(variants, v)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	y, offset, color := nominal("model", "", models), object{"field": "variant", "sort": variants}, nominal("variant", "variant", variants)
	step := max(9, 22-len(variants))
	if len(variants) > 8 && len(models) < len(variants) {
		y, offset, color, step = nominal("variant", "", variants), object{"field": "model", "sort": models}, nominal("model", "model", models), 10
	}
	tips := list{tip("model", "model", ""), tip("variant", "variant", ""), tip("rate", "full success", ".1%"), tip("low", "from", ".1%"), tip("high", "to", ".1%"), tip("n", "outcomes", "d")}
	under := ""
	if a.Covers != "" {
		under = " (" + a.Covers + ")"
	}
	return chart(fmt.Sprintf("Rates of full success by model (%d) and variant (%d)%s, each with its 95 %% interval.", len(models), len(variants), under), object{
		"data":     values(rows),
		"height":   object{"step": step},
		"encoding": object{"y": y, "yOffset": offset, "color": color, "tooltip": tips},
		"layer": list{
			object{"mark": object{"type": "rule", "strokeWidth": 2, "opacity": .5}, "encoding": object{
				"x":  object{"field": "low", "type": "quantitative", "title": "full success", "scale": percentScale, "axis": object{"format": ".0%"}},
				"x2": object{"field": "high"},
			}},
			object{"mark": object{"type": "point", "filled": true, "size": 50, "opacity": 1}, "encoding": object{"x": object{"field": "rate", "type": "quantitative", "scale": percentScale}}},
		},
	})
}

// chart shows a pivot's rates as grouped dots.
func (p pivot) chart() *document.Chart {
	var rows []object
	var heads []string
	for _, l := range p.Levels {
		heads = append(heads, report.Readable(l))
	}
	var models []string
	for _, r := range p.Rows {
		models = append(models, r.Model)
		for i, c := range r.Cells {
			if c.Done > 0 {
				rows = append(rows, object{"model": r.Model, "level": heads[i], "rate": c.Rate, "low": c.Interval.Low, "high": c.Interval.High, "n": c.Done})
			}
		}
	}
	if len(rows) == 0 {
		return nil
	}
	x := nominal("level", report.Readable(p.Factor), heads)
	return chart(fmt.Sprintf("Rates of full success by %s for %d models, with 95 %% intervals.", report.Readable(p.Factor), len(models)), object{
		"data": values(rows), "height": 260,
		"encoding": object{
			"x": x, "xOffset": object{"field": "model", "sort": models}, "color": nominal("model", "model", models),
			"tooltip": list{tip("model", "model", ""), tip("level", report.Readable(p.Factor), ""), tip("rate", "full success", ".1%"), tip("low", "from", ".1%"), tip("high", "to", ".1%"), tip("n", "outcomes", "d")},
		},
		"layer": list{
			object{"mark": object{"type": "rule", "strokeWidth": 2, "opacity": .5}, "encoding": object{
				"y":  object{"field": "low", "type": "quantitative", "title": "full success", "scale": percentScale, "axis": object{"format": ".0%"}},
				"y2": object{"field": "high"},
			}},
			object{"mark": object{"type": "point", "filled": true, "size": 50, "opacity": 1}, "encoding": object{"y": object{"field": "rate", "type": "quantitative"}}},
		},
	})
}

// heatChart shows differences of variants to the reference, by model.
func (a analysis) heatChart() *document.Chart {
	var rows []object
	var variants, models []string
	for _, p := range a.Variants {
		mark := ""
		if p.Significant() {
			mark = "*"
		}
		rows = append(rows, object{
			"model": p.Model, "variant": report.Readable(p.B), "points": 100 * p.Difference, "label": fmt.Sprintf("%+.0f%s", 100*p.Difference, mark),
			"q": p.Q, "tasks": p.Tasks, "rate": p.RateB, "reference": p.RateA, "against": report.Readable(p.A),
		})
		if v := report.Readable(p.B); !slices.Contains(variants, v) {
			variants = append(variants, v)
		}
		if !slices.Contains(models, p.Model) {
			models = append(models, p.Model)
		}
	}
	x := nominal("variant", "", variants)
	return chart(fmt.Sprintf("Differences of variants (%d) to %s in percentage points, by model (%d); a star marks what is significant.", len(variants), a.reference(), len(models)), object{
		"data": values(rows), "height": object{"step": 32},
		"encoding": object{
			"x": x, "y": nominal("model", "", models),
			"tooltip": list{tip("model", "model", ""), tip("variant", "variant", ""), tip("against", "against", ""), tip("points", "difference in points", "+.1f"), tip("rate", "rate", ".1%"), tip("reference", "reference", ".1%"), tip("q", "q", ".3f"), tip("tasks", "tasks", "d")},
		},
		"layer": list{
			object{"mark": "rect", "encoding": object{"color": object{
				"field": "points", "type": "quantitative", "title": "points",
				"scale": object{"domain": list{-100, 100}, "domainMid": 0},
			}}},
			object{"mark": object{"type": "text"}, "encoding": object{"text": object{"field": "label"}}},
		},
	})
}

// curveChart shows success by reliability and the ceiling above it. Variants are
// shown apart where there are several.
func (a analysis) curveChart() *document.Chart {
	var rows []object
	variants, models := []string{}, []string{}
	for _, c := range a.Curves {
		if v := report.Readable(c.Variant); !slices.Contains(variants, v) {
			variants = append(variants, v)
		}
		if !slices.Contains(models, c.Model) {
			models = append(models, c.Model)
		}
		for _, p := range c.Points {
			if p.Done == 0 {
				continue
			}
			row := object{"model": c.Model, "variant": report.Readable(c.Variant), "reliability": p.Reliability, "rate": p.Rate, "low": p.Interval.Low, "high": p.Interval.High, "n": p.Done}
			if p.Best != nil {
				row["best"] = *p.Best
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	x := object{"field": "reliability", "type": "quantitative", "title": "reliability of a call", "scale": object{"zero": false, "nice": false, "padding": 10}, "axis": object{"format": ".2~f", "tickCount": 6}}
	layers := object{
		"encoding": object{"x": x},
		"layer": list{
			object{"mark": object{"type": "line", "strokeDash": list{6, 4}, "color": "gray"}, "encoding": object{
				"y": object{"aggregate": "mean", "field": "best", "type": "quantitative", "title": "full success", "scale": percentScale, "axis": object{"format": ".0%"}},
			}},
			object{"mark": object{"type": "errorband", "opacity": .15}, "encoding": object{
				"y": object{"field": "low", "type": "quantitative", "title": "full success", "scale": percentScale}, "y2": object{"field": "high"}, "color": nominal("model", "model", models),
			}},
			object{"mark": object{"type": "line", "point": true}, "encoding": object{
				"y": object{"field": "rate", "type": "quantitative"}, "color": nominal("model", "model", models),
				"tooltip": list{tip("model", "model", ""), tip("variant", "variant", ""), tip("reliability", "reliability", ".2~f"), tip("rate", "full success", ".1%"), tip("best", "best possible", ".1%"), tip("n", "outcomes", "d")},
			}},
		},
	}
	spec := object{"data": values(rows)}
	if len(variants) > 1 {
		layers["width"], layers["height"] = 230, 150
		spec["facet"], spec["spec"], spec["columns"] = object{"field": "variant", "type": "nominal", "title": nil, "sort": variants}, layers, 4
	} else {
		maps.Copy(spec, layers)
		spec["height"] = 300
	}
	return chart(fmt.Sprintf("Full success of %d models by reliability, below the dashed ceiling of the best policy.", len(models)), spec)
}

func errorChart(e report.Errors) *document.Chart {
	var rows []object
	var models, categories []string
	for _, c := range e.Categories {
		categories = append(categories, report.Readable(c))
	}
	for _, r := range e.Rows {
		if r.Total == 0 {
			continue
		}
		models = append(models, r.Model)
		for _, c := range r.Cells {
			if c.Count > 0 {
				rows = append(rows, object{"model": r.Model, "category": report.Readable(c.Category), "share": c.Rate, "count": c.Count})
			}
		}
	}
	return chart(fmt.Sprintf("Shares of the categories of error of %d models.", len(models)), object{
		"data": values(rows), "height": object{"step": 28}, "mark": object{"type": "bar"},
		"encoding": object{
			"y":       nominal("model", "", models),
			"x":       object{"field": "share", "type": "quantitative", "title": "share of outcomes that are not full success", "axis": object{"format": ".0%"}, "scale": percentScale},
			"color":   nominal("category", "category", categories),
			"order":   object{"field": "share", "sort": "descending"},
			"tooltip": list{tip("model", "model", ""), tip("category", "category", ""), tip("count", "outcomes", "d"), tip("share", "share", ".1%")},
		},
	})
}

// played are the spreads of models that have outcomes, and these models.
func (a analysis) played() (spreads []report.Spread, models []string) {
	for _, s := range a.Spreads {
		if s.Done > 0 {
			spreads, models = append(spreads, s), append(models, s.Model)
		}
	}
	return spreads, models
}

func (a analysis) turnChart() *document.Chart {
	var rows []object
	spreads, models := a.played()
	for _, s := range spreads {
		for _, turns := range slices.Sorted(maps.Keys(s.Turns)) {
			rows = append(rows, object{"model": s.Model, "turns": turns, "share": float64(s.Turns[turns]) / float64(s.Done), "outcomes": s.Turns[turns]})
		}
	}
	return chart(fmt.Sprintf("How many turns the outcomes of %d models took.", len(models)), object{
		"data":  values(rows),
		"facet": object{"field": "model", "type": "nominal", "title": nil, "sort": models}, "columns": 3,
		"spec": object{
			"width": 250, "height": 110, "mark": object{"type": "bar"},
			"encoding": object{
				"x":       object{"field": "turns", "type": "ordinal", "title": "turns", "axis": object{"labelAngle": 0}},
				"y":       object{"field": "share", "type": "quantitative", "title": "share of outcomes", "axis": object{"format": ".0%"}},
				"tooltip": list{tip("model", "model", ""), tip("turns", "turns", ""), tip("outcomes", "outcomes", "d"), tip("share", "share", ".1%")},
			},
		},
	})
}

// tokenChart shows for each number of tokens the share of outcomes that took no more.
func (a analysis) tokenChart() *document.Chart {
	var rows []object
	spreads, models := a.played()
	for _, s := range spreads {
		sum := 0
		for _, t := range s.Tokens {
			sum += t.Outcomes
			rows = append(rows, object{"model": s.Model, "tokens": max(1, t.Tokens), "share": float64(sum) / float64(s.Done), "outcomes": sum})
		}
	}
	return chart(fmt.Sprintf("How many tokens the outcomes of %d models took: the share of outcomes that took no more than so many.", len(models)), object{
		"data": values(rows), "height": 240, "mark": object{"type": "line", "interpolate": "step-after", "point": object{"size": 12}},
		"encoding": object{
			"x":          object{"field": "tokens", "type": "quantitative", "title": "tokens of an episode", "scale": object{"type": "log", "nice": false, "padding": 10}, "axis": object{"format": "~s", "tickCount": 6}},
			"y":          object{"field": "share", "type": "quantitative", "title": "share of outcomes", "axis": object{"format": ".0%"}, "scale": percentScale},
			"color":      nominal("model", "model", models),
			"strokeDash": dashes(models),
			"tooltip":    list{tip("model", "model", ""), tip("tokens", "tokens, at most", ".3s"), tip("outcomes", "outcomes", "d"), tip("share", "share", ".1%")},
		},
	})
}

// colours is how many lines a page has colours for; further ones are dashed.
const colours = 14

func dashes(models []string) object {
	kinds := []list{{1, 0}, {6, 3}, {2, 2}, {8, 3, 2, 3}}
	var range_ list
	for i := range models {
		range_ = append(range_, kinds[i/colours%len(kinds)])
	}
	return object{"field": "model", "type": "nominal", "legend": nil, "scale": object{"domain": models, "range": range_}}
}

func (a analysis) costChart() *document.Chart {
	var rows []object
	for _, s := range a.Spreads {
		if s.Done > 0 && s.CostUSD > 0 {
			rows = append(rows, object{"model": s.Model, "cost": s.CostUSD / float64(s.Done), "rate": s.Success.Rate, "low": s.Success.Interval.Low, "high": s.Success.Interval.High, "n": s.Done})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	x := object{"field": "cost", "type": "quantitative", "title": "dollars a trial", "scale": object{"type": "log", "nice": true, "padding": 20}, "axis": object{"format": "~g"}}
	return chart(fmt.Sprintf("Cost a trial against full success of %d models.", len(rows)), object{
		"data": values(rows), "height": 300,
		"encoding": object{"x": x, "tooltip": list{tip("model", "model", ""), tip("cost", "dollars a trial", ".5f"), tip("rate", "full success", ".1%"), tip("n", "outcomes", "d")}},
		"layer": list{
			object{"mark": object{"type": "rule", "opacity": .4}, "encoding": object{"y": object{"field": "low", "type": "quantitative", "title": "full success", "scale": percentScale, "axis": object{"format": ".0%"}}, "y2": object{"field": "high"}}},
			object{"mark": object{"type": "point", "filled": true, "size": 70}, "encoding": object{"y": object{"field": "rate", "type": "quantitative"}}},
			object{"mark": object{"type": "text", "align": "left", "dx": 8}, "encoding": object{"y": object{"field": "rate", "type": "quantitative"}, "text": object{"field": "model"}}},
		},
	})
}

func (a analysis) laneChart() *document.Chart {
	var rows []object
	for _, l := range a.Lanes {
		rows = append(rows, object{"lane": l.Model + " on " + l.Lane, "run": shortHash(string(l.Run)), "occupancy": l.Occupancy, "requests": l.Requests})
	}
	return chart(fmt.Sprintf("How full %d lanes were while there was something to do.", len(rows)), object{
		"data": values(rows), "height": object{"step": 22}, "mark": object{"type": "bar"},
		"encoding": object{
			"y":       object{"field": "lane", "type": "nominal", "title": nil, "axis": object{"labelLimit": 320}, "sort": nil},
			"yOffset": object{"field": "run"},
			"x":       object{"field": "occupancy", "type": "quantitative", "title": "occupancy", "axis": object{"format": ".0%"}, "scale": percentScale},
			"tooltip": list{tip("lane", "lane", ""), tip("run", "run", ""), tip("occupancy", "occupancy", ".1%"), tip("requests", "requests", "d")},
		},
	})
}

// mostBars limits the conditions in the chart.
const mostBars = 16

// chart shows the largest differences between the sides.
func (c comparison) chart() *document.Chart {
	if len(c.Cells) < 2 {
		return nil
	}
	cells := c.Cells[:min(len(c.Cells), mostBars)]
	var rows []object
	for _, p := range cells {
		rows = append(rows, object{
			"condition": p.Condition, "points": 100 * p.Difference, "low": 100 * p.Interval.Low, "high": 100 * p.Interval.High,
			"significant": map[bool]string{true: "significant", false: "not significant"}[p.Significant()], "q": p.Q, "tasks": p.Tasks,
		})
	}
	y := object{"field": "condition", "type": "nominal", "title": nil, "sort": nil, "axis": object{"labelLimit": 420}}
	certainty := object{
		"field": "significant", "type": "ordinal", "title": nil,
		"sort": list{"significant", "not significant"}, "scale": object{"range": list{1, .45}},
	}
	text := fmt.Sprintf("%s minus %s in percentage points, with 95 %% intervals: %d of %d conditions, significant and large differences first.", c.B.Name, c.A.Name, len(cells), len(c.Cells))
	return chart(text, object{
		"data": values(rows), "height": object{"step": 20},
		"encoding": object{
			"y": y, "opacity": certainty,
			"tooltip": list{tip("condition", "condition", ""), tip("points", "points", "+.1f"), tip("low", "from", "+.1f"), tip("high", "to", "+.1f"), tip("q", "q", ".3f"), tip("tasks", "tasks", "d")},
		},
		"layer": list{
			object{"mark": object{"type": "rule", "strokeWidth": 2}, "encoding": object{"x": object{"field": "low", "type": "quantitative", "title": "points"}, "x2": object{"field": "high"}}},
			object{"mark": object{"type": "point", "filled": true, "size": 60}, "encoding": object{"x": object{"field": "points", "type": "quantitative"}}},
		},
	})
}
