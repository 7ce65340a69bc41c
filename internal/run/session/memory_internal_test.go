package session

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay/internal/agent/bridge"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/run/engine"
)

// Programs start as long as there is memory for them. Those that have just begun count as large,
// and others by the memory that they have taken.
func TestMemoryBoundsAgents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const mb = 1 << 20
		free, notes := 2048*mb, 0
		m := &memory{
			read: func() (int, int) { return free, 4096 * mb },
			note: func(string) { notes++ },
		}
		all := sharedLimitsOf(nil, map[string]job.Agent{
			"program": {Agent: bridge.Agent{Name: "program"}, Most: 50},
			"service": {Agent: bridge.Agent{Name: "service", URL: "http://x"}, Most: 50},
		}, nil, nil, m)
		fill := func(model string) (n int) {
			for n < 100 && all.most(model, 100) > all[model][0].flying[model] {
				all.count(engine.Event{Kind: engine.Started, Model: model})
				n++
			}
			return n
		}
		// 410 MB stay free, so 1,638 MB are for programs of 256 MB.
		if n := fill("program"); n != 6 || notes != 1 {
			t.Errorf("%d programs and %d notes at first, want 6 and 1", n, notes)
		}
		// They need 50 MB each.
		time.Sleep(settling)
		free -= 6 * 50 * mb
		if n := fill("program"); n != 5 {
			t.Errorf("%d further programs, want 5", n)
		}
		// They need all of it: the next program waits until the last one has ended.
		time.Sleep(settling)
		free = 0
		if n := fill("program"); n != 0 {
			t.Errorf("%d further programs without memory", n)
		}
		for range 11 {
			all.count(engine.Event{Kind: engine.Settled, Model: "program"})
		}
		if n := fill("program"); n != 1 || notes != 1 {
			t.Errorf("%d programs and %d notes, want one program at least", n, notes)
		}
		if n := fill("service"); n != 50 {
			t.Errorf("%d attempts of a service, want 50 because it needs none of this memory", n)
		}
		// A machine whose memory is unknown has no bound.
		m.read = func() (int, int) { return 0, 0 }
		if n := fill("program"); n != 49 {
			t.Errorf("%d further programs with unknown memory, want 49", n)
		}
	})
}

func TestFreeMemory(t *testing.T) {
	t.Parallel()
	if free, total := freeMemory(); total > 0 && (free < 1<<20 || free > total) {
		t.Errorf("%d of %d bytes are free", free, total)
	}
}
