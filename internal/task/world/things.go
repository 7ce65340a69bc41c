package world

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/assay-eval/assay"
)

// InputsName is the reference to all inputs of a task, and with a dot and a
// name behind it to one of them.
const InputsName = "inputs"

// RefKey is the member that makes an object a reference.
const RefKey = "ref"

// IsReference reports whether assay-1 takes nothing but a reference for a
// parameter.
func IsReference(p assay.Parameter) bool { return p.Name == "data" && p.Type == "object" }

// things are what calls can refer to: the task's inputs and the latest result
// of each tool.
type things struct {
	inputs  map[string]any
	results map[string]result
}

// result is what later results derive from an earlier one.
type result struct {
	items    int
	checksum string
}

func newThings(inputs json.RawMessage) *things {
	// A library holds valid JSON; inputs that are no object have no members.
	in, err := parseObject(string(inputs))
	if err != nil {
		in = nil
	}
	return &things{inputs: in, results: make(map[string]result)}
}

// check finds a reference that names nothing.
func (t *things) check(tool assay.Tool, args map[string]any) *mistake {
	for _, p := range tool.Parameters {
		v, ok := args[p.Name]
		if !ok {
			continue
		}
		if IsReference(p) {
			if _, isRef := refOf(v); !isRef {
				return invalid(`data has to be a reference such as {"ref": "NAME"}; %s`, t.names())
			}
		}
		if s, isText := v.(string); isText && p.Name == "source" && !t.isSource(s) {
			return invalid("source %q is neither in the inputs nor the name of a tool that has succeeded", Clip(s))
		}
	}
	for _, name := range refs(args) {
		if !t.has(name) {
			return invalid("%q refers to nothing; %s", Clip(name), t.names())
		}
	}
	return nil
}

// names tells what can be referred to.
func (t *things) names() string {
	names := []string{InputsName}
	for _, k := range sortedKeys(t.inputs) {
		names = append(names, InputsName+"."+k)
	}
	return "there are " + strings.Join(append(names, sortedKeys(t.results)...), ", ")
}

func (t *things) has(name string) bool {
	if _, ok := t.results[name]; ok || name == InputsName {
		return true
	}
	member, ok := strings.CutPrefix(name, InputsName+".")
	if ok {
		_, ok = t.inputs[member]
	}
	return ok
}

// isSource reports whether a text can be a source. Where the inputs name none,
// nobody knows what exists.
func (t *things) isSource(s string) bool {
	if _, ok := t.results[s]; ok {
		return true
	}
	if _, stated := t.inputs["source"].(string); !stated {
		return true
	}
	for _, v := range t.inputs {
		if v == s {
			return true
		}
	}
	return false
}

// refs returns the names that references in v name: in the order of members'
// names, depth first.
func refs(v any) []string {
	switch v := v.(type) {
	case []any:
		var names []string
		for _, e := range v {
			names = append(names, refs(e)...)
		}
		return names
	case map[string]any:
		if name, ok := refOf(v); ok {
			return []string{name}
		}
		var names []string
		for _, k := range sortedKeys(v) {
			names = append(names, refs(v[k])...)
		}
		return names
	}
	return nil
}

// refOf returns the name that v refers to, if it is a reference.
func refOf(v any) (string, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return "", false
	}
	name, ok := m[RefKey].(string)
	return name, ok
}

// used returns the names that a call builds on, in the order of the arguments'
// names: references, and a source that is a result.
func (t *things) used(args map[string]any) []string {
	var names []string
	for _, k := range sortedKeys(args) {
		if s, ok := args[k].(string); ok && k == "source" {
			if _, isResult := t.results[s]; isResult {
				names = append(names, s)
			}
			continue
		}
		names = append(names, refs(args[k])...)
	}
	return names
}

// add makes the result of a call that worked and returns it as JSON.
func (t *things) add(tool assay.Tool, args map[string]any) []byte {
	used := t.used(args)
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n%s\n", tool.Name, canonical(args))
	for _, name := range used {
		if r, ok := t.results[name]; ok {
			text.WriteString(r.checksum + "\n")
		}
	}
	sum := sha256.Sum256([]byte(text.String()))
	r := result{items: t.items(used), checksum: hex.EncodeToString(sum[:6])}
	t.results[tool.Name] = r
	out := make(map[string]any, len(tool.Returns))
	for _, f := range tool.Returns {
		out[f.Name] = r.value(tool, f)
	}
	return canonical(out)
}

func (r result) value(tool assay.Tool, f assay.Return) any {
	switch f.Type {
	case "boolean":
		return true
	case "array":
		return []any{}
	case "number", "integer":
		return r.items
	case "string":
		return r.checksum
	}
	v := map[string]any{"items": r.items, "checksum": r.checksum}
	if f.Name == "metadata" {
		v["operation"] = tool.Operation
	}
	return v
}

// items is how many things a call works on.
func (t *things) items(used []string) int {
	for _, name := range used {
		if r, ok := t.results[name]; ok {
			return r.items
		}
		if member, ok := strings.CutPrefix(name, InputsName+"."); ok {
			if n, ok := length(t.inputs[member]); ok {
				return n
			}
		}
	}
	if n, ok := t.inputs["record_count"].(json.Number); ok {
		if n, err := n.Int64(); err == nil {
			return int(n)
		}
	}
	if n, ok := length(t.inputs["data"]); ok {
		return n
	}
	return 1
}

// length is that of an array, or of the array records of an object.
func length(v any) (int, bool) {
	if m, ok := v.(map[string]any); ok {
		v = m["records"]
	}
	list, ok := v.([]any)
	return len(list), ok
}
