package reading

import (
	"context"
	"strings"

	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/store"
)

// A GateRequest asks whether a candidate is worse than a baseline by less than a margin, and
// whether it meets demands.
type GateRequest struct {
	// Candidate names an experiment, run, model or variant of the store.
	Candidate string
	Baseline  *Baseline
	Where     export.Where
	Cluster   string
	Terms     report.Terms
	// Allow lists the [report.Unlikenesses] that are allowed.
	Allow []string
}

// Gate answers the request. It returns [ErrOneSide] and the errors of [report.Compare],
// [report.Comparison.CheckAlike], [report.Comparison.Gate] and [report.Alone].
func (r GateRequest) Gate(
	ctx context.Context, db *store.DB, plan Planner,
) (*report.Gate, error) {
	candidate, err := sideIn(ctx, db, r.Candidate, r.Where, plan)
	if err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(r.Candidate, "experiment:")
	baseline := r.Baseline.side
	var c *report.Comparison
	if baseline == nil {
		c, err = report.Alone(name, candidate.all())
	} else {
		baseline.where = r.Where
		c, err = compare(r.Baseline.Name, name, r.Cluster, baseline, candidate)
	}
	if err == nil {
		err = c.CheckAlike(r.Allow)
	}
	if err != nil {
		return nil, err
	}
	c.Unread = db.Skipped()
	covered, err := candidate.coverage()
	if err != nil {
		return nil, err
	}
	covered.count(&c.B)
	r.Terms.Pending = covered.at
	if baseline != nil {
		baseline.countKnown(&c.A)
	}
	return c.Gate(r.Terms)
}
