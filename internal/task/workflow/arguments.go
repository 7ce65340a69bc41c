package workflow

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// Arguments returns the arguments of a tool that is called as a step of a plan, after the tools of
// the earlier steps. They are compact JSON with the required parameters in their order. Values come
// from the task's inputs if an input has the parameter's name. Data comes from the step's feed (see
// [policy.Feed]), or else from the inputs. A tool that takes no data names the latest of its
// dependencies as the member "input" of its options.
//
// The world assay-1 accepts these arguments.
func Arguments(
	catalog *assay.Catalog, name string, inputs json.RawMessage, earlier []string,
) json.RawMessage {
	return readInputs(inputs).arguments(catalog, name, earlier)
}

func isOptions(p assay.Parameter) bool { return p.Name == "options" && p.Type == "object" }

// dependency returns the latest earlier step that a tool depends on, or "".
func dependency(tool assay.Tool, earlier []string) string {
	for _, name := range slices.Backward(earlier) {
		if slices.Contains(tool.Dependencies, name) {
			return name
		}
	}
	return ""
}

// taskInputs holds the members of a task's inputs, without those that are null.
type taskInputs map[string]json.RawMessage

// knownInputs has the latest inputs of up to 8 KB, because each call of a task uses the same.
var knownInputs, _ = lru.New[string, taskInputs](256) // the size is positive

func readInputs(raw json.RawMessage) taskInputs {
	if in, ok := knownInputs.Get(string(raw)); ok {
		return in
	}
	var in taskInputs
	if json.Unmarshal(raw, &in) != nil { // not an object, so there are no members
		in = nil
	}
	for name, v := range in {
		if string(v) == "null" {
			delete(in, name)
		}
	}
	if len(raw) <= 8<<10 {
		knownInputs.Add(string(raw), in)
	}
	return in
}

func (in taskInputs) arguments(
	catalog *assay.Catalog, name string, earlier []string,
) json.RawMessage {
	tool, _ := catalog.Tool(name)
	from := dependency(tool, earlier)
	var args arguments
	for _, p := range tool.Parameters {
		switch {
		case isOptions(p) && from != "" && !policy.TakesData(tool):
			args = append(args, argument{p.Name, arguments{{"input", reference(from)}}.json()})
		case policy.IsData(p):
			data := in.data()
			if i := policy.Feed(catalog, name, earlier); i != policy.NoFeed {
				data = earlier[i]
			}
			args = append(args, argument{p.Name, reference(data)})
		case !p.Required:
		default:
			args = append(args, argument{p.Name, in.value(p)})
		}
	}
	return args.json()
}

// data returns the name of the inputs that a step without a feed works on.
func (in taskInputs) data() string {
	names := slices.Sorted(maps.Keys(in))
	for _, name := range append([]string{"data", "source"}, names...) {
		if _, ok := in[name]; ok {
			return spec.InputsName + "." + name
		}
	}
	return spec.InputsName
}

// value returns the value of a required parameter: the input of that name if its type fits, or else
// a sensible default.
func (in taskInputs) value(p assay.Parameter) json.RawMessage {
	v := in[p.Name]
	typ := jsonType(v)
	fits := typ == p.Type || typ == "number" && p.Type == "integer" && isWhole(v) ||
		typ == "string" && !isChecked(p)
	switch {
	case fits && typ == "object":
		return reference(spec.InputsName + "." + p.Name)
	case fits && string(v) != `""`:
		return v
	}
	switch p.Type {
	case "object":
		return json.RawMessage("{}")
	case "array":
		return json.RawMessage("[]")
	case "boolean":
		return json.RawMessage("true")
	case "number", "integer":
		return json.RawMessage("1")
	}
	return quote(defaultText(p.Name))
}

func defaultText(name string) string {
	switch {
	case name == "source":
		return "data/input.json"
	case name == "destination":
		return "data/output.json"
	case strings.Contains(name, "format"):
		return "json"
	}
	return "default"
}

func isWhole(number json.RawMessage) bool {
	f, err := json.Number(number).Float64()
	return err == nil && f == math.Trunc(f)
}

// jsonType returns the JSON schema type of a value. It returns "" if there is no value.
func jsonType(v json.RawMessage) string {
	if len(v) == 0 {
		return ""
	}
	switch v[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// arguments holds a call's arguments in the order in which they are written.
type arguments []argument

type argument struct {
	name  string
	value json.RawMessage
}

// json returns the arguments as compact JSON. Their values have to be compact already.
func (args arguments) json() json.RawMessage {
	b := []byte{'{'}
	for i, a := range args {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, quote(a.name)...), ':'), a.value...)
	}
	return append(b, '}')
}

// parseArguments parses the output of [arguments.json].
func parseArguments(raw json.RawMessage) arguments {
	d := json.NewDecoder(bytes.NewReader(raw))
	var args arguments
	_, err := d.Token()
	for err == nil && d.More() {
		var name json.Token
		if name, err = d.Token(); err != nil {
			break
		}
		a := argument{name: name.(string)}
		err = d.Decode(&a.value)
		args = append(args, a)
	}
	if err != nil { // impossible: a plan's arguments are always an object
		panic("workflow: arguments: " + err.Error())
	}
	return args
}

// reference returns the compact JSON that refers to a result or to inputs. No other compact JSON
// looks like it, so references can be found and replaced as text.
func reference(name string) json.RawMessage {
	return arguments{{spec.RefKey, quote(name)}}.json()
}

var referencePattern = regexp.MustCompile(`\{"` + spec.RefKey + `":("(?:[^"\\]|\\.)*")\}`)

// references returns the names that the references in compact JSON refer to.
func references(raw json.RawMessage) []string {
	var names []string
	for _, m := range referencePattern.FindAllSubmatch(raw, -1) {
		var name string
		if err := json.Unmarshal(m[1], &name); err != nil {
			panic("workflow: reference: " + err.Error())
		}
		names = append(names, name)
	}
	return names
}

// quote encodes a text as JSON without the escapes that only HTML needs.
func quote(text string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil { // impossible for a string
		panic("workflow: quote: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
