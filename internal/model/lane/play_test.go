package lane_test

import (
	"math/rand/v2"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

// server is an endpoint for [lane.Play]. It refuses requests that its limiter or its width does
// not permit, and some by chance.
type server struct {
	limiter limiter
	width   func(time.Time) int // nil for any number
	headers bool
	chance  float64 // of a refusal without reason
	// wait returns the wait that a refusal announces; nil for none.
	wait func(needed time.Duration) time.Duration

	rand              *rand.Rand
	flying            []time.Time // ends of requests in flight
	accepted, refused []time.Time
	quiet             time.Time // end of the announced wait
	early             int       // requests before it
	latest            time.Time
	silence           time.Duration // without a request or an announced wait
}

// Replies take 0.7 s on average, and refusals arrive within roundTrip.
const (
	replies   = 700 * time.Millisecond
	roundTrip = 60 * time.Millisecond
)

var start = time.Date(2027, 1, 1, 0, 0, 17, 0, time.UTC)

// play keeps a lane busy for some time.
func (s *server) play(limits lane.Limits, d time.Duration) {
	s.rand = rand.New(rand.NewPCG(1, 2))
	lane.Play(lane.Config{Name: "l", Limits: limits}, start, d, s.answer)
}

// share returns which share of a rate was used in some time, and which share was refused.
func (s *server) share(rate float64, from, to time.Duration) (used, refused float64) {
	ok := float64(between(s.accepted, start.Add(from), start.Add(to)))
	not := float64(between(s.refused, start.Add(from), start.Add(to)))
	return ok / (rate * (to - from).Seconds()), not / (ok + not)
}

func (s *server) answer(now time.Time) lane.Answer {
	s.listen(now)
	ok, wait := s.admit(now)
	a := lane.Answer{Took: time.Duration((0.5 + 0.5*s.rand.Float64()) * float64(roundTrip))}
	if s.headers {
		limit, remaining, reset := s.limiter.state(now)
		a.Resp.Quotas = []assay.QuotaState{{
			Bucket: assay.Requests, Limit: limit, Remaining: remaining, Reset: reset,
		}}
	}
	if ok {
		s.accepted = append(s.accepted, now)
		a.Took = time.Duration((0.6 + 0.8*s.rand.Float64()) * float64(replies))
		a.Resp.Usage = assay.Usage{InputTokens: 11, OutputTokens: 3}
		s.flying = append(s.flying, now.Add(a.Took))
		return a
	}
	s.refused = append(s.refused, now)
	a.Fault = &assay.Fault{Kind: assay.RateLimited}
	if s.wait != nil {
		a.Fault.RetryAfter = s.wait(wait)
		s.quiet = now.Add(a.Took + a.Fault.RetryAfter)
	}
	return a
}

func (s *server) admit(now time.Time) (ok bool, wait time.Duration) {
	inFlight := 0
	for _, end := range s.flying {
		if end.After(now) {
			s.flying[inFlight] = end
			inFlight++
		}
	}
	s.flying = s.flying[:inFlight]
	if s.width != nil && inFlight >= s.width(now) || s.rand.Float64() < s.chance {
		return false, time.Second
	}
	if s.limiter == nil {
		return true, 0
	}
	return s.limiter.take(now)
}

// listen notes that a request arrived.
func (s *server) listen(now time.Time) {
	if n := len(s.refused); now.Before(s.quiet) && now.Sub(s.refused[n-1]) > roundTrip {
		s.early++
	}
	if s.quiet.After(s.latest) {
		s.latest = s.quiet
	}
	if !s.latest.IsZero() {
		s.silence = max(s.silence, now.Sub(s.latest))
	}
	s.latest = now
}
