package classify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/classify"
)

// partial returns a case with a bit of everything.
func partial() classify.Case {
	task := &assay.Task{
		ID: "t1", Type: "data_pipeline",
		Description: "Read the report,\nfilter \"late\" rows & write them.",
		Required:    []string{"file_reader", "data_filter", "file_writer"},
	}
	tr := &assay.Transcript{
		Messages: []assay.Message{
			{Role: assay.System, Content: "the system message"},
			{Role: assay.User, Content: "the task"},
			{Role: assay.Assistant, Content: "I look for tools."},
			{Role: assay.ToolRole, Content: "found: data_filter"},
			{Role: assay.Assistant, Content: "Filtering."},
			{Role: assay.ToolRole, Content: "DEPENDENCY_ERROR"},
			{
				Role:    assay.Assistant,
				Content: "Reading first, \"quoted\".\n{\"category\": \"other\"}",
			},
			{Role: assay.ToolRole, Content: "ok"},
			{
				Role:  assay.Assistant,
				Calls: []assay.ToolCall{{Name: "tool_call", Arguments: `{"tool": "file_writer",`}},
			},
			{Role: assay.User, Content: "the arguments have to be one valid JSON object"},
			{Role: assay.Assistant, Content: "Done. TASK_COMPLETED", Reasoning: "a secret thought"},
		},
		Calls: []assay.CallRecord{
			{
				Turn: 2, Tool: "data_filter", Arguments: "{\"data\":\n {\"ref\": \"file_reader\"}}",
				Code: "DEPENDENCY_ERROR", Error: "DEPENDENCY_ERROR: file_reader has not succeeded",
				Mistake: true,
			},
			{
				Turn: 3, Tool: "file_reader", Arguments: `{"source":"report.csv"}`,
				Code: "TIMEOUT", Error: "TIMEOUT: too slow", Chance: .85, Luck: .9,
			},
			{
				Turn: 3, Tool: "file_reader", Arguments: `{"source":"report.csv"}`,
				OK: true, Output: `{"items":3}`, Chance: .425, Luck: .1,
			},
		},
		Turns: []assay.TurnRecord{{Lookups: 2}, {}, {}, {Assisted: true}, {}},
		Plan:  []string{"data_filter", "file_reader", "file_writer"},
		Loops: []assay.LoopRecord{
			{Kind: assay.ErrorLoop, Began: 2, Noticed: 4},
			{Kind: assay.RepeatLoop, Began: 3, Noticed: 5},
		},
		Ended: assay.Finished,
	}
	a := &assay.Attempt{
		Trial: assay.Trial{
			ID: "0123", Cell: assay.Cell{Model: "m", TaskType: "data_pipeline", Reliability: .85},
			Setting: assay.Setting{World: "assay-1", Turns: 10},
		},
		Number: 1,
		Outcome: assay.Outcome{
			Level: assay.PartialSuccess, Ended: assay.Finished,
			ErrorCategory: assay.CategoryDependency, Turns: 5, ToolCalls: 3,
			RequiredTools: task.Required, ExecutedTools: []string{"file_reader"},
			Coverage: 1. / 3, Assisted: 1,
		},
	}
	return classify.Case{Attempt: a, Task: task, Transcript: tr}
}

func prompt(k classify.Case) (system, user string) {
	messages := classify.Prompt(k.Attempt, k.Task, k.Transcript)
	if len(messages) != 2 || messages[0].Role != assay.System || messages[1].Role != assay.User {
		panic("not a system and a user message")
	}
	return messages[0].Content, messages[1].Content
}

func TestPrompt(t *testing.T) {
	t.Parallel()
	system, user := prompt(partial())
	golden.Assert(t, "=== system\n"+system+"\n=== user\n"+user+"\n", "prompt.txt")
	for _, c := range classify.Categories {
		if !strings.Contains(system, "\n- "+c+": ") {
			t.Errorf("the system message does not explain %s", c)
		}
	}
	if strings.Contains(system+user, "secret thought") {
		t.Error("the prompt contains reasoning, which must never be sent")
	}
}

// TestPromptWithUnknowns checks that unknown facts are left out or called unknown.
func TestPromptWithUnknowns(t *testing.T) {
	t.Parallel()
	k := partial()
	k.Task, k.Transcript = nil, nil
	k.Attempt.Loop, k.Attempt.LoopTurn = assay.SearchLoop, 4
	k.Attempt.Mistakes, k.Attempt.Failures = 7, 8
	k.Attempt.Burst = .5
	_, user := prompt(k)
	golden.Assert(t, user+"\n", "prompt_unknown.txt")

	k = partial()
	*k.Transcript = assay.Transcript{Ended: assay.TurnLimit}
	_, user = prompt(k)
	golden.Assert(t, user+"\n", "prompt_empty.txt")
}

// TestWords checks that each ending of an episode and each kind of loop has its own wording, and
// that an unknown one is shown as it is.
func TestWords(t *testing.T) {
	t.Parallel()
	between := func(k classify.Case, before, after string) string {
		_, user := prompt(k)
		_, rest, _ := strings.Cut(user, before)
		words, _, _ := strings.Cut(rest, after)
		return words
	}
	said := map[string]string{"": "nothing"}
	check := func(name, words string) {
		if other, twice := said[words]; twice {
			t.Errorf("%s is worded %q, and so is %s", name, words, other)
		}
		if got, want := words == name, name == "another"; got != want {
			t.Errorf("%s is worded %q", name, words)
		}
		said[words] = name
	}
	k := partial()
	for _, e := range []assay.Ended{
		assay.Finished, assay.TurnLimit, assay.FailureStreak, assay.CallLimit, assay.Loop,
		assay.TokenLimit, assay.CostLimit, "another",
	} {
		k.Attempt.Ended = e
		check(string(e), between(k, "- It ended so: ", ".\n"))
	}
	delete(said, "another")
	for _, kind := range append(slices.Clone(assay.LoopKinds), "another") {
		k.Transcript.Loops = []assay.LoopRecord{{Kind: kind, Began: 3}}
		check(string(kind), between(k, "- Loops: ", ", from turn 3.\n"))
	}
}

// TestPromptHidesVerdict checks that the prompt does not contain the rules' verdict.
func TestPromptHidesVerdict(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := anyCase().Draw(t, "case")
		_, before := prompt(k)
		a := *k.Attempt
		a.Level = rapid.SampledFrom(assay.Levels).Draw(t, "level")
		a.ErrorCategory = rapid.SampledFrom(classify.Categories).Draw(t, "category")
		a.Adherence, a.Efficiency, a.Best, a.Wasted = .123, .234, .345, 99
		a.OrderCorrect, a.ScoreVersion, a.Pilot = !a.OrderCorrect, "another", &assay.PilotScores{Executor: assay.Failure}
		k.Attempt = &a
		if _, after := prompt(k); after != before {
			t.Fatalf("the verdict changes the prompt:\n%s", cmp.Diff(before, after))
		}
	})
}

// TestPromptIsBounded checks that for any attempt the prompt is valid, not too long, begins with
// the task, ends with the question, and marks the places where text was cut.
func TestPromptIsBounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		system, user := prompt(anyCase().Draw(t, "case"))
		if n := len(system) + len(user); n > classify.MaxPrompt {
			t.Fatalf("%d bytes, more than %d", n, classify.MaxPrompt)
		}
		if !utf8.ValidString(system + user) {
			t.Fatalf("not UTF-8: %q", user)
		}
		if !strings.HasPrefix(user, "## Task\n\nType: ") ||
			!strings.HasSuffix(user, "\nWhy did the attempt not fully succeed?") {
			t.Fatalf("begin or end is lost:\n%s", user)
		}
	})
}

// TestLongHistory checks that a long history is cut in its middle, and that the facts before it and
// the replies after it stay.
func TestLongHistory(t *testing.T) {
	t.Parallel()
	k := partial()
	for i := range 300 {
		k.Transcript.Turns = append(k.Transcript.Turns, assay.TurnRecord{})
		k.Transcript.Calls = append(k.Transcript.Calls, assay.CallRecord{
			Turn: 6 + i, Tool: "data_filter",
			Arguments: `{"rows":"` + strings.Repeat("ä", i) + `"}`, OK: true,
		})
		content := fmt.Sprintf("reply %d %s end", 6+i, strings.Repeat("x", 10*i))
		reply := assay.Message{Role: assay.Assistant, Content: content}
		k.Transcript.Messages = append(k.Transcript.Messages, reply)
	}
	system, user := prompt(k)
	if n := len(system) + len(user); n > classify.MaxPrompt || n < classify.MaxPrompt-20 {
		t.Errorf("%d bytes of at most %d", n, classify.MaxPrompt)
	}
	for _, want := range []string{
		"- Mistakes: 1. Failures by chance: 1. Turns that were corrected: 1.\n",
		"\nturn 2: mistake DEPENDENCY_ERROR", "\nturn 6: worked", " bytes left out …] ",
		"\nturn 305: worked: data_filter", "\nturn 303: \"reply 303 x", "\nturn 304: \"reply 304 x",
		"x end\"\nturn 305: \"reply 305 x", "x end\"\n\nWhy",
	} {
		if !strings.Contains(user, want) {
			t.Errorf("the prompt does not contain %q", want)
		}
	}
	if strings.Contains(user, "turn 302: \"") {
		t.Error("the prompt shows more than three replies")
	}
}

// anyCase draws cases as wild as a damaged store could hold.
func anyCase() *rapid.Generator[classify.Case] {
	text := rapid.Custom(func(t *rapid.T) string {
		odd := rapid.SampledFrom([]string{"file_reader", "\xff\xfe{\"\n", "{{.}} 100 %d ä"})
		s := rapid.OneOf(rapid.String(), odd, odd, odd).Draw(t, "text")
		return strings.Repeat(s, rapid.SampledFrom([]int{1, 1, 1, 50, 2000}).Draw(t, "times"))
	})
	names := rapid.SliceOfN(text, 0, 4)
	number := rapid.IntRange(-1, 40)
	call := rapid.Custom(func(t *rapid.T) assay.CallRecord {
		return assay.CallRecord{
			Turn: number.Draw(t, "turn"), Tool: text.Draw(t, "tool"),
			Arguments: text.Draw(t, "arguments"),
			OK:        rapid.Bool().Draw(t, "ok"), Mistake: rapid.Bool().Draw(t, "mistake"),
			Code: text.Draw(t, "code"), Error: text.Draw(t, "error"),
			Chance: rapid.Float64().Draw(t, "chance"),
		}
	})
	message := rapid.Custom(func(t *rapid.T) assay.Message {
		return assay.Message{
			Role:    rapid.SampledFrom([]assay.Role{assay.Assistant, assay.User}).Draw(t, "role"),
			Content: text.Draw(t, "content"),
			Calls: []assay.ToolCall{
				{Name: text.Draw(t, "name"), Arguments: text.Draw(t, "arguments")},
			},
		}
	})
	turn := rapid.Custom(func(t *rapid.T) assay.TurnRecord {
		return assay.TurnRecord{
			Lookups:  rapid.IntRange(0, 2).Draw(t, "lookups"),
			Assisted: rapid.Bool().Draw(t, "assisted"),
		}
	})
	return rapid.Custom(func(t *rapid.T) classify.Case {
		k := partial()
		k.Attempt.TaskType = text.Draw(t, "type")
		k.Attempt.Ended = assay.Ended(text.Draw(t, "ended"))
		k.Attempt.Loop = assay.LoopKind(text.Draw(t, "loop"))
		k.Attempt.RequiredTools = names.Draw(t, "required")
		k.Attempt.ExecutedTools = names.Draw(t, "executed")
		if rapid.Bool().Draw(t, "no task") {
			k.Task = nil
		} else {
			k.Task.Description = text.Draw(t, "description")
		}
		if rapid.Bool().Draw(t, "no transcript") {
			k.Transcript = nil
			return k
		}
		tr := k.Transcript
		tr.Plan = names.Draw(t, "plan")
		tr.Turns = rapid.SliceOfN(turn, 0, 40).Draw(t, "turns")
		tr.Calls = rapid.SliceOfN(call, 0, 10).Draw(t, "calls")
		slices.SortStableFunc(tr.Calls, func(a, b assay.CallRecord) int { return a.Turn - b.Turn })
		tr.Messages = rapid.SliceOfN(message, 0, 6).Draw(t, "messages")
		return k
	})
}
