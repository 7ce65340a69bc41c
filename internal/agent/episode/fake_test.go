package episode_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/pilot"
)

// A fake answers the n-th request, counted from 1, with chat(n), and records all requests. It
// belongs to one episode.
type fake struct {
	chat  func(ctx context.Context, n int) (*assay.Response, error)
	asked []assay.Request
}

func (f *fake) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	asked := *req
	asked.Messages = slices.Clone(req.Messages)
	f.asked = append(f.asked, asked)
	return f.chat(ctx, len(f.asked))
}

// scripted returns a provider that gives the replies in order and then repeats the last one.
func scripted(replies ...assay.Message) *fake {
	return &fake{chat: func(_ context.Context, n int) (*assay.Response, error) {
		return &assay.Response{Message: replies[min(n, len(replies))-1]}, nil
	}}
}

// saying returns a reply without calls.
func saying(content string) assay.Message {
	return assay.Message{Role: assay.Assistant, Content: content}
}

// calling returns a reply that calls tools under a tool setting, one call each.
func calling(setting string, tools ...string) assay.Message {
	m := assay.Message{Role: assay.Assistant}
	for i, tool := range tools {
		c := assay.ToolCall{ID: "call_" + string(rune('a'+i)), Name: tool, Arguments: "{}"}
		if setting == assay.Discover {
			b, err := json.Marshal(map[string]any{"tool": tool, "arguments": map[string]any{}})
			if err != nil {
				panic(err)
			}
			c.Name, c.Arguments = "tool_call", string(b)
		}
		m.Calls = append(m.Calls, c)
	}
	return m
}

// The tools of the tests. No correction contains such a name by accident.
const (
	reader = "file_reader"
	parser = "row_parser"
	writer = "report_writer"
	pinger = "host_pinger"
)

func testTools() []assay.Tool {
	errors := []assay.ToolError{
		{Code: "TIMEOUT", Description: "The work was not done within the time allowed."},
		{Code: "INVALID_INPUT", Description: "An argument makes no sense."},
	}
	returns := []assay.Return{
		{Name: "success", Type: "boolean", Description: "Whether it worked."},
		{Name: "metadata", Type: "object", Description: "What was done."},
	}
	return []assay.Tool{
		{
			Name: reader, Category: "file", Operation: "reader",
			Description: "Read a file from disk.",
			Parameters: []assay.Parameter{
				{Name: "source", Type: "string", Description: "Path of the file.", Required: true},
			},
			Returns: returns, Errors: errors,
		},
		{
			Name: parser, Category: "row", Operation: "parser",
			Description: "Parse raw text into rows.",
			Parameters: []assay.Parameter{
				{
					Name: "delimiter", Type: "string", Description: "What separates fields.",
					Default: ",",
				},
			},
			Returns:      returns,
			Errors:       errors,
			Dependencies: []string{reader},
		},
		{
			Name: writer, Category: "report", Operation: "writer",
			Description: "Write a report of the rows.",
			Returns:     returns, Errors: errors, Dependencies: []string{reader, parser},
		},
		{
			Name: pinger, Category: "host", Operation: "pinger",
			Description: "Ping a host & say whether it answers in < 1 s.",
			Returns:     returns, Errors: errors,
		},
	}
}

var catalog = assay.NewCatalog(testTools())

// task requires the reader and then the parser.
func task() assay.Task {
	return assay.Task{
		ID: "rows-1", Type: "simple_task", Difficulty: "easy",
		Description: "Open the export of the week, then split it into rows.",
		Inputs:      json.RawMessage(`{"source":"inbox/week-07.csv","fields":["day","visits"]}`),
		Expected:    json.RawMessage(`{"success":true,"metadata":{"rows":7}}`),
		Required:    []string{reader, parser},
	}
}

// trial returns a trial of the task with a limit of 10 turns.
func trial(setting string, reliability float64, seed uint64) assay.Trial {
	return assay.Trial{
		ID:   "test",
		Cell: assay.Cell{Model: "fake", Variant: assay.Baseline, Reliability: reliability},
		Task: "rows-1", Seed: seed,
		Setting: assay.Setting{
			World: world.PilotName, Protocol: "native", Tools: setting, Turns: 10,
		},
	}
}

// step is a call and how it is supposed to go.
type step struct {
	tool string
	ok   bool
}

// worked and failed return steps in which every call succeeds or fails.
func worked(tools ...string) []step { return steps(true, tools) }
func failed(tools ...string) []step { return steps(false, tools) }

func steps(ok bool, tools []string) []step {
	var s []step
	for _, tool := range tools {
		s = append(s, step{tool, ok})
	}
	return s
}

// seedFor returns the first seed with which the calls go as stated.
func seedFor(t testing.TB, reliability float64, steps []step) uint64 {
	t.Helper()
	for seed := range uint64(100_000) {
		w := pilot.New(catalog, trial("", reliability, seed), nil)
		if !slices.ContainsFunc(steps, func(s step) bool {
			rec, err := w.Call(1, s.tool, "")
			if err != nil {
				t.Fatal(err)
			}
			return rec.OK != s.ok
		}) {
			return seed
		}
	}
	t.Fatal("no seed gives this luck")
	return 0
}

func repeat(tool string, n int) []string { return slices.Repeat([]string{tool}, n) }

// run carries out an episode without a budget.
func run(t testing.TB, p assay.Provider, trial assay.Trial) (*assay.Attempt, *assay.Transcript) {
	t.Helper()
	return episode.NewRunner(catalog, 0).Run(t.Context(), p, new(trial), new(task()))
}

// script writes messages down as in a play.
func script(messages []assay.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "=== %s", m.Role)
		if m.CallID != "" {
			fmt.Fprintf(&b, " to %s", m.CallID)
		}
		b.WriteString("\n")
		if m.Content != "" {
			b.WriteString(m.Content + "\n")
		}
		for _, c := range m.Calls {
			fmt.Fprintf(&b, "--- %s: %s %s\n", c.ID, c.Name, c.Arguments)
		}
	}
	return b.String()
}

// A wish is one action, independent of the protocol.
type wish struct{ kind, text, arguments string }

// native writes a reply with wishes as function calls.
func native(setting, content string, wishes []wish) assay.Message {
	m := assay.Message{Role: assay.Assistant, Content: content}
	for i, w := range wishes {
		c := assay.ToolCall{ID: fmt.Sprint("id", i), Name: w.kind}
		switch {
		case setting == assay.Listed && w.kind == "tool_call":
			c.Name, c.Arguments = w.text, w.arguments
		case w.kind == "tool_search":
			c.Arguments = encode(map[string]any{"query": w.text})
		case w.kind == "tool_info" || w.arguments == "":
			c.Arguments = encode(map[string]any{"tool": w.text})
		default:
			c.Arguments = encode(map[string]any{"tool": w.text, "arguments": json.RawMessage(w.arguments)})
		}
		m.Calls = append(m.Calls, c)
	}
	return m
}

// tagged writes the same reply with tags.
func tagged(content string, wishes []wish) assay.Message {
	for _, w := range wishes {
		content += fmt.Sprintf("\n<%s>%s %s</%s>", w.kind, w.text, w.arguments, w.kind)
	}
	return assay.Message{Role: assay.Assistant, Content: content}
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
