package simserver

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
)

// gemini is Gemini's generateContent.
type gemini struct{}

// geminiMethod ends the path of a request. A pattern cannot contain it.
const geminiMethod = ":generateContent"

func (gemini) routes() []string { return []string{"POST /v1beta/models/{deployment}"} }

func (gemini) key(h http.Header) string { return h.Get("X-Goog-Api-Key") }

// geminiStatuses names the HTTP statuses. Others are UNKNOWN.
var geminiStatuses = map[int]string{
	http.StatusBadRequest:          "INVALID_ARGUMENT",
	http.StatusUnauthorized:        "UNAUTHENTICATED",
	http.StatusForbidden:           "PERMISSION_DENIED",
	http.StatusNotFound:            "NOT_FOUND",
	http.StatusTooManyRequests:     "RESOURCE_EXHAUSTED",
	http.StatusInternalServerError: "INTERNAL",
	http.StatusServiceUnavailable:  "UNAVAILABLE",
	http.StatusGatewayTimeout:      "DEADLINE_EXCEEDED",
}

func (gemini) refuse(e apiError) (status int, body any) {
	if e.code == "content_filter" {
		var out geminiReply
		out.Feedback = &geminiFeedback{BlockReason: "PROHIBITED_CONTENT"}
		return http.StatusOK, out
	}
	name, ok := geminiStatuses[e.status]
	if !ok {
		name = "UNKNOWN"
	}
	return e.status, map[string]any{"error": map[string]any{
		"code": e.status, "message": strings.ToValidUTF8(e.message, "?"), "status": name,
	}}
}

func (gemini) forgotten(i int, changed bool) *apiError {
	if changed {
		return badRequest("", "Corrupted thought signature.")
	}
	return badRequest("", "Function call is missing a thought_signature in functionCall parts. "+
		"This is required for tools to work correctly, and missing thought_signature may lead to "+
		"degraded model performance. Additional data, position %d.", i)
}

// geminiRequest is the body of a request.
type geminiRequest struct {
	System   *geminiContent  `json:"systemInstruction"`
	Contents []geminiContent `json:"contents"`
	Tools    []struct {
		Functions []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	ToolConfig struct {
		Calling struct {
			Mode string `json:"mode"`
		} `json:"functionCallingConfig"`
	} `json:"toolConfig"`
	Config struct {
		Temperature *float64 `json:"temperature"`
		TopP        *float64 `json:"topP"`
		MaxTokens   *int     `json:"maxOutputTokens"`
		Seed        *int64   `json:"seed"`
		Thinking    struct {
			Level  string `json:"thinkingLevel"`
			Budget *int   `json:"thinkingBudget"`
		} `json:"thinkingConfig"`
	} `json:"generationConfig"`
}

type geminiContent struct {
	Role  string       `json:"role,omitempty"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text      *string       `json:"text,omitempty"`
	Thought   bool          `json:"thought,omitempty"`
	Signature thought       `json:"thoughtSignature,omitempty"`
	Call      *geminiCall   `json:"functionCall,omitempty"`
	Answer    *geminiAnswer `json:"functionResponse,omitempty"`
}

type geminiCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

type geminiAnswer struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Response struct {
		Output *string `json:"output"`
	} `json:"response"`
}

// geminiChoices translates modes of calling functions.
var geminiChoices = map[string]string{"AUTO": "auto", "ANY": "required", "NONE": "none"}

func (gemini) decode(body []byte) (prompt, *apiError) {
	var doc geminiRequest
	if e := parse(body, &doc); e != nil {
		return prompt{}, e
	}
	c := doc.Config
	p := prompt{Request: assay.Request{Sampling: assay.Sampling{
		Temperature: c.Temperature, TopP: c.TopP, MaxTokens: c.MaxTokens, Seed: c.Seed,
		Effort: strings.ToLower(c.Thinking.Level), Thinking: c.Thinking.Budget,
		ToolChoice: geminiChoices[doc.ToolConfig.Calling.Mode],
	}}}
	if len(doc.Contents) == 0 {
		return p, badRequest("", "* GenerateContentRequest.contents: contents is not specified")
	}
	if doc.System != nil {
		text := geminiText(doc.System.Parts)
		p.Messages = append(p.Messages, assay.Message{Role: assay.System, Content: text})
	}
	for _, tool := range doc.Tools {
		for _, f := range tool.Functions {
			p.Functions = append(p.Functions, assay.Function{
				Name: f.Name, Description: f.Description, Parameters: f.Parameters,
			})
		}
	}
	for i := range doc.Contents {
		if i > 0 && doc.Contents[i].Role == doc.Contents[i-1].Role {
			return p, badRequest("",
				"Please ensure that multiturn requests alternate between user and model.")
		}
		var e *apiError
		if p.Messages, e = doc.Contents[i].addTo(p.Messages, i); e != nil {
			return p, e
		}
	}
	return p, nil
}

// addTo appends the messages of content i.
func (c *geminiContent) addTo(messages []assay.Message, i int) ([]assay.Message, *apiError) {
	if len(c.Parts) == 0 {
		return nil, badRequest("",
			"* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.", i)
	}
	switch c.Role {
	case "model":
		return append(messages, c.reply()), nil
	case "user":
	default:
		return nil, badRequest("", "Please use a valid role: user, model.")
	}
	for _, part := range c.Parts {
		m := assay.Message{Role: assay.User}
		switch {
		case part.Answer != nil && part.Answer.Response.Output != nil:
			m = assay.Message{
				Role: assay.ToolRole, CallID: part.Answer.ID, Content: *part.Answer.Response.Output,
			}
		case part.Text != nil:
			m.Content = *part.Text
		default:
			return nil, badRequest("", "* GenerateContentRequest.contents[%d].parts: required "+
				"oneof field 'data' must have one initialized field", i)
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// reply returns the model's own reply. The signature of its thought is on the first call.
func (c *geminiContent) reply() assay.Message {
	m := assay.Message{Role: assay.Assistant, Content: geminiText(c.Parts)}
	for _, part := range c.Parts {
		if part.Call == nil {
			continue
		}
		if len(m.Calls) == 0 && part.Signature != "" {
			m.State = part.Signature.state()
		}
		m.Calls = append(m.Calls, assay.ToolCall{
			ID: part.Call.ID, Name: part.Call.Name, Arguments: string(part.Call.Args),
		})
	}
	return m
}

// geminiText returns the text in parts, without thoughts.
func geminiText(parts []geminiPart) string {
	var all strings.Builder
	for _, part := range parts {
		if part.Text != nil && !part.Thought {
			all.WriteString(*part.Text)
		}
	}
	return all.String()
}

// geminiReply is the body of a reply.
type geminiReply struct {
	Candidates   []geminiCandidate `json:"candidates,omitempty"`
	Feedback     *geminiFeedback   `json:"promptFeedback,omitempty"`
	Usage        geminiUsage       `json:"usageMetadata"`
	ModelVersion string            `json:"modelVersion,omitempty"`
	ResponseID   string            `json:"responseId,omitempty"`
}

type geminiCandidate struct {
	Content      geminiContent `json:"content"`
	FinishReason string        `json:"finishReason"`
	Index        int           `json:"index"`
}

type geminiFeedback struct {
	BlockReason string `json:"blockReason"`
}

type geminiUsage struct {
	Prompt     int `json:"promptTokenCount"`
	Cached     int `json:"cachedContentTokenCount,omitempty"`
	Candidates int `json:"candidatesTokenCount"` // without thoughts
	Thoughts   int `json:"thoughtsTokenCount,omitempty"`
	Total      int `json:"totalTokenCount"`
}

// geminiFinish translates the reasons why a reply ends. A refusal is a text like any other.
var geminiFinish = map[string]string{
	"": "STOP", "refusal": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY",
}

func (gemini) encode(r reply) any {
	out := geminiReply{
		ModelVersion: r.model, ResponseID: strconv.FormatUint(r.id, 16),
		Usage: geminiUsage{
			Prompt: r.Usage.InputTokens, Cached: r.Usage.CachedTokens,
			Candidates: r.Usage.OutputTokens - r.Usage.ReasoningTokens,
			Thoughts:   r.Usage.ReasoningTokens, Total: r.Usage.Total(),
		},
	}
	if !r.nothing {
		out.Candidates = []geminiCandidate{{
			Content: geminiContent{"model", geminiParts(r)}, FinishReason: geminiFinish[r.Finish],
		}}
	}
	return out
}

// geminiParts returns the parts of a reply.
func geminiParts(r reply) []geminiPart {
	var parts []geminiPart
	if r.thought != "" {
		parts = append(parts, geminiPart{Text: new(r.thought.text()), Thought: true})
	}
	if r.Message.Content != "" || len(r.Message.Calls) == 0 {
		parts = append(parts, geminiPart{Text: &r.Message.Content})
	}
	for i, c := range r.Message.Calls {
		part := geminiPart{Call: &geminiCall{ID: c.ID, Name: c.Name}}
		if json.Valid([]byte(c.Arguments)) {
			part.Call.Args = json.RawMessage(c.Arguments)
		}
		if i == 0 {
			part.Signature = r.thought
		}
		parts = append(parts, part)
	}
	return parts
}
