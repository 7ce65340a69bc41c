package gemini

import (
	"encoding/json"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// wireRequest is a request's body without its functions.
type wireRequest struct {
	System     *wireContent    `json:"systemInstruction,omitempty"`
	Contents   []wireContent   `json:"contents"`
	Config     wireConfig      `json:"generationConfig,omitzero"`
	ToolConfig *wireToolConfig `json:"toolConfig,omitempty"`
}

// wireContent is what one side says at a time.
type wireContent struct {
	Role  string `json:"role,omitempty"`
	Parts []any  `json:"parts"`
}

type wireText struct {
	Text string `json:"text"`
}

type wireCall struct {
	Call struct {
		ID   string          `json:"id,omitempty"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	Signature string `json:"thoughtSignature,omitempty"`
}

// noSignature is Gemini's word for calls that it did not sign.
const noSignature = "skip_thought_signature_validator"

type wireAnswer struct {
	Answer struct {
		ID       string     `json:"id,omitempty"`
		Name     string     `json:"name"`
		Response wireOutput `json:"response"`
	} `json:"functionResponse"`
}

type wireOutput struct {
	Output string `json:"output"`
}

type wireConfig struct {
	Temperature *float64      `json:"temperature,omitempty"`
	TopP        *float64      `json:"topP,omitempty"`
	MaxTokens   *int          `json:"maxOutputTokens,omitempty"`
	Seed        *int64        `json:"seed,omitempty"`
	Thinking    *wireThinking `json:"thinkingConfig,omitempty"`
}

type wireThinking struct {
	Include bool   `json:"includeThoughts,omitempty"`
	Budget  *int   `json:"thinkingBudget,omitempty"`
	Level   string `json:"thinkingLevel,omitempty"`
}

type wireToolConfig struct {
	Calling struct {
		Mode string `json:"mode"`
	} `json:"functionCallingConfig"`
}

type wireFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

func (p *Provider) encode(req *assay.Request) (*wire.Body, error) {
	doc := wireRequest{Config: config(req.Sampling)}
	messages := req.Messages
	if len(messages) > 0 && messages[0].Role == assay.System {
		doc.System = &wireContent{Parts: []any{wireText{messages[0].Content}}}
	}
	c := conversation{provider: p, contents: make([]wireContent, 0, len(messages))}
	for i := range messages {
		if i > 0 || doc.System == nil {
			c.add(i, &messages[i])
		}
	}
	doc.Contents = c.contents
	if mode := modes[req.Sampling.ToolChoice]; mode != "" && len(req.Functions) > 0 {
		doc.ToolConfig = new(wireToolConfig)
		doc.ToolConfig.Calling.Mode = mode
	}
	return p.functions.Body(&doc, req, toolsHead, toolsTail, encodeFunction)
}

// toolsHead and toolsTail enclose the tools in a request's body.
const toolsHead, toolsTail = `,"tools":[{"functionDeclarations":[`, `}]}]}`

func encodeFunction(f *assay.Function) any {
	return &wireFunction{Name: f.Name, Description: f.Description, Parameters: f.Parameters}
}

// modes translates the choice of tools.
var modes = map[string]string{"auto": "AUTO", "required": "ANY", "none": "NONE"}

func config(s assay.Sampling) wireConfig {
	c := wireConfig{Temperature: s.Temperature, TopP: s.TopP, MaxTokens: s.MaxTokens}
	if s.Seed != nil && int64(int32(*s.Seed)) == *s.Seed {
		c.Seed = s.Seed
	}
	if s.Effort != "" || s.Thinking != nil {
		c.Thinking = &wireThinking{
			Include: s.Thinking == nil || *s.Thinking != 0,
			Budget:  s.Thinking, Level: strings.ToUpper(s.Effort),
		}
	}
	return c
}

// conversation collects the contents of a request. Contents alternate between the user and the
// model, so messages of one side are joined.
type conversation struct {
	provider *Provider
	contents []wireContent
	// answers has an answer without its response for each call, by the ID of the call.
	answers map[string]wireAnswer
}

// add adds message i.
func (c *conversation) add(i int, m *assay.Message) {
	switch m.Role {
	case assay.ToolRole:
		answer := c.answers[m.CallID]
		answer.Answer.Response.Output = m.Content
		c.say("user", answer)
	case assay.Assistant:
		c.addReply(i, m)
	default:
		c.say("user", wireText{m.Content})
	}
}

func (c *conversation) say(role string, parts ...any) {
	if n := len(c.contents); n > 0 && c.contents[n-1].Role == role {
		c.contents[n-1].Parts = append(c.contents[n-1].Parts, parts...)
		return
	}
	c.contents = append(c.contents, wireContent{role, parts})
}

// addReply adds the model's own reply, which is message i: as it came, if the endpoint wants that.
func (c *conversation) addReply(i int, m *assay.Message) {
	parts := stateParts(c.provider.StateOf(m), len(m.Calls))
	asItCame := len(parts) > 0
	if !asItCame && (m.Content != "" || len(m.Calls) == 0) {
		text := m.Content
		if text == "" {
			text = wire.EmptyReply
		}
		parts = append(parts, wireText{text})
	}
	for k := range m.Calls {
		call := encodeCall(&m.Calls[k], callID(i, k), asItCame)
		if !asItCame {
			if k == 0 && m.State != nil { // another endpoint's
				call.Signature = noSignature
			}
			parts = append(parts, call)
		}
		if c.answers == nil {
			c.answers = make(map[string]wireAnswer)
		}
		var answer wireAnswer
		answer.Answer.ID, answer.Answer.Name = call.Call.ID, call.Call.Name
		c.answers[m.Calls[k].ID] = answer
	}
	c.say("model", parts...)
}

// encodeCall encodes a call, without its ID if that is generated. The name keeps its spelling if it
// is only needed to answer a call that is sent as it came.
func encodeCall(c *assay.ToolCall, generated string, asItCame bool) (call wireCall) {
	call.Call.Name, call.Call.Args = c.Name, json.RawMessage(wire.SendableArguments(c.Arguments))
	if !asItCame {
		call.Call.Name = sendableName(c.Name)
	}
	if c.ID != generated {
		call.Call.ID = c.ID
	}
	return call
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
