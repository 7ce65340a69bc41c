package library

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// A foreignTool is a tool as a registry file spells it.
type foreignTool struct {
	assay.Tool
	Order struct {
		ExecutionOrder *float64 `json:"execution_order"`
	} `json:"dependency_metadata"`
	Metadata struct {
		Category  string `json:"category"`
		Operation string `json:"operation"`
	} `json:"metadata"`
}

// readRegistry reads a tool registry: a JSON object whose keys are the tools'
// names. The tools come in their execution order; those without one follow by
// name. All that is wrong with the tools is in one error.
func readRegistry(path string) ([]assay.Tool, error) {
	mark, err := markLength(path)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	b = b[mark:]
	var registry map[string]foreignTool
	if err := json.Unmarshal(b, &registry); err != nil {
		return nil, registryError(path, mark, err)
	}
	problems := repeatedKeys(b)
	tools := registryTools(registry)
	if problems = append(problems, checkTools(tools)...); len(problems) > 0 {
		return nil, fmt.Errorf("tool registry %s:\n  %s", path, strings.Join(problems, "\n  "))
	}
	return tools, nil
}

func registryError(path string, mark int64, err error) error {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return errorAt(path, mark+max(syntax.Offset-1, 0), err)
	case errors.As(err, &typ) && typ.Field == "":
		return errorAt(path, mark, errors.New("a tool registry is a JSON object with the tools' names as keys"))
	case errors.As(err, &typ):
		return errorAt(path, mark+max(typ.Offset-1, 0), fmt.Errorf("%s is a %s, not a %s", typ.Field, typ.Value, typ.Type))
	}
	return fmt.Errorf("%s: %w", path, err)
}

// repeatedKeys names the keys that a valid JSON object has more than once.
func repeatedKeys(object []byte) (problems []string) {
	dec := json.NewDecoder(bytes.NewReader(object))
	seen := make(map[json.Token]int)
	if tok, _ := dec.Token(); tok != json.Delim('{') { // null
		return nil
	}
	for dec.More() {
		key, err := dec.Token()
		var skipped json.RawMessage
		if err = errors.Join(err, dec.Decode(&skipped)); err != nil {
			return []string{err.Error()}
		}
		if seen[key]++; seen[key] == 2 {
			problems = append(problems, fmt.Sprintf("tool %s: it is there more than once", key))
		}
	}
	return problems
}

// registryTools returns the tools in order, named by their keys.
func registryTools(registry map[string]foreignTool) []assay.Tool {
	order := func(name string) float64 {
		if o := registry[name].Order.ExecutionOrder; o != nil {
			return *o
		}
		return math.Inf(1)
	}
	names := slices.SortedFunc(maps.Keys(registry), func(a, b string) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a, b))
	})
	tools := make([]assay.Tool, len(names))
	for i, name := range names {
		f := registry[name]
		t := f.Tool
		t.Name = name
		t.Category = cmp.Or(t.Category, f.Metadata.Category, beforeLast(name))
		t.Operation = cmp.Or(t.Operation, f.Metadata.Operation, strings.TrimPrefix(name, t.Category+"_"))
		tools[i] = t
	}
	return tools
}

// beforeLast returns what comes before the last underscore.
func beforeLast(name string) string {
	if i := strings.LastIndexByte(name, '_'); i > 0 {
		return name[:i]
	}
	return name
}

// jsonTypes are the types that JSON schema knows.
var jsonTypes = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

// checkTools says in full what is wrong with tools, a line for each.
func checkTools(tools []assay.Tool) (problems []string) {
	if len(tools) == 0 {
		return []string{"it has no tools"}
	}
	catalog := assay.NewCatalog(tools)
	for _, t := range tools {
		for _, p := range checkTool(t, catalog) {
			problems = append(problems, fmt.Sprintf("tool %s: %s", t.Name, p))
		}
	}
	if cycle := findCycle(catalog); cycle != nil {
		problems = append(problems, fmt.Sprintf("tool %s: its dependencies lead back to it: %s", cycle[0], strings.Join(cycle, " → ")))
	}
	return problems
}

func checkTool(t assay.Tool, catalog *assay.Catalog) (problems []string) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if strings.TrimSpace(t.Name) == "" {
		say("it has no name")
	}
	if len(t.Errors) == 0 {
		say("it lists no errors, so no call of it could ever fail")
	}
	for i, e := range t.Errors {
		if e.Code == "" {
			say("error %d has no code", i+1)
		}
	}
	names := make(map[string]bool)
	for _, p := range t.Parameters {
		if p.Name == "" || names[p.Name] {
			say("parameter name %q is empty or used twice", p.Name)
		}
		names[p.Name] = true
		if !slices.Contains(jsonTypes, p.Type) {
			say("parameter %s has the type %q; valid are %s", p.Name, p.Type, strings.Join(jsonTypes, ", "))
		}
	}
	for _, r := range t.Returns {
		if !slices.Contains(jsonTypes, r.Type) {
			say("result %s has the type %q; valid are %s", r.Name, r.Type, strings.Join(jsonTypes, ", "))
		}
	}
	for _, d := range t.Dependencies {
		if _, ok := catalog.Tool(d); !ok {
			say("it depends on %q, which is no tool%s", d, suggest(d, catalog.Names()))
		}
	}
	return problems
}

// findCycle returns the tools of a dependency cycle, the first one repeated at
// the end, or nil.
func findCycle(catalog *assay.Catalog) []string {
	done := make(map[string]bool)
	var path []string
	var visit func(name string) []string
	visit = func(name string) []string {
		if i := slices.Index(path, name); i >= 0 {
			return append(slices.Clone(path[i:]), name)
		}
		if done[name] {
			return nil
		}
		done[name] = true
		path = append(path, name)
		t, _ := catalog.Tool(name)
		for _, d := range t.Dependencies {
			if c := visit(d); c != nil {
				return c
			}
		}
		path = path[:len(path)-1]
		return nil
	}
	for _, name := range catalog.Names() {
		if c := visit(name); c != nil {
			return c
		}
	}
	return nil
}
