package simserver

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever comes when, no window of 60 seconds holds more than the limit, and
// a client that waits as long as it was told is let through.
func TestWindowHoldsTheLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := Limit{
			RPM: rapid.IntRange(0, 5).Draw(t, "rpm"),
			TPM: rapid.IntRange(0, 100).Draw(t, "tpm"),
		}
		type admitted struct {
			at     time.Time
			tokens int
		}
		var log []admitted
		l := &lane{limit: limit}
		now := time.Unix(0, 0)
		for range rapid.IntRange(1, 40).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "gap")) * time.Millisecond)
			reserve := rapid.IntRange(1, 60).Draw(t, "reserve")
			ticket, denied := l.admit(now, reserve)
			if denied != nil {
				if denied.wait <= 0 || denied.wait > window {
					t.Fatalf("wait = %v, want within (0, %v]", denied.wait, window)
				}
				now = now.Add(denied.wait)
				if ticket, denied = l.admit(now, reserve); denied != nil {
					if limit.TPM > 0 && reserve > limit.TPM {
						continue // never fits
					}
					t.Fatalf("denied again after the wait: %+v", denied)
				}
			}
			used := rapid.IntRange(0, reserve).Draw(t, "used")
			ticket.done(used)
			log = append(log, admitted{now, used})
		}
		for i, end := range log {
			requests, tokens := 0, 0
			for _, a := range log[:i+1] {
				if end.at.Sub(a.at) < window {
					requests++
					tokens += a.tokens
				}
			}
			if limit.RPM > 0 && requests > limit.RPM || limit.TPM > 0 && tokens > limit.TPM {
				t.Fatalf("%d requests and %d tokens in the window that ends at %v, limit %+v", requests, tokens, end.at, limit)
			}
		}
		if l.inFlight != 0 {
			t.Fatalf("%d in flight at the end", l.inFlight)
		}
	})
}

// An entry that left its window before its request was done is not missed.
func TestTicketOutlivesItsEntry(t *testing.T) {
	t.Parallel()
	l := &lane{limit: Limit{RPM: 10, TPM: 100}}
	start := time.Unix(0, 0)
	slow, _ := l.admit(start, 90)
	next, denied := l.admit(start.Add(window), 90)
	if denied != nil {
		t.Fatalf("denied: %+v", denied)
	}
	slow.done(50)
	if l.tokens != 90 {
		t.Errorf("tokens = %d, want those of the next request alone", l.tokens)
	}
	next.done(7)
	if l.tokens != 7 || l.inFlight != 0 {
		t.Errorf("tokens = %d, in flight %d; want 7 and 0", l.tokens, l.inFlight)
	}
}
