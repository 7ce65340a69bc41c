package gemini

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
)

// Dialect is the server's side of Gemini's generateContent.
type Dialect struct{}

func (Dialect) Routes() []string { return []string{"POST /v1beta/models/{deployment...}"} }

func (Dialect) Key(h http.Header) string { return h.Get("X-Goog-Api-Key") }

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

func (Dialect) Refuse(e gateway.Refusal) (status int, body any) {
	if e.Code == "content_filter" {
		var out geminiReply
		out.Feedback = &geminiFeedback{BlockReason: "PROHIBITED_CONTENT"}
		return http.StatusOK, out
	}
	name, ok := geminiStatuses[e.Status]
	if !ok {
		name = "UNKNOWN"
	}
	return e.Status, map[string]any{"error": map[string]any{
		"code": e.Status, "message": strings.ToValidUTF8(e.Message, "?"), "status": name,
	}}
}

func (Dialect) Forgotten(i int, changed bool) *gateway.Refusal {
	if changed {
		return gateway.BadRequest("", "Corrupted thought signature.")
	}
	return gateway.BadRequest("", "Function call is missing a thought_signature in functionCall parts. "+
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
			Schema      json.RawMessage `json:"parametersJsonSchema"`
			Parameters  any             `json:"parameters"` // Gemini's own form of a schema
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
		Format      string   `json:"responseMimeType"`
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
	Text      *string         `json:"text,omitempty"`
	Thought   bool            `json:"thought,omitempty"`
	Signature gateway.Thought `json:"thoughtSignature,omitempty"`
	Call      *geminiCall     `json:"functionCall,omitempty"`
	Answer    *geminiAnswer   `json:"functionResponse,omitempty"`
}

type geminiCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

type geminiAnswer struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"`
}

// text returns the output or, if there is none, the whole response.
func (a *geminiAnswer) Text() string {
	var response struct{ Output *string }
	if json.Unmarshal(a.Response, &response) == nil && response.Output != nil {
		return *response.Output
	}
	return string(a.Response)
}

// geminiChoices translates modes of calling functions.
var geminiChoices = map[string]string{"AUTO": "auto", "ANY": "required", "NONE": "none"}

func (Dialect) Decode(body []byte) (gateway.Prompt, *gateway.Refusal) {
	var doc geminiRequest
	if e := gateway.Parse(body, &doc); e != nil {
		return gateway.Prompt{}, e
	}
	c := doc.Config
	p := gateway.Prompt{Request: assay.Request{Sampling: assay.Sampling{
		Temperature: c.Temperature, TopP: c.TopP, MaxTokens: c.MaxTokens, Seed: c.Seed,
		Effort: strings.ToLower(c.Thinking.Level), Thinking: c.Thinking.Budget,
		ToolChoice: geminiChoices[doc.ToolConfig.Calling.Mode],
	}}}
	if e := (gateway.Format{Type: c.Format}).Check("responseMimeType"); e != nil {
		return p, e
	}
	if len(doc.Contents) == 0 {
		return p, gateway.BadRequest("", "* GenerateContentRequest.contents: contents is not specified")
	}
	if doc.System != nil {
		text := geminiText(doc.System.Parts)
		p.Messages = append(p.Messages, assay.Message{Role: assay.System, Content: text})
	}
	for _, tool := range doc.Tools {
		for _, f := range tool.Functions {
			if f.Schema == nil && f.Parameters != nil {
				f.Schema = gateway.Encode(jsonSchema(f.Parameters))
			}
			p.Functions = append(p.Functions, assay.Function{
				Name: f.Name, Description: f.Description, Parameters: f.Schema,
			})
		}
	}
	names := make(map[int]string)
	for i := range doc.Contents {
		if i > 0 && doc.Contents[i].Role == doc.Contents[i-1].Role {
			return p, gateway.BadRequest("",
				"Please ensure that multiturn requests alternate between user and model.")
		}
		var e *gateway.Refusal
		if p.Messages, e = doc.Contents[i].addTo(p.Messages, i, names); e != nil {
			return p, e
		}
	}
	return p, gateway.Identify(p.Messages, names, true)
}

// jsonSchema returns a schema in Gemini's own form, which has types in capitals, as a JSON schema.
func jsonSchema(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			v[name] = jsonSchema(field)
		}
		if name, ok := v["type"].(string); ok {
			v["type"] = strings.ToLower(name)
		}
	case []any:
		for i := range v {
			v[i] = jsonSchema(v[i])
		}
	}
	return v
}

// addTo appends the messages of content i, and notes which tools have replied.
func (c *geminiContent) addTo(
	messages []assay.Message, i int, names map[int]string,
) ([]assay.Message, *gateway.Refusal) {
	if len(c.Parts) == 0 {
		return nil, gateway.BadRequest("",
			"* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.", i)
	}
	switch c.Role {
	case "model":
		return append(messages, c.reply()), nil
	case "user":
	default:
		return nil, gateway.BadRequest("", "Please use a valid role: user, model.")
	}
	for _, part := range c.Parts {
		m := assay.Message{Role: assay.User}
		switch {
		case part.Answer != nil && len(part.Answer.Response) > 0:
			names[len(messages)] = part.Answer.Name
			m = assay.Message{
				Role: assay.ToolRole, CallID: part.Answer.ID, Content: part.Answer.Text(),
			}
		case part.Text != nil:
			m.Content = *part.Text
		default:
			return nil, gateway.BadRequest("", "* GenerateContentRequest.contents[%d].parts: required "+
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
			m.State = part.Signature.State()
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

func (Dialect) Encode(r gateway.Reply) any {
	out := geminiReply{
		ModelVersion: r.Model, ResponseID: strconv.FormatUint(r.ID, 16),
		Usage: geminiUsage{
			Prompt: r.Usage.InputTokens, Cached: r.Usage.CachedTokens,
			Candidates: r.Usage.OutputTokens - r.Usage.ReasoningTokens,
			Thoughts:   r.Usage.ReasoningTokens, Total: r.Usage.Total(),
		},
	}
	if !r.Nothing {
		out.Candidates = []geminiCandidate{{
			Content: geminiContent{"model", geminiParts(r)}, FinishReason: geminiFinish[r.Finish],
		}}
	}
	return out
}

// geminiParts returns the parts of a reply.
func geminiParts(r gateway.Reply) []geminiPart {
	var parts []geminiPart
	if r.Thought != "" {
		parts = append(parts, geminiPart{Text: new(r.Thought.Text()), Thought: true})
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
			part.Signature = r.Thought
		}
		parts = append(parts, part)
	}
	return parts
}

// Events sends the whole reply in one event.
func (Dialect) Events(_ *gateway.Prompt, r gateway.Reply) []gateway.Event {
	return []gateway.Event{{Data: gateway.Encode(Dialect{}.Encode(r))}}
}
