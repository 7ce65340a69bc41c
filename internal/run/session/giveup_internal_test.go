package session

import (
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
	"github.com/assay-eval/assay/internal/experiment/job"
)

// crashed is the detail of the fault of an agent that ended before its first action.
const crashed = "agent: the agent ended before its first action: exit status 1: no module\nlast"

// TestAgentsAreGivenUp checks that five attempts in a row that end before their first action close
// all levels of an agent, and that any attempt that got further begins the count again.
func TestAgentsAreGivenUp(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, events string // c crashed, f another fault, w worked, a asked its model
		want         bool
	}{
		{"four", "cccc", false},
		{"five", "ccccc", true},
		{"one that worked between them", "ccccwcccc", false},
		{"one that asks between them", "ccccacccc", false},
		{"one that met another fault between them", "ccccfc", true},
		{"it worked before", "wwwccccc", true},
		{"one works too late", "cccccw", true},
	} {
		agents := make(map[string]job.Agent)
		for _, listed := range []string{"bot", "bot@v2"} {
			agents[listed] = job.Agent{Agent: bridge.Agent{Name: "bot"}}
		}
		s := newStarters(agents)
		for i, kind := range tc.events {
			a := &assay.Attempt{}
			a.Model = []string{"bot", "bot@v2"}[i%2]
			switch kind {
			case 'c':
				a.FaultKind, a.FaultDetail = assay.AgentEnded, crashed
			case 'f':
				a.FaultKind, a.FaultDetail = assay.ToolServer, "tool_server: a server died"
			case 'w':
				a.ToolCalls = 1
			case 'a':
				s.acted(a.Model)
				continue
			}
			s.ended(a)
		}
		for _, listed := range []string{"bot", "bot@v2"} {
			err := s.givenUp(listed)
			if (err != nil) != tc.want {
				t.Errorf("%s: %s is given up: %v, want %v", tc.name, listed, err, tc.want)
			}
			if err != nil && !strings.HasSuffix(err.Error(), "exit status 1: no module") {
				t.Errorf("%s: %v", tc.name, err)
			}
		}
		if err := s.givenUp("bare"); err != nil {
			t.Errorf("%s: a bare model is given up: %v", tc.name, err)
		}
	}
}
