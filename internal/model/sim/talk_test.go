package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/pilot"
)

var (
	catalog = assay.NewCatalog(library.Tools())
	runner  = episode.NewRunner(catalog, 0)
)

var settings = []string{assay.Discover, assay.Listed}

// The built-in tools that the tests use.
const (
	fetcher     = "network_fetcher"
	logger      = "utility_logger"
	parser      = "data_processing_parser"
	transformer = "data_processing_transformer"
	checker     = "network_validator"
	writer      = "file_operations_writer"
)

func trial(model, setting, variant string, reliability float64, seed uint64) assay.Trial {
	return assay.Trial{
		ID:   "test",
		Cell: assay.Cell{Model: model, Variant: variant, Reliability: reliability},
		Seed: seed,
		Setting: assay.Setting{
			World: world.PilotName, Protocol: "native", Tools: setting, Turns: 10,
		},
	}
}

// task requires the tools. Its description asks for the first two.
func task(required ...string) assay.Task {
	return assay.Task{
		ID: "t", Type: "basic_task", Difficulty: "easy",
		Description: "Fetch the feed from the web address https://a.example.com/feed.\n\n" +
			"Later, parse the raw text into structured records.",
		Required: required,
	}
}

// eavesdropper records the first request and ends the episode.
type eavesdropper struct{ heard assay.Request }

func (e *eavesdropper) Chat(_ context.Context, req *assay.Request) (*assay.Response, error) {
	e.heard = *req
	return &assay.Response{}, &assay.Fault{Kind: assay.Interrupted}
}

// A talk is a conversation built by hand on top of an episode's real opening.
type talk struct {
	setting string
	req     assay.Request
	turn    int
}

func newTalk(t testing.TB, model, setting, variant string, task assay.Task) *talk {
	t.Helper()
	var e eavesdropper
	runner.Run(t.Context(), &e, new(trial(model, setting, variant, .8, 1)), new(task))
	if len(e.heard.Messages) != 2 {
		t.Fatalf("the episode opens with %d messages", len(e.heard.Messages))
	}
	return &talk{setting: setting, req: e.heard}
}

// add appends a reply with calls and the answers to them.
func (k *talk) add(calls []assay.ToolCall, answers ...any) {
	k.req.Messages = append(k.req.Messages, assay.Message{Role: assay.Assistant, Calls: calls})
	for i, a := range answers {
		b, err := json.Marshal(a)
		if err != nil {
			panic(err)
		}
		answer := assay.Message{Role: assay.ToolRole, CallID: calls[i].ID, Content: string(b)}
		k.req.Messages = append(k.req.Messages, answer)
	}
	k.turn++
}

// play appends turns, one for each word. A call is a tool followed by + for success, - for failure
// or ! for refusal. "." is a reply without a call, and "~a,b" a search that found a and b.
func (k *talk) play(words string) *talk {
	for _, word := range strings.Fields(words) {
		id := fmt.Sprintf("call_%d_0", k.turn+1)
		tool, how := word[:len(word)-1], word[len(word)-1]
		switch {
		case word == ".":
			k.add(nil)
			nudge := assay.Message{Role: assay.User, Content: "No function was called."}
			k.req.Messages = append(k.req.Messages, nudge)
		case word[0] == '~':
			search := assay.ToolCall{ID: id, Name: "tool_search", Arguments: `{"query":"x"}`}
			k.add([]assay.ToolCall{search}, found(strings.Split(word[1:], ",")...))
		case how == '!':
			k.add(k.call(id, tool), map[string]any{"refused": "no"})
		default:
			k.add(k.call(id, tool),
				map[string]any{"tool": tool, "success": how == '+', "replies_left": 1})
		}
	}
	return k
}

func (k *talk) call(id, tool string) []assay.ToolCall {
	if k.setting == assay.Discover {
		arguments := fmt.Sprintf(`{"tool":%q}`, tool)
		return []assay.ToolCall{{ID: id, Name: "tool_call", Arguments: arguments}}
	}
	return []assay.ToolCall{{ID: id, Name: tool, Arguments: "{}"}}
}

// found returns the answer to a search.
func found(tools ...string) any {
	type entry struct {
		Name string `json:"name"`
	}
	entries := []entry{}
	for _, tool := range tools {
		entries = append(entries, entry{tool})
	}
	return map[string]any{"tools": entries, "replies_left": 1}
}

// next returns the model's next reply.
func (k *talk) next(t testing.TB) assay.Message {
	t.Helper()
	resp, err := sim.New(catalog, sim.Latency{}).Chat(t.Context(), &k.req)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Message
}

// executes returns the tools that a reply executes.
func executes(setting string, m assay.Message) []string {
	tools := []string{}
	for _, c := range m.Calls {
		switch {
		case setting == assay.Listed:
			tools = append(tools, c.Name)
		case c.Name == "tool_call":
			var args struct{ Tool string }
			if err := json.Unmarshal([]byte(c.Arguments), &args); err != nil {
				panic(err)
			}
			tools = append(tools, args.Tool)
		}
	}
	return tools
}

func claims(m assay.Message) bool {
	return len(m.Calls) == 0 && pilot.Finished(m.Content)
}

// called returns the tools of an episode's calls, in order.
func called(tr *assay.Transcript) []string {
	return slices.Collect(func(yield func(string) bool) {
		for _, c := range tr.Calls {
			if !yield(c.Tool) {
				return
			}
		}
	})
}
