package plan_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schema is a JSON schema or a part of one.
type schema map[string]any

// schemaFile is a complete schema, including the definitions.
type schemaFile struct{ root schema }

func parseSchema(t *testing.T, text []byte) schemaFile {
	t.Helper()
	var root schema
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	return schemaFile{root}
}

// resolve follows a reference. Other keywords beside a reference are only
// descriptions.
func (f schemaFile) resolve(s schema) schema {
	if ref, ok := s["$ref"].(string); ok {
		defs, _ := f.root["$defs"].(map[string]any)
		def, ok := defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		if !ok {
			panic("missing definition " + ref)
		}
		return def
	}
	return s
}

func sub(s schema, keyword string) schema {
	m, _ := s[keyword].(map[string]any)
	return m
}

func list(s schema, keyword string) []any {
	l, _ := s[keyword].([]any)
	return l
}

// offered returns the names that a schema allows for a value or for the items
// of a list.
func (f schemaFile) offered(s schema) []any {
	s = f.resolve(s)
	names := slices.Clone(list(s, "enum"))
	for _, other := range list(s, "anyOf") {
		names = append(names, f.offered(other.(map[string]any))...)
	}
	if items := sub(s, "items"); items != nil {
		names = append(names, f.offered(items)...)
	}
	return names
}

// property returns the schema of a field, such as limits.turns.
func (f schemaFile) property(path string) schema {
	s := f.root
	for name := range strings.SplitSeq(path, ".") {
		s = f.resolve(sub(sub(s, "properties"), name))
	}
	return s
}

// violation explains why a value does not match a schema, or returns "" if it does.
func (f schemaFile) violation(t *testing.T, s schema, v any) string {
	t.Helper()
	if err := f.compile(t, s).Validate(v); err != nil {
		return err.Error()
	}
	return ""
}

// compile prepares a part of the file for validation.
func (f schemaFile) compile(t *testing.T, s schema) *jsonschema.Schema {
	t.Helper()
	whole := map[string]any{"$defs": f.root["$defs"]}
	maps.Copy(whole, s)
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", whole); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}
