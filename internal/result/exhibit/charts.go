package exhibit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
)

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
	text := fmt.Sprintf("Reasons why trials of %s failed.", counted(len(models), "model"))
	return chart(text, object{
		"data": values(rows), "height": object{"step": 28}, "mark": object{"type": "bar"},
		"encoding": object{
			"y": nominal("model", "", models), "x": share("share", "share of failed trials"),
			"color":   nominal("cause", "cause", causes),
			"order":   object{"field": "share", "sort": "descending"},
			"tooltip": tips("model", "cause", "count|outcomes|d", "share||.1%"),
		},
	})
}

// played returns the spreads of models with outcomes, and the models.
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
			n := s.Turns[turns]
			rows = append(rows, object{
				"model": s.Model, "turns": turns, "outcomes": n,
				"share": float64(n) / float64(s.Done),
			})
		}
	}
	x := object{
		"field": "turns", "type": "ordinal", "title": "turns", "axis": object{"labelAngle": 0},
	}
	y := with(quantity("share"), object{
		"title": "share of outcomes", "axis": object{"format": ".0%"},
	})
	tooltip := tips("model", "turns", "outcomes||d", "share||.1%")
	view := layer("bar", nil, object{"x": x, "y": y, "tooltip": tooltip})
	view["width"], view["height"] = 250, 110
	text := fmt.Sprintf("Turns of the outcomes of %s.", counted(len(models), "model"))
	return chart(text, object{
		"data": values(rows), "facet": ordered("model", models), "columns": 3, "spec": view,
	})
}

// tokenChart shows the share of outcomes that took at most a number of tokens.
func (a analysis) tokenChart() *document.Chart {
	var rows []object
	spreads, models := a.played()
	for _, s := range spreads {
		sum := 0
		for _, t := range s.Tokens {
			sum += t.Outcomes
			rows = append(rows, object{
				"model": s.Model, "tokens": max(1, t.Tokens), "outcomes": sum,
				"share": float64(sum) / float64(s.Done),
			})
		}
	}
	x := with(quantity("tokens"), object{
		"title": "tokens of an episode",
		"scale": object{"type": "log", "nice": false, "padding": 10},
		"axis":  object{"format": "~s", "tickCount": 6},
	})
	text := fmt.Sprintf("Tokens of the outcomes of %s: the share of outcomes that took at most "+
		"as many.",
		counted(len(models), "model"))
	return chart(text, object{
		"data": values(rows), "height": 240,
		"mark": object{"type": "line", "interpolate": "step-after", "point": object{"size": 12}},
		"encoding": object{
			"x": x, "y": share("share", "share of outcomes"),
			"color": nominal("model", "model", models), "strokeDash": dashes(models),
			"tooltip": tips("model", "tokens|tokens, at most|.3s", "outcomes||d", "share||.1%"),
		},
	})
}

// colours is the number of line colours of a page. Further lines are dashed.
const colours = 14

func dashes(models []string) object {
	kinds := []list{{1, 0}, {6, 3}, {2, 2}, {8, 3, 2, 3}}
	var patterns list
	for i := range models {
		patterns = append(patterns, kinds[i/colours%len(kinds)])
	}
	return object{
		"field": "model", "type": "nominal", "legend": nil,
		"scale": object{"domain": models, "range": patterns},
	}
}

func (a analysis) costChart() *document.Chart {
	var rows []object
	for _, s := range a.Spreads {
		if s.Done > 0 && s.CostUSD > 0 {
			rows = append(rows, object{
				"model": s.Model, "cost": s.CostUSD / float64(s.Done),
				"rate": s.Success.Rate, "n": s.Done,
				"low": s.Success.Interval.Low, "high": s.Success.Interval.High,
			})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	x := with(quantity("cost"), object{
		"title": "dollars a trial", "axis": object{"format": "~g"},
		"scale": object{"type": "log", "nice": true, "padding": 20},
	})
	label := layer("text", object{"align": "left", "dx": 8},
		object{"y": quantity("rate"), "text": object{"field": "model"}})
	text := fmt.Sprintf("Cost of a trial against full success, for %s.",
		counted(len(rows), "model"))
	return chart(text, object{
		"data": values(rows), "height": 300, "layer": append(rateLayers("y"), label),
		"encoding": object{
			"x": x,
			"tooltip": tips("model", "cost|dollars a trial|.5f", "rate|full success|.1%",
				"n|outcomes|d"),
		},
	})
}

func (a analysis) laneChart() *document.Chart {
	var rows []object
	for _, l := range a.Lanes {
		rows = append(rows, object{
			"lane": l.Model + " on " + l.Lane, "run": shortHash(string(l.Run)),
			"occupancy": l.Occupancy, "requests": l.Requests,
		})
	}
	text := fmt.Sprintf("Utilisation of %s while work was waiting.", counted(len(rows), "lane"))
	return chart(text, object{
		"data": values(rows), "height": object{"step": 22}, "mark": object{"type": "bar"},
		"encoding": object{
			"y":       with(ordered("lane", nil), object{"axis": object{"labelLimit": 320}}),
			"yOffset": object{"field": "run"}, "x": share("occupancy", "occupancy"),
			"tooltip": tips("lane", "run", "occupancy||.1%", "requests||d"),
		},
	})
}

// mostBars limits the conditions in a chart.
const mostBars = 16

// chart shows the first of the conditions, which have the largest differences.
func (c comparison) chart() *document.Chart {
	if len(c.Cells) < 2 {
		return nil
	}
	var rows []object
	for _, p := range c.Cells[:min(len(c.Cells), mostBars)] {
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
	opacity := object{
		"field": "significant", "type": "ordinal", "title": nil,
		"sort": list{"significant", "not significant"}, "scale": object{"range": list{1, .45}},
	}
	interval := object{
		"x": with(quantity("low"), object{"title": "points"}), "x2": object{"field": "high"},
	}
	text := fmt.Sprintf("%s minus %s in percentage points, with 95 %% intervals, in %d of %d "+
		"conditions.",
		c.B.Name, c.A.Name, len(rows), len(c.Cells))
	return chart(text, object{
		"data": values(rows), "height": object{"step": 20},
		"encoding": object{
			"y":       with(ordered("condition", nil), object{"axis": object{"labelLimit": 420}}),
			"opacity": opacity,
			"tooltip": tips("condition", "points||+.1f", "low|from|+.1f", "high|to|+.1f", "q||.3f",
				"tasks||d"),
		},
		"layer": list{
			layer("rule", object{"strokeWidth": 2}, interval),
			layer("point", object{"filled": true, "size": 60}, object{"x": quantity("points")}),
		},
	})
}
