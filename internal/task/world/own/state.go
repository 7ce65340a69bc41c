package own

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/toolkit"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// wholeState is the path of the state itself.
const wholeState = "the state"

// changes returns the differences between two states, by path.
func changes(before, after json.RawMessage) (all []spec.Change) {
	b, okB := parse(before)
	a, okA := parse(after)
	if !okB || !okA {
		return nil
	}
	difference("", b, a, func(path string, before, after json.RawMessage) {
		all = append(all, spec.Change{Path: path, Before: before, After: after})
	})
	return all
}

// wanted returns each value that a judge asks for, with the one that a final state has in its place.
// The state is as transcripts have it.
func wanted(
	catalog *assay.Catalog, task *assay.Task, judge *assay.Judge, state json.RawMessage,
) ([]spec.Wanted, error) {
	switch {
	case len(judge.State) == 0:
		return nil, nil
	case judge.ByPlan():
		return byPlan(catalog, task, state)
	case len(catalog.Script().Base) == 0:
		return compare(state, judge.State), nil
	}
	kit, err := toolkit.Of(catalog)
	if err != nil {
		return nil, err
	}
	var part json.RawMessage // nil, so nothing is right, if the state is broken
	final, err := kit.After(state)
	if err == nil {
		part, err = final.Part(judge.State)
	}
	return compare(part, judge.State), err
}

// byPlan compares a final state with the one that the reference plan leads to. A call of the plan
// that its tool refuses changes nothing.
func byPlan(
	catalog *assay.Catalog, task *assay.Task, state json.RawMessage,
) (all []spec.Wanted, err error) {
	kit, err := toolkit.Of(catalog)
	if err != nil {
		return nil, err
	}
	planned := kit.Begin(task.State)
	for _, call := range task.Reference.Calls {
		arguments := call.Arguments
		if len(arguments) == 0 {
			arguments = json.RawMessage("{}")
		}
		_, err := planned.Call(context.Background(), call.Tool, arguments)
		if fault := (*assay.Fault)(nil); errors.As(err, &fault) {
			return nil, fault
		}
	}
	there, err := planned.State()
	if err != nil {
		return nil, err
	}
	wrong, err := between(catalog, kit, there, state)
	if err != nil {
		return nil, err
	}
	for _, c := range wrong {
		all = append(all, spec.Wanted{Path: c.Path, Wanted: c.Before, Got: c.After})
	}
	for _, c := range changed(catalog, task.State, there) {
		if !slices.ContainsFunc(wrong, func(w spec.Change) bool {
			return strings.HasPrefix(w.Path, c.Path) || strings.HasPrefix(c.Path, w.Path)
		}) {
			all = append(all, spec.Wanted{Path: c.Path, Wanted: c.After, Got: c.After, Right: true})
		}
	}
	return all, nil
}

// between returns the differences between two final states as transcripts have them, by path.
func between(
	catalog *assay.Catalog, kit *toolkit.Kit, before, after json.RawMessage,
) ([]spec.Change, error) {
	if len(catalog.Script().Base) == 0 {
		if _, ok := parse(after); !ok {
			return nil, errors.New("the state is not JSON")
		}
		return changes(before, after), nil
	}
	b, err := kit.After(before)
	if err != nil {
		return nil, err
	}
	a, err := kit.After(after)
	if err != nil {
		return nil, err
	}
	return since(b, a)
}

// changed returns the differences between a task's state and a final one, by path.
func changed(catalog *assay.Catalog, start, state json.RawMessage) []spec.Change {
	if len(catalog.Script().Base) == 0 {
		if start == nil {
			return nil
		}
		return changes(start, state)
	}
	kit, err := toolkit.Of(catalog)
	if err != nil {
		return nil
	}
	final, err := kit.After(state)
	if err != nil {
		return nil
	}
	all, _ := since(kit.Begin(start), final) // what can be read is shown
	return all
}

// since returns the differences between two states of a library with a base, by path.
func since(start, final *toolkit.Session) (all []spec.Change, err error) {
	found, err := final.Since(start)
	for _, d := range found {
		path := ""
		for _, name := range d.Path {
			if i, ok := name.(int); ok {
				path += fmt.Sprintf("[%d]", i)
			} else {
				path = member(path, name.(string))
			}
		}
		b, was := parse(d.Before)
		a, is := parse(d.After)
		if !was || !is {
			all = append(all, spec.Change{Path: path, Before: d.Before, After: d.After})
			continue
		}
		difference(path, b, a, func(path string, before, after json.RawMessage) {
			all = append(all, spec.Change{Path: path, Before: before, After: after})
		})
	}
	return all, err
}

// difference calls found for each value that differs. A value that one side lacks is nil.
func difference(path string, b, a any, found func(string, json.RawMessage, json.RawMessage)) {
	switch b := b.(type) {
	case map[string]any:
		if a, ok := a.(map[string]any); ok {
			objects(path, b, a, found)
			return
		}
	case []any:
		if a, ok := a.([]any); ok {
			lists(path, b, a, found)
			return
		}
	}
	if !has(a, b) {
		found(named(path), text(b), text(a))
	}
}

func objects(path string, b, a map[string]any, found func(string, json.RawMessage, json.RawMessage)) {
	names := maps.Clone(b)
	maps.Copy(names, a)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		before, was := b[name]
		after, is := a[name]
		switch at := member(path, name); {
		case was && is:
			difference(at, before, after, found)
		case was:
			found(at, text(before), nil)
		default:
			found(at, nil, text(after))
		}
	}
}

// lists compares two lists without their common beginning and end.
func lists(path string, b, a []any, found func(string, json.RawMessage, json.RawMessage)) {
	same := func(x, y any) bool { return has(x, y) && has(y, x) }
	first, last := 0, 0
	for first < min(len(b), len(a)) && same(b[first], a[first]) {
		first++
	}
	for last < min(len(b), len(a))-first && same(b[len(b)-1-last], a[len(a)-1-last]) {
		last++
	}
	b, a = b[:len(b)-last], a[:len(a)-last]
	for i := first; i < max(len(b), len(a)); i++ {
		switch at := fmt.Sprintf("%s[%d]", path, i); {
		case i >= len(b):
			found(at, nil, text(a[i]))
		case i >= len(a):
			found(at, text(b[i]), nil)
		default:
			difference(at, b[i], a[i], found)
		}
	}
}

// compare returns each value that a judge asks for, with the one that the state has in its place.
// All of them are right if the state contains them; see [contains].
func compare(state, want json.RawMessage) (all []spec.Wanted) {
	if len(want) == 0 {
		return nil
	}
	w, _ := parse(want)
	s, known := parse(state)
	var walk func(path string, w, s any, there bool)
	walk = func(path string, w, s any, there bool) {
		switch w := w.(type) {
		case map[string]any:
			if object, ok := s.(map[string]any); ok && len(w) > 0 {
				for _, name := range slices.Sorted(maps.Keys(w)) {
					value, there := object[name]
					walk(member(path, name), w[name], value, there)
				}
				return
			}
		case []any:
			if list, ok := s.([]any); ok && len(list) == len(w) && len(w) > 0 {
				for i := range w {
					walk(fmt.Sprintf("%s[%d]", path, i), w[i], list[i], true)
				}
				return
			}
		}
		v := spec.Wanted{Path: named(path), Wanted: text(w), Right: known && has(s, w)}
		v.Right = v.Right && (there || w == nil)
		if there {
			v.Got = text(s)
		}
		all = append(all, v)
	}
	walk("", w, s, known)
	return all
}

// wrongly reports whether a value is not the wanted one.
func wrongly(v spec.Wanted) bool { return !v.Right }

// asWanted words which of the values that a judge asks for the state does not have.
func asWanted(all []spec.Wanted) string {
	if len(all) == 0 {
		return "it is as it was"
	}
	var wrong []string
	for _, v := range all {
		if wrongly(v) {
			wrong = append(wrong, v.Path)
		}
	}
	text := fmt.Sprintf("%d of %s as wanted", len(all)-len(wrong), assay.Counted(len(all), "value"))
	if len(wrong) > 0 {
		text += "; not " + strings.Join(wrong, ", ")
	}
	return text
}

// member returns the path of a member of an object. A name that would be mistaken for a part of the
// path is quoted.
func member(path, name string) string {
	if name == "" || strings.ContainsAny(name, ".[]\" \n") {
		name = fmt.Sprintf("%q", name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func named(path string) string {
	if path == "" {
		return wholeState
	}
	return path
}

// text returns a value as JSON on one line.
func text(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("own: state as JSON: " + err.Error())
	}
	return bytes.TrimSpace(b.Bytes())
}
