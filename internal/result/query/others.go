package query

import (
	"context"
	"fmt"

	"github.com/assay-eval/assay/internal/result/legacy"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
	"github.com/assay-eval/assay/internal/store"
)

// Others returns the results of other systems that a store holds, pooled over task types.
func Others(ctx context.Context, db *store.DB) ([]report.Other, error) {
	databases, err := legacy.Stored(ctx, db)
	if err != nil {
		return nil, err
	}
	var all []report.Other
	for _, d := range databases {
		all = append(all, otherOf(d))
	}
	return all, nil
}

// otherOf pools the aggregates of a database. It adds counts and computes the rates from them.
func otherOf(i legacy.Import) report.Other {
	type key struct {
		model, variant, difficulty string
		reliability                float64
	}
	type sum struct {
		legacy.Counts
		corrected bool
	}
	sums := make(map[key]*sum)
	var order []key
	unusable, assumed := 0, 0
	for n := range i.Aggregates {
		a := &i.Aggregates[n]
		counts, ok := a.Counts()
		if !ok {
			unusable++
			continue
		}
		if a.Rule == legacy.PerhapsDoubled {
			assumed++
		}
		k := key{a.Model, a.Variant, a.Difficulty, a.Reliability}
		if sums[k] == nil {
			sums[k] = new(sum)
			order = append(order, k)
		}
		sums[k].Add(counts)
		sums[k].corrected = sums[k].corrected || a.Corrected != nil
	}

	o := report.Other{
		Name:   i.Name,
		Source: fmt.Sprintf("A %s, last updated %s", i.Kind, i.LastUpdated),
		Note: fmt.Sprintf("Counts are pooled over task types. "+
			"%d of %d aggregates of the file (SHA-256 %s…) are not usable and left out.",
			unusable, len(i.Aggregates), i.SHA256[:12]),
	}
	if assumed > 0 {
		o.Note += fmt.Sprintf(" %d aggregates without a success are assumed to count every test "+
			"twice, but their own fields cannot tell; n may be up to twice as large.", assumed)
	}
	for _, k := range order {
		s := sums[k]
		o.Rows = append(o.Rows, report.OtherRow{
			Model:       k.model,
			Variant:     k.variant,
			Difficulty:  k.difficulty,
			Reliability: k.reliability,
			N:           s.Total,
			Full:        s.Full,
			Partial:     s.Partial,
			FullRate:    float64(s.Full) / float64(max(1, s.Total)),
			Interval:    stat.Wilson(s.Full, s.Total, stat.Z95),
			Corrected:   s.corrected,
		})
	}
	return o
}
