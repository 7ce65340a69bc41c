package session_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/live"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/store"
)

// observer remembers everything that it is shown.
type observer struct {
	live session.Live

	mu       sync.Mutex
	started  session.Start
	requests int
	episodes []session.Episode
	ended    *session.Summary
	last     live.Progress
	lanes    []session.LaneReading
}

func (o *observer) Begin(s session.Start, l session.Live) { o.started, o.live = s, l }

func (o *observer) Request(lane.Exchange) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.requests++
}

func (o *observer) Attempt(e session.Episode) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.episodes = append(o.episodes, e)
}

func (o *observer) End(s *session.Summary) {
	o.ended, o.last, o.lanes = s, o.live.Progress(), o.live.Lanes()
}

// TestObserverFollowsRun runs a job with an observer. It is shown every request and every attempt,
// with the turns and calls at times within the attempt.
func TestObserverFollowsRun(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	e := plan.Quickstart()
	if err := e.SetModels([]string{"sim/mute", "sim/optimal"}); err != nil {
		t.Fatal(err)
	}
	j, err := job.Open(ctx, e, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	path := filepath.Join(t.TempDir(), "s.db")
	db, err := store.Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var o observer
	s, err := session.New(j, session.Options{
		Store: path, Display: new(recorder), Env: os.LookupEnv,
		Observers: []session.Observer{&o},
	})
	if err != nil {
		t.Fatal(err)
	}
	sum, err := s.Run(ctx, db)
	if err != nil {
		t.Fatal(err)
	}
	if o.started.Pending != 8 || o.ended != sum || o.requests != sum.Requests {
		t.Errorf("started %+v, ended %v, %d requests of %d", o.started, o.ended, o.requests,
			sum.Requests)
	}
	if len(o.episodes) != 8 || len(o.lanes) != 2 || o.last.Done != 8 {
		t.Errorf("%d episodes, lanes %+v, progress %+v", len(o.episodes), o.lanes, o.last)
	}
	calls := 0
	for _, e := range o.episodes {
		if len(e.Chats) != len(e.Transcript.Turns) || len(e.Transcript.Spans) != e.Attempt.ToolCalls {
			t.Errorf("%d turns of %d, %d calls of %d", len(e.Chats), len(e.Transcript.Turns),
				len(e.Transcript.Spans), e.Attempt.ToolCalls)
		}
		within := func(s assay.Span) {
			a := e.Attempt
			if s.Began.Before(a.StartedAt) || s.Ended.After(a.FinishedAt) || s.Ended.Before(s.Began) {
				t.Errorf("%v is not within %v to %v", s, a.StartedAt, a.FinishedAt)
			}
		}
		for _, c := range e.Chats {
			within(c.Span)
		}
		for _, c := range e.Transcript.Spans {
			calls++
			within(c)
		}
	}
	if calls == 0 {
		t.Error("no tool was called")
	}
}
