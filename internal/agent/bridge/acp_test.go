package bridge_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
)

// TestACP lets agents speak the Agent Client Protocol, and end in many ways. The other end of the protocol is
// an implementation that we did not write.
func TestACP(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, tc := range []struct {
		how    string
		want   verdict
		detail string // of the fault, or how the agent ended
	}{
		{"acp", success, ""},
		{"acp late", success, ""},   // it connects to its tools in the background
		{"acp lazy", success, ""},   // it does so when it is prompted
		{"acp linger", success, ""}, // its program does not end by itself
		{"acp login", unstarted, `session/new: {"code":-32000,"message":"Authentication required"} (it knows the logins Log in with X)`},
		{"acp stdio", unstarted, "the agent takes no MCP servers over HTTP"},
		{"acp chatter", success, ""},
		{"acp shout", crashed, "session/prompt: it sent a message of more than 8 MB"},
		{"acp future", unstarted, "the agent speaks version 99 of the protocol, not 1"},
		{"acp odd", unstarted, `session/new: the answer is not as the protocol has it: ["s"]`},
		{"acp crash", unstarted, "exit status 3: cannot begin"},
		{"acp break", crashed, "exit status 5"},
		{"acp hang", hung, "Assay ended the attempt, because the agent took longer than"},
		{"acp refuse", success, "it stopped because of refusal"}, // after all work
		{"work", unstarted, "initialize: no answer in 4s"},       // it speaks no ACP
	} {
		t.Run(tc.how, func(t *testing.T) {
			t.Parallel()
			timeout := time.Minute
			if tc.want == hung || tc.how == "work" {
				timeout = 8 * time.Second
			}
			trial, task := s.trial(0, assay.Listed)
			trial.Reliability = 1
			a, script := s.Runner(s.episodes, s.speaker(t, tc.how, timeout)).Run(t.Context(), s.models, trial, task)
			got := verdict{a.FaultKind, a.Ended, a.Stop, a.Cause, a.ErrorCategory}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("verdict (-want +got):\n%s%s", diff, a.FaultDetail)
			}
			if how := a.FaultDetail + script.Agent.Exit; !strings.Contains(how, tc.detail) {
				t.Errorf("it ended with %q, want %q", how, tc.detail)
			}
			if tc.want != success || tc.detail != "" {
				return
			}
			if plan := strings.Join(script.Agent.Plan, ", "); plan != "look for tools, use them" {
				t.Errorf("its plan is %q", plan)
			}
			if out := script.Agent.Output; !strings.Contains(out, "TASK_COMPLETED") || strings.Contains(out, "ANOTHER") {
				t.Errorf("it said %q", script.Agent.Output)
			}
		})
	}
}

// An agent with the rights of the user may not do all that it asks for.
func TestACPPermissions(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, how := range []string{"acp", "acp execute"} {
		trial, task := s.trial(0, assay.Listed)
		agent := s.speaker(t, how, time.Minute)
		agent.Sandbox = bridge.NoSandbox
		_, script := s.Runner(s.episodes, agent).Run(t.Context(), s.models, trial, task)
		if refused := strings.Contains(script.Agent.Output, "I may not"); refused != (how == "acp execute") {
			t.Errorf("%s: it said %q", how, script.Agent.Output)
		}
	}
}

// speaker returns an agent that speaks the Agent Client Protocol.
func (s *stand) speaker(t *testing.T, how string, timeout time.Duration) bridge.Agent {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return bridge.Agent{
		Name: "agent", ACP: true, Command: []string{program, asAgent, how}, Model: "m", Timeout: timeout,
	}
}
