package workflow

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// Arguments returns the arguments with which a tool is called as a step of a
// plan after the tools of the earlier steps, whose results exist by then:
// compact JSON with the required parameters, in their order. Values come from
// the task's inputs where these name them. Data flows from the latest earlier
// step that the tool depends on, else from the latest one, else from the
// inputs; a tool without data gets it as its options' input.
//
// The world assay-1 accepts them, unless the inputs state an empty source.
func Arguments(tool assay.Tool, inputs json.RawMessage, earlier []string) json.RawMessage {
	return readInputs(inputs).arguments(tool, earlier)
}

func isData(p assay.Parameter) bool {
	return p.Name == "data" && p.Type == "object" && p.Required
}

func isOptions(p assay.Parameter) bool { return p.Name == "options" && p.Type == "object" }

// origin returns the earlier step whose result a tool works on, "" before the
// first step.
func origin(tool assay.Tool, earlier []string) string {
	for _, name := range slices.Backward(earlier) {
		if slices.Contains(tool.Dependencies, name) {
			return name
		}
	}
	if len(earlier) == 0 {
		return ""
	}
	return earlier[len(earlier)-1]
}

// taskInputs are the members of a task's inputs that are not null.
type taskInputs map[string]json.RawMessage

func readInputs(raw json.RawMessage) taskInputs {
	var in taskInputs
	if json.Unmarshal(raw, &in) != nil { // as in the world, what is no object has no members
		return nil
	}
	for name, v := range in {
		if string(v) == "null" {
			delete(in, name)
		}
	}
	return in
}

func (in taskInputs) arguments(tool assay.Tool, earlier []string) json.RawMessage {
	from := origin(tool, earlier)
	var args arguments
	for _, p := range tool.Parameters {
		switch {
		case isOptions(p) && from != "" && !slices.ContainsFunc(tool.Parameters, isData):
			args = append(args, argument{p.Name, arguments{{"input", reference(from)}}.json()})
		case !p.Required:
		case isData(p):
			args = append(args, argument{p.Name, reference(cmp.Or(from, in.data()))})
		default:
			args = append(args, argument{p.Name, in.value(p)})
		}
	}
	return args.json()
}

// data names the inputs that a tool without an earlier step works on.
func (in taskInputs) data() string {
	if _, ok := in["data"]; ok {
		return spec.InputsName + ".data"
	}
	return spec.InputsName
}

// value is that of a required parameter: the input of its name if it is of the
// parameter's type, else something sensible.
func (in taskInputs) value(p assay.Parameter) json.RawMessage {
	v := in[p.Name]
	switch p.Type {
	case "object":
		if jsonType(v) == "object" {
			return reference(spec.InputsName + "." + p.Name)
		}
		return json.RawMessage("{}")
	case "array":
		return json.RawMessage("[]")
	case "boolean":
		return json.RawMessage("true")
	case "number", "integer":
		if jsonType(v) == "number" && (p.Type == "number" || isWhole(v)) {
			return v
		}
		return json.RawMessage("1")
	}
	if jsonType(v) == "string" && string(v) != `""` {
		return v
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

// jsonType returns the JSON schema type of a value, "" for none.
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

// arguments are a call's arguments in the order in which they are written.
type arguments []argument

type argument struct {
	name  string
	value json.RawMessage
}

// json returns the arguments as compact JSON. Their values have to be compact.
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

// parseArguments reads what [arguments.json] wrote.
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
	if err != nil { // a plan's arguments are an object
		panic("workflow: arguments: " + err.Error())
	}
	return args
}

// reference is the compact JSON that refers to a result or to inputs. No other
// text in compact JSON reads like it, so it can be found and replaced as text.
func reference(name string) json.RawMessage {
	return arguments{{spec.RefKey, quote(name)}}.json()
}

var referencePattern = regexp.MustCompile(`\{"` + spec.RefKey + `":("(?:[^"\\]|\\.)*")\}`)

// references returns the names that the references in compact JSON name.
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

// quote is a text as JSON, without escapes that only HTML needs.
func quote(text string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil { // no text fails
		panic("workflow: quote: " + err.Error())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
