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

// maxRegistry is the size limit of files of tools.
const maxRegistry = 64 << 20

// readRegistry reads a tool registry: a JSON object whose keys are the tools' names, or a list of
// tools as OpenAI has it. It sorts the tools of an object by execution order; tools without one
// follow by name. The error lists all problems at once.
//
// Unused counts the fields of tools that are not read.
func readRegistry(path string) (_ []assay.Tool, unused fieldCounts, _ error) {
	f, err := readJSON(path, maxRegistry, true)
	if err != nil {
		return nil, nil, err
	}
	r := registry{
		file: f, tools: make(map[string]foreignTool), places: make(map[string]int),
		unused: make(fieldCounts),
	}
	var tools []assay.Tool
	switch open := bytes.TrimSpace(f.text)[0]; open {
	case '[':
		tools, err = r.list()
	case '{', 'n': // null has no tools
		tools, err = r.object()
	default:
		err = f.at(0, "a tool registry must be a JSON object with the tools' "+
			"names as keys, or a list of tools", "")
	}
	if err == nil && len(r.problems) > 0 {
		err = r.notValid()
	}
	if err != nil {
		return nil, nil, err
	}
	return tools, r.unused, nil
}

// A registry is a file of tools that is being read.
type registry struct {
	file     *jsonFile
	tools    map[string]foreignTool
	places   map[string]int // of the tools
	problems []problem
	unused   fieldCounts
}

// object reads the tools of an object.
func (r *registry) object() ([]assay.Tool, error) {
	twice := make(map[string]bool)
	for p := range parts(r.file.text, 0) {
		if _, known := r.places[p.name]; known {
			if !twice[p.name] {
				twice[p.name] = true
				r.add(p.at, "tool %s: defined more than once; remove or rename the others", p.name)
			}
			continue
		}
		r.places[p.name] = p.at
		var tool foreignTool
		if err := r.decode(p, &tool); err != nil {
			return nil, err
		}
		r.tools[p.name] = tool
		r.unused.add(unknownFields(p.text, reflect.TypeFor[foreignTool]()))
	}
	tools := registryTools(r.tools)
	r.check(tools)
	return tools, nil
}

// decode reads the value of a part.
func (r *registry) decode(p jsonPart, into any) error {
	err := json.Unmarshal(p.text, into)
	if err == nil {
		return nil
	}
	at := p.value
	if typ, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at += max(int(typ.Offset)-1, 0)
	}
	return r.file.at(at, misshapen("a tool", err), "")
}

// maxProblems is the number of problems of a registry that are shown.
const maxProblems = 10

// A problem is a mistake of a tool at a place in the file.
type problem struct {
	at   int
	text string
}

func (r *registry) add(at int, format string, args ...any) {
	r.problems = append(r.problems, problem{at, fmt.Sprintf(format, args...)})
}

// notValid returns an error that shows each problem at its tool.
func (r *registry) notValid() error {
	var all []error
	for _, p := range r.problems[:min(len(r.problems), maxProblems)] {
		all = append(all, r.file.at(p.at, brief(p.text), ""))
	}
	if more := len(r.problems) - maxProblems; more > 0 {
		all = append(all, fmt.Errorf("and %d more problems", more))
	}
	return errors.New(assay.Brief(errors.Join(all...).Error()))
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

// check finds all problems of tools.
func (r *registry) check(tools []assay.Tool) {
	if len(tools) == 0 {
		r.add(0, noTools)
	}
	catalog := assay.NewCatalog(tools)
	for _, t := range tools {
		for _, p := range slices.Concat(checkTool(t, catalog), checkFields(t)) {
			r.add(r.places[t.Name], "tool %s: %s", t.Name, p)
		}
	}
	if cycle := findCycle(catalog); cycle != nil {
		r.add(r.places[cycle[0]], "tool %s: its dependencies form a cycle, %s; remove one of them",
			cycle[0], strings.Join(cycle, " → "))
	}
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
	switch message, hint := unknownHarm(t.Severity); {
	case t.Severity == "":
	case message != "":
		add("%s; %s", message, hint)
	case t.Effect == "":
		add("it has a severity, but no effect; add one, or remove the severity")
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

// findCycle returns the tools of a dependency cycle, or nil if there is no cycle. The first tool is
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
