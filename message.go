package assay

import "encoding/json"

// Role says who speaks in a [Message].
type Role string

// The roles of a conversation.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// A Message is one entry of a conversation.
type Message struct {
	Role    Role   `json:"role"`
	Content string `json:"content,omitempty"`
	// Reasoning is what a model returned beside its content; it is stored and
	// never sent back.
	Reasoning string     `json:"reasoning,omitempty"`
	Calls     []ToolCall `json:"tool_calls,omitempty"`
	// CallID is, in a tool message, the ID of the call that it answers.
	CallID string `json:"tool_call_id,omitempty"`
}

// A ToolCall is a model's wish to call a function. Arguments is the text that
// the model wrote, which need not be JSON.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// A Function is what a model may call: a name, what it does, and the JSON
// schema of its arguments.
type Function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// Usage counts the tokens of a reply as the provider reports them.
type Usage struct {
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.InputTokens + v.InputTokens, u.OutputTokens + v.OutputTokens}
}

// Total is input plus output.
func (u Usage) Total() int { return u.InputTokens + u.OutputTokens }
