package limit_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/model/limit"
)

var one = limit.Amount{Requests: 1}

// TestSingleRefusalTeachesNothing checks that a lane goes on a moment after a single refusal,
// although it announced a minute.
func TestSingleRefusalTeachesNothing(t *testing.T) {
	t.Parallel()
	l := limit.New(epoch, 8, 64)
	first, second := l.Send(epoch, one), l.Send(epoch, one)
	now := epoch.Add(20 * time.Millisecond)
	l.Refuse(now, first, limit.Refusal{Wait: time.Minute})
	at, ok := l.Next(now, one)
	if !ok || at.Sub(now) > 200*time.Millisecond {
		t.Fatalf("Next() = %v later, %v", at.Sub(now), ok)
	}
	l.Accept(at, second, one)
	probe := l.Send(at, one)
	l.Accept(at.Add(time.Second), probe, one)
	if l.State(at.Add(time.Second)) != limit.Open || len(l.Rules()) > 0 {
		t.Errorf("state %v, rules %v", l.State(at.Add(time.Second)), l.Rules())
	}
	if want := "1 of 3 requests refused by chance (33.3 %), which waited 60 s in all"; l.Words() != want {
		t.Errorf("Words() = %q, want %q", l.Words(), want)
	}
}

// TestResetForgetsRequestsInFlight checks that requests which were sent before a reset are no
// evidence and are not counted, but are still in flight.
func TestResetForgetsRequestsInFlight(t *testing.T) {
	t.Parallel()
	l := limit.New(epoch, 1, 1)
	before := l.Send(epoch, one)
	l.Reset(epoch, 1, 1)
	if at, ok := l.Next(epoch, one); ok {
		t.Errorf("Next() = %v with a request in flight", at)
	}
	l.Refuse(epoch.Add(time.Second), before, limit.Refusal{Wait: time.Minute})
	if l.Words() != "" || l.State(epoch.Add(time.Second)) != limit.Open {
		t.Errorf("state %v, words %q", l.State(epoch.Add(time.Second)), l.Words())
	}
	if _, ok := l.Next(epoch.Add(time.Second), one); !ok {
		t.Error("silent after the request has ended")
	}
}

// TestRefusedConcurrencyWaitsForAReply checks that a refusal that names requests in flight waits
// for a reply and not for the clock, and is obeyed at once.
func TestRefusedConcurrencyWaitsForAReply(t *testing.T) {
	t.Parallel()
	l := limit.New(epoch, 8, 64)
	var sent []uint64
	for range 7 {
		sent = append(sent, l.Send(epoch, one))
	}
	now := epoch.Add(20 * time.Millisecond)
	l.Refuse(now, sent[6], limit.Refusal{Wait: time.Minute, Measure: limit.InFlight, Limit: 6})
	if at, ok := l.Next(now, one); ok {
		t.Errorf("Next() = %v later without a reply", at.Sub(now))
	}
	now = now.Add(time.Second)
	l.Accept(now, sent[0], one)
	if at, ok := l.Next(now, one); !ok || at.After(now) {
		t.Errorf("Next() = %v later, %v after a reply", at.Sub(now), ok)
	}
	if words := l.Words(); l.Width() != 6 || !strings.HasPrefix(words, "at most 6 in flight") {
		t.Errorf("width %d, words %q", l.Width(), words)
	}
}

// TestWordsNameTheRule checks the words for a limit per minute and for one that no rule explains.
func TestWordsNameTheRule(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		server server
		want   string
	}{
		{&sliding{n: 20, span: 10}, "20 requests per 10 s (refused "},
		{&sliding{n: 120, span: 60}, "120 requests per minute (refused "},
		{&flying{n: 7}, "at most 7 in flight (refused "},
		{&bucket{rate: 2, size: 120}, " are accepted, by a rule that is unknown; "},
	} {
		l := limit.New(epoch, 8, 64)
		g := game{server: c.server, latency: 0.5, width: 64, seconds: 150}
		out := g.play(l)
		if !strings.Contains(l.Words(), c.want) {
			t.Errorf("after %d refusals Words() = %q, want %q", len(out.refused), l.Words(), c.want)
		}
	}
}

// TestLimiterIsNeverSilent checks for any history that a lane without a request in flight may send
// one within an hour, and that the limiter's count of requests in flight is right.
func TestLimiterIsNeverSilent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := limit.New(epoch, rapid.IntRange(1, 8).Draw(t, "first"), rapid.IntRange(1, 20).Draw(t, "most"))
		now := epoch
		var flying []uint64
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond)
			at, ok := l.Next(now, one)
			if len(flying) == 0 && (!ok || at.Sub(now) > time.Hour) {
				t.Fatalf("silent for %v (%v) with nothing in flight, %v", at.Sub(now), ok, l.State(now))
			}
			if ok && !at.After(now) {
				flying = append(flying, l.Send(now, one))
				continue
			}
			if len(flying) == 0 {
				now = at
				continue
			}
			i := rapid.IntRange(0, len(flying)-1).Draw(t, "which")
			n := flying[i]
			flying = append(flying[:i], flying[i+1:]...)
			switch rapid.IntRange(0, 5).Draw(t, "end") {
			case 0:
				l.Drop(now, n)
			case 1:
				l.Cancel(now, n)
			case 2, 3:
				l.Refuse(now, n, limit.Refusal{
					Wait:    time.Duration(rapid.IntRange(0, 90).Draw(t, "wait")) * time.Second,
					Measure: limit.Measure(rapid.IntRange(0, 6).Draw(t, "measure")),
				})
			default:
				l.Accept(now, n, limit.Amount{Requests: 1, Input: rapid.IntRange(0, 500).Draw(t, "input")})
			}
			_ = l.Words()
		}
	})
}
