package gemini

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/wire"
)

// noSignature is Gemini's word for calls that it did not sign.
const noSignature gateway.Thought = "skip_thought_signature_validator"

func encode(p *wire.Provider, req *assay.Request, _ wire.ParamSet) (any, wire.ParamSet) {
	doc := request[[]any]{Config: configOf(req.Sampling)}
	if req.Form.Type != "" {
		doc.Config.Format, doc.Config.Schema = mimeJSON, req.Form.Schema
	}
	messages := req.Messages
	if len(messages) > 0 && messages[0].Role == assay.System {
		doc.System = &content[[]any]{Parts: []any{part{Text: &messages[0].Content}}}
	}
	c := conversation{provider: p, contents: make([]content[[]any], 0, len(messages))}
	for i := range messages {
		if i > 0 || doc.System == nil {
			c.add(i, &messages[i])
		}
	}
	doc.Contents = c.contents
	if mode := modes[req.Sampling.ToolChoice]; mode != "" && len(req.Functions) > 0 {
		doc.ToolConfig = new(toolConfig)
		doc.ToolConfig.Calling.Mode = mode
	}
	return &doc, wire.Temperature | wire.TopP
}

func encodeTools(functions []assay.Function, _ wire.ParamSet) any {
	var all []functionSchema
	for _, f := range functions {
		all = append(all, functionSchema{
			Name: f.Name, Description: f.Description, Schema: f.Parameters,
		})
	}
	return []tool{{all}}
}

// modes translates the choice of tools.
var modes = map[string]string{"auto": "AUTO", "required": "ANY", "none": "NONE"}

func configOf(s assay.Sampling) config {
	c := config{Temperature: s.Temperature, TopP: s.TopP, MaxTokens: s.MaxTokens}
	if s.Seed != nil && int64(int32(*s.Seed)) == *s.Seed {
		c.Seed = s.Seed
	}
	if s.Effort != "" || s.Thinking != nil {
		c.Thinking = &thinking{
			Include: s.Thinking == nil || *s.Thinking != 0,
			Budget:  s.Thinking, Level: strings.ToUpper(s.Effort),
		}
	}
	return c
}

// conversation collects the contents of a request. Contents alternate between the user and the
// model, so messages of one side are joined.
type conversation struct {
	provider *wire.Provider
	contents []content[[]any]
	// answers has an answer without its response for each call, by the ID of the call.
	answers map[string]answer
}

// add adds message i.
func (c *conversation) add(i int, m *assay.Message) {
	switch m.Role {
	case assay.ToolRole:
		a := c.answers[m.CallID]
		a.Response = wire.Encode(toolOutputText{&m.Content})
		c.say("user", part{Answer: &a})
	case assay.Assistant:
		c.addReply(i, m)
	default:
		c.say("user", part{Text: &m.Content})
	}
}

func (c *conversation) say(role string, parts ...any) {
	if n := len(c.contents); n > 0 && c.contents[n-1].Role == role {
		c.contents[n-1].Parts = append(c.contents[n-1].Parts, parts...)
		return
	}
	c.contents = append(c.contents, content[[]any]{role, parts})
}

// addReply adds the model's own reply, which is message i: as it came, if the endpoint wants that.
func (c *conversation) addReply(i int, m *assay.Message) {
	parts := stateParts(c.provider.StateOf(m), len(m.Calls))
	asItCame := len(parts) > 0
	if !asItCame && (m.Content != "" || len(m.Calls) == 0) {
		parts = append(parts, part{Text: new(cmp.Or(m.Content, wire.EmptyReply))})
	}
	for k := range m.Calls {
		own := encodeCall(&m.Calls[k], wire.GeneratedID(i, k), asItCame)
		if !asItCame {
			p := part{Call: own}
			if k == 0 && m.State != nil { // another endpoint's
				p.Signature = new(noSignature)
			}
			parts = append(parts, p)
		}
		if c.answers == nil {
			c.answers = make(map[string]answer)
		}
		c.answers[m.Calls[k].ID] = answer{ID: own.ID, Name: own.Name}
	}
	c.say("model", parts...)
}

// encodeCall encodes a call, without its ID if that is generated. The name keeps its spelling if it
// is only needed to answer a call that is sent as it came.
func encodeCall(c *assay.ToolCall, generated string, asItCame bool) *namedCall {
	out := &namedCall{Name: c.Name, Args: json.RawMessage(wire.SendableArguments(c.Arguments))}
	if !asItCame {
		out.Name = sendableName(c.Name)
	}
	if c.ID != generated {
		out.ID = c.ID
	}
	return out
}

// sendableName returns a name that Gemini accepts. It must not start with a digit or a dash.
func sendableName(name string) string {
	name = wire.SendableName(name)
	if strings.IndexByte("-0123456789", name[0]) >= 0 {
		return "_" + name
	}
	return name
}

// stateParts returns the parts in data as they came, or nil if they don't have that many calls.
func stateParts(data json.RawMessage, calls int) []any {
	var all []json.RawMessage
	if data == nil || json.Unmarshal(data, &all) != nil {
		return nil
	}
	parts := make([]any, len(all))
	for i, raw := range all {
		parts[i] = raw
		if parsePart(raw).Call != nil {
			calls--
		}
	}
	if calls != 0 {
		return nil
	}
	return parts
}
