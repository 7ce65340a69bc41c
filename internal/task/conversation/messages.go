package conversation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/assay-eval/assay"
)

// named has the names that others give to a task and to a conversation.
type named struct {
	Task     label  `json:"task"`
	TaskID   label  `json:"task_id"`
	SampleID label  `json:"sample_id"`
	Name     label  `json:"conversation"`
	ID       label  `json:"id"`
	Metadata *named `json:"metadata"`
	Extra    *named `json:"extra"`
}

// task returns the task that is named, or "".
func (n *named) task() assay.TaskID {
	if n == nil {
		return ""
	}
	own := cmp.Or(n.Task, n.TaskID, n.SampleID)
	return cmp.Or(assay.TaskID(own), n.Metadata.task(), n.Extra.task())
}

// A label is a name, which may be written as a number. Anything else names nothing.
type label string

func (l *label) UnmarshalJSON(text []byte) error {
	var s string
	if json.Unmarshal(text, &s) != nil {
		var n json.Number
		if json.Unmarshal(text, &n) != nil {
			return nil
		}
		s = n.String()
	}
	*l = label(s)
	return nil
}

type chatMessage struct {
	Role    string `json:"role"`
	Content text   `json:"content"`
	CallID  string `json:"tool_call_id"`
	outcome
	ToolCalls  []chatCall `json:"tool_calls"`
	ReasonText string     `json:"reasoning_content"`
}

type chatCall struct {
	ID       string `json:"id"`
	Function struct {
		Name      string     `json:"name"`
		Arguments argumented `json:"arguments"`
	} `json:"function"`
}

// A text is what a message says: a string, or the texts of a list of parts.
type text string

func (t *text) UnmarshalJSON(raw []byte) error {
	var s string
	var parts []struct{ Text string }
	switch {
	case json.Unmarshal(raw, &s) == nil:
		*t = text(s)
	case json.Unmarshal(raw, &parts) == nil:
		var all []string
		for _, p := range parts {
			if p.Text != "" {
				all = append(all, p.Text)
			}
		}
		*t = text(strings.Join(all, "\n"))
	default:
		return fmt.Errorf("content is neither text nor a list of parts")
	}
	return nil
}

// argumented are arguments: an object, or its text.
type argumented string

func (a *argumented) UnmarshalJSON(raw []byte) error {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		s = string(raw)
	}
	*a = argumented(s)
	return nil
}

var roles = map[string]assay.Role{
	"system": assay.System, "developer": assay.System, "user": assay.User, "human": assay.User,
	"assistant": assay.Assistant, "model": assay.Assistant, "agent": assay.Assistant, "tool": assay.ToolRole,
}

// readMessages reads a conversation in the messages of OpenAI's chat completions.
func readMessages(o Origin, raw json.RawMessage) (Conversation, error) {
	var line struct {
		named
		Messages []chatMessage `json:"messages"`
	}
	if err := json.Unmarshal(raw, &line); err != nil {
		return Conversation{}, fmt.Errorf("messages: %w", err)
	}
	o.Format = Messages
	c := Conversation{Origin: o, Name: string(cmp.Or(line.Name, line.ID)), Task: line.task()}
	var all []message
	for i, m := range line.Messages {
		role, ok := roles[m.Role]
		if !ok {
			return c, fmt.Errorf("message %d has the role %q, want system, user, assistant or tool", i+1, m.Role)
		}
		out := message{Message: assay.Message{
			Role: role, Content: string(m.Content), Reasoning: m.ReasonText, CallID: m.CallID,
		}, failed: m.failed()}
		for _, f := range m.ToolCalls {
			out.Calls = append(out.Calls, assay.ToolCall{
				ID: f.ID, Name: f.Function.Name, Arguments: string(f.Function.Arguments),
			})
		}
		all = append(all, out)
	}
	c.tell(all)
	return c, nil
}
