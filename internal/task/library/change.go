package library

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// A Change is a task or a tool that differs between two versions of a library.
type Change struct {
	Kind string `json:"kind"` // task or tool
	Name string `json:"name"`
	// What lists the parts that differ, such as prompt and judge. It is "added" or "removed" if one
	// version has no such task or tool.
	What []string `json:"what"`
}

func (c Change) String() string {
	return fmt.Sprintf("%s %s (%s)", c.Kind, c.Name, strings.Join(c.What, ", "))
}

// Changes returns the differences from an earlier version of the library, of which perhaps only
// some tasks are known. Added tasks are only found if the library has its own tools, because these
// libraries are known as a whole.
func (l *Library) Changes(ctx context.Context, earlier *Library) ([]Change, error) {
	changes, functions := toolChanges(earlier.catalog, l.catalog)
	before, err := earlier.all(ctx)
	if err != nil {
		return nil, err
	}
	for key, old := range before {
		task, err := l.Task(ctx, key.ID, key.Difficulty)
		var what []string
		switch {
		case errors.Is(err, ErrTaskNotFound):
			what = []string{"removed"}
		case err != nil:
			return nil, err
		default:
			what = taskChanges(&old, &task, functions)
		}
		if len(what) > 0 {
			changes = append(changes, Change{"task", string(key.ID), what})
		}
	}
	if l.Own() {
		now, err := l.all(ctx)
		if err != nil {
			return nil, err
		}
		for key := range now {
			if _, known := before[key]; !known {
				changes = append(changes, Change{"task", string(key.ID), []string{"added"}})
			}
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.String(), b.String()) })
	return changes, nil
}

// all returns the tasks of a library.
func (l *Library) all(ctx context.Context) (map[TaskKey]assay.Task, error) {
	tasks := make(map[TaskKey]assay.Task)
	err := each(ctx, l.db, func(scan func(...any) error) error {
		var body []byte
		if err := scan(&body); err != nil {
			return err
		}
		var t assay.Task
		err := json.Unmarshal(body, &t)
		tasks[TaskKey{t.ID, t.Difficulty}] = t
		return err
	}, `SELECT body FROM tasks`)
	return tasks, err
}

// taskChanges names the parts of a task that differ. functions has the script's changed functions.
func taskChanges(old, now *assay.Task, functions map[string]bool) (what []string) {
	type part struct{ value any }
	parts := func(t *assay.Task) map[string]part {
		return map[string]part{
			"prompt":   {[]string{t.Description, t.System, t.EndWord}},
			"inputs":   {string(t.Inputs)},
			"state":    {string(t.State)},
			"tools":    {t.Tools},
			"setup":    {[]any{t.Setup, t.Observe}},
			"judge":    {[]any{t.Judge, t.Required, string(t.Expected)}},
			"plan":     {t.Reference},
			"variants": {t.Variants},
			"type":     {[]string{t.Type, t.Wording}},
		}
	}
	before, after := parts(old), parts(now)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		judged := name == "judge" && now.Judge != nil && functions[now.Judge.Check]
		if judged || !reflect.DeepEqual(before[name], after[name]) {
			what = append(what, name)
		}
	}
	return what
}

// toolChanges returns the tools that differ, and the functions of the script that do.
func toolChanges(old, now *assay.Catalog) (changes []Change, functions map[string]bool) {
	functions = changedFunctions(old.Script().Source, now.Script().Source)
	known := make(map[string]bool)
	for _, t := range now.All() {
		known[t.Name] = true
		before, ok := old.Tool(t.Name)
		if !ok {
			changes = append(changes, Change{"tool", t.Name, []string{"added"}})
			continue
		}
		var what []string
		if !reflect.DeepEqual(before, t) {
			what = append(what, "description")
		}
		if functions[t.Name] {
			what = append(what, "script")
		}
		if len(what) > 0 {
			changes = append(changes, Change{"tool", t.Name, what})
		}
	}
	for _, name := range old.Names() {
		if !known[name] {
			changes = append(changes, Change{"tool", name, []string{"removed"}})
		}
	}
	if len(changes) == 0 && old.Script().Source != now.Script().Source {
		what := slices.Sorted(maps.Keys(functions))
		if len(what) == 0 {
			what = []string{"outside of functions"}
		}
		changes = append(changes, Change{"script", now.Script().Name, what})
	}
	if !bytes.Equal(old.Script().Base, now.Script().Base) {
		changes = append(changes, Change{"base", "of the states", []string{"content"}})
	}
	if !reflect.DeepEqual(old.Server(), now.Server()) {
		changes = append(changes, Change{"server", "of the tools", []string{"command"}})
	}
	return changes, functions
}

var functionHead = regexp.MustCompile(`(?m)^def (\w+)`)

// changedFunctions returns the names of the functions whose texts differ between two scripts.
func changedFunctions(old, now string) map[string]bool {
	texts := func(source string) map[string]string {
		functions := make(map[string]string)
		heads := functionHead.FindAllStringSubmatchIndex(source, -1)
		for i, h := range heads {
			end := len(source)
			if i+1 < len(heads) {
				end = heads[i+1][0]
			}
			functions[source[h[2]:h[3]]] = strings.TrimSpace(source[h[0]:end])
		}
		return functions
	}
	before, after := texts(old), texts(now)
	changed := make(map[string]bool)
	for _, side := range []map[string]string{before, after} {
		for name := range side {
			if before[name] != after[name] {
				changed[name] = true
			}
		}
	}
	return changed
}
