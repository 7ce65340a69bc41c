package assay

import "encoding/json"

// Role names the speaker of a [Message].
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
	// Reasoning is text that a model returned beside its content. It is stored, but never
	// sent back.
	Reasoning string     `json:"reasoning,omitempty"`
	Calls     []ToolCall `json:"tool_calls,omitempty"`
	// CallID is the ID of the call that a tool message answers.
	CallID string `json:"tool_call_id,omitempty"`
}

// A ToolCall is a model's request to call a function. Arguments is the text as the model wrote
// it, so it may not be JSON.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// A Function describes a function that a model may call. Parameters is the JSON schema of its
// arguments.
type Function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// Usage counts the tokens of a reply, as reported by the provider.
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
