package evallog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

// chatMessage is Inspect's ChatMessage for any role.
type chatMessage struct {
	ID      string     `json:"id"`
	Content any        `json:"content"` // a string or a []doc
	Source  string     `json:"source,omitempty"`
	Role    assay.Role `json:"role"`

	// For assistants.
	Metadata *replyRecord `json:"metadata,omitempty"`
	Calls    []toolCall   `json:"tool_calls,omitempty"`
	Model    string       `json:"model,omitempty"`

	// For tools.
	CallID   string     `json:"tool_call_id,omitempty"`
	Function string     `json:"function,omitempty"`
	Error    *toolError `json:"error,omitempty"`
}

// toolError is Inspect's ToolCallError.
type toolError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// errorOf returns the error in an answer to a call: the failure of a tool,
// whose text begins with its code, or the refusal of a malformed call.
func errorOf(answer string) *toolError {
	var a struct{ Error, Refused string }
	if json.Unmarshal([]byte(answer), &a) != nil {
		return nil
	}
	code, _, _ := strings.Cut(a.Error, ":")
	switch {
	case a.Refused != "":
		return &toolError{"parsing", a.Refused}
	case code == "TIMEOUT":
		return &toolError{"timeout", a.Error}
	case a.Error != "":
		return &toolError{"unknown", a.Error}
	}
	return nil
}

// replyRecord is the record of a reply, with the state that came with it.
type replyRecord struct {
	*assay.TurnRecord
	State *assay.State `json:"state,omitempty"`
}

type toolCall struct {
	ID        string          `json:"id"`
	Function  string          `json:"function"`
	Arguments json.RawMessage `json:"arguments"`
	Wrong     string          `json:"parse_error,omitempty"`
	Type      string          `json:"type"`
}

func attemptName(a *assay.Attempt) string { return fmt.Sprintf("%s-%d", a.ID, a.Number) }

// conversation converts the messages of a transcript and adds the record of
// each turn.
func conversation(name string, t *assay.Transcript) ([]chatMessage, error) {
	all := make([]chatMessage, 0, len(t.Messages))
	functions := make(map[string]string)
	turns := 0
	for i, m := range t.Messages {
		out := chatMessage{ID: fmt.Sprintf("%s-%d", name, i+1), Role: m.Role, Content: m.Content}
		switch m.Role {
		case assay.System, assay.User:
			if turns == 0 {
				out.Source = "input"
			}
		case assay.Assistant:
			out.Source = "generate"
			out.Content = contentOf(&m)
			if turns < len(t.Turns) {
				record := &t.Turns[turns]
				out.Metadata, out.Model = &replyRecord{record, m.State}, record.ServedModel
			}
			turns++
			for _, c := range m.Calls {
				functions[c.ID] = c.Name
				out.Calls = append(out.Calls, newToolCall(c))
			}
		case assay.ToolRole:
			out.CallID, out.Function = m.CallID, functions[m.CallID]
			out.Error = errorOf(m.Content)
		default:
			return nil, fmt.Errorf("message %d: unknown role %q", i+1, m.Role)
		}
		all = append(all, out)
	}
	return all, nil
}

// contentOf returns a reply's text, with its reasoning before it if there is
// any.
func contentOf(m *assay.Message) any {
	if m.Reasoning == "" {
		return m.Content
	}
	parts := []doc{{{"type", "reasoning"}, {"reasoning", m.Reasoning}}}
	if m.Content != "" {
		parts = append(parts, doc{{"type", "text"}, {"text", m.Content}})
	}
	return parts
}

// newToolCall converts a call. If the model did not write an object as
// arguments, its text is in the parse error instead.
func newToolCall(c assay.ToolCall) toolCall {
	out := toolCall{
		ID: c.ID, Function: c.Name, Arguments: json.RawMessage("{}"), Type: "function",
	}
	// Raw JSON is not checked again when it is encoded.
	text := strings.ToValidUTF8(c.Arguments, "\uFFFD")
	if text == "" {
		return out
	}
	args, err := arguments(text)
	if err != nil {
		out.Wrong = "Error parsing the following tool call arguments:\n\n" + text +
			"\n\nError details: " + err.Error()
		return out
	}
	out.Arguments = args
	return out
}

// arguments returns a model's arguments as JSON that Inspect can read and write
// again. They must be an object without numbers or nesting beyond Python's
// limits. Unpaired surrogates are replaced.
func arguments(text string) (json.RawMessage, error) {
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return nil, err
	}
	if v == nil {
		return nil, errors.New("it is null")
	}
	if depth(v) > deepest {
		return nil, fmt.Errorf("it is deeper than %d levels", deepest)
	}
	if !strings.Contains(strings.ToLower(text), `\ud`) {
		return json.RawMessage(text), nil
	}
	d := json.NewDecoder(strings.NewReader(text)) // decoding replaces unpaired surrogates
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// deepest is well below the nesting limits of Python's readers and writers,
// which are 250 levels or more, and well above the needs of a call.
const deepest = 100

func depth(v any) int {
	d := 0
	switch v := v.(type) {
	case map[string]any:
		for _, w := range v {
			d = max(d, depth(w))
		}
	case []any:
		for _, w := range v {
			d = max(d, depth(w))
		}
	default:
		return 0
	}
	return d + 1
}

// outputOf converts a reply with the given text to Inspect's ModelOutput.
func outputOf(m chatMessage, text string) doc {
	finish := ""
	var usage *modelUsage
	if r := m.Metadata; r != nil {
		finish, usage = r.Finish, new(newUsage(assay.NewSpend(r.Usage, 0)))
	}
	reply := doc{{"message", m}, {"stop_reason", stopReason(finish, len(m.Calls) > 0)}}
	return doc{
		{"model", m.Model},
		{"choices", []doc{reply}},
		{"completion", text},
		{"usage", export.OrOmit(usage)},
	}
}

// stopReason returns Inspect's word for the end of a reply.
func stopReason(finish string, calls bool) string {
	switch word := strings.ToLower(finish); {
	case word == "model_context_window_exceeded":
		return "model_length"
	case assay.Truncated(word):
		return "max_tokens"
	case slices.Contains([]string{"content_filter", "safety", "refusal"}, word):
		return "content_filter"
	case calls:
		return "tool_calls"
	case slices.Contains([]string{"", "stop", "end_turn", "stop_sequence", "completed"}, word):
		return "stop"
	}
	return "unknown"
}

// latestOutput returns the output of the latest reply. It has no choices if
// there is no reply.
func latestOutput(a *assay.Attempt, t *assay.Transcript, messages []chatMessage) doc {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == assay.Assistant {
			return outputOf(messages[i], t.Messages[i].Content)
		}
	}
	return doc{{"model", a.ServedModel}, {"choices", []doc{}}, {"completion", ""}}
}
