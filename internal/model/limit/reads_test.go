package limit_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/model/limit"
)

// An act is an event in the life of a limiter, which a decision may follow.
type act struct {
	after time.Duration // since the act before
	kind  int
	which int // of the requests in flight
	why   limit.Refusal
	used  limit.Amount
}

func acts(shortest time.Duration) *rapid.Generator[[]act] {
	spans := rapid.SampledFrom([]time.Duration{
		0, time.Millisecond, 40 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second,
		20 * time.Second, 3 * time.Minute, 2 * time.Hour, 30 * time.Hour,
	})
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) act {
		return act{
			after: max(shortest, spans.Draw(t, "after")+shortest*spans.Draw(t, "less")/time.Hour),
			kind:  rapid.IntRange(0, 9).Draw(t, "kind"), which: rapid.IntRange(0, 40).Draw(t, "which"),
			why: limit.Refusal{
				Wait: rapid.SampledFrom([]time.Duration{
					0, 0, time.Second, time.Hour, math.MaxInt64, math.MinInt64,
				}).Draw(t, "wait"),
				Measure: rapid.SampledFrom([]limit.Measure{
					limit.Unnamed, limit.Unnamed, limit.InFlight, limit.Requests, limit.RequestsPerDay,
				}).Draw(t, "measure"),
				Limit: rapid.IntRange(0, 3).Draw(t, "limit"),
			},
			used: limit.Amount{Requests: 1, Input: rapid.IntRange(0, 900).Draw(t, "input")},
		}
	}), 60, 300)
}

// A life is a limiter with the requests in flight.
type life struct {
	*limit.Limiter
	flying []uint64
}

// live carries out an act. Requests are sent only when the limiter permits them.
func (l *life) live(now time.Time, a act) (at time.Time, ok bool) {
	at, ok = l.Next(now, one)
	if ok && !at.After(now) && (a.kind < 5 || len(l.flying) == 0) {
		l.flying = append(l.flying, l.Send(now, one))
		return at, ok
	}
	if len(l.flying) == 0 {
		return at, ok
	}
	i := a.which % len(l.flying)
	n := l.flying[i]
	l.flying = append(l.flying[:i:i], l.flying[i+1:]...)
	switch a.kind {
	case 0:
		l.Drop(now, n)
	case 1:
		l.Cancel(now, n)
	case 2, 3, 5, 6, 7:
		l.Refuse(now, n, a.why)
	default:
		l.Accept(now, n, a.used)
	}
	return at, ok
}

// read asks a limiter everything that can be asked.
func read(l *limit.Limiter, now time.Time) {
	l.Next(now, one)
	l.Next(now, limit.Amount{Requests: 1, Input: 1e6, Output: 1e6})
	_, _, _, _, _, _ = l.Words(), l.Rules(), l.Room(now), l.Doubts(now), l.State(now), l.Width()
}

// TestReadsChangeNothing checks for any history that a limiter decides the same however often, and
// whenever, somebody looks at it between events.
func TestReadsChangeNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first, most := rapid.IntRange(1, 8).Draw(t, "first"), rapid.IntRange(1, 40).Draw(t, "most")
		alone, watched := life{Limiter: limit.New(epoch, first, most)}, life{Limiter: limit.New(epoch, first, most)}
		now := epoch
		for i, a := range acts(0).Draw(t, "acts") {
			for _, part := range rapid.SliceOfN(rapid.Float64Range(0, 1), 0, 4).Draw(t, "reads") {
				read(watched.Limiter, now.Add(time.Duration(part*float64(a.after))))
			}
			now = now.Add(a.after)
			at, ok := alone.live(now, a)
			if again, okAgain := watched.live(now, a); ok != okAgain || !at.Equal(again) {
				t.Fatalf("step %d: Next() = %v later, %v; %v later, %v after reads",
					i, at.Sub(now), ok, again.Sub(now), okAgain)
			}
		}
		if alone.Words() != watched.Words() || alone.Room(now) != watched.Room(now) {
			t.Fatalf("%q, room for %d; %q, %d after reads", alone.Words(), alone.Room(now),
				watched.Words(), watched.Room(now))
		}
	})
}

// TestAnyClock checks for any history and any clock, which may also stand still or go backwards,
// that a limiter does not panic, that its rates are numbers, and that no wait ends in the past or is
// longer than a probe's or a limit's.
func TestAnyClock(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := life{Limiter: limit.New(epoch, rapid.IntRange(1, 8).Draw(t, "first"), 20)}
		now, latest := epoch, epoch
		for i, a := range acts(-time.Hour).Draw(t, "acts") {
			now = now.Add(a.after)
			if rapid.IntRange(0, 200).Draw(t, "jump") == 0 {
				now = now.AddDate(rapid.IntRange(-300, 300).Draw(t, "years"), 0, 0)
			}
			if now.After(latest) {
				latest = now
			}
			at, ok := l.live(now, a)
			if ok && (at.Before(now) || at.Sub(latest) > 25*time.Hour && now.Year() < epoch.Year()+40) {
				t.Fatalf("step %d: Next(%v) = %v, the latest time is %v", i, now, at, latest)
			}
			read(l.Limiter, now)
			for _, r := range l.Rules() {
				if r.Rate < 0 || math.IsNaN(r.Rate) || math.IsInf(r.Rate, 0) || r.Rate == 0 && r.Limit < 1 {
					t.Fatalf("step %d: rule %+v", i, r)
				}
			}
		}
	})
}
