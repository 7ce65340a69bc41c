package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// wireRequest is a request's body without its functions.
type wireRequest struct {
	Model               string        `json:"model"`
	Messages            []wireMessage `json:"messages"`
	Temperature         *float64      `json:"temperature,omitempty"`
	TopP                *float64      `json:"top_p,omitempty"`
	MaxTokens           *int          `json:"max_tokens,omitempty"`
	MaxCompletionTokens *int          `json:"max_completion_tokens,omitempty"`
}

type wireMessage struct {
	Role string `json:"role"`
	// Content is null in an assistant's message that only has calls.
	Content *string    `json:"content"`
	Calls   []wireCall `json:"tool_calls,omitempty"`
	CallID  *string    `json:"tool_call_id,omitempty"`
}

type wireCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type wireFunction struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	} `json:"function"`
}

// encode returns the request's body without the parameters in unsent, and the
// parameters that it contains.
func (p *Provider) encode(req *assay.Request, unsent paramSet) (*wire.Body, paramSet, error) {
	doc := wireRequest{
		Model:    p.Deployment,
		Messages: make([]wireMessage, len(req.Messages)),
	}
	for i := range req.Messages {
		doc.Messages[i] = encodeMessage(&req.Messages[i])
	}
	sent := doc.setSampling(req.Sampling, unsent)
	head, err := marshal(&doc)
	if err != nil {
		return nil, 0, err
	}
	if len(req.Functions) == 0 {
		return wire.NewBody(head), sent, nil
	}
	tools, err := p.functions.encode(req.Functions)
	if err != nil {
		return nil, 0, err
	}
	head = head[:len(head)-1] // without the closing brace
	pieces := slices.Concat([][]byte{head, toolsHead}, tools, [][]byte{toolsTail})
	return wire.NewBody(pieces...), sent, nil
}

// toolsHead and toolsTail enclose the tools in a request's body.
var toolsHead, toolsTail = []byte(`,"tools":[`), []byte(`]}`)

// marshal is [json.Marshal] without the escapes for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// setSampling sets the parameters of s that are not in unsent. The token limit has
// two names, and the one that is not in unsent is used.
func (r *wireRequest) setSampling(s assay.Sampling, unsent paramSet) (sent paramSet) {
	if s.Temperature != nil && unsent&temperature == 0 {
		r.Temperature = s.Temperature
		sent |= temperature
	}
	if s.TopP != nil && unsent&topP == 0 {
		r.TopP = s.TopP
		sent |= topP
	}
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

// emptyText stands for a reply without text or call: endpoints refuse an
// assistant message that has neither.
const emptyText = "(empty reply)"

// encodeAssistant encodes a model's own reply. A model may write any text as the
// name and arguments of a call, but many endpoints refuse a conversation in which
// they are not well formed. That would turn the model's mistake into a fault of
// the request, so invalid names and arguments are replaced. The answer to the call
// still reports the mistake, and the transcript keeps the original.
func encodeAssistant(m *assay.Message) wireMessage {
	out := wireMessage{Role: string(m.Role)}
	switch {
	case m.Content != "":
		out.Content = &m.Content
	case len(m.Calls) > 0:
		// Send null, because some endpoints require the field and others refuse "".
	default:
		out.Content = new(emptyText)
	}
	for _, c := range m.Calls {
		call := wireCall{ID: c.ID, Type: "function"}
		call.Function.Name = sendableName(c.Name)
		call.Function.Arguments = sendableArguments(c.Arguments)
		out.Calls = append(out.Calls, call)
	}
	return out
}

// sendableName returns a name that satisfies OpenAI's rule for function names.
func sendableName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "unnamed"
	}
	return name[:min(len(name), 64)]
}

// sendableArguments returns text if it is a JSON object, and an empty object
// otherwise.
func sendableArguments(text string) string {
	doc := []byte(text)
	if !json.Valid(doc) || doc[wire.FirstByte(doc)] != '{' {
		return "{}"
	}
	return text
}

// functionCache caches the JSON of functions. A run has few functions and sends
// all of them with every request.
type functionCache struct {
	mu   sync.RWMutex
	json map[functionText][]byte // each ends with a comma; guarded by mu
}

// functionText contains everything about a function, so that a changed function
// has another key.
type functionText struct{ name, description, parameters string }

// maxFunctions is the size of a cache. Further functions are encoded each time.
const maxFunctions = 1024

// encode returns the entries of a request's tools, separated by commas. The JSON
// of a schema only loses white space: keys keep their order, and numbers their
// spelling. The entries are shared and must not be modified.
func (c *functionCache) encode(functions []assay.Function) ([][]byte, error) {
	tools := make([][]byte, len(functions))
	for i, f := range functions {
		tools[i] = c.get(f)
		if tools[i] != nil {
			continue
		}
		var err error
		if tools[i], err = encodeFunction(f); err != nil {
			return nil, fmt.Errorf("encode the function %s: %w", f.Name, err)
		}
		c.put(f, tools[i])
	}
	last := tools[len(tools)-1]
	tools[len(tools)-1] = last[:len(last)-len(",")]
	return tools, nil
}

func (c *functionCache) get(f assay.Function) []byte {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.json[functionText{f.Name, f.Description, string(f.Parameters)}]
}

func (c *functionCache) put(f assay.Function, text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.json == nil {
		c.json = make(map[functionText][]byte)
	}
	if len(c.json) < maxFunctions {
		c.json[functionText{f.Name, f.Description, string(f.Parameters)}] = text
	}
}

// encodeFunction returns an entry of a request's tools, followed by a comma.
func encodeFunction(f assay.Function) ([]byte, error) {
	doc := wireFunction{Type: "function"}
	doc.Function.Name = f.Name
	doc.Function.Description = f.Description
	doc.Function.Parameters = f.Parameters
	text, err := marshal(&doc)
	return append(text, ','), err
}
