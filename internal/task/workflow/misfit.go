package workflow

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// misfit gives steps arguments that assay-1 refuses.
func (f *flawed) misfit() []Step {
	steps := slices.Clone(f.steps)
	for _, i := range f.victims()[:f.dose] {
		tool, _ := f.catalog.Tool(steps[i].Tool)
		wrong := f.misfits(tool, steps[i].Arguments)
		steps[i].Arguments = wrong[f.dice.pick("arguments", i, len(wrong))]
	}
	return steps
}

// misfits returns wrong variants of a tool's arguments: without a required argument, with a value
// of the wrong type, under a wrong name, or with a reference to something that does not exist.
// There is always at least one.
func (f *flawed) misfits(tool assay.Tool, raw json.RawMessage) []json.RawMessage {
	args := parseArguments(raw)
	if len(args) == 0 {
		return []json.RawMessage{unfit(tool)}
	}
	var wrong []json.RawMessage
	with := func(i int, a argument) {
		changed := slices.Clone(args)
		changed[i] = a
		wrong = append(wrong, changed.json())
	}
	for i, a := range args {
		p := parameter(tool, a.name)
		if p.Required {
			wrong = append(wrong, slices.Delete(slices.Clone(args), i, i+1).json())
		}
		if isChecked(p) {
			with(i, argument{a.name, otherType(a.value)})
		}
		with(i, argument{misnomer(tool, a.name), a.value})
		for _, ref := range references(a.value) {
			dangling := bytes.ReplaceAll(a.value, reference(ref), reference(f.nothing(ref)))
			with(i, argument{a.name, dangling})
		}
	}
	return wrong
}

// unfit returns wrong arguments for a tool that is called without arguments.
func unfit(tool assay.Tool) json.RawMessage {
	for _, p := range tool.Parameters {
		if isOptions(p) {
			return arguments{{p.Name, otherType(json.RawMessage("{}"))}}.json()
		}
	}
	return arguments{{misnomer(tool, "options"), json.RawMessage("{}")}}.json()
}

func parameter(tool assay.Tool, name string) assay.Parameter {
	i := slices.IndexFunc(tool.Parameters, func(p assay.Parameter) bool { return p.Name == name })
	return tool.Parameters[i]
}

// isChecked reports whether assay-1 checks the type of a parameter's value.
func isChecked(p assay.Parameter) bool {
	types := []string{"string", "number", "integer", "boolean", "object", "array"}
	return slices.Contains(types, p.Type)
}

// otherType wraps a string into an array and turns any other value into a string.
func otherType(value json.RawMessage) json.RawMessage {
	if jsonType(value) == "string" {
		return slices.Concat([]byte("["), value, []byte("]"))
	}
	return quote(string(value))
}

// misnomer misspells a parameter's name so that the tool has no parameter of that name.
func misnomer(tool assay.Tool, name string) string {
	return misspelt(name, func(name string) bool {
		return slices.ContainsFunc(tool.Parameters, func(p assay.Parameter) bool {
			return p.Name == name
		})
	})
}

// nothing misspells a reference's name so that it is neither a tool nor an input.
func (f *flawed) nothing(ref string) string {
	in := f.inputs()
	return misspelt(ref, func(name string) bool {
		_, known := f.catalog.Tool(name)
		if input, ok := strings.CutPrefix(name, spec.InputsName+"."); ok && !known {
			_, known = in[input]
		}
		return known || name == spec.InputsName
	})
}

// misspelt leaves out the middle letter of a name. It appends underscores as long as the result is
// a known name.
func misspelt(name string, known func(string) bool) string {
	letters := []rune(name)
	middle := len(letters) / 2
	wrong := string(slices.Delete(letters, middle, min(middle+1, len(letters))))
	for wrong == "" || known(wrong) {
		wrong += "_"
	}
	return wrong
}
