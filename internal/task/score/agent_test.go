package score_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/world"
)

// ofAgents are the categories that only foreign agents have.
var ofAgents = map[string]bool{
	assay.CategoryTimeout: true, assay.CategoryAgentFailure: true, assay.CategoryFramework: true,
}

// TestAgentThatFailsHasItsOwnCategory checks crashes and time limits of foreign agents in every world:
// they come before what the model did.
func TestAgentThatFailsHasItsOwnCategory(t *testing.T) {
	t.Parallel()
	judge := score.New(catalog)
	for _, end := range []struct {
		ended    assay.Ended
		stop     assay.Stop
		category string
	}{
		{assay.AgentError, assay.Crashed, assay.CategoryAgentFailure},
		{assay.AgentTimeout, assay.OutOfTime, assay.CategoryTimeout},
	} {
		for calls, cause := range map[string]assay.Cause{
			"": assay.AgentFailed, "read+": assay.AgentFailed, "read-": assay.AgentFailed,
			"note+": assay.AgentFailed,
		} {
			for _, name := range world.Names {
				trial, task := trialIn(name), task("basic_task", "read", "parse")
				task.Judge = &assay.Judge{Calls: []assay.Expected{{Tool: "read"}, {Tool: "parse"}}} // own-1
				tr := episode(calls)
				tr.Ended = end.ended
				o := judge.Outcome(trial, &task, tr)
				if o.Level != assay.Failure || o.ErrorCategory != end.category || o.Stop != end.stop ||
					o.Cause != cause {
					t.Errorf("%q, %s in %s: %s, %s, %s, %s", calls, end.ended, name, o.Level, o.ErrorCategory,
						o.Stop, o.Cause)
				}
			}
		}
	}
}

// A call that a model asked for and that its agent left out, or made too late, is the cause unless it
// was made good, lacks an argument, or was not needed.
func TestLostCallsAreTheFrameworks(t *testing.T) {
	t.Parallel()
	judge := score.New(catalog)
	state := json.RawMessage(`{"n": 1}`)
	for _, tc := range []struct {
		path, lost string
		late       bool
		worlds     []string
		want       bool
	}{
		{"parse+", "read", false, world.Simulated, true},
		{"parse+ read+", "read", true, world.Simulated, true},
		{"parse+", "read", false, []string{world.OwnName}, true},
		{"", "read", false, world.Simulated, true},
		{"read+ note+ parse-", "read", false, world.Simulated, false},
		{"read+", "note", false, world.Simulated, false},
	} {
		for _, name := range tc.worlds {
			trial, task := trialIn(name), task("basic_task", "read", "parse")
			if name == world.OwnName {
				task.Required, task.Judge = nil, &assay.Judge{State: state}
			}
			tr := episode(tc.path)
			tr.Ended = assay.Finished
			tr.Messages = []assay.Message{{Role: assay.Assistant, Content: "TASK_COMPLETED"}}
			tr.Agent = &assay.AgentRecord{Lost: []assay.LostCall{
				{Turn: 1, Tool: tc.lost, Arguments: `{"source":"a.csv"}`, Late: tc.late},
			}}
			tr.Turns = append(tr.Turns, make([]assay.TurnRecord, 2)...)
			o := judge.Outcome(trial, &task, tr)
			if is := o.Cause == assay.ByFramework; is != tc.want || o.Level == assay.FullSuccess {
				t.Errorf("%q without %s in %s: %s, cause %s", tc.path, tc.lost, name, o.Level, o.Cause)
			}
		}
	}
}

// A stop rule for models does not count what agents and their frameworks did.
func TestStopRulesDoNotCountAgents(t *testing.T) {
	t.Parallel()
	judge := score.New(catalog)
	trial, task := trialIn(world.Simulated[0]), task("basic_task", "read", "parse")
	for asked, counts := range map[string]bool{"": true, "read {}": false} {
		tr := episode("")
		tr.Ended = assay.TurnLimit
		tr.Turns = []assay.TurnRecord{{Assisted: true}}
		tr.Agent = &assay.AgentRecord{Refused: []assay.RefusedCall{
			{Turn: 1, Tool: "raed", Asked: asked, Why: "no tool is named raed", Times: 1},
		}}
		if o := judge.Outcome(trial, &task, tr); o.Callless() != counts {
			t.Errorf("asked %q: %s counts %v, want %v", asked, o.Cause, o.Callless(), counts)
		}
	}
}

// A mistake in arguments that the framework changed is the framework's, but not bad luck or a
// mistake in other arguments.
func TestChangedCallsAreTheFrameworks(t *testing.T) {
	t.Parallel()
	judge := score.New(catalog)
	trial, task := trialIn(world.Simulated[0]), task("basic_task", "read", "parse")
	for _, tc := range []struct {
		path  string
		place int // of the changed call
		own   bool
	}{
		{"read?", 0, true},
		{"read-", 0, false},
		{"read+ parse+", 0, false},
		{"read? read+ parse?", 0, false}, // it was made good, and the model's own call decided
		{"read? read+ parse?", 2, true},
		{"read+ parse? read?", 1, true},
	} {
		for _, asked := range []string{"", `read {"n": 1}`} {
			tr := episode(tc.path)
			tr.Calls[tc.place].Asked = asked
			o := judge.Outcome(trial, &task, tr)
			if is := o.ErrorCategory == assay.CategoryFramework; is != (tc.own && asked != "") {
				t.Errorf("%s, asked %q in call %d: category %q", tc.path, asked, tc.place, o.ErrorCategory)
			}
		}
	}
}

// The proof of a score never says of a foreign agent that its model said that it was done, unless it
// did.
func TestProofPutsNoWordsIntoTheMouthOfAnAgent(t *testing.T) {
	t.Parallel()
	judge := score.New(catalog)
	for _, said := range []string{"", "I cannot go on", "TASK_COMPLETED"} {
		for _, name := range world.Names {
			trial, task := trialIn(name), task("basic_task", "read", "parse")
			task.Judge = &assay.Judge{Calls: []assay.Expected{{Tool: "read"}, {Tool: "parse"}}} // own-1
			tr := episode("read+")
			tr.Ended, tr.Agent = assay.Finished, &assay.AgentRecord{}
			if said != "" {
				tr.Messages = []assay.Message{{Role: assay.Assistant, Content: said}}
			}
			e := judge.Explain(trial, &task, tr)
			told := false
			for _, r := range e.Rules {
				told = told || r.Holds && strings.HasSuffix(r.Rule, "said that it was done")
			}
			if told && e.Reason.Stop != assay.Answered {
				t.Errorf("%q in %s: it ended by %s, and the proof is %+v", said, name, e.Reason.Stop, e.Rules)
			}
		}
	}
}
