package library

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
)

// A foreignTool is a tool of a JSON registry.
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

// readRegistry reads a tool registry: a JSON object whose keys are the tools' names, or a list of
// tools as OpenAI has it. It sorts the tools of an object by execution order; tools without one
// follow by name. The error lists all problems at once.
//
// Unused counts the fields of tools that are not read.
func readRegistry(path string) (_ []assay.Tool, unused fieldCounts, _ error) {
	mark, err := markLength(path)
	if err != nil {
		return nil, nil, err
	}
	b, err := readJSON(path, mark)
	if err != nil {
		return nil, nil, err
	}
	if isToolList(b) {
		return readToolList(path, mark, b)
	}
	var registry map[string]foreignTool
	var fields map[string]map[string]json.RawMessage
	if err := json.Unmarshal(b, &registry); err != nil {
		return nil, nil, registryError(path, mark, err)
	}
	places, problems := toolPlaces(b)
	tools := registryTools(registry)
	if problems = append(problems, checkTools(tools)...); len(problems) > 0 {
		return nil, nil, notValid(path, mark, places, problems)
	}
	if err := json.Unmarshal(b, &fields); err != nil {
		return nil, nil, registryError(path, mark, err)
	}
	for _, tool := range fields {
		unused.add(unknownFields(tool, reflect.TypeFor[foreignTool]()))
	}
	unused.sort()
	return tools, unused, nil
}

func readToolList(path string, mark int64, b []byte) (_ []assay.Tool, unused fieldCounts, _ error) {
	var list []listedTool
	var fields []map[string]json.RawMessage
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, nil, registryError(path, mark, err)
	}
	if err := json.Unmarshal(b, &fields); err != nil {
		return nil, nil, registryError(path, mark, err)
	}
	for i, tool := range fields {
		if f := list[i].Function; f != nil {
			var inner map[string]json.RawMessage
			if err := json.Unmarshal(tool["function"], &inner); err != nil {
				return nil, nil, registryError(path, mark, err)
			}
			unused.add(unknownFields(inner, reflect.TypeFor[listedTool]()))
		}
		unused.add(unknownFields(tool, reflect.TypeFor[listedTool]()))
	}
	unused.sort()
	tools, problems := listedTools(list)
	if len(problems) > 0 {
		places, _ := toolPlaces(b)
		return nil, nil, notValid(path, mark, places, problems)
	}
	return tools, unused, nil
}

// maxProblems is the number of problems of a registry that are shown.
const maxProblems = 10

// A problem is a mistake of a tool, which has a name in an object, or else a number in a list.
type problem struct {
	place string
	at    int64 // where it is if it has no place
	text  string
}

// notValid returns an error that shows each problem at its tool.
func notValid(path string, mark int64, places map[string]int64, problems []problem) error {
	var all []error
	for _, p := range problems[:min(len(problems), maxProblems)] {
		at := mark + cmp.Or(places[p.place], p.at)
		all = append(all, errorAt(path, at, errors.New(brief(p.text))))
	}
	if more := len(problems) - maxProblems; more > 0 {
		all = append(all, fmt.Errorf("and %d more problems", more))
	}
	return errors.New(assay.Brief(errors.Join(all...).Error()))
}

func registryError(path string, mark int64, err error) error {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return errorAt(path, mark+max(syntax.Offset-1, 0), err)
	case errors.As(err, &typ) && typ.Field == "":
		return errorAt(path, mark, errors.New("a tool registry must be a JSON object with the tools' "+
			"names as keys, or a list of tools"))
	case errors.As(err, &typ):
		typ.Field = strings.TrimPrefix(typ.Field, "Tool.") // the struct embedded in foreignTool
		return errorAt(path, mark+max(typ.Offset-1, 0), errors.New(misshapen(typ)))
	}
	return errorAt(path, mark, err)
}

// toolPlaces returns where the tools of a valid JSON object or list begin, by name or by number. It
// reports the names that occur more than once.
func toolPlaces(text []byte) (places map[string]int64, problems []problem) {
	dec := json.NewDecoder(bytes.NewReader(text))
	places = make(map[string]int64)
	seen := make(map[string]int)
	open, _ := dec.Token() // null has no tools
	for n := 1; dec.More(); n++ {
		at := dec.InputOffset()
		at += int64(len(text[at:]) - len(bytes.TrimLeft(text[at:], white+",")))
		name := strconv.Itoa(n)
		if open == json.Delim('{') {
			key, _ := dec.Token()
			name = fmt.Sprint(key)
		}
		var skipped json.RawMessage
		if err := dec.Decode(&skipped); err != nil {
			return places, []problem{{at: at, text: err.Error()}}
		}
		switch seen[name]++; seen[name] {
		case 1:
			places[name] = at
		case 2:
			problems = append(problems, problem{at: at, text: fmt.Sprintf(
				"tool %s: defined more than once; remove or rename the others", name)})
		}
	}
	return places, problems
}

// registryTools returns the tools in order. It names them by their keys.
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
		t.Operation = cmp.Or(t.Operation, f.Metadata.Operation, operationOf(name, t.Category))
		tools[i] = t
	}
	return tools
}

// operationOf returns the part of a name after its category.
func operationOf(name, category string) string { return strings.TrimPrefix(name, category+"_") }

// beforeLast returns the part of name before the last underscore.
func beforeLast(name string) string {
	if i := strings.LastIndexByte(name, '_'); i > 0 {
		return name[:i]
	}
	return name
}

// jsonTypes are the types of JSON schema.
var jsonTypes = []string{"string", "number", "integer", "boolean", "object", "array", "null"}

const noTools = "there are no tools; define at least one"

// checkTools returns all problems of tools.
func checkTools(tools []assay.Tool) (problems []problem) {
	if len(tools) == 0 {
		return []problem{{text: noTools}}
	}
	catalog := assay.NewCatalog(tools)
	for _, t := range tools {
		for _, p := range slices.Concat(checkTool(t, catalog), checkFields(t)) {
			problems = append(problems, problem{place: t.Name, text: "tool " + t.Name + ": " + p})
		}
	}
	if cycle := findCycle(catalog); cycle != nil {
		problems = append(problems, problem{place: cycle[0], text: fmt.Sprintf(
			"tool %s: its dependencies form a cycle, %s; remove one of them",
			cycle[0], strings.Join(cycle, " → "))})
	}
	return problems
}

// checkTool checks the name, the errors and the dependencies of a tool.
func checkTool(t assay.Tool, catalog *assay.Catalog) (problems []string) {
	add := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	if strings.TrimSpace(t.Name) == "" {
		add("the key is empty; use the tool's name")
	}
	if len(t.Errors) == 0 {
		add(`add at least one error code, for example {"code": "TIMEOUT"}`)
	}
	for i, e := range t.Errors {
		if e.Code == "" {
			add(`error %d has no code; add one, for example "TIMEOUT"`, i+1)
		}
	}
	for _, d := range t.Dependencies {
		if _, ok := catalog.Tool(d); !ok {
			add("dependency %q is not in the registry%s", d, suggest(d, catalog.Names()))
		}
	}
	return problems
}

// checkFields checks the parameters and results of a tool.
func checkFields(t assay.Tool) (problems []string) {
	add := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}
	types := strings.Join(jsonTypes, ", ")
	names := make(map[string]bool)
	for i, p := range t.Parameters {
		if p.Name == "" {
			add("parameter %d has no name; add one", i+1)
		} else if names[p.Name] {
			add("parameter %q is defined twice; remove or rename one", p.Name)
		}
		names[p.Name] = true
		if !slices.Contains(jsonTypes, p.Type) {
			add("parameter %q has the unknown type %q; use one of %s", p.Name, p.Type, types)
		}
	}
	for _, r := range t.Returns {
		if !slices.Contains(jsonTypes, r.Type) {
			add("result %q has the unknown type %q; use one of %s", r.Name, r.Type, types)
		}
	}
	return problems
}

// findCycle returns the tools of a dependency cycle, or nil if there is none. The first tool is
// repeated at the end.
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
