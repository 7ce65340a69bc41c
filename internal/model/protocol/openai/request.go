package openai

import (
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/wire"
)

// wireRequest is a request of the client.
type wireRequest struct{ request[wireMessage] }

// setFactors sets the settings that are never left out, because results are filed under them. An
// endpoint that refuses one refuses the request.
func (r *wireRequest) setFactors(req *assay.Request) {
	s := &req.Sampling
	r.Seed, r.Effort = s.Seed, s.Effort
	if s.ToolChoice != "" && len(req.Functions) > 0 {
		r.ToolChoice = s.ToolChoice
	}
	switch {
	case s.Thinking == nil:
	case *s.Thinking == 0:
		r.Thinking = &gateway.Thinking{Type: "disabled"}
	default:
		r.Thinking = &gateway.Thinking{Type: "enabled", Budget: *s.Thinking}
	}
}

// isBare reports whether the request names its model and has no settings, as most do.
func (r *wireRequest) isBare() bool {
	return r.Sampling == wire.Sampling{} && r.MaxTokens == nil && r.MaxCompletionTokens == nil &&
		r.Seed == nil && r.Effort == "" && r.Thinking == nil && r.ToolChoice == nil
}

type wireMessage struct {
	Role string `json:"role"`
	// Content is a *string, nil in an assistant's message that only has calls, or Mistral's parts.
	Content any `json:"content"`
	thoughts
	Calls  []call  `json:"tool_calls,omitempty"`
	CallID *string `json:"tool_call_id,omitempty"`
}

// encode returns the request's body without the parameters in unsent, and the
// parameters that it contains.
func (p *Provider) encode(
	req *assay.Request, unsent wire.ParamSet,
) (*wire.Body, wire.ParamSet, error) {
	var doc wireRequest
	doc.Model, doc.Messages = p.Deployment, make([]wireMessage, len(req.Messages))
	doc.setFactors(req)
	sent := doc.setSampling(req.Sampling, unsent)
	for i := range req.Messages {
		m := &req.Messages[i]
		doc.Messages[i] = encodeMessage(m)
		sent |= doc.Messages[i].restore(p.StateOf(m), unsent)
	}
	sent |= doc.adapt(unsent)
	messages, err := encodeMessages(doc.Messages)
	if err != nil {
		return nil, sent, err
	}
	doc.Messages = nil
	var fields any = &doc
	if doc.isBare() {
		fields = p.bare
	}
	body, err := p.functions.Body(fields, req, toolsHead, toolsTail, encodeFunction, messages...)
	return body, sent, err
}

// encodeMessages returns the field with the messages in pieces.
func encodeMessages(messages []wireMessage) ([][]byte, error) {
	field := [][]byte{[]byte(`,"messages":[`)}
	for i := range messages {
		if i > 0 {
			field = append(field, []byte(","))
		}
		piece, err := encodedText(&messages[i])
		if err != nil {
			return nil, err
		}
		field = append(field, piece)
	}
	return append(field, []byte("]")), nil
}

// A longText is a message that only has a text. Every request of an episode begins with its long
// texts, and repeats and other models begin with the same.
type longText struct{ role, content string }

// longTexts has the JSON of the latest ones. It is shared by all lanes.
var longTexts = newLongTexts()

// The sizes in bytes of the texts that are kept.
const shortestText, longestText = 512, 64 << 10

func newLongTexts() *lru.Cache[longText, []byte] {
	known, err := lru.New[longText, []byte](512)
	if err != nil {
		panic("openai: " + err.Error()) // the size is positive
	}
	return known
}

// encodedText returns a message's JSON. It may be shared, so it must not be modified.
func encodedText(m *wireMessage) ([]byte, error) {
	text, ok := m.Content.(*string)
	if !ok || m.Role == string(assay.Assistant) || m.CallID != nil ||
		len(*text) < shortestText || len(*text) > longestText {
		return wire.Marshal(m)
	}
	key := longText{m.Role, *text}
	if known, ok := longTexts.Get(key); ok {
		return known, nil
	}
	piece, err := wire.Marshal(m)
	if err == nil {
		longTexts.Add(key, piece)
	}
	return piece, err
}

// toolsHead and toolsTail enclose the tools in a request's body.
const toolsHead, toolsTail = `,"tools":[`, `}]}`

// setSampling sets the parameters of s that are not in unsent. The token limit has
// two names, and the one that is not in unsent is used.
func (r *wireRequest) setSampling(s assay.Sampling, unsent wire.ParamSet) (sent wire.ParamSet) {
	sent = r.Sampling.Set(s, unsent)
	switch {
	case s.MaxTokens == nil:
	case unsent&maxTokens == 0:
		r.MaxTokens = s.MaxTokens
		sent |= maxTokens
	case unsent&maxCompletionTokens == 0:
		r.MaxCompletionTokens = s.MaxTokens
		sent |= maxCompletionTokens
	}
	return sent
}

func encodeMessage(m *assay.Message) wireMessage {
	switch m.Role {
	case assay.System, assay.User:
		return wireMessage{Role: string(m.Role), Content: &m.Content}
	case assay.ToolRole:
		return wireMessage{Role: string(m.Role), Content: &m.Content, CallID: &m.CallID}
	case assay.Assistant:
		return encodeAssistant(m)
	}
	return wireMessage{Role: string(assay.User), Content: &m.Content}
}

// encodeAssistant encodes a model's own reply.
func encodeAssistant(m *assay.Message) wireMessage {
	out := wireMessage{Role: string(m.Role)}
	switch {
	case m.Content != "":
		out.Content = &m.Content
	case len(m.Calls) > 0:
		// Send null, because some endpoints require the field and others refuse "".
	default:
		out.Content = new(wire.EmptyReply)
	}
	for _, c := range m.Calls {
		own := call{ID: c.ID, Type: "function"}
		own.Function.Name = wire.SendableName(c.Name)
		own.Function.Arguments = wire.SendableArguments(c.Arguments)
		out.Calls = append(out.Calls, own)
	}
	return out
}

// encodeFunction returns an entry of a request's tools.
func encodeFunction(f *assay.Function) any {
	doc := &tool{Type: "function"}
	doc.Function.Name = f.Name
	doc.Function.Description = f.Description
	doc.Function.Parameters = f.Parameters
	return doc
}
