package assay1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// things holds everything that calls can refer to: the task's inputs and the latest result of
// each tool.
type things struct {
	inputs  map[string]any
	results map[string]result
}

// result holds the parts of a result that later results derive from.
type result struct {
	items    int
	checksum string
}

func newThings(inputs json.RawMessage) *things {
	return &things{inputs: readInputs(inputs), results: make(map[string]result)}
}

// readInputs returns the members of a task's inputs without those that are null. A library holds
// valid JSON; inputs that are not an object have no members. Episodes share the members and never
// change them.
func readInputs(inputs json.RawMessage) map[string]any {
	if len(inputs) == 0 {
		return nil
	}
	hash := maphash.Bytes(inputsSeed, inputs)
	if known, ok := knownInputs.Get(hash); ok && known.text == string(inputs) {
		return known.members
	}
	text := string(inputs)
	in, err := parseObject(text)
	if err != nil {
		return nil
	}
	if len(text) <= largestInputs {
		knownInputs.Add(hash, parsedInputs{text, in})
	}
	return in
}

type parsedInputs struct {
	text    string
	members map[string]any
}

// knownInputs has the latest inputs, by the hash of their text, which is not copied to find them.
// An episode reads its inputs several times, and repeats, variants and models share tasks. Larger
// ones than largestInputs bytes are not kept.
var (
	knownInputs = newKnown[uint64, parsedInputs]()
	inputsSeed  = maphash.MakeSeed()
)

const largestInputs = 16 << 10

// newKnown returns a map for facts about the latest tasks.
func newKnown[K comparable, V any]() *lru.Cache[K, V] {
	known, err := lru.New[K, V](512)
	if err != nil {
		panic("assay1: " + err.Error()) // the size is positive
	}
	return known
}

// check reports a reference to something that does not exist.
func (t *things) check(tool assay.Tool, args map[string]any) *mistake {
	for _, p := range tool.Parameters {
		v, ok := args[p.Name]
		if !ok {
			continue
		}
		if policy.IsData(p) {
			name, isRef := refOf(v)
			if !isRef {
				return invalid(`data has to be a reference such as {"ref": "NAME"}; %s`, t.names())
			}
			if name == spec.InputsName && len(t.inputs) > 0 {
				return invalid("data has to be one of the inputs, not all of them; %s", t.names())
			}
		}
		if s, isText := v.(string); isText && p.Name == "source" && !t.isSource(s) {
			return invalid("source %q is neither in the inputs "+
				"nor the name of a tool that has succeeded", spec.Clip(s))
		}
	}
	for _, name := range refs(args) {
		if !t.has(name) {
			return invalid("%q refers to nothing; %s", spec.Clip(name), t.names())
		}
	}
	return nil
}

// names lists everything that can be referred to.
func (t *things) names() string {
	names := []string{spec.InputsName}
	for _, k := range sortedKeys(t.inputs) {
		names = append(names, spec.InputsName+"."+k)
	}
	return "there are " + strings.Join(append(names, sortedKeys(t.results)...), ", ")
}

func (t *things) has(name string) bool {
	if _, ok := t.results[name]; ok || name == spec.InputsName {
		return true
	}
	member, ok := strings.CutPrefix(name, spec.InputsName+".")
	if ok {
		_, ok = t.inputs[member]
	}
	return ok
}

// isSource reports whether a text can be a source. If the inputs do not name a source, any text
// can be one.
func (t *things) isSource(s string) bool {
	if _, ok := t.results[s]; ok {
		return true
	}
	if stated, _ := t.inputs["source"].(string); stated == "" {
		return true
	}
	for _, v := range t.inputs {
		if v == s {
			return true
		}
	}
	return false
}

// refs returns the names that references in v refer to, depth first and in the order of the
// members' names.
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
	name, ok := m[spec.RefKey].(string)
	return name, ok
}

// used returns the names that a call builds on, in the order of the arguments' names. These are
// references, and a source that is a result.
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

// add stores the result of a successful call and returns it as JSON.
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

// Fields are the members of fields of results that are objects.
var Fields = []string{"items", "checksum", "operation"}

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

// items returns how many items a call works on.
func (t *things) items(used []string) int {
	for _, name := range used {
		if r, ok := t.results[name]; ok {
			return r.items
		}
		if member, ok := strings.CutPrefix(name, spec.InputsName+"."); ok {
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

// length returns the length of an array, or of an object's array "records".
func length(v any) (int, bool) {
	if m, ok := v.(map[string]any); ok {
		v = m["records"]
	}
	list, ok := v.([]any)
	return len(list), ok
}
