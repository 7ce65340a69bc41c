package openai

import (
	"encoding/json"

	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/wire"
)

// A request is the body of a request with messages of type M.
type request[M any] struct {
	Model string `json:"model"`
	// Messages are encoded apart by the client; see encodeMessages.
	Messages []M `json:"messages,omitempty"`
	wire.Sampling
	MaxTokens           *int   `json:"max_tokens,omitempty"`
	MaxCompletionTokens *int   `json:"max_completion_tokens,omitempty"`
	Seed                *int64 `json:"seed,omitempty"`
	Effort              string `json:"reasoning_effort,omitempty"`
	// Thinking is not OpenAI's, but DeepSeek and gateways to Anthropic's models know it.
	Thinking   *gateway.Thinking `json:"thinking,omitempty"`
	ToolChoice any               `json:"tool_choice,omitempty"` // see [gateway.ChoiceOf]
	// Tools is empty in the client, which appends its cached functions.
	Tools         []tool `json:"tools,omitempty"`
	Stream        bool   `json:"stream,omitempty"`
	StreamOptions struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options,omitzero"`
	N      *int           `json:"n,omitempty"`
	Format gateway.Format `json:"response_format,omitzero"`
}

type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	} `json:"function"`
}

type call struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Function functionCall    `json:"function"`
	Extra    json.RawMessage `json:"extra_content,omitempty"`
}

type functionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// usage has the counts by the names that endpoints have for them.
type usage struct {
	Input  int64 `json:"prompt_tokens"`
	Output int64 `json:"completion_tokens"`
	Total  int64 `json:"total_tokens"`

	InputDetails struct {
		Cached     int64 `json:"cached_tokens"`
		CacheWrite int64 `json:"cache_write_tokens,omitempty"` // OpenRouter
	} `json:"prompt_tokens_details"`
	Cached     int64 `json:"cached_tokens,omitempty"`               // Moonshot
	CacheWrite int64 `json:"cache_creation_input_tokens,omitempty"` // LiteLLM
	// DeepSeek splits the prompt in two.
	CacheHit  int64 `json:"prompt_cache_hit_tokens,omitempty"`
	CacheMiss int64 `json:"prompt_cache_miss_tokens,omitempty"`

	OutputDetails struct {
		Reasoning *int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}
