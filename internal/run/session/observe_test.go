package session_test

import (
	"sync"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// observer remembers everything that it is shown.
type observer struct {
	live session.Live

	mu       sync.Mutex
	started  session.Start
	requests int
	episodes []session.Episode
	ended    *session.Summary
	last     terminal.Progress
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
	_, _, run := quickstart(t, "sim/mute", "sim/optimal")
	var o observer
	sum := run(new(recorder), &o)
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
			if len(c.Request.Functions) == 0 || c.Request.Messages != nil {
				t.Errorf("the request of a turn is %+v", c.Request)
			}
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
