package openai

import (
	"encoding/json"

	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/wire"
)

// A request is the body of a request.
type request struct {
	Model    string    `json:"model"`
	Messages []message `json:"messages"`
	wire.Sampling
	MaxTokens           *int   `json:"max_tokens,omitempty"`
	MaxCompletionTokens *int   `json:"max_completion_tokens,omitempty"`
	Seed                *int64 `json:"seed,omitempty"`
	Effort              string `json:"reasoning_effort,omitempty"`
	// Thinking is not OpenAI's, but DeepSeek and gateways to Anthropic's models know it.
	Thinking      *gateway.Thinking `json:"thinking,omitempty"`
	ToolChoice    any               `json:"tool_choice,omitempty"` // see [gateway.ChoiceOf]
	Tools         []tool            `json:"tools,omitempty"`
	Stream        bool              `json:"stream,omitempty"`
	StreamOptions struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options,omitzero"`
	N      *int           `json:"n,omitempty"`
	Format gateway.Format `json:"response_format,omitzero"`
}

// A message is one message of either side.
type message struct {
	Role    wire.Text `json:"role"`
	Content any       `json:"content"` // a text, null or parts
	thoughts
	Calls  wire.List[call] `json:"tool_calls,omitempty"`
	CallID *string         `json:"tool_call_id,omitempty"`
	// ID is the ID of the call in Qwen-Agent's requests, and Name is the tool of a result.
	ID   wire.Text `json:"id,omitempty"`
	Name wire.Text `json:"name,omitempty"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

type call struct {
	ID       wire.Text       `json:"id"`
	Type     wire.Text       `json:"type"`
	Function functionCall    `json:"function"`
	Extra    json.RawMessage `json:"extra_content,omitempty"`
}

type functionCall struct {
	Name      wire.Text `json:"name"`
	Arguments wire.Text `json:"arguments"`
}

// A completion is the body of a reply.
type completion struct {
	ID      wire.Text         `json:"id"`
	Object  wire.Text         `json:"object"`
	Created int64             `json:"created"`
	Model   wire.Text         `json:"model"`
	Choices wire.List[choice] `json:"choices"`
	Usage   usage             `json:"usage"`
	Tier    wire.Text         `json:"service_tier,omitempty"`
}

type choice struct {
	Index        int             `json:"index"`
	Message      reply           `json:"message"`
	Logprobs     *struct{}       `json:"logprobs"`
	FinishReason wire.Text       `json:"finish_reason"`
	Error        json.RawMessage `json:"error,omitempty"`
}

type reply struct {
	message
	Content json.RawMessage `json:"content"` // in place of the message's
	Refusal *wire.Text      `json:"refusal"`
	// Call is the older form of a single call.
	Call *functionCall `json:"function_call,omitempty"`
}

// usage has the counts by the names that endpoints have for them.
type usage struct {
	Input  wire.Count `json:"prompt_tokens"`
	Output wire.Count `json:"completion_tokens"`
	Total  wire.Count `json:"total_tokens"`

	InputDetails struct {
		Cached     wire.Count `json:"cached_tokens"`
		CacheWrite wire.Count `json:"cache_write_tokens,omitempty"` // OpenRouter
	} `json:"prompt_tokens_details"`
	Cached     wire.Count `json:"cached_tokens,omitempty"`               // Moonshot
	CacheWrite wire.Count `json:"cache_creation_input_tokens,omitempty"` // LiteLLM
	// DeepSeek splits the prompt in two.
	CacheHit  wire.Count `json:"prompt_cache_hit_tokens,omitempty"`
	CacheMiss wire.Count `json:"prompt_cache_miss_tokens,omitempty"`

	OutputDetails struct {
		Reasoning *wire.Count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}
