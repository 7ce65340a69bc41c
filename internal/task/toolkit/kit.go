package toolkit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.starlark.net/starlark"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/assay-eval/assay"
)

// A Kit carries out the tools of a catalog. It is immutable and safe for concurrent use.
type Kit struct {
	program *Program
	schemas map[string]*jsonschema.Schema
	server  *assay.MCPServer                   // carries out the tools; nil if the program does
	base    func() (starlark.Value, error)     // what all states have; nil if there is none
	states  *lru.Cache[string, starlark.Value] // frozen
}

// keptStates is how many states a kit keeps for later attempts. Each may take a few megabytes.
const keptStates = 16

// Of returns the kit of a catalog. All callers share one.
func Of(catalog *assay.Catalog) (*Kit, error) {
	type made struct {
		kit *Kit
		err error
	}
	m := catalog.Derived(func(c *assay.Catalog) any {
		kit, err := New(c)
		return made{kit, err}
	}).(made)
	return m.kit, m.err
}

// New compiles the script and the schemas of a catalog.
func New(catalog *assay.Catalog) (*Kit, error) {
	states, err := lru.New[string, starlark.Value](keptStates)
	if err != nil {
		return nil, err
	}
	k := &Kit{
		schemas: make(map[string]*jsonschema.Schema), server: catalog.Server(), states: states,
	}
	if s := catalog.Script(); s.Source != "" {
		if k.program, err = Compile(s); err != nil {
			return nil, err
		}
		if len(s.Base) > 0 {
			k.base = sync.OnceValues(func() (starlark.Value, error) {
				v, err := decode(s.Base)
				if err == nil {
					v.Freeze()
				}
				return v, err
			})
		}
	}
	for _, t := range catalog.All() {
		if len(t.Schema) == 0 {
			continue
		}
		schema, err := CompileSchema(t.Schema)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", t.Name, err)
		}
		k.schemas[t.Name] = schema
	}
	return k, nil
}

// CompileSchema reads a JSON schema, which must not refer to other files.
func CompileSchema(text json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("the schema is not JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	const url = "tool:schema"
	if err := c.AddResource(url, doc); err != nil {
		return nil, fmt.Errorf("not a JSON schema: %w", err)
	}
	schema, err := c.Compile(url)
	if err != nil {
		return nil, fmt.Errorf("not a JSON schema: %w", err)
	}
	return schema, nil
}

// ReadArguments checks the arguments that a model wrote. It returns them without members that are
// null and not allowed to be, or an error that the model can act on.
func (k *Kit) ReadArguments(tool, text string) (json.RawMessage, error) {
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, errors.New("the arguments have to be one JSON object")
	}
	args, ok := v.(map[string]any)
	if v == nil {
		args, ok = map[string]any{}, true
	}
	if !ok {
		return nil, errors.New("the arguments have to be one JSON object")
	}
	if _, err := toStarlark(args, recordDepth); err != nil {
		return nil, err
	}
	schema := k.schemas[tool]
	if environment := k.server != nil && k.server.OpenEnv; schema != nil && !environment {
		if err := validate(schema, args); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if !k.takes(tool, schema, name) {
			return nil, fmt.Errorf("%s has no parameter %q", tool, assay.Head(name, 80))
		}
	}
	return json.Marshal(args)
}

// takes reports whether a tool takes an argument of a name. A script takes those that its schema
// lists, and no other ones of its function unless the schema says that there are more. A server
// takes whatever fits the schema. An environment may do so, too, but a schema that says that there
// are no more names is enforced.
func (k *Kit) takes(tool string, s *jsonschema.Schema, name string) bool {
	script := k.server == nil && k.program.Has(tool)
	if script && !k.program.takes(tool, name) {
		return false
	}
	if s == nil {
		return true
	}
	_, listed := s.Properties[name]
	for pattern := range s.PatternProperties {
		listed = listed || pattern.MatchString(name)
	}
	combined := s.Ref != nil || s.DynamicRef != nil || s.If != nil ||
		len(s.AllOf)+len(s.AnyOf)+len(s.OneOf)+len(s.DependentSchemas) > 0
	switch more := s.AdditionalProperties.(type) {
	case nil:
		return listed || combined || !script
	case bool:
		return listed || more
	}
	return true
}

// validate checks arguments. Models often write null for an optional argument that they leave out,
// so a second look goes without these.
func validate(schema *jsonschema.Schema, args map[string]any) error {
	first := schema.Validate(args)
	if first == nil {
		return nil
	}
	dropped := false
	for name, v := range args {
		if v == nil && !slices.Contains(schema.Required, name) {
			delete(args, name)
			dropped = true
		}
	}
	if dropped && schema.Validate(args) == nil {
		return nil
	}
	return errors.New(mistakes(first))
}

// mistakes words the leaves of a validation error.
func mistakes(err error) string {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err.Error()
	}
	printer := message.NewPrinter(language.English)
	var texts []string
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			walk(cause)
		}
		if len(e.Causes) > 0 {
			return
		}
		text := e.ErrorKind.LocalizedString(printer)
		if at := strings.Join(e.InstanceLocation, "."); at != "" {
			text = at + ": " + text
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	walk(invalid)
	slices.Sort(texts)
	const most = 5
	return strings.Join(texts[:min(most, len(texts))], "; ")
}

// Has reports whether the script has a function.
func (k *Kit) Has(function string) bool { return k.program != nil && k.program.Has(function) }

// Judge calls a check, a function check(state, calls, answer) that returns True, False, a level, or
// a level and reasons. The state is as [Session.State] returned it.
func (k *Kit) Judge(
	check string, state json.RawMessage, calls []assay.CallRecord, answer string,
) (assay.Level, []string, error) {
	if k.program == nil {
		return "", nil, fmt.Errorf("there is no script with the check %s", check)
	}
	s, err := k.After(state)
	if err != nil {
		return "", nil, err
	}
	list, err := decode(record(calls))
	if err != nil {
		return "", nil, err
	}
	list.Freeze()
	s.state.frozen = true
	at := s.root()
	result, err := k.program.call(check, starlark.Tuple{at, list, starlark.String(answer)}, nil)
	if err != nil {
		return "", nil, errors.New(Broke("the check "+check, err))
	}
	level, reasons, ok := levelOf(result)
	if !ok {
		return "", nil, errors.New(Broke("the check "+check, k.program.misfit(check,
			fmt.Errorf("a check returns True, False, a level "+
				"(full_success, partial_success or failure), or a level and a list of reasons, not a %s",
				result.Type()))))
	}
	return level, reasons, nil
}

// recordDepth is how deep arguments and results are in the value of [record].
const recordDepth = 2

// record returns calls as a check sees them. What a script cannot hold is null.
func record(calls []assay.CallRecord) json.RawMessage {
	list := []map[string]any{}
	raw := func(text string) any {
		if !json.Valid([]byte(text)) {
			return nil
		}
		if _, err := decodeAt(json.RawMessage(text), recordDepth); err != nil {
			return nil // such arguments were refused
		}
		return json.RawMessage(text)
	}
	for _, c := range calls {
		list = append(list, map[string]any{
			"tool": c.Tool, "arguments": raw(c.Arguments), "ok": c.OK, "output": raw(c.Output),
			"code": c.Code, "error": c.Error,
		})
	}
	text, err := json.Marshal(list)
	if err != nil {
		panic("toolkit: calls as JSON: " + err.Error())
	}
	return text
}

func levelOf(v starlark.Value) (level assay.Level, reasons []string, ok bool) {
	switch v := v.(type) {
	case starlark.Bool:
		if v {
			return assay.FullSuccess, nil, true
		}
		return assay.Failure, nil, true
	case starlark.String:
		return assay.Level(v), nil, slices.Contains(assay.Levels, assay.Level(v))
	case starlark.Tuple:
		if len(v) != 2 {
			return "", nil, false
		}
		level, _, ok = levelOf(v[0])
		list, isList := v[1].(starlark.Iterable)
		if text, isText := v[1].(starlark.String); isText {
			return level, []string{string(text)}, ok
		}
		if !isList {
			return "", nil, false
		}
		for item := range starlark.Elements(list) {
			text, isText := starlark.AsString(item)
			if !isText {
				text = item.String()
			}
			reasons = append(reasons, text)
		}
		return level, reasons, ok
	}
	return "", nil, false
}

// Fields returns the names that the script's functions write as fields of objects, sorted.
func (k *Kit) Fields() []string {
	if k.program == nil {
		return nil
	}
	return k.program.fields
}

// Checks returns the names of the script's functions that can be called as a check, sorted.
func (k *Kit) Checks() []string {
	return slices.DeleteFunc(k.Functions(), func(f string) bool { return !k.program.canCheck(f) })
}

// Functions returns the names of the script's functions, sorted.
func (k *Kit) Functions() []string {
	if k.program == nil {
		return nil
	}
	return k.program.Functions()
}
