package session

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/model/lane"
)

// A strip has all seconds of a run in at most maxSteps steps of the same length.
func TestStripsHaveAllSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := strips{step: 1, lanes: []*strip{{lane: "a"}, {lane: "b"}}}
		wanted := rapid.IntRange(1, 20000).Draw(t, "seconds")
		paused := rapid.IntRange(0, wanted).Draw(t, "paused")
		seconds := 0
		for seconds < wanted {
			seconds += all.every()
			for _, x := range all.lanes {
				x.add(lane.Status{Held: seconds <= paused}, lane.Ledger{
					Used: time.Duration(seconds) * time.Second, Available: time.Duration(2*seconds) * time.Second,
				}, &all)
			}
			if all.lanes[0].full(all.step) {
				all.join()
			}
		}
		for _, s := range all.read() {
			n := len(s.States)
			if n > maxSteps || n*s.Step < seconds || (n-1)*s.Step >= seconds {
				t.Fatalf("%d seconds have become %d steps of %d s", seconds, n, s.Step)
			}
			held := 0
			for i, state := range s.States {
				if state == LanePaused {
					held += s.Step
				}
				if s.Used[i] != .5 {
					t.Fatalf("step %d is used to %v", i, s.Used[i])
				}
			}
			if d := held - paused; d < -s.Step || d > s.Step {
				t.Errorf("%d paused seconds have become %d", paused, held)
			}
		}
	})
}
