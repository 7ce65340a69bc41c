package library

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"reflect"
	"slices"
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
	number int   // from 1
	offset int64 // where the element starts in the file
	// unused are the fields that an import does not use, and workflow is the plan among them.
	// clash says how another of them contradicts the difficulty; it is empty if none does.
	unused   []string
	workflow json.RawMessage
	clash    string
	// malformed is the reason why the element cannot be a task. It is empty for a task.
	malformed string
}

// taskEntries yields the elements of a task file one by one. The file is a JSON object with a list
// "tasks", or the list alone. An error comes last; it names the file, line and column. The names of
// other fields of the object are appended to others.
func taskEntries(path string, others *[]string) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		f, err := openTaskFile(path)
		if err != nil {
			yield(entry{}, err)
			return
		}
		defer f.Close()
		stopped, err := f.walk(func(e entry) bool { return yield(e, nil) })
		*others = append(*others, f.others...)
		if err != nil && !stopped {
			yield(entry{}, err)
		}
	}
}

// A taskFile reads a task file as a stream.
type taskFile struct {
	*os.File
	text io.Reader // of the file, after the byte order mark
	dec  *json.Decoder
	base int64 // offset in the file where the decoder started
	read int   // number of elements so far
	// others are the fields of the object beside its tasks.
	others []string
}

func openTaskFile(path string) (*taskFile, error) {
	base, err := markLength(path)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(base, io.SeekStart); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	text := &jsonGuard{Reader: f, at: base}
	return &taskFile{File: f, text: text, dec: json.NewDecoder(text), base: base}, nil
}

func (f *taskFile) offset() int64 { return f.base + f.dec.InputOffset() }

// token is the decoder's Token, with positions in errors.
func (f *taskFile) token(s slot) (json.Token, error) {
	start := f.offset()
	tok, err := f.dec.Token()
	if err != nil {
		return nil, f.broken(start, s, err)
	}
	return tok, nil
}

// value is the decoder's Decode, with positions in errors.
func (f *taskFile) value(s slot, v *json.RawMessage) error {
	start := f.offset()
	if err := f.dec.Decode(v); err != nil {
		return f.broken(start, s, err)
	}
	return nil
}

func (f *taskFile) broken(start int64, s slot, err error) error {
	if limit, ok := errors.AsType[*limitError](err); ok {
		return limit.in(f.Name())
	}
	var syntax *json.SyntaxError
	cut := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	if cut || errors.As(err, &syntax) {
		return jsonErrorAt(f.Name(), start, s, err)
	}
	return fmt.Errorf("%s: %w", f.Name(), err)
}

// walk calls visit for every element until it returns false.
func (f *taskFile) walk(visit func(entry) bool) (stopped bool, err error) {
	tok, err := f.token(slot{})
	if err != nil {
		return false, err
	}
	switch tok {
	case json.Delim('['):
		stopped, err = f.list(visit)
	case json.Delim('{'):
		stopped, err = f.object(visit)
	default:
		return false, errorAt(f.Name(), f.base,
			errors.New(`a task file must be a JSON object with a list "tasks", or only the list`))
	}
	if stopped || err != nil {
		return stopped, err
	}
	return false, f.ended()
}

// ended returns an error if there is more than white space left.
func (f *taskFile) ended() error {
	rest := bufio.NewReader(io.MultiReader(f.dec.Buffered(), f.text))
	at := f.offset() + skip(rest, white, math.MaxInt64)
	switch _, err := rest.Peek(1); {
	case err == nil:
		return errorAt(f.Name(), at, errors.New("unexpected text after the end of the task file"))
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

func (f *taskFile) object(visit func(entry) bool) (stopped bool, err error) {
	found, next, start := false, slot{key: true}, f.offset()-1
	for f.dec.More() {
		key, err := f.token(next)
		next.separator = ","
		if err != nil {
			return false, err
		}
		if key != "tasks" {
			f.addOther(brief(fmt.Sprint(key)))
			var skipped json.RawMessage
			if err := f.value(slot{separator: ":"}, &skipped); err != nil {
				return false, err
			}
			continue
		}
		tok, err := f.token(slot{separator: ":"})
		if err != nil {
			return false, err
		}
		if tok != json.Delim('[') {
			return false, errorAt(f.Name(), f.offset()-1, errors.New("\"tasks\" must be a list"))
		}
		if stopped, err = f.list(visit); stopped || err != nil {
			return stopped, err
		}
		found = true
	}
	if _, err := f.token(slot{}); err != nil {
		return false, err
	}
	if !found {
		return false, fmt.Errorf("%w\nhint: a task file is {\"tasks\": [...]} or the list alone; pass a "+
			"tool registry with --tools",
			errorAt(f.Name(), start, errors.New("the object has no list \"tasks\"")))
	}
	return false, nil
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

// list reads the elements and the closing bracket.
func (f *taskFile) list(visit func(entry) bool) (stopped bool, err error) {
	var next slot
	for f.dec.More() {
		var raw json.RawMessage
		if err := f.value(next, &raw); err != nil {
			return false, err
		}
		next.separator = ","
		f.read++
		e := entry{number: f.read, offset: f.offset() - int64(len(raw))}
		e.malformed = misshapen(json.Unmarshal(raw, &e.foreignTask))
		if e.malformed == "" {
			e.examine(raw)
		}
		if !visit(e) {
			return true, nil
		}
	}
	_, err = f.token(slot{})
	return false, err
}

// examine looks at the fields of a task that no import reads.
func (e *entry) examine(task json.RawMessage) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(task, &fields) != nil {
		return
	}
	e.unused = unknownFields(fields, reflect.TypeFor[foreignTask]())
	e.workflow, e.clash = fields["workflow"], contradiction(e.Difficulty, fields)
}

// unknownFields returns the names of the fields that a type does not have.
func unknownFields(fields map[string]json.RawMessage, t reflect.Type) (names []string) {
	for name := range fields {
		known := slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return strings.EqualFold(tag, name) // as encoding/json does
		})
		if !known {
			names = append(names, name)
		}
	}
	return names
}

// misshapen explains why a valid JSON value was not decoded. It returns "" for nil.
func misshapen(err error) string {
	var typ *json.UnmarshalTypeError
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &typ):
		return err.Error()
	case typ.Field == "":
		return "a task must be a JSON object, not " + withArticle(typ.Value)
	}
	want := typ.Type.String()
	switch typ.Type.Kind() {
	case reflect.Slice:
		want = "list"
	case reflect.Struct:
		want = "object"
	case reflect.Float64:
		want = "number"
	}
	return fmt.Sprintf("%s must be %s, not %s",
		typ.Field, withArticle(want), withArticle(typ.Value))
}

func withArticle(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
