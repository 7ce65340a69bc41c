package gemini

import (
	"encoding/json"

	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/wire"
)

// A request is the body of a request. P is the form of the parts in a content: the client sends
// parts of any type, and the server reads them as [part].
type request[P any] struct {
	System     *content[P]  `json:"systemInstruction,omitempty"`
	Contents   []content[P] `json:"contents"`
	Config     config       `json:"generationConfig,omitzero"`
	ToolConfig *toolConfig  `json:"toolConfig,omitempty"`
	Tools      []tool       `json:"tools,omitempty"`
	Cached     string       `json:"cachedContent,omitempty"`
}

type tool struct {
	Functions []functionSchema `json:"functionDeclarations"`
}

// A content is one message of either side.
type content[P any] struct {
	Role  string `json:"role,omitempty"`
	Parts P      `json:"parts"`
}

// A part is a part of any kind.
type part struct {
	Text      *string          `json:"text,omitempty"`
	Thought   bool             `json:"thought,omitempty"`
	Signature *gateway.Thought `json:"thoughtSignature,omitempty"`
	Call      *namedCall       `json:"functionCall,omitempty"`
	Answer    *answer          `json:"functionResponse,omitempty"`
}

type namedCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

type answer struct {
	ID       string          `json:"id,omitempty"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"` // usually an [toolOutputText]
}

type toolOutputText struct {
	Output *string `json:"output"`
}

type config struct {
	Temperature *float64  `json:"temperature,omitempty"`
	TopP        *float64  `json:"topP,omitempty"`
	MaxTokens   *int      `json:"maxOutputTokens,omitempty"`
	Seed        *int64    `json:"seed,omitempty"`
	Thinking    *thinking `json:"thinkingConfig,omitempty"`
	Format      string    `json:"responseMimeType,omitempty"`
	// Schema describes the reply, and Own does so in Gemini's own form of a schema.
	Schema json.RawMessage `json:"responseJsonSchema,omitempty"`
	Own    any             `json:"responseSchema,omitempty"`
}

type thinking struct {
	Include bool   `json:"includeThoughts,omitempty"`
	Budget  *int   `json:"thinkingBudget,omitempty"`
	Level   string `json:"thinkingLevel,omitempty"`
}

type toolConfig struct {
	Calling struct {
		Mode string `json:"mode"`
	} `json:"functionCallingConfig"`
}

type functionSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"parametersJsonSchema,omitempty"`
	Parameters  any             `json:"parameters,omitempty"` // Gemini's own form of a schema
}

// A reply is the body of a reply. Its parts keep their JSON.
type reply struct {
	Candidates []candidate `json:"candidates,omitempty"`
	Feedback   struct {
		BlockReason string `json:"blockReason"`
	} `json:"promptFeedback,omitzero"`
	Usage usage  `json:"usageMetadata"`
	Model string `json:"modelVersion,omitempty"`
	ID    string `json:"responseId,omitempty"`
}

type candidate struct {
	Content       content[json.RawMessage] `json:"content"`
	FinishReason  string                   `json:"finishReason"`
	FinishMessage string                   `json:"finishMessage,omitempty"`
	Index         int                      `json:"index"`
}

type usage struct {
	Prompt     wire.Count `json:"promptTokenCount"` // includes cached tokens
	ToolPrompt wire.Count `json:"toolUsePromptTokenCount,omitempty"`
	Cached     wire.Count `json:"cachedContentTokenCount,omitempty"`
	Candidates wire.Count `json:"candidatesTokenCount"` // without thoughts
	Thoughts   wire.Count `json:"thoughtsTokenCount,omitempty"`
	Total      wire.Count `json:"totalTokenCount"`
}
