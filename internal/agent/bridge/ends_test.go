package bridge_test

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
)

// A verdict is what becomes of an attempt, and whose doing it was.
type verdict struct {
	fault    assay.FaultKind
	ended    assay.Ended
	stop     assay.Stop
	cause    assay.Cause
	category string
}

// The moments at which agents end, in the words of package agenttest.
const (
	atFirst = "before the first request"
	replied = "after the first reply"
	between = "between calls"
	allDone = "after all work"
)

// anAgentFailed is the verdict on an agent that ended while its model was still acting.
func anAgentFailed(ended assay.Ended, stop assay.Stop, category string) verdict {
	return verdict{ended: ended, stop: stop, cause: assay.AgentFailed, category: category}
}

var (
	unstarted = verdict{fault: assay.AgentEnded}
	crashed   = anAgentFailed(assay.AgentError, assay.Crashed, assay.CategoryAgentFailure)
	hung      = anAgentFailed(assay.AgentTimeout, assay.OutOfTime, assay.CategoryTimeout)
	left      = anAgentFailed(assay.Finished, assay.LeftEarly, assay.CategoryAgentFailure)
	gaveUp    = anAgentFailed(assay.Finished, assay.GaveUp, assay.CategoryAgentFailure)
	refused   = anAgentFailed(assay.Finished, assay.Declined, assay.CategoryAgentFailure)
	lied      = anAgentFailed(assay.Finished, assay.Answered, assay.CategoryAgentFailure)
	success   = verdict{ended: assay.Finished, stop: assay.Answered}
)

const (
	honestWords = "I could not complete the task: the tool failed. I give up."
	claim       = "TASK_COMPLETED"
	hangsUp     = "closes the connection"
)

// TestEveryEndAtEveryMoment checks how agents may end, at every moment: whether that is a fault or an
// outcome, and that what goes wrong is the agent's, and never a malformed call or a missing action
// of its model.
func TestEveryEndAtEveryMoment(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, tc := range []struct {
		moment, end string
		want        verdict
	}{
		{atFirst, "exit 0", unstarted},
		{atFirst, "exit 3", unstarted},
		{atFirst, "signal", unstarted},
		{atFirst, "hang", hung},
		{atFirst, claim, unstarted},
		{atFirst, hangsUp, verdict{fault: assay.Network}},

		{replied, "exit 0", left},
		{replied, "exit 3", crashed},
		{replied, "signal", crashed},
		{replied, "hang", hung},
		{replied, honestWords, refused},
		{replied, claim, lied},
		{replied, hangsUp, verdict{fault: assay.Network}},

		{between, "exit 0", left},
		{between, "exit 3", crashed},
		{between, "signal", crashed},
		{between, "hang", hung},
		{between, honestWords, gaveUp},
		{between, claim, lied},
		{between, hangsUp, crashed},

		{allDone, "exit 0", success},
		{allDone, "exit 3", crashed},
		{allDone, "signal", crashed},
		{allDone, "hang", hung},
		{allDone, honestWords, success}, // it is wrong about itself
		{allDone, claim, success},
		{allDone, hangsUp, crashed},
	} {
		t.Run(tc.moment+", "+tc.end, func(t *testing.T) {
			t.Parallel()
			a, script := s.playUntil(t, tc.moment, tc.end)
			got := verdict{a.FaultKind, a.Ended, a.Stop, a.Cause, a.ErrorCategory}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("verdict (-want +got):\n%s%s", diff, a.FaultDetail)
			}
			if a.Callless() {
				t.Error("it counts as a model that makes malformed calls")
			}
			lost := 0
			if tc.moment == replied && tc.want.ended == assay.Finished { // it did not crash
				lost = 1
			}
			if len(script.Agent.Lost) != lost && a.Settles() {
				t.Errorf("lost calls: %v; want %d", script.Agent.Lost, lost)
			}
		})
	}
}

// playUntil runs an attempt whose agent ends at a moment. One that hangs gets enough time to come to
// it.
func (s *stand) playUntil(t *testing.T, moment, end string) (*assay.Attempt, *assay.Transcript) {
	t.Helper()
	for timeout := time.Second; ; timeout *= 4 {
		trial, _ := s.trial(0, assay.Listed)
		trial.Reliability = 1
		a, script := s.ending(t, moment, end, timeout).Run(t.Context(), s.models, trial, &s.long)
		if end != "hang" || strings.Contains(script.Agent.Output, "hanging") {
			return a, script
		}
	}
}

// ending returns a runner of an agent that ends at a moment: a program, or a service that carries one
// out and hangs up.
func (s *stand) ending(t *testing.T, moment, end string, hangs time.Duration) *bridge.Runner {
	t.Helper()
	switch end {
	case "hang":
		return s.runner(moment+": "+end, hangs)
	case hangsUp:
	default:
		return s.runner(moment+": "+end, time.Minute)
	}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body := bodyOf(r)
		cmd := exec.CommandContext(r.Context(), s.program, asAgent, moment+": exit 0")
		cmd.Stdin = strings.NewReader(body["prompt"])
		cmd.Env = []string{
			"ASSAY_TOKEN=" + body["token"], "ASSAY_MCP_URL=" + body["mcp_url"],
			"OPENAI_BASE_URL=" + body["model_url"] + "/v1",
		}
		if err := cmd.Run(); err != nil {
			t.Error(err)
		}
		hangUp(w)
	})
	return s.Runner(s.episodes, bridge.Agent{Name: "agent", URL: url, Model: "m", Timeout: time.Minute})
}
