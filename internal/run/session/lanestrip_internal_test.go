package session

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/model/lane"
)

// A strip has all seconds of a run in at most mostSteps steps of the same length.
func TestStripsHaveAllSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := strips{step: 1, lanes: []*strip{{lane: "a"}, {lane: "b"}}}
		seconds := rapid.IntRange(1, 3000).Draw(t, "seconds")
		paused := rapid.IntRange(0, seconds).Draw(t, "paused")
		for i := range seconds {
			for _, x := range all.lanes {
				x.add(lane.Status{Held: i < paused}, lane.Ledger{
					Used: time.Duration(i+1) * time.Second, Available: time.Duration(2*i+2) * time.Second,
				}, all.step)
			}
			if len(all.lanes[0].steps) > mostSteps {
				all.join()
			}
		}
		for _, s := range all.read() {
			n := len(s.States)
			if n > mostSteps || n*s.Step < seconds || (n-1)*s.Step >= seconds {
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
