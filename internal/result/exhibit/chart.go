package exhibit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
)

// The charts are Vega-Lite specifications. The page adds sizes, fonts and colours, except where
// a colour has a meaning here.

type (
	object = map[string]any
	list   = []any
)

func chart(text string, spec object) *document.Chart {
	b, err := json.Marshal(spec)
	if err != nil {
		panic("exhibit: chart: " + err.Error()) // specifications are plain values
	}
	return &document.Chart{Text: text, Spec: b}
}

func values(rows []object) object { return object{"values": rows} }

// nominal encodes names. A nil order sorts them by name.
func nominal(field, title string, order []string) object {
	o := object{"field": field, "type": "nominal", "title": title}
	if order != nil {
		o["sort"] = order
	}
	return o
}

func quantity(field string) object { return object{"field": field, "type": "quantitative"} }

// with adds properties to an encoding.
func with(o object, more object) object {
	maps.Copy(o, more)
	return o
}

// share encodes a share of 1 on an axis in percent.
func share(field, title string) object {
	return with(quantity(field), object{
		"title": title, "scale": percentScale, "axis": object{"format": ".0%"},
	})
}

var percentScale = object{"domain": list{0, 1}}

// tips describes the tooltip of a mark. Each entry has a
// field, a title and, for figures, a format.
func tips(entries ...[3]string) (all list) {
	for _, e := range entries {
		o := object{"field": e[0], "title": e[1], "type": "nominal"}
		if e[2] != "" {
			o["type"], o["format"] = "quantitative", e[2]
		}
		all = append(all, o)
	}
	return all
}

// rateTips describes a rate with its interval.
func rateTips(level string) list {
	return tips([3]string{"model", "model"}, [3]string{"level", level},
		[3]string{"rate", "full success", ".1%"}, [3]string{"low", "from", ".1%"},
		[3]string{"high", "to", ".1%"}, [3]string{"n", "outcomes", "d"})
}

// rateRow is the data of a rate with its interval.
func rateRow(model, level string, c report.PivotCell) object {
	return object{
		"model": model, "level": level, "rate": c.Rate,
		"low": c.Interval.Low, "high": c.Interval.High, "n": c.Done,
	}
}

// rateLayers draws rates as points on their intervals, along the axis x or y.
func rateLayers(axis string) list {
	return list{
		object{
			"mark": object{"type": "rule", "strokeWidth": 2, "opacity": .5},
			"encoding": object{
				axis: share("low", "full success"), axis + "2": object{"field": "high"},
			},
		},
		object{
			"mark":     object{"type": "point", "filled": true, "size": 50, "opacity": 1},
			"encoding": object{axis: with(quantity("rate"), object{"scale": percentScale})},
		},
	}
}

// distinct appends a name unless it is in the list.
func distinct(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// successChart shows each model's rate in each variant.
func (a analysis) successChart() *document.Chart {
	var rows []object
	var models, variants []string
	for _, c := range a.Rates {
		if c.Done == 0 {
			continue
		}
		rows = append(rows, rateRow(c.Model, report.Readable(c.Level), c.PivotCell))
		models = distinct(models, c.Model)
		variants = distinct(variants, report.Readable(c.Level))
	}
	if len(rows) == 0 {
		return nil
	}

	byModel, byVariant := nominal("model", "", models), nominal("level", "", variants)
	y, step := byModel, max(9, 22-len(variants))
	offset := object{"field": "level", "sort": variants}
	color := nominal("level", "variant", variants)
	if len(variants) > 8 && len(models) < len(variants) {
		y, step = byVariant, 10
		offset = object{"field": "model", "sort": models}
		color = nominal("model", "model", models)
	}
	covers := ""
	if a.Covers != "" {
		covers = " (" + a.Covers + ")"
	}
	text := fmt.Sprintf("Rates of full success by model (%d) and variant (%d)%s, with 95 %% "+
		"intervals.",
		len(models), len(variants), covers)
	return chart(text, object{
		"data": values(rows), "height": object{"step": step}, "layer": rateLayers("x"),
		"encoding": object{
			"y": y, "yOffset": offset, "color": color, "tooltip": rateTips("variant"),
		},
	})
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
		counted(len(models), "model"))
	return chart(text, object{
		"data": values(rows), "height": 260, "layer": rateLayers("y"),
		"encoding": object{
			"x":       nominal("level", factor, heads),
			"xOffset": object{"field": "model", "sort": models},
			"color":   nominal("model", "model", models), "tooltip": rateTips(factor),
		},
	})
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
			"points": 100 * p.Difference, "label": fmt.Sprintf("%+.0f%s", 100*p.Difference, star),
			"q": p.Q, "tasks": p.Tasks, "rate": p.RateB, "reference": p.RateA,
		})
		variants, models = distinct(variants, report.Readable(p.B)), distinct(models, p.Model)
	}
	color := with(quantity("points"), object{
		"title": "points", "scale": object{"domain": list{-100, 100}, "domainMid": 0},
	})
	text := fmt.Sprintf("Differences of variants (%d) from %s in percentage points, by model "+
		"(%d). A "+
		"star marks significant ones.", len(variants), a.reference(), len(models))
	return chart(text, object{
		"data": values(rows), "height": object{"step": 32},
		"encoding": object{
			"x": nominal("variant", "", variants), "y": nominal("model", "", models),
			"tooltip": tips([3]string{"model", "model"}, [3]string{"variant", "variant"},
				[3]string{"against", "against"},
				[3]string{"points", "difference in points", "+.1f"},
				[3]string{"rate", "rate", ".1%"}, [3]string{"reference", "reference", ".1%"},
				[3]string{"q", "q", ".3f"}, [3]string{"tasks", "tasks", "d"}),
		},
		"layer": list{
			object{"mark": "rect", "encoding": object{"color": color}},
			object{
				"mark":     object{"type": "text"},
				"encoding": object{"text": object{"field": "label"}},
			},
		},
	})
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
	spec, view := object{"data": values(rows)}, curveView(models)
	if len(variants) > 1 {
		view["width"], view["height"] = 230, 150
		spec["facet"] = object{
			"field": "variant", "type": "nominal", "title": nil, "sort": variants,
		}
		spec["spec"], spec["columns"] = view, 4
	} else {
		maps.Copy(spec, view)
		spec["height"] = 300
	}
	return chart(fmt.Sprintf("Full success of %s by reliability, below the dashed ceiling of the "+
		"best "+
		"policy.", counted(len(models), "model")), spec)
}

func curveView(models []string) object {
	x := with(quantity("reliability"), object{
		"title": "reliability of a call",
		"scale": object{"zero": false, "nice": false, "padding": 10},
		"axis":  object{"format": ".2~f", "tickCount": 6},
	})
	color := nominal("model", "model", models)
	band := with(quantity("low"), object{"title": "full success", "scale": percentScale})
	return object{
		"encoding": object{"x": x},
		"layer": list{
			object{
				"mark": object{"type": "line", "strokeDash": list{6, 4}, "color": "gray"},
				"encoding": object{
					"y": with(share("best", "full success"), object{"aggregate": "mean"}),
				},
			},
			object{
				"mark":     object{"type": "errorband", "opacity": .15},
				"encoding": object{"y": band, "y2": object{"field": "high"}, "color": color},
			},
			object{
				"mark": object{"type": "line", "point": true},
				"encoding": object{
					"y": quantity("rate"), "color": color,
					"tooltip": tips([3]string{"model", "model"}, [3]string{"variant", "variant"},
						[3]string{"reliability", "reliability", ".2~f"},
						[3]string{"rate", "full success", ".1%"},
						[3]string{"best", "best possible", ".1%"}, [3]string{"n", "outcomes", "d"}),
				},
			},
		},
	}
}
