package responses

import (
	"encoding/json"

	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/wire"
)

// A request is the body of a request. I is the form of the input: the client sends items, some of
// them as they came, and the server reads an [input].
type request[I any] struct {
	Model        string   `json:"model"`
	Instructions *string  `json:"instructions,omitempty"`
	Input        I        `json:"input"`
	Store        *bool    `json:"store,omitempty"`
	Include      []string `json:"include,omitempty"`
	wire.Sampling
	MaxTokens  *int   `json:"max_output_tokens,omitempty"`
	Reasoning  effort `json:"reasoning,omitzero"`
	ToolChoice any    `json:"tool_choice,omitempty"` // see [gateway.ChoiceOf]
	Tools      []tool `json:"tools,omitempty"`
	// What follows is kept in the endpoint.
	Previous     string `json:"previous_response_id,omitempty"`
	Conversation any    `json:"conversation,omitempty"`
	Prompt       any    `json:"prompt,omitempty"`

	Stream bool `json:"stream,omitempty"`
	Text   struct {
		Format gateway.Format `json:"format"`
	} `json:"text,omitzero"`
}

type effort struct {
	Effort string `json:"effort,omitempty"`
}

// A tool of type function has no object around the function.
type tool struct {
	Type        string `json:"type"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Parameters is required, but may be null.
	Parameters json.RawMessage `json:"parameters"`
	// Strict is true by default and would then change the schema.
	Strict bool `json:"strict"`
	// Tools are the members of a namespace, which Codex declares. See [functionsOf].
	Tools []tool `json:"tools,omitempty"`
}

// An item is an item of the input or the output, of any type.
type item struct {
	ID     string `json:"id,omitempty"`
	Type   string `json:"type,omitempty"`
	Status string `json:"status,omitempty"`

	// A message. Its content is a text or a list of parts.
	Role    string `json:"role,omitempty"`
	Content any    `json:"content,omitempty"`
	Phase   string `json:"phase,omitempty"`

	// A call and its answer. The arguments are a text, and the output is one or a list of parts.
	CallID    string          `json:"call_id,omitempty"`
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Output    any             `json:"output,omitempty"`

	// Reasoning. The summary is a list of parts.
	Summary   any              `json:"summary,omitempty"`
	Encrypted *gateway.Thought `json:"encrypted_content,omitempty"`
}

// The types of items.
const (
	message      = "message"
	functionCall = "function_call"
	reasoning    = "reasoning"
)

// A contentPart is a part of a content or a summary.
type contentPart struct {
	Type    string  `json:"type"`
	Text    *string `json:"text,omitempty"`
	Refusal *string `json:"refusal,omitempty"`
	// Annotations are there, but empty, in the output. Clients demand them.
	Annotations *[]struct{} `json:"annotations,omitempty"`
}

// A reply is the body of a reply.
type reply struct {
	ID          string          `json:"id"`
	Object      string          `json:"object"`
	CreatedAt   int64           `json:"created_at"`
	Status      string          `json:"status"`
	Error       *struct{}       `json:"error"`
	Incomplete  *finishReason   `json:"incomplete_details"`
	Model       string          `json:"model"`
	Output      json.RawMessage `json:"output"` // items, which go back as they came
	Reasoning   effort          `json:"reasoning"`
	ServiceTier string          `json:"service_tier,omitempty"`
	ToolChoice  any             `json:"tool_choice"`
	Tools       []struct{}      `json:"tools"`
	Parallel    bool            `json:"parallel_tool_calls"`
	Usage       *usage          `json:"usage"`
}

type finishReason struct {
	Reason string `json:"reason"`
}

type usage struct {
	Input        wire.Count `json:"input_tokens"`
	InputDetails struct {
		Cached     wire.Count `json:"cached_tokens"`
		CacheWrite wire.Count `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	Output        wire.Count `json:"output_tokens"`
	OutputDetails struct {
		Reasoning wire.Count `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total wire.Count `json:"total_tokens"`
}
