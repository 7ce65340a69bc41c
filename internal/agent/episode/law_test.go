//go:build !race

package episode_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/task/world"
)

// TestEpisodeLaws lets a model give arbitrary replies and checks the laws of every episode.
func TestEpisodeLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, episodeLaws)
}

// FuzzEpisode checks the same laws with replies chosen by the fuzzer.
func FuzzEpisode(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(episodeLaws))
}

func episodeLaws(t *rapid.T) {
	trial := trial(
		rapid.SampledFrom([]string{assay.Discover, assay.Listed}).Draw(t, "setting"),
		rapid.Float64Range(0, 1).Draw(t, "reliability"),
		rapid.Uint64().Draw(t, "seed"),
	)
	trial.World = rapid.SampledFrom(world.Simulated).Draw(t, "world")
	trial.Variant = rapid.SampledFrom(assay.Variants).Draw(t, "variant")
	trial.Severity = rapid.SampledFrom(assay.Severities).Draw(t, "severity")
	strict := "repeat=2! search=2! ping_pong=2! monologue=2! error=2!"
	trial.Loops = rapid.SampledFrom([]string{"", "none", strict}).Draw(t, "loops")
	trial.Setting.Turns = rapid.IntRange(1, 12).Draw(t, "turns")
	trial.Calls = rapid.IntRange(0, 12).Draw(t, "calls")
	replies := anyReply()
	f := &fake{chat: func(context.Context, int) (*assay.Response, error) {
		return &assay.Response{Message: replies.Draw(t, "reply")}, nil
	}}
	a, tr := episode.NewRunner(catalog, 0).Run(context.Background(), f, new(trial), new(task()))

	if strings.Contains(a.FaultDetail, "does not apply to task") {
		return // such a trial is never planned
	}
	if !a.Settles() || a.FaultKind != "" {
		t.Fatalf("level %q, fault %q %s: want an outcome", a.Level, a.FaultKind, a.FaultDetail)
	}
	if n := len(f.asked); n > trial.Setting.Turns || n != len(tr.Turns) || n != a.Turns {
		t.Fatalf("%d requests, %d turns in the transcript, %d in the attempt, limit %d",
			n, len(tr.Turns), a.Turns, trial.Setting.Turns)
	}
	conversation := f.asked[0].Messages
	executed, assisted := 0, 0
	for turn := 1; turn <= len(f.asked); turn++ {
		if diff := cmp.Diff(conversation, f.asked[turn-1].Messages); diff != "" {
			t.Fatalf("request %d differs from the conversation so far:\n%s", turn, diff)
		}
		rest := tr.Messages[len(conversation):]
		finishes := turn == len(f.asked) && tr.Ended == assay.Finished
		answers := checkTurn(t, rest, trial.Setting.Turns-turn, finishes)
		conversation = tr.Messages[:len(conversation)+1+len(answers)]
		calls, lookups, corrected := inspect(t, rest[0].Calls, answers, tr.Calls)
		executed += calls
		if lookups != tr.Turns[turn-1].Lookups {
			t.Fatalf("turn %d: %d lookups, recorded %d", turn, lookups, tr.Turns[turn-1].Lookups)
		}
		if calls > episode.MaxCallsPerReply {
			t.Fatalf("%d calls of one reply were executed", calls)
		}
		if corrected {
			assisted++
		}
		if corrected != tr.Turns[turn-1].Assisted {
			t.Fatalf("turn %d: corrected %v, recorded %v",
				turn, corrected, tr.Turns[turn-1].Assisted)
		}
	}
	if len(conversation) != len(tr.Messages) {
		t.Fatalf("%d messages, want %d", len(tr.Messages), len(conversation))
	}
	if trial.Calls > 0 && executed > trial.Calls {
		t.Fatalf("%d calls were executed, limit %d", executed, trial.Calls)
	}
	if executed != len(tr.Calls) || executed != a.ToolCalls || assisted != a.Assisted {
		t.Fatalf("executed %d, recorded %d, counted %d; assisted %d, counted %d",
			executed, len(tr.Calls), a.ToolCalls, assisted, a.Assisted)
	}
	if tr.Ended == "" || tr.Ended != a.Ended {
		t.Fatalf("transcript ended %q, attempt %q", tr.Ended, a.Ended)
	}
}

// checkTurn checks the reply at the start of messages and returns its answers: one for each call,
// in order and with its ID, or a nudge. A reply that finishes the episode has no answers.
func checkTurn(t *rapid.T, messages []assay.Message, left int, finishes bool) []assay.Message {
	if len(messages) == 0 || messages[0].Role != assay.Assistant {
		t.Fatalf("the request has no reply: %v", messages)
	}
	reply := messages[0]
	if finishes {
		return nil
	}
	answers := messages[1:]
	if len(reply.Calls) == 0 {
		if len(answers) == 0 || answers[0].Role != assay.User || answers[0].CallID != "" {
			t.Fatalf("a reply without calls is not answered by a nudge: %v", answers)
		}
		want := fmt.Sprintf("Replies left: %d.", left)
		if !strings.HasSuffix(answers[0].Content, want) {
			t.Fatalf("nudge %q, want it to end in %q", answers[0].Content, want)
		}
		return answers[:1]
	}
	if len(answers) < len(reply.Calls) {
		t.Fatalf("%d answers to %d calls", len(answers), len(reply.Calls))
	}
	answers = answers[:len(reply.Calls)]
	for i, a := range answers {
		if a.Role != assay.ToolRole || a.CallID != reply.Calls[i].ID {
			t.Fatalf("answer %d is %s to call %q, want %s to %q",
				i, a.Role, a.CallID, assay.ToolRole, reply.Calls[i].ID)
		}
		var fields struct {
			Left *int `json:"replies_left"`
		}
		if err := json.Unmarshal([]byte(a.Content), &fields); err != nil || fields.Left == nil ||
			*fields.Left != left {
			t.Fatalf("answer %s (%v), want replies_left %d", a.Content, err, left)
		}
	}
	return answers
}

// inspect counts the executed calls and the lookups, and reports whether there was a correction. It
// fails if a correction names a tool that the model did not write.
func inspect(
	t *rapid.T, calls []assay.ToolCall, answers []assay.Message, executedAll []assay.CallRecord,
) (executed, lookups int, corrected bool) {
	before := "" // every answer repeats the tools that have succeeded
	for _, c := range executedAll {
		before += c.Tool + " "
	}
	for i, a := range answers {
		if a.Role == assay.User {
			leaks(t, a.Content, before)
			return 0, 0, true
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal([]byte(a.Content), &fields); err != nil {
			t.Fatal(err)
		}
		switch {
		case fields["refused"] != nil:
			corrected = true
			leaks(t, a.Content, before+calls[i].Name+calls[i].Arguments)
		case fields["success"] != nil:
			executed++
		default:
			lookups++
		}
	}
	return executed, lookups, corrected
}

func leaks(t *rapid.T, correction, wrote string) {
	for _, name := range catalog.Names() {
		if strings.Contains(correction, name) && !strings.Contains(wrote, name) {
			t.Fatalf("the correction %q names %s although the model did not write it",
				correction, name)
		}
	}
}

// anyReply generates replies of every kind: sensible, malformed and absurd.
func anyReply() *rapid.Generator[assay.Message] {
	odd := []string{
		"tool_search", "tool_info", "tool_call", "toolcall", "File_Reader", "", "parser",
	}
	names := slices.Concat(catalog.Names(), odd)
	name := rapid.OneOf(rapid.SampledFrom(names), rapid.SampledFrom(names), rapid.String())
	call := rapid.Custom(func(t *rapid.T) assay.ToolCall {
		return assay.ToolCall{
			ID:        rapid.SampledFrom([]string{"a", "a", "b", "call_1_0", ""}).Draw(t, "id"),
			Name:      name.Draw(t, "name"),
			Arguments: arguments(name).Draw(t, "arguments"),
		}
	})
	calls := rapid.OneOf(
		rapid.SliceOfN(call, 0, 3),
		rapid.SliceOfN(call, 0, 3),
		rapid.SliceOfN(call, episode.MaxCallsPerReply-1, episode.MaxCallsPerReply+3),
	)
	content := rapid.OneOf(
		rapid.SampledFrom([]string{
			"", "TASK_COMPLETED", "The task is complete.", "Now I parse.",
			"<tool_call>row_parser</tool_call>",
		}),
		rapid.String(),
	)
	return rapid.Custom(func(t *rapid.T) assay.Message {
		return assay.Message{
			Role:      rapid.SampledFrom([]assay.Role{assay.Assistant, assay.User, ""}).Draw(t, "role"),
			Content:   content.Draw(t, "content"),
			Reasoning: rapid.SampledFrom([]string{"", "TASK_COMPLETED"}).Draw(t, "reasoning"),
			Calls:     calls.Draw(t, "calls"),
		}
	})
}

func arguments(name *rapid.Generator[string]) *rapid.Generator[string] {
	object := rapid.Custom(func(t *rapid.T) string {
		args := map[string]any{}
		for _, key := range []string{"tool", "query", "arguments", "source"} {
			switch rapid.IntRange(0, 4).Draw(t, key) {
			case 0, 1:
				args[key] = name.Draw(t, "value")
			case 2:
				odd := []any{nil, 1, true, []any{}, map[string]any{"source": "x"}}
				args[key] = rapid.SampledFrom(odd).Draw(t, "odd")
			}
		}
		b, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	})
	return rapid.OneOf(object, object, rapid.String(), rapid.SampledFrom([]string{
		"", " \n", "null", "{}", "[]", `"file_reader"`, "{", `{"tool": "file_reader"`,
		`{"tool": "file_reader"} and`, "0", `{"query": "rows"}{}`,
	}))
}

// checkLaw checks a law with random games. It also plays 100 games that are the same in every run,
// so that a test can require that all cases occur.
func checkLaw(t *testing.T, law func(*rapid.T)) {
	t.Helper()
	rapid.Check(t, law)
	game := rapid.Custom(func(t *rapid.T) bool { law(t); return true })
	for seed := range 100 {
		game.Example(seed)
	}
}

// TestSettingsAgree does the same things under both tool settings. Verdicts and executed calls must
// be equal.
func TestSettingsAgree(t *testing.T) {
	t.Parallel()
	ends := map[assay.Ended]int{}
	checkLaw(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		reliability := rapid.SampledFrom([]float64{0, .5, .8, 1}).Draw(t, "reliability")
		names := append(catalog.Names(), "no_such_tool")
		if rapid.Bool().Draw(t, "one tool") {
			few := [][]string{{reader}, {writer}, {reader, parser}}
			names = rapid.SampledFrom(few).Draw(t, "names")
		}
		turns := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom(names), 0, 6), 1, 10).Draw(t, "turns")
		claims := rapid.SliceOfN(rapid.Bool(), len(turns), len(turns)).Draw(t, "claims")
		play := func(setting string) (assay.Outcome, []assay.CallRecord) {
			var replies []assay.Message
			for i, tools := range turns {
				m := calling(setting, tools...)
				if claims[i] {
					m.Content = "TASK_COMPLETED"
				}
				replies = append(replies, m)
			}
			trial := trial(setting, reliability, seed)
			runner := episode.NewRunner(catalog, 0)
			a, tr := runner.Run(context.Background(), scripted(replies...), &trial, new(task()))
			return a.Outcome, tr.Calls
		}
		outcome, calls := play(assay.Discover)
		otherOutcome, otherCalls := play(assay.Listed)
		if diff := cmp.Diff(outcome, otherOutcome); diff != "" {
			t.Fatalf("the verdicts differ:\n%s", diff)
		}
		if diff := cmp.Diff(calls, otherCalls); diff != "" {
			t.Fatalf("the calls differ:\n%s", diff)
		}
		ends[outcome.Ended]++
	})
	for _, e := range []assay.Ended{
		assay.Finished, assay.TurnLimit, assay.FailureStreak, assay.Loop,
	} {
		if ends[e] == 0 {
			t.Errorf("no episode ended by %s, so the test is too weak", e)
		}
	}
}

// FuzzArguments sends the same fuzzed call in every turn, under both tool settings. Only tools of
// the catalog may be executed.
func FuzzArguments(f *testing.F) {
	for _, name := range []string{"tool_search", "tool_info", "tool_call", reader, "", "no_such"} {
		for _, args := range []string{
			"", "null", "{}", "[]", "{", `{"query":"rows"}`, `{"query":" "}`,
			`{"tool":"row_parser"}`, `{"tool":7}`, "\xff", `{"tool":"\xff"}`,
			`{"tool":"report_writer","arguments":"{\"a\":1}"}`,
			`{"tool":"file_reader","arguments":{"source":"x"}}`,
			`{"tool":"` + strings.Repeat("é", 100) + `"}`,
		} {
			f.Add("", name, args, uint64(1))
		}
	}
	f.Add("TASK_COMPLETED", "tool_call", `{"tool":"row_parser"}`, uint64(2))
	f.Fuzz(func(t *testing.T, content, name, args string, seed uint64) {
		for _, setting := range []string{assay.Discover, assay.Listed} {
			call := assay.ToolCall{ID: "x", Name: name, Arguments: args}
			reply := assay.Message{Content: content, Calls: []assay.ToolCall{call, call}}
			trial := trial(setting, .8, seed)
			trial.Setting.Turns = 3
			a, tr := run(t, scripted(reply), trial)
			if !a.Settles() {
				t.Fatalf("fault %s: %s", a.FaultKind, a.FaultDetail)
			}
			for _, c := range tr.Calls {
				if _, ok := catalog.Tool(c.Tool); !ok {
					t.Fatalf("executed %q", c.Tool)
				}
			}
			for _, m := range tr.Messages {
				if m.Role == assay.ToolRole && !json.Valid([]byte(m.Content)) {
					t.Fatalf("answer is not JSON: %s", m.Content)
				}
			}
			if _, err := json.Marshal(tr); err != nil {
				t.Fatal(err)
			}
			if a.Ended == assay.Finished && a.Coverage < 1 {
				t.Fatalf("finished with coverage %v", a.Coverage)
			}
		}
	})
}
