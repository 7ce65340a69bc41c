package reading

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/selection"
	"github.com/assay-eval/assay/internal/store"
)

// A GateRequest asks whether a candidate is worse than a baseline by less than a margin.
type GateRequest struct {
	// Candidate names one side of the store; see [selection.Side].
	Candidate string
	// Baseline are the attempts of the other side, in the user's words.
	Baseline     string
	BaselineFrom iter.Seq2[assay.Attempt, error]
	Where        export.Where
	Cluster      string
	// Margin is a share of 1.
	Margin float64
	Look   report.Look
	// Allow lists what may differ, of [report.Unlikenesses].
	Allow []string
}

// Gate answers the request. It returns [ErrOneSide] and the errors of [report.Compare] and
// [report.Comparison.CheckAlike].
func (r GateRequest) Gate(
	ctx context.Context, db *store.DB, plan selection.Planner,
) (*report.Gate, error) {
	candidate, err := selection.Side(ctx, db, r.Candidate, plan)
	if err != nil {
		return nil, err
	}
	has := r.Where.Has
	name := strings.TrimPrefix(r.Candidate, "experiment:")
	c, err := report.Compare(r.Baseline, name, r.Cluster,
		selection.Filter(r.BaselineFrom, has), selection.Filter(candidate, has))
	if errors.Is(err, report.ErrNothingInCommon) {
		return nil, nothingInCommon(err, c, r.Where, r.BaselineFrom, candidate)
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
	planned := make(map[assay.TrialID]bool)
	for t, err := range selection.Planned(ctx, db, r.Candidate, plan) {
		if err != nil {
			return nil, err
		}
		if r.Where.HasTrial(&t) {
			planned[t.ID] = true
		}
	}
	all := len(planned)
	for a, err := range selection.Filter(candidate, has) {
		if err != nil {
			return nil, err
		}
		delete(planned, a.ID) // a trial of merged stores may have several outcomes
	}
	return c.Gate(r.Margin, r.Look, all, len(planned)), nil
}
