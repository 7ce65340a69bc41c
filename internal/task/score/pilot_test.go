package score_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/assay1"
)

// catalog has the chain read ← parse ← shape ← writer, and other tools that no tool needs. post
// counts as a tool that makes output, send changes something, and trim works on the data of read.
var catalog = assay.NewCatalog([]assay.Tool{
	{Name: "read", Returns: []assay.Return{{Name: "data", Type: "object"}}},
	{Name: "parse", Dependencies: []string{"read"}},
	{Name: "shape", Dependencies: []string{"parse"}},
	{Name: "writer", Dependencies: []string{"shape"}},
	{Name: "note"},
	{Name: "post"},
	{Name: "send", Effect: "sends a message"},
	{
		Name: "trim", Dependencies: []string{"read"},
		Parameters: []assay.Parameter{{Name: "data", Type: "object", Required: true}},
	},
})

// transcript returns the transcript of an episode that the model claimed to have finished. Each
// word is a turn. A call is a tool followed by how it went: + for success, - for failure by chance,
// ? for wrong arguments, < for a missing dependency. Commas join calls of one turn. "~" is a turn
// with only lookups, "." a turn with neither, and "!" a claim to be done.
func transcript(calls string) *assay.Transcript {
	tr := &assay.Transcript{Ended: assay.Finished}
	for i, word := range strings.Fields(calls) {
		m := assay.Message{Role: assay.Assistant, Content: "Next."}
		turn := assay.TurnRecord{Requests: 1}
		switch word {
		case "~":
			turn.Lookups = 2
		case ".":
			turn.Assisted = true
		case "!":
			m.Content = "TASK_COMPLETED"
		default:
			for call := range strings.SplitSeq(word, ",") {
				tr.Calls = append(tr.Calls, record(i+1, call))
			}
		}
		tr.Messages = append(tr.Messages, m)
		tr.Turns = append(tr.Turns, turn)
	}
	return tr
}

func record(turn int, call string) assay.CallRecord {
	n := len(call) - 1
	c := assay.CallRecord{Turn: turn, Tool: call[:n]}
	switch call[n] {
	case '+':
		c.OK = true
	case '-':
		c.Code = "TIMEOUT"
	case '?':
		c.Mistake, c.Code = true, assay1.InvalidInput
	case '<':
		c.Mistake, c.Code = true, assay1.DependencyFail
	default:
		panic("malformed call: " + call)
	}
	if !c.OK {
		c.Error = c.Code + ": too bad (after 12 seconds)"
	}
	return c
}

func task(typ string, required ...string) assay.Task {
	return assay.Task{ID: "t", Type: typ, Required: required}
}

func TestPilotLevel(t *testing.T) {
	t.Parallel()
	const full, partial, failure = assay.FullSuccess, assay.PartialSuccess, assay.Failure
	for _, tc := range []struct {
		name  string
		task  assay.Task
		calls string
		want  assay.Level
	}{
		{"all in order", task("basic_task", "read", "parse"), "read+ parse+", full},
		{"no claim is needed", task("basic_task", "read"), "read+ . .", full},
		{"retries", task("basic_task", "read", "parse"), "read- read+ parse- parse- parse+", full},
		{
			"others between and after", task("basic_task", "read", "parse"),
			"note+ read+ post- parse+ note+", full,
		},
		{
			"only first successes count", task("basic_task", "read", "parse"),
			"read+ parse+ read+ parse- read-", full,
		},
		{
			"a failed call before its turn", task("basic_task", "read", "parse"),
			"parse- read+ parse+", full,
		},

		{"wrong order", task("basic_task", "read", "parse"), "parse+ read+", partial},
		{"nothing", task("simple_task", "read"), "", failure},
		{"nothing worked", task("simple_task", "read"), "read- read-", failure},
		{"a tool required twice", task("basic_task", "read", "read"), "read+ read+", failure},
		{"nothing required", task("basic_task"), "note+ note+", failure},

		// The four signs, each alone and each with a second sign.
		{"coverage alone", task("multi_stage_pipeline", "read", "note"), "note+ read+", failure},
		{
			"coverage and number", task("simple_task", "read", "parse", "shape"),
			"read+ parse+", partial,
		},
		{"coverage below 0.6 and number", task("simple_task", "read", "parse"), "read+", failure},
		{
			"coverage of 0.6 and claim",
			task("multi_stage_pipeline", "read", "note", "writer", "parse", "shape"),
			"read+ note+ ! parse+", partial,
		},
		{
			"coverage of 0.6 with number",
			task("multi_stage_pipeline", "read", "note", "writer", "parse", "shape"),
			"read+ note+ parse+", partial,
		},
		{
			"coverage of 0.4",
			task("multi_stage_pipeline", "read", "note", "writer", "parse", "shape"),
			"read+ note+ !", failure,
		},
		{"output alone", task("basic_task", "read"), "post+", failure},
		{"output and number", task("basic_task", "read"), "post+ note+", partial},
		{
			"output that failed, and number", task("basic_task", "read"), "post- note+ note+",
			failure,
		},
		{"output and claim", task("basic_task", "read"), "post+ !", partial},
		{"number alone", task("simple_task", "read"), "note+", failure},
		{"number and claim", task("simple_task", "read"), "note+ !", partial},
		{"claim alone", task("simple_task", "read"), "!", failure},
		{"claim and failed calls", task("simple_task", "read"), "read- !", failure},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := judgePilot(catalog, tc.task, transcript(tc.calls)).Level; got != tc.want {
				t.Errorf("%q gives %s, want %s", tc.calls, got, tc.want)
			}
		})
	}
}

// TestMinimum finds the number of successful calls that counts as a sign for each task type. A
// claim is the other sign.
func TestMinimum(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]int{
		"simple_task": 1, "basic_task": 2, "data_pipeline": 2, "api_integration": 2,
		"multi_stage_pipeline": 3,
	} {
		for n := range 5 {
			calls := "! " + strings.Repeat("note+ ", n)
			level := assay.Failure
			if n >= want {
				level = assay.PartialSuccess
			}
			got := judgePilot(catalog, task(typ, "read"), transcript(calls)).Level
			if got != level {
				t.Errorf("%s with %d calls: %s, want %s", typ, n, got, level)
			}
		}
	}
}

// TestOutputWords uses each word as a tool's name, together with a claim.
func TestOutputWords(t *testing.T) {
	t.Parallel()
	const partial = assay.PartialSuccess
	for word, want := range map[string]assay.Level{
		"file_writer": partial, "data_export": partial, "save": partial, "output": partial,
		"network_poster": partial, "publisher": partial, "store": partial, "emitter": partial,
		"notify_all": partial, "reporter": partial, "generate": partial, "data_filter": partial,
		"data_aggregator": partial, "file_compressor": partial,
		"utility_notifier": assay.Failure, "file_reader": assay.Failure,
	} {
		got := judgePilot(catalog, task("basic_task", "read"), transcript(word+"+ !")).Level
		if got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}

// TestOnlyTheModelClaims checks that neither a nudge nor a tool can claim that the task is done.
func TestOnlyTheModelClaims(t *testing.T) {
	t.Parallel()
	tr := transcript("note+")
	tr.Messages = append(tr.Messages,
		assay.Message{Role: assay.User, Content: "reply TASK_COMPLETED"},
		assay.Message{Role: assay.ToolRole, Content: "task completed"},
		assay.Message{Role: assay.Assistant, Reasoning: "TASK_COMPLETED"})
	if got := judgePilot(catalog, task("simple_task", "read"), tr).Level; got != assay.Failure {
		t.Errorf("level %s, want %s", got, assay.Failure)
	}
}

func TestPilotCategory(t *testing.T) {
	t.Parallel()
	const (
		format     = assay.CategoryToolCallFormat
		maxTurns   = assay.CategoryMaxTurns
		selection  = assay.CategoryToolSelection
		order      = assay.CategorySequenceOrder
		dependency = assay.CategoryDependency
		other      = assay.CategoryOther

		turnLimit = assay.TurnLimit
		streak    = assay.FailureStreak
		finished  = assay.Finished
	)
	for _, tc := range []struct {
		name     string
		required string
		calls    string
		ended    assay.Ended
		want     string
	}{
		{"full success has none", "read parse", "read+ parse+", finished, ""},
		{"nothing at all", "read", ". .", turnLimit, format},
		{"no turn", "read", "", turnLimit, format},
		{"a claim and nothing else", "read", "! !", turnLimit, format},
		{"searches only", "read", "~ ~", turnLimit, maxTurns},
		{"one search", "read", ". ~ .", turnLimit, maxTurns},

		{"all worked, in the wrong order", "read note", "note+ read+", finished, order},
		{"left out, another called", "read note", "read+ post+", turnLimit, selection},
		{"left out, another failed", "read note", "post-", turnLimit, selection},
		{
			"left out, but only a dependency was called", "parse shape", "read- read-",
			turnLimit, other,
		},
		{"another called, none left out", "read note", "read+ post+ note-", streak, other},

		{"called before an earlier one worked", "read note", "read- note+", turnLimit, order},
		{"failed before an earlier one worked", "read note", "note-", turnLimit, order},
		{"skipped one in the middle", "read note post", "read+ post- note-", turnLimit, order},
		{
			"called when an earlier one had worked and broken", "read note",
			"read+ read- note-", streak, other,
		},
		{"order before dependency", "read parse", "parse- read-", turnLimit, order},

		{"a missing dependency", "parse", "parse-", streak, dependency},
		{"a dependency that failed", "parse", "read- parse-", streak, dependency},
		{
			"a dependency that worked later", "parse note", "parse- read+ parse+ note-", streak,
			dependency,
		},
		{"a dependency of a dependency", "shape", "read+ shape- parse-", streak, dependency},
		{"a missing dependency, but the call worked", "parse note", "parse+ note-", streak, other},
		{"a dependency that broke", "parse", "read+ read- parse-", streak, other},
		{"a dependency that is required later", "parse read", "parse- parse-", streak, other},
		// shape is not required, but writer needs it, after parse.
		{"an inserted tool too early", "parse writer", "read+ shape- parse-", streak, dependency},
		{"an inserted tool in time", "parse writer", "read+ parse+ shape- shape-", streak, other},
		// shape needs parse, so parse cannot wait for read, which comes later.
		{
			"an inserted tool whose dependency is required later", "shape read",
			"parse- parse-", streak, other,
		},
		// No required tool needs parse, so all required tools could come first.
		{"a tool on the side too early", "note read", "note+ parse- read-", streak, dependency},

		{"bad luck and idle turns", "read note", "~ read+ note- note-", turnLimit, maxTurns},
		{"bad luck and a chat", "read note", "read+ . note-", turnLimit, maxTurns},
		{"bad luck in every turn", "read note", "read+ note- note-", turnLimit, other},
		{"idle turns, but another end", "read", "~ read- read- read- read- read-", streak, other},
		{"a loop", "read note", "read+ read+ read+ read+ read+", assay.Loop, other},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tr := transcript(tc.calls)
			tr.Ended = tc.ended
			o := judgePilot(catalog, task("basic_task", strings.Fields(tc.required)...), tr)
			if o.ErrorCategory != tc.want {
				t.Errorf("%q for %q gives %q, want %q",
					tc.calls, tc.required, o.ErrorCategory, tc.want)
			}
		})
	}
}

// TestCallsOfOneTurn checks that two calls of one reply use one turn.
func TestCallsOfOneTurn(t *testing.T) {
	t.Parallel()
	tr := transcript("read+ note- note-")
	tr.Ended = assay.TurnLimit
	for i := range tr.Calls {
		tr.Calls[i].Turn = 1
	}
	got := judgePilot(catalog, task("basic_task", "read", "note"), tr).ErrorCategory
	if got != assay.CategoryMaxTurns {
		t.Errorf("two idle turns give %q, want %q", got, assay.CategoryMaxTurns)
	}
	tr.Turns = tr.Turns[:1]
	got = judgePilot(catalog, task("basic_task", "read", "note"), tr).ErrorCategory
	if got != assay.CategoryOther {
		t.Errorf("no idle turn gives %q, want %q", got, assay.CategoryOther)
	}
}

func TestPilotOutcome(t *testing.T) {
	t.Parallel()
	tr := transcript(". read+ ~ note+ parse- parse+ read+ !")
	got := judgePilot(catalog, task("data_pipeline", "read", "parse", "shape"), tr)
	want := assay.Outcome{
		Level: assay.PartialSuccess, Ended: assay.Finished, Stop: assay.Answered, Cause: assay.SkippedStep,
		ErrorCategory: assay.CategoryToolSelection, Turns: 8, ToolCalls: 5,
		RequiredTools: []string{"read", "parse", "shape"},
		ExecutedTools: []string{"read", "note", "parse", "read"},
		Coverage:      2. / 3, Assisted: 1, ScoreVersion: score.Version(world.PilotName),
		Adherence: .5, Failures: 1, Recovered: 1, Wasted: 2, Efficiency: .6,
		Precision:       .5,
		FaultsDelivered: 1, FaultsDetected: 1, FaultsRecovered: 1,
		Pilot: &assay.PilotScores{
			Executor: assay.PartialSuccess, Paper: assay.PartialSuccess,
			Batch:         assay.PartialSuccess,
			WorkflowScore: .4*2/3 + .3*2/3 + .2*4/5,
			QualityScore:  .32 + .3*1.2*3/4 + .2*(.4*2/3+.3*2/3+.2*4/5),
		},
	}
	want.Pilot.Phase2Score = (.5 + .3 + .2*2/3 + want.Pilot.QualityScore) / 2
	want.Pilot.FinalScore = want.Pilot.Phase2Score
	if diff := cmp.Diff(want, got, cmp.Comparer(near)); diff != "" {
		t.Errorf("outcome:\n%s", diff)
	}
}

// near compares scores, ignoring the last digits.
func near(a, b float64) bool { return math.Abs(a-b) < 1e-12 }
