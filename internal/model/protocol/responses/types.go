package responses

import (
	"encoding/json"

	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/wire"
)

// A request is the body of a request. I is the form of the input: the client sends items of any
// type, and the server reads an [input].
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
	Previous   string `json:"previous_response_id,omitempty"`
	// Tools is empty in the client, which appends its cached functions.
	Tools  []tool `json:"tools,omitempty"`
	Stream bool   `json:"stream,omitempty"`
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
}

// A reply is the body of a reply. O is the form of the output, whose JSON the client keeps.
type reply[O any] struct {
	ID          string     `json:"id"`
	Object      string     `json:"object"`
	CreatedAt   int64      `json:"created_at"`
	Status      string     `json:"status"`
	Error       *struct{}  `json:"error"`
	Incomplete  *reason    `json:"incomplete_details"`
	Model       string     `json:"model"`
	Output      O          `json:"output"`
	Reasoning   effort     `json:"reasoning"`
	ServiceTier string     `json:"service_tier,omitempty"`
	ToolChoice  any        `json:"tool_choice"`
	Tools       []struct{} `json:"tools"`
	Parallel    bool       `json:"parallel_tool_calls"`
	Usage       *usage     `json:"usage"`
}

type reason struct {
	Reason string `json:"reason"`
}

// usage has numbers with fractions because some endpoints send them.
type usage struct {
	Input        float64 `json:"input_tokens"`
	InputDetails struct {
		Cached     float64 `json:"cached_tokens"`
		CacheWrite float64 `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	Output        float64 `json:"output_tokens"`
	OutputDetails struct {
		Reasoning float64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	Total float64 `json:"total_tokens"`
}
