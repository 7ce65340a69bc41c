package library

import (
	"bytes"
	"cmp"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/assay-eval/assay"
)

// A foreignTask is a task of a JSON library. There are two schemas: one has the fields id,
// test_input and expected_output, the other has instance_id, inputs and expected_outputs.
type foreignTask struct {
	ID              string          `json:"id"`
	InstanceID      string          `json:"instance_id"`
	TaskType        string          `json:"task_type"`
	Description     string          `json:"description"`
	Difficulty      string          `json:"difficulty_level"`
	Inputs          json.RawMessage `json:"inputs"`
	TestInput       json.RawMessage `json:"test_input"`
	ExpectedOutputs json.RawMessage `json:"expected_outputs"`
	ExpectedOutput  json.RawMessage `json:"expected_output"`
	RequiredTools   []string        `json:"required_tools"`
}

// task converts the task. A task without a difficulty gets the given one.
func (f foreignTask) task(difficulty string) assay.Task {
	return assay.Task{
		ID:          assay.TaskID(cmp.Or(f.InstanceID, f.ID)),
		Type:        f.TaskType,
		Difficulty:  cmp.Or(f.Difficulty, difficulty),
		Description: strings.TrimSpace(f.Description),
		Inputs:      firstValue(f.Inputs, f.TestInput),
		Expected:    firstValue(f.ExpectedOutputs, f.ExpectedOutput),
		Required:    f.RequiredTools,
	}
}

func firstValue(a, b json.RawMessage) json.RawMessage {
	for _, v := range []json.RawMessage{a, b} {
		if len(v) > 0 && string(v) != "null" {
			return v
		}
	}
	return nil
}

// An entry is one element of a task file.
type entry struct {
	foreignTask
	number int // from 1
	line   int // where the element starts in the file
	// unused are the fields that an import does not use, and workflow is the plan among them. clash
	// describes how a different field contradicts the difficulty; it may be empty.
	unused   []string
	workflow json.RawMessage
	clash    string
	// malformed is the reason why the element cannot be a task. It is empty for a task.
	malformed string
}

// A taskFile is a JSON object with a list "tasks", or the list alone.
type taskFile struct {
	*jsonFile
	tasks []jsonPart // the lists
	// others are the names of the members beside the tasks.
	others []string
}

func openTaskFile(path string) (*taskFile, error) {
	file, err := readJSON(path, maxJSON, false)
	if err != nil {
		return nil, err
	}
	f := &taskFile{jsonFile: file}
	start := len(f.text) - len(bytes.TrimLeft(f.text, " \t\r\n"))
	switch f.text[start] {
	case '[':
		f.tasks = []jsonPart{{value: start, text: f.text[start:]}}
		return f, nil
	case '{':
	default:
		return nil, f.at(start,
			`a task file must be a JSON object with a list "tasks", or only the list`, "")
	}
	for p := range parts(f.text, 0) {
		switch {
		case p.name != "tasks":
			f.addOther(brief(p.name))
		case p.text[0] != '[':
			return nil, f.at(p.value, `"tasks" must be a list`, "")
		default:
			f.tasks = append(f.tasks, p)
		}
	}
	if f.tasks == nil {
		return nil, f.at(start, `the object has no list "tasks"`, "a task file is "+
			`{"tasks": [...]} or the list alone; pass a tool registry with --tools`)
	}
	return f, nil
}

// addOther keeps the name of a field beside the tasks. It keeps few, because it is for people.
func (f *taskFile) addOther(name string) {
	const most = 20
	switch n := len(f.others); {
	case n < most:
		f.others = append(f.others, name)
	case n == most:
		f.others = append(f.others, "…")
	}
}

// entries yields the elements of the lists.
func (f *taskFile) entries(yield func(entry) bool) {
	number, line, before := 0, 1, 0
	for _, list := range f.tasks {
		for p := range parts(list.text, list.value) {
			number++
			line += bytes.Count(f.text[before:p.at], []byte("\n"))
			before = p.at
			e := entry{number: number, line: line}
			e.malformed = misshapen("a task", json.Unmarshal(p.text, &e.foreignTask))
			if e.malformed == "" {
				e.examine(p.text)
			}
			if !yield(e) {
				return
			}
		}
	}
}

// examine looks at the fields of a task that no import reads.
func (e *entry) examine(task json.RawMessage) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(task, &fields) != nil {
		return
	}
	e.unused = unknownFields(task, reflect.TypeFor[foreignTask]())
	e.workflow, e.clash = fields["workflow"], contradiction(e.Difficulty, fields)
}
