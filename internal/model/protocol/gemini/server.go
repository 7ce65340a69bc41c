package gemini

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/wire"
)

// Dialect is the server's side of Gemini's generateContent.
type Dialect struct{}

func (Dialect) Routes() []string { return []string{"POST /v1beta/models/{action...}"} }

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
		var out reply
		out.Feedback.BlockReason = "PROHIBITED_CONTENT"
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

// text returns the output or, without output, the whole response.
func (a *answer) text() string {
	var response toolOutputText
	if json.Unmarshal(a.Response, &response) == nil && response.Output != nil {
		return *response.Output
	}
	return string(a.Response)
}

// geminiChoices translates modes of calling functions.
var geminiChoices = map[string]string{"AUTO": "auto", "ANY": "required", "NONE": "none"}

// form returns the form that a request wants.
func (c *config) form() (assay.Form, *gateway.Refusal) {
	if c.Schema == nil && c.Own != nil {
		c.Schema = gateway.Encode(jsonSchema(c.Own))
	}
	f := gateway.Format{Type: c.Format, Schema: gateway.Schema{JSON: c.Schema}}
	switch {
	case c.Format == "text/plain":
		f.Type = "text"
	case c.Format == mimeJSON && c.Schema != nil:
		f.Type = assay.BySchema
	case c.Format == mimeJSON:
		f.Type = assay.AnyObject
	}
	return f.Form("responseMimeType")
}

const mimeJSON = "application/json"

func (Dialect) Decode(body []byte) (gateway.Prompt, *gateway.Refusal) {
	var doc request[[]part]
	if e := gateway.Parse(body, &doc); e != nil {
		return gateway.Prompt{}, e
	}
	c := doc.Config
	thinks, tools := cmp.Or(c.Thinking, new(thinking)), cmp.Or(doc.ToolConfig, new(toolConfig))
	p := gateway.Prompt{Request: assay.Request{Sampling: assay.Sampling{
		Temperature: c.Temperature, TopP: c.TopP, MaxTokens: c.MaxTokens, Seed: c.Seed,
		Effort: strings.ToLower(thinks.Level), Thinking: thinks.Budget,
		ToolChoice: geminiChoices[tools.Calling.Mode],
	}}}
	var e *gateway.Refusal
	if p.Form, e = c.form(); e != nil {
		return p, e
	}
	if doc.Cached != "" {
		return p, gateway.Kept("cachedContent")
	}
	if len(doc.Contents) == 0 {
		return p, gateway.BadRequest("", "* GenerateContentRequest.contents: contents is not specified")
	}
	if doc.System != nil {
		text := textOf(doc.System.Parts)
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
		if p.Messages, e = addTo(&doc.Contents[i], p.Messages, i, names); e != nil {
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
func addTo(
	c *content[[]part],
	messages []assay.Message, i int, names map[int]string,
) ([]assay.Message, *gateway.Refusal) {
	if len(c.Parts) == 0 {
		return nil, gateway.BadRequest("",
			"* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.", i)
	}
	switch c.Role {
	case "model":
		return append(messages, replyOf(c.Parts)), nil
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
				Role: assay.ToolRole, CallID: part.Answer.ID, Content: part.Answer.text(),
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

// replyOf returns the model's own reply. The signature of its thought is on the first call.
func replyOf(parts []part) assay.Message {
	m := assay.Message{Role: assay.Assistant, Content: textOf(parts)}
	for _, part := range parts {
		if part.Call == nil {
			continue
		}
		if len(m.Calls) == 0 && part.Signature != nil {
			m.State = part.Signature.State()
		}
		m.Calls = append(m.Calls, assay.ToolCall{
			ID: part.Call.ID, Name: part.Call.Name, Arguments: string(part.Call.Args),
		})
	}
	return m
}

// textOf returns the text in parts, without thoughts.
func textOf(parts []part) string {
	var all strings.Builder
	for _, part := range parts {
		if part.Text != nil && !part.Thought {
			all.WriteString(*part.Text)
		}
	}
	return all.String()
}

// geminiFinish translates the reasons why a reply ends. A refusal is a text like any other.
var geminiFinish = map[string]string{
	"": "STOP", "refusal": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY",
}

func (Dialect) Encode(r gateway.Reply) any {
	out := reply{
		Model: r.Model, ID: strconv.FormatUint(r.ID, 16),
		Usage: usage{
			Prompt: wire.Count(r.Usage.InputTokens), Cached: wire.Count(r.Usage.CachedTokens),
			Candidates: wire.Count(r.Usage.OutputTokens - r.Usage.ReasoningTokens),
			Thoughts:   wire.Count(r.Usage.ReasoningTokens), Total: wire.Count(r.Usage.Total()),
		},
	}
	if !r.Nothing {
		out.Candidates = []candidate{{
			Content:      content[json.RawMessage]{"model", gateway.Encode(partsOf(r))},
			FinishReason: geminiFinish[r.Finish],
		}}
	}
	return out
}

// partsOf returns the parts of a reply.
func partsOf(r gateway.Reply) []part {
	var parts []part
	if r.Thought != "" {
		parts = append(parts, part{Text: new(r.Thought.Text()), Thought: true})
	}
	if r.Message.Content != "" || len(r.Message.Calls) == 0 {
		parts = append(parts, part{Text: &r.Message.Content})
	}
	for i, c := range r.Message.Calls {
		part := part{Call: &namedCall{ID: c.ID, Name: c.Name}}
		if json.Valid([]byte(c.Arguments)) {
			part.Call.Args = json.RawMessage(c.Arguments)
		}
		if i == 0 && r.Thought != "" {
			part.Signature = &r.Thought
		}
		parts = append(parts, part)
	}
	return parts
}

// Events sends the whole reply in one event.
func (Dialect) Events(_ *gateway.Prompt, r gateway.Reply) []gateway.Event {
	return []gateway.Event{{Data: gateway.Encode(Dialect{}.Encode(r))}}
}
