package session

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/run/live"
	"github.com/assay-eval/assay/internal/run/plan"
	"github.com/assay-eval/assay/internal/store"
)

// narrow is an endpoint that refuses more than some requests at once, and says so. Otherwise it
// would depend on the order of simultaneous requests whether a lane learns a width or a rate.
type narrow struct{ most, inFlight, accepted, refused atomic.Int32 }

const narrowWords = "not so many at a time, please"

// evidence returns what there is to know about the endpoint.
func (n *narrow) evidence() store.Evidence {
	return store.Evidence{
		Accepted: int(n.accepted.Load()), Refused: int(n.refused.Load()), Words: narrowWords,
	}
}

func (n *narrow) Chat(context.Context, assay.Request) (assay.Response, error) {
	defer n.inFlight.Add(-1)
	if n.inFlight.Add(1) > n.most.Load() {
		n.refused.Add(1)
		return assay.Response{}, &assay.Fault{
			Kind: assay.RateLimited, Bucket: assay.Concurrency, Detail: narrowWords,
		}
	}
	time.Sleep(time.Second)
	n.accepted.Add(1)
	return assay.Response{ServedModel: "m", Usage: assay.Usage{InputTokens: 1, OutputTokens: 1}}, nil
}

// TestLearnedLimitHasEvidenceAndExpires checks in virtual time that a learned limit is stored with
// the requests and the words that taught it, and that runs start with it for an hour, unless a
// limit is stated.
func TestLearnedLimitHasEvidenceAndExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		db, err := store.Open(ctx, filepath.Join(t.TempDir(), "s.db"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		s, endpoint := learn(t, db), new(narrow)
		pool := lane.NewPool("m", []lane.Config{{Name: "gw/K/m", Provider: endpoint, Orders: "m"}},
			lane.Options{Observe: s.observe})
		s.pools = &job.Pools{ByModel: map[string]*lane.Pool{"m": pool}}
		runs, err := db.Runs(ctx, "e")
		if err != nil {
			t.Fatal(err)
		}
		var before store.Evidence
		var width Learned
		for _, most := range []int{2, 4} {
			endpoint.most.Store(int32(most))
			var all sync.WaitGroup
			for range 100 * most {
				all.Go(func() { _, _ = pool.Chat(ctx, assay.Request{}) })
			}
			all.Wait()
			if err := s.storeLearned(ctx); err != nil {
				t.Fatal(err)
			}
			learned := statusLearned(t, db, runs)
			i := slices.IndexFunc(learned, func(l Learned) bool {
				return l.Bucket == assay.Concurrency
			})
			want := endpoint.evidence()
			want.Accepted -= before.Accepted
			want.Refused -= before.Refused
			if i < 0 || learned[i].Evidence != want || learned[i].Value != most {
				t.Fatalf("learned %+v, want a width of %d by %+v", learned, most, want)
			}
			before, width = endpoint.evidence(), learned[i]
		}
		if of := statusLearned(t, db, nil); len(of) > 0 {
			t.Errorf("an experiment without these lanes has learned %+v", of)
		}

		time.Sleep(time.Until(width.Expires) - time.Second)
		if got := recalled(t, db, lane.Limits{}); got.Concurrency != 4 {
			t.Errorf("before the limit expires, a run starts with %+v", got)
		}
		if got := recalled(t, db, lane.Limits{Concurrency: 8, RPS: 9}); got != (lane.Limits{}) {
			t.Errorf("a run with stated limits starts with the learned %+v", got)
		}
		time.Sleep(time.Second)
		if got := recalled(t, db, lane.Limits{}); got != (lane.Limits{}) {
			t.Errorf("after the limit expired, a run starts with %+v", got)
		}
		if got := statusLearned(t, db, runs); len(got) > 0 {
			t.Errorf("after the limit expired, the status has %+v", got)
		}
	})
}

// learn returns a session that has begun its run.
func learn(t *testing.T, db *store.DB) *Session {
	t.Helper()
	err := db.BeginRun(t.Context(), store.Experiment{Name: "e", Spec: []byte("{}")},
		store.Run{ID: "r", StartedAt: time.Now().UTC()})
	if err != nil {
		t.Fatal(err)
	}
	return &Session{
		Job: &job.Job{Experiment: &plan.Experiment{Models: []string{"m"}}},
		id:  "r", db: db, meter: live.NewMeter(nil), log: slog.New(slog.DiscardHandler),
		spent: make(map[string]spending),
		seen:  make(map[string]store.Evidence), stored: make(map[laneBucket]store.Evidence),
		faults: make(map[assay.FaultKind]int), noted: make(map[string]bool),
		replied: make(map[string]time.Time),
	}
}

func statusLearned(t *testing.T, db *store.DB, runs []store.Run) []Learned {
	t.Helper()
	var s Status
	if err := s.findLearned(t.Context(), db, runs); err != nil {
		t.Fatal(err)
	}
	return s.Learned
}

// recalled returns the learned limits with which a lane starts.
func recalled(t *testing.T, db *store.DB, stated lane.Limits) lane.Limits {
	t.Helper()
	pools := &job.Pools{Configs: map[string][]lane.Config{"m": {{Name: "gw/K/m", Limits: stated}}}}
	if err := pools.Recall(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return pools.Configs["m"][0].Learned
}
