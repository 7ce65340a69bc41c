package plan_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
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

// violation explains why a value does not match a schema, or returns "" if it
// does. It knows the keywords that the two schemas use and panics on any other.
func (f schemaFile) violation(s schema, v any) string {
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		if why := f.keyword(s, keyword, v); why != "" {
			return why
		}
	}
	return ""
}

func (f schemaFile) keyword(s schema, keyword string, v any) string {
	fail := func(is bool) string {
		if is {
			return fmt.Sprintf("%v: not %s %v", v, keyword, s[keyword])
		}
		return ""
	}
	matches := func(s any) bool { return f.violation(s.(map[string]any), v) == "" }
	text, isText := v.(string)
	number, isNumber := v.(float64)
	items, isList := v.([]any)
	object, isObject := v.(map[string]any)
	bound, _ := s[keyword].(float64)
	switch keyword {
	case "$schema", "$defs", "title", "description", "default":
	case "$ref":
		return f.violation(f.resolve(s), v)
	case "type":
		names, ok := s[keyword].([]any)
		if !ok {
			names = []any{s[keyword]}
		}
		return fail(!slices.ContainsFunc(names,
			func(name any) bool { return isOfType(v, name.(string)) }))
	case "enum":
		return fail(!slices.Contains(list(s, keyword), v))
	case "const":
		return fail(v != s[keyword])
	case "anyOf":
		return fail(!slices.ContainsFunc(list(s, keyword), matches))
	case "allOf":
		return fail(slices.ContainsFunc(list(s, keyword), func(s any) bool { return !matches(s) }))
	case "if":
		if matches(s["if"]) {
			return f.violation(sub(s, "then"), v)
		}
		if otherwise, ok := s["else"]; ok {
			return f.violation(otherwise.(map[string]any), v)
		}
	case "then", "else":
	case "pattern":
		return fail(isText && !regexp.MustCompile(s[keyword].(string)).MatchString(text))
	case "minLength":
		return fail(isText && len(text) < int(bound))
	case "minimum":
		return fail(isNumber && number < bound)
	case "exclusiveMinimum":
		return fail(isNumber && number <= bound)
	case "exclusiveMaximum":
		return fail(isNumber && number >= bound)
	case "not":
		return fail(matches(s[keyword]))
	case "maximum":
		return fail(isNumber && number > bound)
	case "minItems":
		return fail(isList && len(items) < int(bound))
	case "maxItems":
		return fail(isList && len(items) > int(bound))
	case "uniqueItems":
		for i, item := range items {
			same := func(other any) bool { return reflect.DeepEqual(other, item) }
			if slices.ContainsFunc(items[:i], same) {
				return fail(true)
			}
		}
	case "items":
		for _, item := range items {
			if why := f.violation(sub(s, keyword), item); why != "" {
				return why
			}
		}
	case "contains":
		return fail(isList &&
			!slices.ContainsFunc(items,
				func(item any) bool { return f.violation(sub(s, keyword), item) == "" }))
	case "propertyNames":
		for name := range object {
			if why := f.violation(sub(s, keyword), name); why != "" {
				return why
			}
		}
	case "minProperties":
		return fail(isObject && len(object) < int(bound))
	case "required":
		for _, name := range list(s, keyword) {
			if _, ok := object[name.(string)]; isObject && !ok {
				return fail(true)
			}
		}
	case "properties":
		for name, p := range sub(s, keyword) {
			if value, ok := object[name]; ok {
				if why := f.violation(p.(map[string]any), value); why != "" {
					return why
				}
			}
		}
	case "additionalProperties":
		for name, value := range object {
			if _, ok := sub(s, "properties")[name]; ok {
				continue
			}
			if s[keyword] == false {
				return fmt.Sprintf("no property %s", name)
			}
			if why := f.violation(sub(s, keyword), value); why != "" {
				return why
			}
		}
	default:
		panic("the test does not support the schema keyword " + keyword)
	}
	return ""
}

func isOfType(v any, name string) bool {
	switch v := v.(type) {
	case nil:
		return name == "null"
	case string:
		return name == "string"
	case bool:
		return name == "boolean"
	case float64:
		return name == "number" || name == "integer" && v == float64(int64(v))
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	}
	return false
}
