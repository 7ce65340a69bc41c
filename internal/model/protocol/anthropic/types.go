package anthropic

import (
	"encoding/json"

	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/wire"
)

// A request is the body of a request. S and C are the forms of the system prompt and of a content:
// the client sends lists of blocks, and the server also reads texts.
type request[S, C any] struct {
	Model     string           `json:"model"`
	MaxTokens *int             `json:"max_tokens"`
	System    S                `json:"system,omitempty"`
	Messages  []turnMessage[C] `json:"messages"`
	wire.Sampling
	Thinking   *gateway.Thinking `json:"thinking,omitempty"`
	Output     *output           `json:"output_config,omitempty"`
	ToolChoice *toolChoice       `json:"tool_choice,omitempty"`
	Tools      []tool            `json:"tools,omitempty"`
	Stream     bool              `json:"stream,omitempty"`
	Thread     any               `json:"thread,omitempty"` // the server keeps the conversation
}

type turnMessage[C any] struct {
	Role    string `json:"role"`
	Content C      `json:"content"`
}

type output struct {
	Effort string         `json:"effort,omitempty"`
	Format gateway.Format `json:"format,omitzero"`
}

type toolChoice struct {
	Type string `json:"type"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
	Cache       *cacheControl   `json:"cache_control,omitempty"`
}

// A block is a content block of any type.
type block struct {
	Type string `json:"type"`
	// Text is the content of a text block.
	Text *string `json:"text,omitempty"`
	// Thinking and Signature belong to a thinking block.
	Thinking  *string         `json:"thinking,omitempty"`
	Signature gateway.Thought `json:"signature,omitempty"`
	// ID, Name and Input belong to a tool_use block.
	ID    string          `json:"id,omitempty"`
	Name  string          `json:"name,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	// CallID and Content belong to a tool_result block. See [gateway.Text] for the content.
	CallID  string        `json:"tool_use_id,omitempty"`
	Content any           `json:"content,omitempty"`
	Cache   *cacheControl `json:"cache_control,omitempty"`
}

// The types of blocks.
const (
	textBlock     = "text"
	toolUse       = "tool_use"
	toolResult    = "tool_result"
	thinkingBlock = "thinking"
)

// cacheControl asks the endpoint to cache everything up to a block.
type cacheControl struct {
	Type string `json:"type"`
}

// A reply is the body of a reply.
type reply struct {
	ID           string          `json:"id"`
	Type         string          `json:"type"`
	Role         string          `json:"role"`
	Model        string          `json:"model"`
	Content      json.RawMessage `json:"content"` // blocks, which go back as they came
	StopReason   string          `json:"stop_reason"`
	StopSequence *string         `json:"stop_sequence"`
	Usage        usage           `json:"usage"`
}

// usage counts the input in three parts.
type usage struct {
	Input         wire.Count `json:"input_tokens"`
	CacheWrite    wire.Count `json:"cache_creation_input_tokens"`
	CacheRead     wire.Count `json:"cache_read_input_tokens"`
	Output        wire.Count `json:"output_tokens"`
	OutputDetails struct {
		Thinking wire.Count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
	ServiceTier string `json:"service_tier"`
}
