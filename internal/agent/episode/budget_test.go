package episode_test

import (
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
)

// limited returns a trial with 10 calls and 15 replies, in which every call that is no mistake
// works.
func limited(worldName, setting, protocol string) assay.Trial {
	tr := trial(setting, 1, 1)
	tr.World, tr.Protocol, tr.Setting.Turns, tr.Calls = worldName, protocol, 15, 10
	return tr
}

// under returns a reply with actions under a protocol.
func under(protocol, setting string, wishes ...wish) assay.Message {
	if protocol == assay.Tags {
		return tagged("", wishes)
	}
	return native(setting, "", wishes)
}

// TestBudgetHoldsForBatches checks that a reply with many calls gets no more than the budget, and
// that the next reply may still claim.
func TestBudgetHoldsForBatches(t *testing.T) {
	t.Parallel()
	for _, w := range world.Simulated {
		for _, setting := range assay.ToolSettings {
			for _, protocol := range assay.Protocols {
				t.Run(strings.Join([]string{w, setting, protocol}, " "), func(t *testing.T) {
					t.Parallel()
					var many []wish
					for range 32 {
						many = append(many, wish{"tool_call", reader, `{"source":"inbox/week-07.csv"}`},
							wish{"tool_call", parser, "{}"})
					}
					a, tr := run(t, scripted(under(protocol, setting, many...),
						saying("TASK_COMPLETED")), limited(w, setting, protocol))
					if a.ToolCalls != 10 || a.Ended != assay.Finished || a.Assisted != 1 {
						t.Errorf("%d calls, ended %s, %d corrections; want 10, finished, 1",
							a.ToolCalls, a.Ended, a.Assisted)
					}
					text := script(tr.Messages)
					if n := strings.Count(text, `"calls_left":0`); n != 55 {
						t.Errorf("%d answers without calls left, want 55:\n%s", n, text)
					}
					if n := strings.Count(text, "no calls left"); n != 54 {
						t.Errorf("%d calls refused, want 54", n)
					}
				})
			}
		}
	}
}

// TestBudgetCounts checks which actions cost a call: mistakes and failures do, while lookups,
// unknown tools and malformed calls do not.
func TestBudgetCounts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		wish wish
		cost int
	}{
		{"a mistake", wish{"tool_call", parser, "{}"}, 1},
		{"wrong arguments", wish{"tool_call", reader, `{"source":1}`}, 1},
		{"a search", wish{kind: "tool_search", text: "read a file"}, 0},
		{"details", wish{kind: "tool_info", text: reader}, 0},
		{"an unknown tool", wish{"tool_call", "no_such_tool", "{}"}, 0},
		{"no object", wish{"tool_call", reader, `[]`}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a, tr := run(t, scripted(native(assay.Discover, "", []wish{tc.wish}),
				saying("TASK_COMPLETED")), limited(world.Assay1Name, assay.Discover, "native"))
			if a.ToolCalls != tc.cost {
				t.Errorf("%d calls, want %d", a.ToolCalls, tc.cost)
			}
			left := `"calls_left":10`
			if tc.cost > 0 {
				left = `"calls_left":9`
			}
			if text := script(tr.Messages); !strings.Contains(text, left) {
				t.Errorf("no answer has %s:\n%s", left, text)
			}
		})
	}
}

// TestCallLimitEnds checks that a call without calls left ends the episode, unlike lookups and
// thoughts, and that a call that failed for another reason does not.
func TestCallLimitEnds(t *testing.T) {
	t.Parallel()
	call := func(tool, args string) assay.Message {
		return native(assay.Discover, "", []wish{{"tool_call", tool, args}})
	}
	read := call(reader, `{"source":"inbox/week-07.csv"}`)
	look := native(assay.Discover, "", []wish{{kind: "tool_info", text: reader}})
	for _, tc := range []struct {
		name  string
		after []assay.Message
		ended assay.Ended
		turns int
	}{
		{"another call", []assay.Message{read}, assay.CallLimit, 3},
		{"a call in a batch", []assay.Message{native(assay.Discover, "", []wish{
			{kind: "tool_info", text: reader}, {"tool_call", reader, "{}"},
		})}, assay.CallLimit, 3},
		{"a claim", []assay.Message{saying("TASK_COMPLETED")}, assay.Finished, 3},
		{"a thought", []assay.Message{
			saying("Am I done?"), saying("TASK_COMPLETED"),
		}, assay.Finished, 4},
		{"a lookup", []assay.Message{look, saying("TASK_COMPLETED")}, assay.Finished, 4},
		{"an unknown tool", []assay.Message{
			call("no_such_tool", "{}"), saying("TASK_COMPLETED"),
		}, assay.Finished, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tr := limited(world.Assay1Name, assay.Discover, "native")
			tr.Calls = 2
			a, transcript := run(t, scripted(append([]assay.Message{
				read, call(parser, "{}"),
			}, tc.after...)...), tr)
			if a.Ended != tc.ended || a.Outcome.Turns != tc.turns || a.ToolCalls != 2 {
				t.Errorf("ended %s after %d turns and %d calls; want %s, %d, 2", a.Ended,
					a.Outcome.Turns, a.ToolCalls, tc.ended, tc.turns)
			}
			if transcript.Ended != tc.ended {
				t.Errorf("the transcript ended %s", transcript.Ended)
			}
		})
	}
}

// TestNudgeTellsCallsLeft checks the line that answers a reply without an action.
func TestNudgeTellsCallsLeft(t *testing.T) {
	t.Parallel()
	_, tr := run(t, scripted(saying("Hm."), saying("TASK_COMPLETED")),
		limited(world.Assay1Name, assay.Discover, "native"))
	if text := script(tr.Messages); !strings.Contains(text, "Calls left: 10. Replies left: 14.") {
		t.Errorf("the nudge does not tell what is left:\n%s", text)
	}
}
