package session

import (
	"math"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/run/engine"
)

// A trial that starts again after all others have started has room, also if the limit is 1.
func TestSharedLimitHasRoomForRetries(t *testing.T) {
	t.Parallel()
	all := sharedLimitsOf([]string{"bot"}, map[string]job.Agent{
		"bot": {Agent: bridge.Agent{Name: "bot"}, Most: 1},
	}, nil, nil, nil)
	all.exhausted("bot")
	if got := all.most("bot", math.MaxInt); got != 1 {
		t.Errorf("%d attempts may be in flight, want 1", got)
	}
}

// An agent keeps its own limit and the server's, which it shares with a bare model.
func TestSharedLimitsOfServers(t *testing.T) {
	t.Parallel()
	all := sharedLimitsOf([]string{"bot", "bare"}, map[string]job.Agent{
		"bot": {Agent: bridge.Agent{Name: "bot"}, Most: 3},
	}, &assay.MCPServer{Concurrency: 8}, nil, nil)
	check := func(when string, bot, bare int) {
		t.Helper()
		if a, b := all.most("bot", math.MaxInt), all.most("bare", 100); a != bot || b != bare {
			t.Errorf("%s: room for %d and %d attempts, want %d and %d", when, a, b, bot, bare)
		}
	}
	check("at first", 3, 4)
	for range 3 {
		all.count(engine.Event{Kind: engine.Started, Model: "bot"})
	}
	check("with three agents", 3, 4)
	all.exhausted("bot")
	check("after the last agent has started", 3, 5)
	for range 3 {
		all.count(engine.Event{Kind: engine.Settled, Model: "bot"})
	}
	check("after the agents", 3, 8)
}

// An environment that is full leaves fewer sessions for the attempts of a run.
func TestSharedLimitOfFullEnvironments(t *testing.T) {
	t.Parallel()
	sessions := 8
	all := sharedLimitsOf([]string{"bare"}, nil, &assay.MCPServer{OpenEnv: true, Concurrency: 8},
		func() int { return sessions }, nil)
	for _, sessions = range []int{8, 2} {
		if got := all.most("bare", 100); got != sessions {
			t.Errorf("%d attempts may be in flight, want %d", got, sessions)
		}
	}
}
