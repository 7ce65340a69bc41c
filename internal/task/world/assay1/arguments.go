package assay1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// readArguments parses the arguments that a model wrote and checks them against the tool's
// parameters: names, presence and types. It drops members that are null. Numbers keep the text
// that the model wrote.
func readArguments(tool assay.Tool, text string) (map[string]any, *mistake) {
	args, err := parseObject(text)
	if err != nil {
		return nil, invalid("the arguments have to be one JSON object: %v", err)
	}
	for _, name := range sortedKeys(args) {
		if !slices.ContainsFunc(tool.Parameters, func(p assay.Parameter) bool {
			return p.Name == name
		}) {
			return nil, invalid("%s has no parameter %q; its parameters are %s",
				tool.Name, spec.Clip(name), parameterNames(tool))
		}
	}
	for _, p := range tool.Parameters {
		v, ok := args[p.Name]
		switch {
		case !ok && p.Required:
			return nil, invalid("the required argument %s (%s) is missing", p.Name, p.Type)
		case !ok:
		case !hasType(v, p.Type):
			return nil, invalid("the argument %s has to be of type %s, not %s", p.Name, p.Type,
				typeOf(v))
		case p.Required && v == "":
			return nil, invalid("the required argument %s is empty", p.Name)
		}
	}
	return args, nil
}

// parseObject reads one JSON object and drops members that are null. An empty text is an object
// without members.
func parseObject(text string) (map[string]any, error) {
	if strings.TrimSpace(text) == "" {
		return map[string]any{}, nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("text follows the object")
	}
	if v == nil {
		return map[string]any{}, nil
	}
	args, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("found %s", typeOf(v))
	}
	for name, v := range args {
		if v == nil {
			delete(args, name)
		}
	}
	return args, nil
}

func parameterNames(tool assay.Tool) string {
	if len(tool.Parameters) == 0 {
		return "none"
	}
	names := make([]string, len(tool.Parameters))
	for i, p := range tool.Parameters {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

// hasType reports whether a value from [parseObject] has a JSON schema type. Other types are not
// checked.
func hasType(v any, typ string) bool {
	switch typ {
	case "string", "boolean", "object", "array", "number":
		return typeOf(v) == typ
	case "integer":
		n, ok := v.(json.Number)
		if !ok {
			return false
		}
		f, err := n.Float64()
		return err == nil && f == math.Trunc(f)
	}
	return true
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// canonical encodes v as JSON with sorted keys and without spaces.
func canonical(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // impossible, because v came from JSON
		panic("assay1: encode: " + err.Error())
	}
	return bytes.TrimSpace(b.Bytes())
}
