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
	has := r.Where.Has
	name := strings.TrimPrefix(r.Candidate, "experiment:")
	covered, err := coverageOf(selection.Planned(ctx, db, r.Candidate, plan), candidate, r.Where)
	if err != nil {
		return nil, err
	}
	r.Terms.Pending = covered.at
	if r.Baseline.Attempts == nil {
		side := report.Side{Name: name}
		covered.count(&side)
		return report.GateAlone(r.Terms, side, selection.Filter(candidate, has))
	}
	c, err := report.Compare(r.Baseline.Name, name, r.Cluster,
		selection.Filter(r.Baseline.Attempts, has), selection.Filter(candidate, has))
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
	covered.count(&c.B)
	if of, err := coverageOf(r.Baseline.trials, r.Baseline.Attempts, r.Where); err == nil {
		of.count(&c.A) // otherwise the baseline cannot be planned again
	}
	return c.Gate(r.Terms)
}
