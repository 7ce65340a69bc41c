package reading

import (
	"context"
	"errors"
	"strings"

	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/selection"
	"github.com/assay-eval/assay/internal/store"
)

// A GateRequest asks whether a candidate is worse than a baseline by less than a margin, and
// whether it meets demands.
type GateRequest struct {
	// Candidate names one side of the store; see [selection.Side].
	Candidate string
	Baseline  *Baseline
	Where     export.Where
	Cluster   string
	Terms     report.Terms
	// Allow lists what may differ, of [report.Unlikenesses].
	Allow []string
}

// Gate answers the request. It returns [ErrOneSide] and the errors of [report.Compare],
// [report.Comparison.CheckAlike], [report.Comparison.Gate] and [report.GateAlone].
func (r GateRequest) Gate(
	ctx context.Context, db *store.DB, plan selection.Planner,
) (*report.Gate, error) {
	candidate, err := selection.Side(ctx, db, r.Candidate, plan)
	if err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(r.Candidate, "experiment:")
	of, trials := newSide(candidate, r.Where), selection.Planned(ctx, db, r.Candidate, plan)
	if r.Baseline.Attempts == nil {
		for _, err := range of.all() {
			if err != nil {
				return nil, err
			}
		}
		covered, err := of.coverage(trials)
		if err != nil {
			return nil, err
		}
		side := report.Side{Name: name}
		covered.count(&side)
		r.Terms.Pending = covered.at
		return report.GateAlone(r.Terms, side, of.all())
	}
	baseline := newSide(r.Baseline.Attempts, r.Where)
	c, err := report.Compare(r.Baseline.Name, name, r.Cluster, baseline.all(), of.all())
	if errors.Is(err, report.ErrNothingInCommon) {
		return nil, nothingInCommon(err, c, r.Where, r.Baseline.Attempts, candidate)
	}
	if err != nil {
		return nil, err
	}
	if c.Shared == c.A.Trials && c.Shared == c.B.Trials {
		return nil, oneSide(c)
	}
	if err := c.CheckAlike(r.Allow); err != nil {
		return nil, err
	}
	c.Unread = db.Skipped()
	covered, err := of.coverage(trials)
	if err != nil {
		return nil, err
	}
	covered.count(&c.B)
	r.Terms.Pending = covered.at
	if of, err := baseline.coverage(r.Baseline.trials); err == nil {
		of.count(&c.A) // otherwise the baseline cannot be planned again
	}
	return c.Gate(r.Terms)
}
