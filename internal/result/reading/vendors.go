package reading

import (
	"context"
	"errors"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/store"
)

// A VendorRequest asks how far the hosts of one model differ.
type VendorRequest struct {
	// Names are the models of the store that stand for the hosts, the reference first.
	Names   []string
	Where   export.Where
	Cluster string
	// Margin is a share of 1.
	Margin float64
	// Allow lists the [report.Unlikenesses] that are allowed.
	Allow []string
}

// Vendors answers the request. It returns the errors of [report.Compare] and
// [report.Comparison.CheckAlike].
func (r VendorRequest) Vendors(
	ctx context.Context, db *store.DB,
) (*report.Vendors, error) {
	v := report.NewVendors(r.Names, r.Margin)
	var err error
	if v.Snapshot, err = db.Snapshot(ctx); err != nil && !errors.Is(err, store.ErrDamaged) {
		return nil, err
	}
	reference, err := r.side(ctx, db, r.Names[0])
	if err != nil {
		return nil, err
	}
	for i, name := range r.Names {
		for s, err := range db.Transcripts(ctx, store.Filter{Model: name, All: true}) {
			switch {
			case err != nil && !errors.Is(err, store.ErrDamaged):
				return nil, err
			case s.Attempt.FaultKind != assay.Interrupted && r.Where.Has(&s.Attempt):
				v.Add(i, &s.Attempt, s.Transcript)
			}
		}
		if i == 0 {
			continue
		}
		vendor, err := r.side(ctx, db, name)
		if err != nil {
			return nil, err
		}
		c, err := compare(r.Names[0], name, r.Cluster, reference, vendor)
		if err != nil {
			return nil, err
		}
		if err := c.CheckAlike(r.Allow); err != nil {
			return nil, err
		}
		reference.countKnown(&c.A)
		vendor.countKnown(&c.B)
		v.Compare(i, c)
	}
	v.Judge()
	v.Unread = db.Skipped()
	return v, nil
}

func (r VendorRequest) side(ctx context.Context, db *store.DB, model string) (*side, error) {
	return sideIn(ctx, db, "model:"+model, r.Where, job.PlannedTrials)
}
