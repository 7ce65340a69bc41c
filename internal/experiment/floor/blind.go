package floor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/own"
)

// A blind agent calls tools without reading the task, and answers with all that they returned.
// Without calls it answers with a text.
type blind struct {
	endWord, text string
	calls         func([]assay.Function) []assay.ToolCall
}

// madeUp calls each tool once. Its arguments fit the tool's schema and are made up.
func madeUp(task *assay.Task, _ uint64) assay.Provider { return newBrute(task, nil) }

// filled calls each tool once, with values of the prompt where these fit the tool's schema.
func filled(task *assay.Task, _ uint64) assay.Provider { return newBrute(task, valuesOf(task)) }

func newBrute(task *assay.Task, values []any) assay.Provider {
	return &blind{own.EndWordOf(task), "", func(functions []assay.Function) (calls []assay.ToolCall) {
		for i, f := range functions {
			calls = append(calls, callOf(f, i, maker{values, nil}))
		}
		return calls
	}}
}

// randomCalls is the number of calls of the random agent.
const randomCalls = 8

// random calls random tools with values of the prompt and made-up ones. Each game has other ones.
func random(task *assay.Task, game uint64) assay.Provider {
	h := fnv.New64a()
	h.Write([]byte(task.ID))
	dice := rand.New(rand.NewPCG(h.Sum64(), game))
	values := valuesOf(task)
	return &blind{own.EndWordOf(task), "", func(functions []assay.Function) (calls []assay.ToolCall) {
		for i := range min(randomCalls, randomCalls*len(functions)) {
			f := functions[dice.IntN(len(functions))]
			calls = append(calls, callOf(f, i, maker{values, dice}))
		}
		return calls
	}}
}

// echo calls no tool and answers with the task's own text.
func echo(task *assay.Task, _ uint64) assay.Provider {
	text := task.Description + "\n" + string(task.Inputs)
	return &blind{own.EndWordOf(task), text, nil}
}

// Chat implements [assay.Provider]. The agent makes all calls in its first reply, and claims to be
// done in its second one.
func (b *blind) Chat(_ context.Context, req *assay.Request) (*assay.Response, error) {
	reply := assay.Message{Role: assay.Assistant}
	var outputs []string
	replied := false
	for _, m := range req.Messages {
		replied = replied || m.Role == assay.Assistant
		if m.Role == assay.ToolRole {
			outputs = append(outputs, m.Content)
		}
	}
	switch {
	case b.calls == nil:
		reply.Content = b.text + "\n" + b.endWord
	case replied:
		reply.Content = strings.Join(outputs, "\n") + "\n" + b.endWord
	default:
		reply.Calls = b.calls(req.Functions)
	}
	return &assay.Response{
		Message: reply, ServedModel: req.Model, Waits: assay.Waits{Requests: 1},
	}, nil
}

func callOf(f assay.Function, i int, m maker) assay.ToolCall {
	var schema map[string]any
	_ = json.Unmarshal(f.Parameters, &schema) // a schema that is not an object gets no arguments
	args, ok := m.value("", schema).(map[string]any)
	if !ok {
		args = map[string]any{}
	}
	text, err := json.Marshal(args)
	if err != nil {
		panic("floor: arguments: " + err.Error())
	}
	return assay.ToolCall{ID: fmt.Sprint("call_", i), Name: f.Name, Arguments: string(text)}
}

var wordText = regexp.MustCompile(`[^\s,;:()"']+`)

// valuesOf returns the values of a task's inputs, and the numbers and words of its prompt.
func valuesOf(task *assay.Task) (values []any) {
	var inputs map[string]any
	_ = json.Unmarshal(task.Inputs, &inputs) // no inputs have no values
	for _, name := range slices.Sorted(maps.Keys(inputs)) {
		values = append(values, inputs[name])
	}
	var words []any
	for _, word := range wordText.FindAllString(task.Description, -1) {
		word = strings.TrimRight(word, ".!?")
		if n, err := strconv.ParseFloat(word, 64); err == nil {
			values = append(values, n)
		}
		if strings.ContainsAny(word, "@_-0123456789") {
			values = append(values, word)
		} else {
			words = append(words, word)
		}
	}
	return append(values, words...)
}

// A maker makes up values that fit a schema. Without dice it takes the first value that fits.
type maker struct {
	values []any
	dice   *rand.Rand
}

// value returns a value for a schema. It knows the common keywords only.
func (m maker) value(name string, schema map[string]any) any {
	if v, ok := schema["const"]; ok {
		return v
	}
	if list, ok := schema["enum"].([]any); ok && len(list) > 0 {
		return m.one(list)
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		if list, ok := schema[keyword].([]any); ok && len(list) > 0 {
			if first, ok := list[0].(map[string]any); ok {
				return m.value(name, first)
			}
		}
	}
	typ, _ := schema["type"].(string)
	if list, ok := schema["type"].([]any); ok && len(list) > 0 {
		typ, _ = list[0].(string)
	}
	if typ == "" && schema["properties"] != nil {
		typ = "object"
	}
	switch typ {
	case "object":
		return m.object(schema)
	case "array":
		return m.array(name, schema)
	}
	if v, ok := m.told(typ); ok {
		return v
	}
	return made(typ, schema)
}

// told returns a value of the prompt that has a type.
func (m maker) told(typ string) (any, bool) {
	var fitting []any
	for _, v := range m.values {
		number, isNumber := v.(float64)
		_, isText := v.(string)
		whole := isNumber && number == float64(int64(number))
		if typ == "number" && isNumber || typ == "integer" && whole ||
			typ == "string" && isText || typ == "" {
			fitting = append(fitting, v)
		}
	}
	if len(fitting) == 0 || m.dice != nil && m.dice.IntN(4) == 0 {
		return nil, false
	}
	return m.one(fitting), true
}

func (m maker) one(list []any) any {
	if m.dice == nil {
		return list[0]
	}
	return list[m.dice.IntN(len(list))]
}

func made(typ string, schema map[string]any) any {
	bound := func(keyword string) float64 { f, _ := schema[keyword].(float64); return f }
	switch typ {
	case "boolean":
		return true
	case "integer", "number":
		if most, ok := schema["maximum"].(float64); ok && most < 1 {
			return most
		}
		return max(1, bound("minimum"), bound("exclusiveMinimum")+1)
	case "null":
		return nil
	}
	text := "something"
	for float64(len(text)) < bound("minLength") {
		text += " else"
	}
	if most := int(bound("maxLength")); most > 0 {
		text = assay.Head(text, most)
	}
	return text
}

func (m maker) object(schema map[string]any) any {
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	object := make(map[string]any)
	for _, name := range slices.SortedFunc(maps.Keys(properties), cmp.Compare[string]) {
		if !slices.Contains(required, any(name)) && (m.dice == nil || m.dice.IntN(2) == 0) {
			continue
		}
		property, _ := properties[name].(map[string]any)
		object[name] = m.value(name, property)
	}
	return object
}

func (m maker) array(name string, schema map[string]any) any {
	item, _ := schema["items"].(map[string]any)
	n, _ := schema["minItems"].(float64)
	list := []any{}
	for range max(1, int(n)) {
		list = append(list, m.value(name, item))
	}
	return list
}
