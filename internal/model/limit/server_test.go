package limit_test

import (
	"math"
	"math/rand/v2"

	"github.com/assay-eval/assay/internal/model/limit"
)

// A server is an endpoint in virtual time. Times are in seconds.
type server interface {
	// admit decides about a request. If it refuses, wait is how long it would refuse more.
	admit(t float64, a limit.Amount) (ok bool, wait float64)
}

// ender is a server that needs to know when replies end.
type ender interface{ end() }

// delayer is a server that holds accepted requests back.
type delayer interface{ delay() float64 }

type open struct{}

func (open) admit(float64, limit.Amount) (bool, float64) { return true, 0 }

type used struct {
	t float64
	n int
}

// sliding permits n in any span.
type sliding struct {
	n    int
	span float64
	of   func(limit.Amount) int // nil for requests
	log  []used
	sum  int
}

func (s *sliding) admit(t float64, a limit.Amount) (bool, float64) {
	w := 1
	if s.of != nil {
		w = s.of(a)
	}
	for len(s.log) > 0 && s.log[0].t <= t-s.span {
		s.sum -= s.log[0].n
		s.log = s.log[1:]
	}
	over := s.sum + w - s.n
	if over <= 0 {
		s.log = append(s.log, used{t, w})
		s.sum += w
		return true, 0
	}
	wait := s.span
	for _, u := range s.log {
		if over -= u.n; over <= 0 {
			wait = u.t + s.span - t
			break
		}
	}
	return false, wait
}

// fixed permits n in each span. The spans begin at multiples of the span, or at the first request
// after the span before if it is anchored.
type fixed struct {
	n           int
	span, phase float64
	anchored    bool
	begin       float64
	count       int
	began       bool
}

func (s *fixed) admit(t float64, _ limit.Amount) (bool, float64) {
	begin := math.Floor((t-s.phase)/s.span)*s.span + s.phase
	if s.anchored {
		begin = s.begin
		if t >= s.begin+s.span {
			begin = t
		}
	}
	if !s.began || begin != s.begin {
		s.begin, s.count, s.began = begin, 0, true
		if s.anchored {
			s.begin = t
		}
	}
	if s.count < s.n {
		s.count++
		return true, 0
	}
	return false, s.begin + s.span - t
}

// bucket gets rate tokens a second and holds size of them.
type bucket struct {
	rate, size, tokens, t float64
	began                 bool
}

func (s *bucket) admit(t float64, _ limit.Amount) (bool, float64) {
	if !s.began {
		s.tokens, s.began = s.size, true
	} else {
		s.tokens = min(s.size, s.tokens+(t-s.t)*s.rate)
	}
	if s.t = t; s.tokens >= 1-1e-9 {
		s.tokens--
		return true, 0
	}
	return false, (1 - s.tokens) / s.rate
}

// leaky serves rate requests a second, lets a few of them wait, and refuses the others.
type leaky struct {
	rate, queue float64
	free        float64 // when the latest request is served
	held        float64 // how long the latest one waits
}

func (s *leaky) admit(t float64, _ limit.Amount) (bool, float64) {
	s.free = max(s.free, t)
	if wait := s.free - t - s.queue/s.rate; wait > 1e-9 {
		return false, wait
	}
	s.held = s.free - t
	s.free += 1 / s.rate
	return true, 0
}

func (s *leaky) delay() float64 { return s.held }

// flying permits n requests in flight.
type flying struct{ n, now int }

func (s *flying) admit(float64, limit.Amount) (bool, float64) {
	if s.now < s.n {
		s.now++
		return true, 0
	}
	return false, 1
}

func (s *flying) end() { s.now-- }

// chance refuses some requests without a reason.
type chance struct {
	server
	p    float64
	rand *rand.Rand
}

func (s *chance) admit(t float64, a limit.Amount) (bool, float64) {
	if s.rand.Float64() < s.p {
		return false, 0
	}
	return s.server.admit(t, a)
}

func (s *chance) end() {
	if e, is := s.server.(ender); is {
		e.end()
	}
}

// both has two limits.
type both struct{ a, b server }

func (s *both) admit(t float64, a limit.Amount) (bool, float64) {
	if ok, wait := s.a.admit(t, a); !ok {
		return false, wait
	}
	ok, wait := s.b.admit(t, a)
	if e, is := s.a.(ender); is && !ok {
		e.end()
	}
	return ok, wait
}

func (s *both) end() {
	if e, is := s.a.(ender); is {
		e.end()
	}
}

// moving has another limit every so often. It counts in a sliding window of one second.
type moving struct {
	rates []int
	every float64
	sliding
}

func (s *moving) admit(t float64, a limit.Amount) (bool, float64) {
	s.n = s.rates[int(t/s.every)%len(s.rates)]
	return s.sliding.admit(t, a)
}

// punishing halves its limit for a minute after each refusal.
type punishing struct {
	sliding
	full  int
	until float64
}

func (s *punishing) admit(t float64, a limit.Amount) (bool, float64) {
	s.n = s.full
	if t < s.until {
		s.n = s.full / 2
	}
	ok, wait := s.sliding.admit(t, a)
	if !ok {
		s.until = t + 60
	}
	return ok, wait
}

// shared is used by another program, too, which sends requests at a rate.
type shared struct {
	server
	rate, t float64
}

func (s *shared) admit(t float64, a limit.Amount) (bool, float64) {
	for ; s.t < t; s.t += 1 / s.rate {
		s.server.admit(s.t, a)
	}
	return s.server.admit(t, a)
}
