package episode_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
)

// A schema is the part of JSON schema that functions need.
type schema struct {
	Type        string            `json:"type"`
	Description string            `json:"description"`
	Default     any               `json:"default"`
	Items       *schema           `json:"items"`
	Properties  map[string]schema `json:"properties"`
	Required    []string          `json:"required"`
	Additional  *bool             `json:"additionalProperties"`
}

// readSchema parses the schema of a function's arguments. It fails on anything that model endpoints
// refuse.
func readSchema(t *testing.T, f assay.Function) schema {
	t.Helper()
	if !functionName.MatchString(f.Name) || strings.TrimSpace(f.Description) == "" {
		t.Errorf("function %q: %q", f.Name, f.Description)
	}
	dec := json.NewDecoder(bytes.NewReader(f.Parameters))
	dec.DisallowUnknownFields()
	var s schema
	if err := dec.Decode(&s); err != nil {
		t.Fatalf("%s: %v in %s", f.Name, err, f.Parameters)
	}
	if s.Type != "object" || s.Properties == nil || s.Required == nil || s.Additional == nil ||
		*s.Additional {
		t.Errorf("%s: not a closed object: %s", f.Name, f.Parameters)
	}
	for _, name := range s.Required {
		if _, ok := s.Properties[name]; !ok {
			t.Errorf("%s: requires %s but does not have it", f.Name, name)
		}
	}
	for name, p := range s.Properties {
		if !slices.Contains(jsonTypes, p.Type) {
			t.Errorf("%s: %s has the type %q", f.Name, name, p.Type)
		}
		if (p.Type == "array") != (p.Items != nil) {
			t.Errorf("%s: items of %s, a %s: %v", f.Name, name, p.Type, p.Items)
		}
	}
	return s
}

var jsonTypes = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// functionName matches the names that OpenAI accepts.
var functionName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func TestDiscoverFunctions(t *testing.T) {
	t.Parallel()
	var names []string
	for _, f := range episode.Functions(world.PilotName, assay.Discover, catalog) {
		names = append(names, f.Name)
		s := readSchema(t, f)
		if len(s.Required) != 1 || s.Properties[s.Required[0]].Type != "string" {
			t.Errorf("%s: requires %v", f.Name, s.Required)
		}
		for _, tool := range catalog.Names() {
			if strings.Contains(f.Description+string(f.Parameters), tool) {
				t.Errorf("%s names %s", f.Name, tool)
			}
		}
	}
	if want := []string{"tool_search", "tool_info", "tool_call"}; !slices.Equal(names, want) {
		t.Errorf("functions %v, want %v", names, want)
	}
}

func TestListedFunctions(t *testing.T) {
	t.Parallel()
	odd := assay.Tool{
		Name: "odd", Description: "Take everything.", Dependencies: []string{"one", "two"},
	}
	odd.Parameters = []assay.Parameter{
		{Name: "s", Type: "string", Description: "a < b & c", Required: true},
		{Name: "n", Type: "number", Default: 0.0},
		{Name: "i", Type: "integer", Required: true},
		{Name: "b", Type: "boolean", Default: false},
		{Name: "o", Type: "object", Default: map[string]any{}},
		{Name: "a", Type: "array", Default: []any{"x"}},
		{Name: "z", Type: "null"},
	}
	odds := []assay.Tool{odd, {Name: "bare", Description: "Do it."}}
	for _, tools := range [][]assay.Tool{library.Tools(), testTools(), odds} {
		functions := episode.Functions(world.PilotName, assay.Listed, assay.NewCatalog(tools))
		if len(functions) != len(tools) {
			t.Fatalf("%d functions for %d tools", len(functions), len(tools))
		}
		for i, f := range functions {
			matchesTool(t, f, tools[i])
		}
	}
	f := episode.Functions(world.PilotName, assay.Listed, assay.NewCatalog([]assay.Tool{odd}))[0]
	if want := "Take everything. Needs first: one, two."; f.Description != want {
		t.Errorf("description %q, want %q", f.Description, want)
	}
	if !bytes.Contains(f.Parameters, []byte("a < b & c")) {
		t.Errorf("special characters are escaped: %s", f.Parameters)
	}
}

func matchesTool(t *testing.T, f assay.Function, tool assay.Tool) {
	t.Helper()
	s := readSchema(t, f)
	if f.Name != tool.Name || !strings.HasPrefix(f.Description, tool.Description) ||
		len(s.Properties) != len(tool.Parameters) {
		t.Errorf("function %s (%q) with %d properties for the tool %s",
			f.Name, f.Description, len(s.Properties), tool.Name)
	}
	required := []string{}
	for _, p := range tool.Parameters {
		if p.Required {
			required = append(required, p.Name)
		}
		got := s.Properties[p.Name]
		if got.Type != p.Type || got.Description != p.Description ||
			!cmp.Equal(got.Default, p.Default) {
			t.Errorf("%s: property %s is %+v, want %+v", tool.Name, p.Name, got, p)
		}
	}
	if !slices.Equal(s.Required, required) {
		t.Errorf("%s: requires %v, want %v", tool.Name, s.Required, required)
	}
}

// TestDataIsAReference checks that the schema describes data as a reference in assay-1 but not in
// pilot.
func TestDataIsAReference(t *testing.T) {
	t.Parallel()
	tools := assay.NewCatalog([]assay.Tool{{Name: "t", Parameters: []assay.Parameter{
		{Name: "data", Type: "object", Required: true}, {Name: "schema", Type: "object"},
	}}})
	parameters := func(worldName string) string {
		return string(episode.Functions(worldName, assay.Listed, tools)[0].Parameters)
	}
	want := `"data":{"type":"object","properties":{"ref":{"type":"string",` +
		`"description":"the name of a tool that has succeeded, or inputs.NAME for one of the task's inputs"}},` +
		`"required":["ref"]}`
	if got := parameters(world.Assay1Name); !strings.Contains(got, want) {
		t.Errorf("schema in assay-1 is %s, want it to contain %s", got, want)
	}
	if got := parameters(world.PilotName); strings.Contains(got, "ref") {
		t.Errorf("schema in pilot is %s, want no reference", got)
	}
}
