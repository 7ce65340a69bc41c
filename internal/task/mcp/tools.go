package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/toolkit"
)

// tool is a tool of a running server.
type tool struct {
	assay.Tool
	result  *jsonschema.Schema // of structured results; nil without a promise
	promise string             // the same schema as the server has it
}

// list asks the server for its tools.
func (s *Server) list(ctx context.Context) (map[string]*tool, error) {
	tools := make(map[string]*tool)
	for t, err := range s.session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		if tools[t.Name] != nil {
			return nil, fmt.Errorf("it has two tools named %q", t.Name)
		}
		if len(tools) == maxTools {
			return nil, fmt.Errorf("it has more than %d tools", maxTools)
		}
		if tools[t.Name], err = s.newTool(t); err != nil {
			return nil, fmt.Errorf("its tool %q is not valid: %w", t.Name, err)
		}
	}
	if len(tools) == 0 {
		return nil, errors.New("it has no tools")
	}
	return tools, nil
}

// difference returns an error if a server's tools are not those that it had before.
func difference(before, now map[string]*tool) error {
	for name, t := range before {
		switch n := now[name]; {
		case n == nil:
			return fmt.Errorf("it changed its tools: %s is gone", name)
		case !reflect.DeepEqual(t.Tool, n.Tool) || t.promise != n.promise:
			return fmt.Errorf("it changed its tools: %s is another", name)
		}
	}
	for name := range now {
		if before[name] == nil {
			return fmt.Errorf("it changed its tools: %s is new", name)
		}
	}
	return nil
}

func (s *Server) newTool(t *sdk.Tool) (*tool, error) {
	// A decoded schema is encoded with sorted keys, so equal schemas have equal texts.
	text, err := json.Marshal(t.InputSchema)
	if err != nil {
		return nil, err
	}
	schema := json.RawMessage(s.secret.Replace(string(text)))
	if _, err := toolkit.CompileSchema(schema); err != nil {
		return nil, err
	}
	out := &tool{Tool: assay.Tool{
		Name: t.Name, Description: s.secret.Replace(t.Description), Schema: schema,
		Parameters: []assay.Parameter{},
		Returns:    []assay.Return{}, Errors: []assay.ToolError{}, Dependencies: []string{},
	}}
	if t.OutputSchema == nil {
		return out, nil
	}
	result, err := json.Marshal(t.OutputSchema)
	if err == nil {
		out.promise = string(result)
		out.result, err = toolkit.CompileSchema(result)
	}
	return out, err
}

// Tools returns the tools, sorted by name.
func (s *Server) Tools() []assay.Tool {
	var tools []assay.Tool
	for _, name := range s.Names() {
		tools = append(tools, s.tools[name].Tool)
	}
	return tools
}

// output returns a result as JSON: the structured result if there is one, the text if it is the
// only content, and otherwise a list of contents. It fails if a structured result is missing or
// wrong.
func (t *tool) output(r *sdk.CallToolResult) (json.RawMessage, error) {
	if r.StructuredContent != nil {
		b, err := json.Marshal(r.StructuredContent)
		if err != nil {
			return nil, err
		}
		return b, t.check(b)
	}
	if t.result != nil {
		return nil, errors.New("the result lacks the structured content that the server promised")
	}
	if len(r.Content) == 1 {
		if text, ok := r.Content[0].(*sdk.TextContent); ok {
			return asJSON(text.Text)
		}
	}
	return json.Marshal(contents(r.Content))
}

// check returns an error if a structured result does not match its schema.
func (t *tool) check(result json.RawMessage) error {
	if t.result == nil {
		return nil
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(result)))
	if err == nil {
		err = t.result.Validate(v)
	}
	if err != nil {
		// The first line names the schema's place, which is ours.
		_, why, _ := strings.Cut(err.Error(), "\n")
		return fmt.Errorf("the result is not what the server promised: %s", strings.TrimSpace(why))
	}
	return nil
}

// asJSON returns a text that is a JSON object or array as it is, and any other text as a string.
func asJSON(text string) (json.RawMessage, error) {
	if s := strings.TrimSpace(text); strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
		if json.Valid([]byte(s)) {
			return json.RawMessage(s), nil
		}
	}
	return json.Marshal(text)
}

// resultPart is one part of a result. Pictures and sounds are named, because a conversation about
// tools is text.
type resultPart struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	MIME string `json:"mime_type,omitempty"`
	URI  string `json:"uri,omitempty"`
	// Bytes is the size of data that is left out.
	Bytes int `json:"bytes,omitempty"`
}

func contents(list []sdk.Content) []resultPart {
	parts := make([]resultPart, 0, len(list))
	for _, c := range list {
		switch c := c.(type) {
		case *sdk.TextContent:
			parts = append(parts, resultPart{Type: "text", Text: c.Text})
		case *sdk.ImageContent:
			parts = append(parts, resultPart{Type: "image", MIME: c.MIMEType, Bytes: len(c.Data)})
		case *sdk.AudioContent:
			parts = append(parts, resultPart{Type: "audio", MIME: c.MIMEType, Bytes: len(c.Data)})
		case *sdk.ResourceLink:
			parts = append(parts, resultPart{Type: "link", URI: c.URI, MIME: c.MIMEType})
		case *sdk.EmbeddedResource:
			parts = append(parts, embedded(c.Resource))
		}
	}
	return parts
}

func embedded(r *sdk.ResourceContents) resultPart {
	if r == nil {
		return resultPart{Type: "resource"}
	}
	return resultPart{
		Type: "resource", URI: r.URI, MIME: r.MIMEType, Text: r.Text, Bytes: len(r.Blob),
	}
}

// textOf returns the texts of a result, one a line.
func textOf(r *sdk.CallToolResult) string {
	var lines []string
	for _, c := range r.Content {
		if text, ok := c.(*sdk.TextContent); ok {
			lines = append(lines, text.Text)
		}
	}
	if len(lines) == 0 {
		return "the tool failed without a reason"
	}
	return strings.Join(lines, "\n")
}

// Describe starts a server once and returns its tools, sorted by name.
func Describe(ctx context.Context, config *assay.MCPServer) ([]assay.Tool, error) {
	s, err := Open(ctx, config)
	if err != nil {
		return nil, err
	}
	tools := s.Tools()
	return tools, s.Close()
}
