package responses

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/wire"
)

// Dialect is the server's side of OpenAI's Responses API without storage.
type Dialect struct{}

func (Dialect) Routes() []string {
	return []string{"POST /v1/responses", "POST /openai/v1/responses"}
}

func (Dialect) Key(h http.Header) string {
	if key := h.Get("Api-Key"); key != "" { // Azure
		return key
	}
	return gateway.Bearer(h)
}

func (Dialect) Refuse(e gateway.Refusal) (status int, body any) { return e.Status, e.Body() }

func (Dialect) Forgotten(i int, changed bool) *gateway.Refusal {
	if changed {
		e := gateway.BadRequest("", "The encrypted content for input[%d] could not be verified.", i)
		e.Code = "invalid_encrypted_content"
		return e
	}
	return gateway.BadRequest("input", "Item 'input[%d]' of type 'function_call' was provided without its "+
		"required 'reasoning' item.", i)
}

// input is a list of items. A text stands for one message of the user.
type input []item

func (in *input) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*in = input{{Role: "user", Content: text}}
		return nil
	}
	return json.Unmarshal(b, (*[]item)(in))
}

// outputText returns a part of the output.
func outputText(text string) contentPart {
	return contentPart{Type: "output_text", Text: &text, Annotations: &[]struct{}{}}
}

func (Dialect) Decode(body []byte) (gateway.Prompt, *gateway.Refusal) {
	var doc request[input]
	if e := gateway.Parse(body, &doc); e != nil {
		return gateway.Prompt{}, e
	}
	p := gateway.Prompt{Deployment: doc.Model, Stream: doc.Stream, Beyond: beyond(&doc)}
	p.Sampling = assay.Sampling{
		Temperature: doc.Temperature, TopP: doc.TopP, MaxTokens: doc.MaxTokens,
		Effort: doc.Reasoning.Effort, ToolChoice: gateway.ChoiceOf(doc.ToolChoice),
	}
	if e := check(&doc); e != nil {
		return p, e
	}
	if doc.Instructions != nil {
		system := assay.Message{Role: assay.System, Content: *doc.Instructions}
		p.Messages = append(p.Messages, system)
	}
	p.Functions, p.Members = functionsOf(doc.Tools)
	flatten(doc.Input, p.Members)
	var e *gateway.Refusal
	if p.Form, e = doc.Text.Format.Form("text.format"); e != nil {
		return p, e
	}
	if p.Messages, e = messagesOf(p.Messages, doc.Input); e == nil {
		e = gateway.Identify(p.Messages, nil, false)
	}
	return p, e
}

func check(b *request[input]) *gateway.Refusal {
	switch {
	case b.Previous != "":
		return gateway.Kept("previous_response_id")
	case b.Conversation != nil:
		return gateway.Kept("conversation")
	case b.Prompt != nil:
		return gateway.Kept("prompt")
	}
	if b.MaxTokens != nil && *b.MaxTokens < 1 {
		return gateway.BadRequest("max_output_tokens",
			"Invalid 'max_output_tokens': integer below minimum value.")
	}
	nameless := func(t tool) bool { return t.Name == "" && (t.Type == "function" || t.Type == namespace) }
	for i, t := range b.Tools {
		if nameless(t) || slices.ContainsFunc(t.Tools, nameless) {
			return gateway.BadRequest("tools", "Missing required parameter: 'tools[%d].name'.", i)
		}
	}
	return nil
}

// beyond returns the refusal of a request that wants a stream, storage, or tools of the endpoint.
func beyond(b *request[input]) *gateway.Refusal {
	switch {
	case b.Stream:
		return gateway.Beyond(b.Stream)
	case b.Store == nil || *b.Store:
		return gateway.BadRequest("store", "This server does not store responses. Set 'store' to false.")
	case !slices.Contains(b.Include, "reasoning.encrypted_content"):
		return gateway.BadRequest("include", "Without 'reasoning.encrypted_content' in 'include', "+
			"reasoning would be lost, because this server does not store it.")
	}
	for i, t := range b.Tools {
		if t.Type != "function" {
			return gateway.BadRequest("tools", "Missing required parameter: 'tools[%d].name'.", i)
		}
	}
	return nil
}

// messagesOf appends the messages of items. The items of a reply follow each other.
func messagesOf(
	messages []assay.Message, items []item,
) ([]assay.Message, *gateway.Refusal) {
	for i := range items {
		it := &items[i]
		inReply := i > 0 && items[i-1].isReply()
		if it.isReply() && !inReply {
			messages = append(messages, assay.Message{Role: assay.Assistant})
		}
		if it.isReply() {
			last := i+1 == len(items) || !items[i+1].isReply()
			if it.Type == "reasoning" && last {
				return nil, gateway.BadRequest("input", "Item '%s' of type 'reasoning' was provided "+
					"without its required following item.", it.ID)
			}
			if e := it.addTo(&messages[len(messages)-1], i); e != nil {
				return nil, e
			}
			continue
		}
		m, e := it.message(i)
		if e != nil {
			return nil, e
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// isReply reports whether an item is part of a model's reply.
func (it *item) isReply() bool {
	return it.Role == "assistant" || it.Type == functionCall || it.Type == reasoning
}

// message returns item i, which is not part of a reply.
func (it *item) message(i int) (assay.Message, *gateway.Refusal) {
	switch it.Type {
	case "", "message":
	case "function_call_output":
		if it.Output == nil {
			return assay.Message{}, gateway.BadRequest("input",
				"Missing required parameter: 'input[%d].output'.", i)
		}
		content, e := contentOf(it.Output, i)
		return assay.Message{Role: assay.ToolRole, CallID: it.CallID, Content: content}, e
	case reference:
		return assay.Message{}, gateway.BadRequest("input", "Item with id '%s' not found. 'input[%d]' must "+
			"refer to an item of an earlier reply of this attempt.", it.ID, i)
	default:
		return assay.Message{}, gateway.BadRequest("input", "This server does not support 'input[%d]' of "+
			"type '%s'. It reads messages, function calls and their outputs.", i, it.Type)
	}
	content, e := contentOf(it.Content, i)
	m := assay.Message{Role: assay.Role(it.Role), Content: content}
	switch it.Role {
	case "developer":
		m.Role = assay.System
	case "system", "user":
	default:
		return m, gateway.BadRequest("input", "Invalid value: '%s' for 'input[%d].role'.", it.Role, i)
	}
	return m, e
}

// addTo adds item i to the reply that it is part of.
func (it *item) addTo(m *assay.Message, i int) *gateway.Refusal {
	switch it.Type {
	case "function_call":
		if it.Arguments == nil {
			return gateway.BadRequest("input", "Missing required parameter: 'input[%d].arguments'.", i)
		}
		call := assay.ToolCall{ID: it.CallID, Name: it.Name, Arguments: wire.TextOf(it.Arguments)}
		m.Calls = append(m.Calls, call)
	case "reasoning":
		if len(m.Calls) > 0 {
			return gateway.BadRequest("input", "Item '%s' of type 'reasoning' comes after the calls that "+
				"it belongs to.", it.ID)
		}
		m.State = it.Thought().State()
	default:
		content, e := contentOf(it.Content, i)
		m.Content += content
		return e
	}
	return nil
}

// thought returns the thought of a reasoning item.
func (it *item) Thought() gateway.Thought {
	if text, _ := texts(it.Summary, ""); it.Encrypted == nil || text != it.Encrypted.Text() {
		return "changed"
	}
	return *it.Encrypted
}

// contentOf returns the text of a content of item i.
func contentOf(content any, i int) (string, *gateway.Refusal) {
	if text, ok := content.(string); ok {
		return text, nil
	}
	raw, _ := json.Marshal(content)
	var parts []contentPart
	if json.Unmarshal(raw, &parts) != nil || parts == nil {
		return "", gateway.BadRequest("input", "Invalid type for 'input[%d].content'.", i)
	}
	var all string
	for _, part := range parts {
		if part.Text == nil && part.Refusal == nil {
			return "", gateway.BadRequest("input", "This server does not support a part of type '%s' in "+
				"'input[%d]', because it has no text.", part.Type, i)
		}
		for _, text := range []*string{part.Text, part.Refusal} {
			if text != nil {
				all += *text
			}
		}
	}
	return all, nil
}

func (Dialect) Encode(r gateway.Reply) any {
	out := reply{
		ID: "resp_" + strconv.FormatUint(r.ID, 16), Object: "response", CreatedAt: r.Created, Status: "completed",
		Model: r.Model, Output: json.RawMessage("[]"), ToolChoice: "auto", Tools: []struct{}{},
		Parallel: true,
		Usage: &usage{
			Input: wire.Count(r.Usage.InputTokens), Output: wire.Count(r.Usage.OutputTokens),
			Total: wire.Count(r.Usage.Total()),
		},
	}
	out.Usage.InputDetails.Cached = wire.Count(r.Usage.CachedTokens)
	out.Usage.InputDetails.CacheWrite = wire.Count(r.Usage.CacheWriteTokens)
	out.Usage.OutputDetails.Reasoning = wire.Count(r.Usage.ReasoningTokens)
	switch r.Finish {
	case "length":
		out.Status, out.Incomplete = "incomplete", &finishReason{"max_output_tokens"}
	case "content_filter":
		out.Status, out.Incomplete = "incomplete", &finishReason{"content_filter"}
	}
	if !r.Nothing {
		out.Output = gateway.Encode(itemsOf(r))
	}
	return out
}

// itemsOf returns the items of a reply.
func itemsOf(r gateway.Reply) []item {
	id := strconv.FormatUint(r.ID, 16)
	items := []item{}
	if r.Thought != "" {
		items = append(items, item{
			ID: "rs_" + id, Type: "reasoning", Encrypted: &r.Thought,
			Summary: []contentPart{{Type: "summary_text", Text: new(r.Thought.Text())}},
		})
	}
	content := outputText(r.Message.Content)
	if r.Finish == "refusal" {
		content = contentPart{Type: "refusal", Refusal: &r.Message.Content}
	}
	if r.Message.Content != "" || len(r.Message.Calls) == 0 {
		items = append(items, item{
			ID: "msg_" + id, Type: "message", Status: "completed", Role: "assistant",
			Content: []contentPart{content},
		})
	}
	for i, c := range r.Message.Calls {
		m, ok := r.Members[c.Name]
		if !ok {
			m.Name = c.Name
		}
		items = append(items, item{
			ID: "fc_" + id + strconv.Itoa(i), Type: "function_call", Status: "completed",
			CallID: c.ID, Namespace: m.Namespace, Name: m.Name, Arguments: gateway.Encode(c.Arguments),
		})
	}
	return items
}
