package episode

import (
	"encoding/json"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/adapter"
	"github.com/assay-eval/assay/internal/task/policy"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// The functions of the tool setting discover.
const (
	toolSearch = "tool_search"
	toolInfo   = "tool_info"
	toolCall   = "tool_call"
)

var discoverFunctions = []assay.Function{
	{
		Name:        toolSearch,
		Description: "Find tools by what they do. Returns the best matches with their details.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"query":{"type":"string","description":"what the tool should do, in plain words"}},` +
			`"required":["query"],"additionalProperties":false}`),
	},
	{
		Name:        toolInfo,
		Description: "Read all details of one tool: parameters, results, errors and what it needs.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"tool":{"type":"string","description":"the tool's exact name"}},` +
			`"required":["tool"],"additionalProperties":false}`),
	},
	{
		Name:        toolCall,
		Description: "Execute one tool.",
		Parameters: json.RawMessage(`{"type":"object","properties":{` +
			`"tool":{"type":"string","description":"the tool's exact name"},` +
			`"arguments":{"type":"object","description":"the tool's arguments by name"}},` +
			`"required":["tool"],"additionalProperties":false}`),
	},
}

// Functions returns the functions that a model can call in a world under a tool setting.
func Functions(worldName, setting string, catalog *assay.Catalog) []assay.Function {
	if setting == assay.Discover {
		return discoverFunctions
	}
	return functionsOf(worldName, nil, catalog.All())
}

// functionsOf returns tools as functions, as an adapter offers them.
func functionsOf(worldName string, a *adapter.Adapter, tools []assay.Tool) (functions []assay.Function) {
	for _, t := range tools {
		functions = append(functions, assay.Function{
			Name: t.Name, Description: describe(worldName, a, t), Parameters: a.Schema(t.Name, schema(worldName, t)),
		})
	}
	return functions
}

func describe(worldName string, a *adapter.Adapter, t assay.Tool) string {
	text := a.Text(t.Description)
	if len(t.Dependencies) > 0 {
		text += " " + render("needs first", t.Dependencies)
	}
	if changes := effect(worldName, t); changes != "" {
		text += " " + render("effect", changes)
	}
	return text
}

// effect returns the effect of a tool, in worlds that judge effects.
func effect(worldName string, t assay.Tool) string {
	if d := world.Of(worldName); !d.References && !d.OwnTools {
		return ""
	}
	return t.Effect
}

// A property is a member of an object's JSON schema.
type property struct {
	Type        string `json:"type"`
	Description string `json:"description,omitempty"`
	Default     any    `json:"default,omitempty"`
	// Items describes an array's elements, which can be anything. OpenAI demands it.
	Items      *struct{}           `json:"items,omitempty"`
	Properties map[string]property `json:"properties,omitempty"`
	Required   []string            `json:"required,omitempty"`
}

// schema returns the JSON schema of a tool's arguments, as somebody wrote it or made from the
// parameters. In a world with references, data is a
// reference.
func schema(worldName string, t assay.Tool) json.RawMessage {
	if len(t.Schema) > 0 {
		return t.Schema
	}
	s := struct {
		Type       string              `json:"type"`
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
		Additional bool                `json:"additionalProperties"`
	}{Type: "object", Properties: make(map[string]property), Required: []string{}}
	references := world.Of(worldName).References
	for _, p := range t.Parameters {
		prop := property{Type: p.Type, Description: p.Description, Default: p.Default}
		switch {
		case p.Type == "array":
			prop.Items = &struct{}{}
		case references && policy.IsData(p):
			prop.Properties = map[string]property{
				spec.RefKey: {Type: "string", Description: render("reference", nil)},
			}
			prop.Required = []string{spec.RefKey}
		}
		s.Properties[p.Name] = prop
		if p.Required {
			s.Required = append(s.Required, p.Name)
		}
	}
	return encode(s)
}
