package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// Findings answer the questions that a reader has first: which model and variant is best,
// whether that is more than chance, and why trials fail where.
type Findings struct {
	// Best is the model and variant with the highest rate of full success. Simulated
	// models only count if there are no others. It is nil without an outcome.
	Best *ModelRate `json:"best"`
	// Rivals compares the best (B) with the next ones (A) on the same tasks, the highest
	// rate first.
	Rivals []Rival `json:"rivals"`
	// Reason is the most frequent reason why trials failed, nil if all succeeded.
	Reason *Reason `json:"reason"`
	// Missing is the tool that failed trials lacked most often, nil if they lacked no tool.
	Missing *MissingTool `json:"missing_tool"`
	// Weakest is the variant with the lowest rate over all models, nil if there are not
	// at least two.
	Weakest *PivotCell `json:"weakest_variant"`
}

// A Rival is a model and variant that is compared with the best.
type Rival struct {
	Rate ModelRate `json:"rate"`
	Test Paired    `json:"test"`
}

// A Reason is an error category with its share of the trials that failed.
type Reason struct {
	Category string `json:"category"`
	Count    int    `json:"count"`
	Failed   int    `json:"failed"`
	// Place is the model and variant where it occurs in the largest share of outcomes.
	Place ModelRate `json:"place"`
	Share Share     `json:"share_there"`
}

// A MissingTool is a required tool, with the number of failed trials in which it was the first one
// that did not succeed.
type MissingTool struct {
	Tool   string `json:"tool"`
	Count  int    `json:"count"`
	Failed int    `json:"failed"`
}

// mostRivals limits the rivals that are compared with the best.
const mostRivals = 20

// Simulated reports whether a model is one of the built-in reference agents.
func Simulated(model string) bool { return strings.HasPrefix(model, "sim/") }

func findings(cells []*cell, rates []ModelRate) Findings {
	f := Findings{Rivals: []Rival{}}
	ranked := ranking(rates)
	if len(ranked) == 0 {
		return f
	}
	f.Best = &ranked[0]
	f.Rivals = rivals(cells, ranked)
	cells = where(cells, func(c assay.Cell) bool {
		return Simulated(c.Model) == Simulated(f.Best.Model)
	})
	f.Reason, f.Missing = mainReason(cells), missingTool(cells)
	f.Weakest = weakest(cells)
	return f
}

// ranking sorts the rates that count, the highest first. Rates of few outcomes only count
// if there are no others.
func ranking(rates []ModelRate) []ModelRate {
	ranked := slices.Clone(rates)
	for i, discounted := range []func(ModelRate) bool{
		func(r ModelRate) bool { return r.Done == 0 },
		func(r ModelRate) bool { return Simulated(r.Model) },
		func(r ModelRate) bool { return r.Done < fewest },
	} {
		if i == 0 || !all(ranked, discounted) {
			ranked = slices.DeleteFunc(ranked, discounted)
		}
	}
	slices.SortStableFunc(ranked, func(x, y ModelRate) int { return cmp.Compare(y.Rate, x.Rate) })
	return ranked
}

func all[T any](values []T, is func(T) bool) bool {
	return !slices.ContainsFunc(values, func(v T) bool { return !is(v) })
}

// rivals compares the first of the ranked rates with the following ones. A rival without a
// task in common with it is left out.
func rivals(cells []*cell, ranked []ModelRate) []Rival {
	cells = fairCells(cells)
	best := ranked[0]
	out := []Rival{}
	for _, r := range ranked[1:min(len(ranked), mostRivals+1)] {
		a, b := configurationName(r.Model, r.Level), configurationName(best.Model, best.Level)
		p := Paired{A: a, B: b, Comparison: pairs(cells, a, b, configuration).bMinusA()}
		if p.Tasks > 0 {
			out = append(out, Rival{r, p})
		}
	}
	return out
}

// mainReason finds the most frequent category of error, and the place where it occurs most.
func mainReason(cells []*cell) *Reason {
	total := sum(cells)
	r := &Reason{Failed: total.done - total.full}
	for _, category := range total.categories() {
		if n := total.mistaken(category).Count; n > r.Count {
			r.Category, r.Count = category, n
		}
	}
	if r.Count == 0 {
		return nil
	}

	pools, _ := byModelAnd(cells, variantFactor(cells))
	for _, p := range pools {
		if p.done < min(fewest, total.done/len(pools)) {
			continue
		}
		share := p.share(func(of task, o outcomes) (some, among int32) {
			return int32(p.errors[mistake{r.Category, of}]), o[done]
		})
		if share.Count > 0 && share.Rate > r.Share.Rate {
			r.Share, r.Place = share, p.rate(p.key.model, p.key.level)
		}
	}
	return r
}

// missingTool finds the tool that failed trials lacked most often. If there are several, it returns
// the first by name.
func missingTool(cells []*cell) *MissingTool {
	total := sum(cells)
	m := &MissingTool{Failed: total.done - total.full}
	for _, tool := range slices.Sorted(maps.Keys(total.missing)) {
		if n := total.missing[tool]; n > m.Count {
			m.Tool, m.Count = tool, n
		}
	}
	if m.Count == 0 {
		return nil
	}
	return m
}

// weakest finds the variant with the lowest rate over all models.
func weakest(cells []*cell) *PivotCell {
	cells = fairCells(cells)
	by := variantFactor(cells)
	variants, _ := pool(cells, func(c assay.Cell) string { return level(c, by) })
	variants = slices.DeleteFunc(variants, func(v *pooled[string]) bool { return v.done == 0 })
	if len(variants) < 2 {
		return nil
	}
	var rates []PivotCell
	for _, v := range variants {
		rates = append(rates, newPivotCell(v.key, &v.tally))
	}
	byRate := func(x, y PivotCell) int { return cmp.Compare(x.Rate, y.Rate) }
	return new(slices.MinFunc(rates, byRate))
}
