package report

import (
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// ModelRate is the rate of full success of one model in one variant.
type ModelRate struct {
	Model string `json:"model"`
	PivotCell
}

// A Reason is a cause with its share of the trials that failed.
type Reason struct {
	Cause  assay.Cause `json:"cause"`
	Count  int         `json:"count"`
	Failed int         `json:"failed"`
	// Place is the model and variant where it occurs in the largest share of outcomes.
	Place ModelRate `json:"place"`
	Share Share     `json:"share_there"`
}

// Simulated reports whether a model is one of the built-in reference agents.
func Simulated(model string) bool { return strings.HasPrefix(model, "sim/") }

// counting returns the cells of the models that figures are about: the ones that are not simulated,
// or all if there are no others with an outcome.
func counting(cells []*cell) []*cell {
	others := slices.ContainsFunc(cells, func(c *cell) bool {
		return c.n(done) > 0 && !Simulated(c.Model)
	})
	return where(cells, func(c assay.Cell) bool { return !others || !Simulated(c.Model) })
}

// mainReason finds the most frequent cause, and the place where it occurs most.
func mainReason(cells []*cell) *Reason {
	total := sum(cells)
	r := &Reason{Failed: total.n(done) - total.n(full)}
	for _, cause := range total.causes() {
		if n := total.failedBy(cause).Count; n > r.Count {
			r.Cause, r.Count = cause, n
		}
	}
	if r.Count == 0 {
		return nil
	}

	by := variantFactor(cells)
	pools := pool(cells, byModelAnd(by))
	// A place with few outcomes only counts if the cause occurs in no other.
	for _, least := range []int{min(fewest, total.n(done)/len(pools)), 1} {
		for _, p := range pools {
			if p.n(done) < least {
				continue
			}
			share := p.share(func(of task, o outcomes) (some, among int32) {
				return int32(p.errors[taskCause{r.Cause, of}]), o[done]
			})
			if share.Count > 0 && share.Rate > r.Share.Rate {
				r.Share = share
				r.Place = ModelRate{p.Model, newPivotCell(level(p.Cell, by), &p.tally)}
			}
		}
		if r.Share.Count > 0 {
			break
		}
	}
	return r
}
