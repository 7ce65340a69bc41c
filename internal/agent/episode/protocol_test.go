//go:build !race

package episode_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/task/world"
)

// TestProtocolsAgree does the same things under both protocols, in both worlds. Everything except
// the wording of the conversation must be equal.
func TestProtocolsAgree(t *testing.T) {
	t.Parallel()
	levels := map[assay.Level]int{}
	checkLaw(t, func(t *rapid.T) {
		setting := rapid.SampledFrom([]string{assay.Discover, assay.Listed}).Draw(t, "setting")
		reliability := rapid.SampledFrom([]float64{.5, .9, 1}).Draw(t, "reliability")
		base := trial(setting, reliability, rapid.Uint64().Draw(t, "seed"))
		base.World = rapid.SampledFrom(world.Simulated).Draw(t, "world")
		base.SeveralCalls = rapid.SampledFrom([]string{"", assay.RefuseSeveral}).Draw(t, "several")
		kinds := []string{"tool_call", "tool_call", "tool_call", "tool_search", "tool_info"}
		type reply struct {
			content string
			wishes  []wish
		}
		var replies []reply
		for range base.Setting.Turns {
			contents := []string{"", "Now this.", "Hm.", "All is done: TASK_COMPLETED"}
			r := reply{content: rapid.SampledFrom(contents).Draw(t, "content")}
			for range rapid.IntRange(0, 3).Draw(t, "wishes") {
				w := wish{kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
				tools := []string{reader, parser, writer, pinger, "nothing"}
				w.text = rapid.SampledFrom(tools).Draw(t, "tool")
				switch w.kind {
				case "tool_search":
					queries := []string{"read a file", "xyzzy", "parse rows"}
					w.text = rapid.SampledFrom(queries).Draw(t, "query")
				case "tool_call":
					w.arguments = rapid.SampledFrom([]string{
						"", `{}`, `{"source":"inbox/week-07.csv"}`, `{"source":"` + reader + `"}`,
						`{"delimiter":";"}`, `{"delimiter":1}`, `[]`, `"{}"`,
						`{"options":{"ref":"` + reader + `"}}`,
					}).Draw(t, "arguments")
				}
				r.wishes = append(r.wishes, w)
			}
			replies = append(replies, r)
		}
		run := func(protocol string) []any {
			tr := base
			tr.Protocol = protocol
			f := &fake{chat: func(_ context.Context, n int) (*assay.Response, error) {
				r := replies[n-1]
				if protocol == assay.Tags {
					return &assay.Response{Message: tagged(r.content, r.wishes)}, nil
				}
				return &assay.Response{Message: native(setting, r.content, r.wishes)}, nil
			}}
			a, transcript := episode.NewRunner(catalog, 0).Run(context.Background(), f, &tr,
				new(task()))
			if a.FaultKind != "" {
				t.Fatalf("%s: fault %s", protocol, a.FaultDetail)
			}
			if protocol == assay.Tags && f.asked[0].Functions != nil {
				t.Fatal("the request offers functions under tags")
			}
			levels[a.Level]++
			return []any{a.Outcome, transcript.Calls, transcript.Turns, transcript.Loops}
		}
		if diff := cmp.Diff(run(assay.Native), run(assay.Tags)); diff != "" {
			t.Fatalf("native and tags differ:\n%s", diff)
		}
	})
	if levels[assay.FullSuccess] == 0 || levels[assay.Failure] == 0 {
		t.Errorf("levels %v, so the test is too weak", levels)
	}
}

// TestSeveralCalls checks that the calls of one reply are executed in order and counted, or that
// all but the first are refused.
func TestSeveralCalls(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{assay.Discover, assay.Listed} {
		for _, several := range []string{"", assay.RefuseSeveral} {
			tr := trial(setting, 1, 1)
			tr.World, tr.SeveralCalls = world.Assay1Name, several
			read := wish{"tool_call", reader, `{"source":"inbox/week-07.csv"}`}
			parse := wish{"tool_call", parser, "{}"}
			first := []wish{read, parse}
			if setting == assay.Discover { // a lookup is not a call
				first = []wish{{kind: "tool_info", text: reader}, read, parse}
			}
			f := scripted(native(setting, "", first), native(setting, "", []wish{parse}),
				saying("TASK_COMPLETED"))
			a, transcript := run(t, f, tr)
			text := script(transcript.Messages)
			refused := strings.Contains(text, "only the first call of a reply is executed;")
			if refused != (several != "") {
				t.Errorf("%s, %q: refused %v\n%s", setting, several, refused, text)
			}
			want := [3]int{1, 3, 0}
			if several != "" {
				want = [3]int{0, 2, 1}
			}
			if got := [3]int{a.Extra, a.ToolCalls, a.Assisted}; got != want {
				t.Errorf("%s, %q: extra calls, calls, assisted turns = %v, want %v",
					setting, several, got, want)
			}
			if a.Level != assay.FullSuccess || a.Ended != assay.Finished {
				t.Errorf("%s, %q: level %s, ended %s", setting, several, a.Level, a.Ended)
			}
		}
	}
}

// TestClaimEndsAssay1 checks that a claim ends the episode regardless of the work done, and that
// the level does not depend on how the episode ended.
func TestClaimEndsAssay1(t *testing.T) {
	t.Parallel()
	read := native(assay.Listed, "",
		[]wish{{"tool_call", reader, `{"source":"inbox/week-07.csv"}`}})
	parse := native(assay.Listed, "", []wish{{"tool_call", parser, "{}"}})
	early := native(assay.Listed, "TASK_COMPLETED", []wish{{"tool_call", parser, "{}"}})
	done := saying("TASK_COMPLETED")
	for _, tc := range []struct {
		name    string
		replies []assay.Message
		level   assay.Level
		ended   assay.Ended
		turns   int
	}{
		{"all", []assay.Message{read, parse, done}, assay.FullSuccess, assay.Finished, 3},
		{"half", []assay.Message{read, done}, assay.Failure, assay.Finished, 2},
		{"nothing", []assay.Message{done}, assay.Failure, assay.Finished, 1},
		{
			"without a claim",
			[]assay.Message{read, parse, saying("What now?")},
			assay.PartialSuccess, assay.TurnLimit, 10,
		},
		{
			"a claim next to a call",
			[]assay.Message{read, early, done},
			assay.FullSuccess,
			assay.Finished, 3,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tr := trial(assay.Listed, 1, 1)
			tr.World = world.Assay1Name
			a, _ := run(t, scripted(tc.replies...), tr)
			if a.Level != tc.level || a.Ended != tc.ended || a.Outcome.Turns != tc.turns {
				t.Errorf("level %s, ended %s after %d turns; want %s, %s, %d",
					a.Level, a.Ended, a.Outcome.Turns, tc.level, tc.ended, tc.turns)
			}
		})
	}
}

// TestLoopsInEpisodes checks that the outcome holds a loop and the turn in which it began, and that
// the loop ends the episode if the rule demands it.
func TestLoopsInEpisodes(t *testing.T) {
	t.Parallel()
	look := native(assay.Discover, "", []wish{{kind: "tool_search", text: "read a file"}})
	for _, tc := range []struct {
		world, loops string
		ended        assay.Ended
		turns        int
	}{
		{world.Assay1Name, "", assay.Loop, 4}, // the first search shows something new
		{world.PilotName, "", assay.TurnLimit, 10},
		{world.Assay1Name, "search=2!", assay.Loop, 3},
		{world.Assay1Name, "search=3", assay.TurnLimit, 10},
		{world.Assay1Name, "none", assay.TurnLimit, 10},
	} {
		name := fmt.Sprintf("%s %q", tc.world, tc.loops)
		tr := trial(assay.Discover, 1, 1)
		tr.World, tr.Loops = tc.world, tc.loops
		a, transcript := run(t, scripted(look), tr)
		if a.Ended != tc.ended || a.Outcome.Turns != tc.turns {
			t.Errorf("%s: ended %s after %d turns, want %s after %d",
				name, a.Ended, a.Outcome.Turns, tc.ended, tc.turns)
		}
		want := assay.SearchLoop
		if tc.loops == "none" {
			want = ""
		}
		if a.Outcome.Loop != want ||
			want != "" && (a.LoopTurn != 2 || transcript.Loops[0].Began != 2) {
			t.Errorf("%s: loop %q from turn %d, %v; want %q from turn 2",
				name, a.Outcome.Loop, a.LoopTurn, transcript.Loops, want)
		}
	}
}
