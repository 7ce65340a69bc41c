package main

import "time"

// A limiter is a limit that an endpoint does not state. It counts accepted requests only.
type limiter interface {
	// admit admits a request, of which some are in flight with it, or returns how long to wait.
	admit(now time.Time, inFlight int) (ok bool, wait time.Duration)
}

// sliding limits the requests in any span of time.
type sliding struct {
	most int
	span time.Duration
	at   []time.Time
}

func (s *sliding) admit(now time.Time, _ int) (bool, time.Duration) {
	if n := len(s.at); n >= s.most {
		if wait := s.at[n-s.most].Add(s.span).Sub(now); wait > 0 {
			return false, wait
		}
	}
	s.at = append(s.at, now)
	return true, 0
}

// clocked limits the requests between two strokes of the clock.
type clocked struct {
	most  int
	span  time.Duration
	began time.Time
	n     int
}

func (c *clocked) admit(now time.Time, _ int) (bool, time.Duration) {
	if began := now.Truncate(c.span); !began.Equal(c.began) {
		c.began, c.n = began, 0
	}
	if c.n >= c.most {
		return false, c.began.Add(c.span).Sub(now)
	}
	c.n++
	return true, 0
}

// spaced is a bucket of tokens that is filled evenly.
type spaced struct {
	every time.Duration
	burst int
	next  time.Time // when the bucket would be full again
}

func (s *spaced) admit(now time.Time, _ int) (bool, time.Duration) {
	if s.next.Before(now) {
		s.next = now
	}
	if full := s.next.Sub(now) - time.Duration(s.burst-1)*s.every; full > 0 {
		return false, full
	}
	s.next = s.next.Add(s.every)
	return true, 0
}

// crowded limits the requests in flight.
type crowded struct{ most int }

func (c crowded) admit(_ time.Time, inFlight int) (bool, time.Duration) {
	return inFlight <= c.most, time.Second
}
