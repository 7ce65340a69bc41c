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
	// Reasoning is the text of a model's thinking, for people to read. It is never judged.
	Reasoning string     `json:"reasoning,omitempty"`
	Calls     []ToolCall `json:"tool_calls,omitempty"`
	// State is set if the endpoint wants something back with this message. See [State].
	State *State `json:"state,omitempty"`
	// CallID is the ID of the call that a tool message answers.
	CallID string `json:"tool_call_id,omitempty"`
}

// size returns the number of bytes that a model reads or writes.
func (m *Message) size() int {
	n := len(m.Content) + len(m.Reasoning)
	for _, c := range m.Calls {
		n += len(c.Name) + len(c.Arguments)
	}
	return n
}

// State is the data that an endpoint wants to see again, unchanged, with the reply that it came
// with: signed thinking, for example. Only the protocol that made it understands Data.
type State struct {
	// Origin names the endpoint, as its protocol spells it. Other endpoints don't get the state,
	// because they would refuse it.
	Origin string          `json:"origin"`
	Data   json.RawMessage `json:"data"`
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
	// InputTokens includes tokens that were read from or written to a cache, and OutputTokens
	// includes reasoning, whatever the endpoint's own way of counting is.
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
	// CachedTokens is the part of the input that was read from a cache, and CacheWriteTokens
	// the part that was written to it.
	CachedTokens     int `json:"cached_tokens,omitempty"`
	CacheWriteTokens int `json:"cache_write_tokens,omitempty"`
	// ReasoningTokens is the part of the output that was thinking.
	ReasoningTokens int `json:"reasoning_tokens,omitempty"`
	// UncertainTokens is the difference between an endpoint's total and its parts that no known way
	// of counting explains. The other counts are the dearest reading of the reported counts.
	UncertainTokens int `json:"uncertain_tokens,omitempty"`
	// UnpricedTokens counts the tokens with an unknown cost: the lane has no price, the endpoint
	// reports no usage, or the request is [Lost]. They are an estimate if the usage is not reported,
	// and at most that many if the request is lost.
	UnpricedTokens int `json:"unpriced_tokens,omitempty"`
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{
		InputTokens:      u.InputTokens + v.InputTokens,
		OutputTokens:     u.OutputTokens + v.OutputTokens,
		CachedTokens:     u.CachedTokens + v.CachedTokens,
		CacheWriteTokens: u.CacheWriteTokens + v.CacheWriteTokens,
		ReasoningTokens:  u.ReasoningTokens + v.ReasoningTokens,
		UncertainTokens:  u.UncertainTokens + v.UncertainTokens,
		UnpricedTokens:   u.UnpricedTokens + v.UnpricedTokens,
	}
}

// Less returns the difference of both.
func (u Usage) Less(v Usage) Usage {
	return u.Add(Usage{
		InputTokens: -v.InputTokens, OutputTokens: -v.OutputTokens, CachedTokens: -v.CachedTokens,
		CacheWriteTokens: -v.CacheWriteTokens, ReasoningTokens: -v.ReasoningTokens,
		UncertainTokens: -v.UncertainTokens, UnpricedTokens: -v.UnpricedTokens,
	})
}

// Negative reports whether a count is below 0, as only a difference can have.
func (u Usage) Negative() bool {
	return min(u.InputTokens, u.OutputTokens, u.CachedTokens, u.CacheWriteTokens, u.ReasoningTokens,
		u.UncertainTokens, u.UnpricedTokens) < 0
}

// Total is input plus output.
func (u Usage) Total() int { return u.InputTokens + u.OutputTokens }
