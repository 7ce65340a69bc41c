package exhibit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

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

// ordered encodes names in the order of the data or, if it is not nil, in a given order.
func ordered(field string, order []string) object {
	return with(nominal(field, "", order), object{"title": nil, "sort": order})
}

// layer draws one kind of mark.
func layer(mark string, look, encoding object) object {
	return object{"mark": with(object{"type": mark}, look), "encoding": encoding}
}

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

// tips describes the tooltip of a mark. Each entry is a field with its title, unless that is the
// same, and the format of a figure: "field|title|format".
func tips(entries ...string) (all list) {
	for _, e := range entries {
		parts := append(strings.Split(e, "|"), "", "")
		o := object{"field": parts[0], "title": cmp.Or(parts[1], parts[0]), "type": "nominal"}
		if parts[2] != "" {
			o["type"], o["format"] = "quantitative", parts[2]
		}
		all = append(all, o)
	}
	return all
}

// rateTips describes a rate with its interval.
func rateTips(level string) list {
	return tips("model", "level|"+level, "rate|full success|.1%", "low|from|.1%", "high|to|.1%",
		"n|outcomes|d")
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
	low := share("low", "full success")
	rates := with(quantity("rate"), object{"scale": percentScale})
	return list{
		layer("rule", object{"strokeWidth": 2, "opacity": .5},
			object{axis: low, axis + "2": object{"field": "high"}}),
		layer("point", object{"filled": true, "size": 50, "opacity": 1}, object{axis: rates}),
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
		"(%d). A star marks significant ones.", len(variants), a.reference(), len(models))
	return chart(text, object{
		"data": values(rows), "height": object{"step": 32},
		"encoding": object{
			"x": nominal("variant", "", variants), "y": nominal("model", "", models),
			"tooltip": tips("model", "variant", "against", "points|difference in points|+.1f",
				"rate||.1%", "reference||.1%", "q||.3f", "tasks||d"),
		},
		"layer": list{
			object{"mark": "rect", "encoding": object{"color": color}},
			layer("text", nil, object{"text": object{"field": "label"}}),
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
		spec["facet"] = ordered("variant", variants)
		spec["spec"], spec["columns"] = view, 4
	} else {
		maps.Copy(spec, view)
		spec["height"] = 300
	}
	return chart(fmt.Sprintf("Full success of %s by reliability, below the dashed ceiling of the "+
		"best policy.", counted(len(models), "model")), spec)
}

func curveView(models []string) object {
	x := with(quantity("reliability"), object{
		"title": "reliability of a call",
		"scale": object{"zero": false, "nice": false, "padding": 10},
		"axis":  object{"format": ".2~f", "tickCount": 6},
	})
	color := nominal("model", "model", models)
	ceiling := with(share("best", "full success"), object{"aggregate": "mean"})
	band := with(quantity("low"), object{"title": "full success", "scale": percentScale})
	return object{
		"encoding": object{"x": x},
		"layer": list{
			layer("line", object{"strokeDash": list{6, 4}, "color": "gray"}, object{"y": ceiling}),
			layer("errorband", object{"opacity": .15},
				object{"y": band, "y2": object{"field": "high"}, "color": color}),
			layer("line", object{"point": true}, object{
				"y": quantity("rate"), "color": color,
				"tooltip": tips("model", "variant", "reliability||.2~f", "rate|full success|.1%",
					"best|best possible|.1%", "n|outcomes|d"),
			}),
		},
	}
}
