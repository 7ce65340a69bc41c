package simserver

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// naive implements the limits in the simplest way, without regard to speed.
type naive struct {
	limit    Limit
	inFlight int
	log      []admittedRequest
}

type rule struct {
	limit int
	span  time.Duration
	count func(tokenCost) int
}

func (n *naive) rules() []rule {
	all := []rule{
		{n.limit.RPM, time.Minute, func(tokenCost) int { return 1 }},
		{n.limit.RPD, 24 * time.Hour, func(tokenCost) int { return 1 }},
		{n.limit.TPM, time.Minute, func(c tokenCost) int { return c.prompt + c.reply }},
		{n.limit.ITPM, time.Minute, func(c tokenCost) int { return c.prompt }},
		{n.limit.OTPM, time.Minute, func(c tokenCost) int { return c.reply }},
	}
	return slices.DeleteFunc(all, func(r rule) bool { return r.limit == 0 })
}

// used returns the sum over the requests less than a span before at.
func (n *naive) used(r rule, at time.Time) int {
	used := 0
	for _, e := range n.log {
		if at.Sub(e.at) < r.span {
			used += r.count(e.tokenCost)
		}
	}
	return used
}

// wait returns the time until a request fits if no other request comes or ends, and
// whether it will ever fit.
func (n *naive) wait(now time.Time, asked tokenCost) (wait time.Duration, ever bool) {
	fits := func(r rule, at time.Time) bool { return n.used(r, at)+r.count(asked) <= r.limit }
	ever = true
	for _, r := range n.rules() {
		if fits(r, now) {
			continue
		}
		longest := r.span
		if r.count(asked) > r.limit {
			ever = false
		} else {
			for _, e := range n.log { // find the first time at which enough has left
				if at := e.at.Add(r.span); at.After(now) && fits(r, at) {
					longest = at.Sub(now)
					break
				}
			}
		}
		wait = max(wait, longest)
	}
	return wait, ever
}

// TestLaneAgainstBruteForce checks for random requests that a lane admits and denies the
// same requests as the naive implementation, and returns the exact wait.
func TestLaneAgainstBruteForce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bound := func(name string, high int) int {
			return rapid.OneOf(rapid.Just(0), rapid.IntRange(1, high)).Draw(t, name)
		}
		limit := Limit{
			RPM: bound("rpm", 5), RPD: bound("rpd", 12),
			TPM: bound("tpm", 120), ITPM: bound("itpm", 60), OTPM: bound("otpm", 60),
			Concurrency: bound("concurrency", 4),
		}
		want := &naive{limit: limit}
		l := newLane(limit, HeadersOpenAI)
		type flight struct {
			ticket ticket
			index  int // in the log
		}
		var flights []flight
		now := time.Unix(0, 0)
		land := func() {
			i := rapid.IntRange(0, len(flights)-1).Draw(t, "which")
			used := tokenCost{
				prompt: rapid.IntRange(0, 50).Draw(t, "prompt"),
				reply:  rapid.IntRange(0, 50).Draw(t, "reply"),
			}
			flights[i].ticket.done(used)
			want.log[flights[i].index].tokenCost = used
			want.inFlight--
			flights = slices.Delete(flights, i, i+1)
		}
		try := func(reserve tokenCost) *denial {
			wait, _ := want.wait(now, reserve)
			full := limit.Concurrency > 0 && want.inFlight >= limit.Concurrency
			if wait == 0 && full {
				wait = time.Second
			}
			ticket, denied := l.admit(now, reserve)
			switch {
			case denied == nil && wait == 0:
				want.log = append(want.log, admittedRequest{now, reserve})
				want.inFlight++
				flights = append(flights, flight{ticket, len(want.log) - 1})
			case denied == nil || denied.wait != wait:
				t.Fatalf("at %v: denial = %+v, want a wait of %v", now, denied, wait)
			}
			return denied
		}
		gap := rapid.OneOf(rapid.IntRange(0, 20_000), rapid.IntRange(0, 10*3600_000))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(gap.Draw(t, "gap")) * time.Millisecond)
			for len(flights) > 0 && rapid.Bool().Draw(t, "land") {
				land()
			}
			reserve := tokenCost{
				prompt: rapid.IntRange(1, 40).Draw(t, "prompt estimate"),
				reply:  rapid.IntRange(1, 40).Draw(t, "max tokens"),
			}
			_, ever := want.wait(now, reserve)
			if denied := try(reserve); denied != nil && ever && want.inFlight == 0 {
				now = now.Add(denied.wait)
				if again := try(reserve); again != nil {
					t.Fatalf("denied again after the wait: %+v", again)
				}
			}
			for i, r := range want.rules() {
				l.expireLocked(now)
				b, used := &l.buckets[i], want.used(r, now)
				if b.used != used {
					t.Fatalf("at %v: %s used = %d, want %d", now, b.name, b.used, used)
				}
			}
		}
		for len(flights) > 0 {
			land()
		}
		if l.inFlight != 0 {
			t.Fatalf("%d in flight at the end", l.inFlight)
		}
	})
}

// TestTicketOutlivesItsEntry checks a request that ends after its entry has left the window.
func TestTicketOutlivesItsEntry(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]Limit{
		"entry dropped": {TPM: 100}, "entry in another bucket": {TPM: 100, RPD: 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLane(limit, HeadersNone)
			start := time.Unix(0, 0)
			slow, _ := l.admit(start, tokenCost{80, 10})
			next, denied := l.admit(start.Add(time.Minute), tokenCost{80, 10})
			if denied != nil {
				t.Fatalf("denied: %+v", denied)
			}
			tokens := &l.buckets[len(l.buckets)-1]
			slow.done(tokenCost{40, 10})
			if tokens.used != 90 {
				t.Errorf("tokens = %d, want only those of the next request", tokens.used)
			}
			next.done(tokenCost{5, 2})
			if tokens.used != 7 || l.inFlight != 0 || l.counts.Tokens != 57 {
				t.Errorf("tokens = %d, in flight %d, charged %d; want 7, 0 and 57",
					tokens.used, l.inFlight, l.counts.Tokens)
			}
		})
	}
}

// TestAdmitDoesNotReadTheWindow checks that a request only looks at the oldest entry and its
// own. It corrupts the other ten thousand entries, which must have no effect.
func TestAdmitDoesNotReadTheWindow(t *testing.T) {
	t.Parallel()
	const n = 10_000
	limit := Limit{RPM: 2 * n, RPD: 2 * n, TPM: 20 * n, ITPM: 20 * n, OTPM: 20 * n}
	l := newLane(limit, HeadersOpenAI)
	now := time.Unix(0, 0)
	admit := func() ticket {
		now = now.Add(time.Millisecond)
		ticket, denied := l.admit(now, tokenCost{3, 2})
		if denied != nil {
			t.Fatalf("denied: %+v", denied)
		}
		return ticket
	}
	for range n {
		admit()
	}
	for i := range l.entries[1:] {
		l.entries[1+i] = admittedRequest{
			time.Unix(1e9, 0).Add(-time.Hour), tokenCost{1 << 40, 1 << 40},
		}
	}
	l.entries[n-1].at = now
	for range n {
		admit().done(tokenCost{2, 1})
	}
	for _, b := range l.buckets {
		perOld, perNew := b.count(tokenCost{3, 2}), b.count(tokenCost{2, 1})
		if want := n*perOld + n*perNew; b.used != want {
			t.Errorf("%s used = %d, want %d", b.name, b.used, want)
		}
	}
}

// TestLaneDropsUnusedEntries checks that a lane drops entries that are not in any bucket.
func TestLaneDropsUnusedEntries(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		limit Limit
		want  int
	}{
		{"no window", Limit{Concurrency: 2}, 0},
		{"minute", Limit{TPM: 1 << 30}, 60},
		{"day", Limit{TPM: 1 << 30, RPD: 1 << 30}, 86400},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			l := newLane(test.limit, HeadersNone)
			for i := range 100_000 {
				ticket, _ := l.admit(time.Unix(int64(i), 0), tokenCost{1, 1})
				ticket.done(tokenCost{1, 1})
			}
			if len(l.entries) != test.want || cap(l.entries) > 2*test.want+64 {
				t.Errorf("%d entries of %d, want %d", len(l.entries), cap(l.entries), test.want)
			}
		})
	}
}

// TestRequestsOutOfClockOrder checks that the wait is exact even if two requests read the
// clock in one order and take the lock in the other.
func TestRequestsOutOfClockOrder(t *testing.T) {
	t.Parallel()
	l := newLane(Limit{TPM: 100}, HeadersNone)
	start := time.Unix(0, 0)
	l.admit(start.Add(time.Millisecond), tokenCost{10, 0})
	l.admit(start, tokenCost{90, 0})
	now := start.Add(time.Second)
	_, denied := l.admit(now, tokenCost{50, 0})
	if denied == nil {
		t.Fatal("not denied")
	}
	if _, again := l.admit(now.Add(denied.wait), tokenCost{50, 0}); again != nil {
		t.Errorf("denied again after the wait: %+v", again)
	}
}
