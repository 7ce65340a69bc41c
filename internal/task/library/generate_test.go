//go:build !race

package library_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
)

// generated returns the built-in tasks.
var generated = sync.OnceValue(func() []assay.Task { return slices.Collect(library.Generate()) })

// at yields the built-in tasks at one difficulty.
func at(difficulty string) iter.Seq[assay.Task] {
	return func(yield func(assay.Task) bool) {
		for _, task := range generated() {
			if task.Difficulty == difficulty && !yield(task) {
				return
			}
		}
	}
}

// oncePerWording yields the built-in tasks outside the mixtures.
func oncePerWording(yield func(assay.Task) bool) {
	for _, task := range generated() {
		if task.Wording == "" && !yield(task) {
			return
		}
	}
}

// requiredTools is the least and greatest number of required tools of each task type.
var requiredTools = map[string][2]int{
	"simple_task": {1, 2}, "basic_task": {3, 3}, "data_pipeline": {4, 5},
	"api_integration": {3, 4}, "multi_stage_pipeline": {5, 7},
}

// Each type has the same number of tasks, every tool is used, and every task can be carried out.
func TestGenerate(t *testing.T) {
	t.Parallel()
	catalog := assay.NewCatalog(library.Tools())
	perType := make(map[string]int)
	used := make(map[string]bool)
	ids := make(map[assay.TaskID]bool)
	for task := range at("easy") {
		perType[task.Type]++
		if ids[task.ID] {
			t.Errorf("two tasks have the ID %s", task.ID)
		}
		ids[task.ID] = true
		for _, name := range task.Required {
			used[name] = true
		}
		checkRequired(t, catalog, task)
		checkInputs(t, catalog, task)
		checkExpected(t, catalog, task)
	}

	want := make(map[string]int)
	for _, typ := range assay.TaskTypes {
		want[typ] = library.TasksPerType
	}
	if diff := cmp.Diff(want, perType); diff != "" {
		t.Errorf("tasks by type (-want +got):\n%s", diff)
	}
	for _, name := range catalog.Names() {
		if !used[name] {
			t.Errorf("no task requires %s", name)
		}
	}
}

// A task has the same content at all difficulties except for its description. In a mixture, it has
// the description of one of the five.
func TestDifficultyChangesWordsOnly(t *testing.T) {
	t.Parallel()
	tasks := make(map[assay.TaskID]map[string]assay.Task)
	for _, task := range generated() {
		if tasks[task.ID] == nil {
			tasks[task.ID] = make(map[string]assay.Task)
		}
		if _, dup := tasks[task.ID][task.Difficulty]; dup {
			t.Errorf("%s occurs twice at %s", task.ID, task.Difficulty)
		}
		tasks[task.ID][task.Difficulty] = task
	}
	if len(tasks) != 630 {
		t.Errorf("got %d tasks, want 630", len(tasks))
	}

	for id, all := range tasks {
		texts := make(map[string]bool)
		for _, difficulty := range assay.Difficulties {
			want := all["easy"]
			want.Difficulty, want.Description = difficulty, all[difficulty].Description
			if got := all[difficulty]; got.Digest() != want.Digest() {
				t.Errorf("%s (-easy +%s):\n%s", id, difficulty, cmp.Diff(want, got))
			}
			texts[want.Description] = true
		}
		if len(texts) != 5 {
			t.Errorf("%s has %d wordings, want 5", id, len(texts))
		}
		for _, name := range assay.Mixtures {
			want := all[all[name].Wording]
			want.Difficulty, want.Wording = name, want.Difficulty
			if got := all[name]; got.Digest() != want.Digest() {
				t.Errorf("%s (-%s +%s):\n%s", id, want.Wording, name, cmp.Diff(want, got))
			}
		}
		if len(all) != 8 {
			t.Errorf("%s has %d difficulties, want 8", id, len(all))
		}
	}
}

func TestGenerateNRefusesNumbersOutOfRange(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 0, library.MaxTasksPerType + 1} {
		_, err := library.GenerateN(n)
		if err == nil || !strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("GenerateN(%d) = %v, want an error with a hint", n, err)
		}
	}
}

func checkRequired(t *testing.T, catalog *assay.Catalog, task assay.Task) {
	t.Helper()
	if n, lim := len(task.Required), requiredTools[task.Type]; n < lim[0] || n > lim[1] {
		t.Errorf("%s requires %d tools, want %v", task.ID, n, lim)
	}
	networked := false
	for i, name := range task.Required {
		tool, ok := catalog.Tool(name)
		if !ok {
			t.Errorf("%s requires the unknown tool %q", task.ID, name)
		}
		networked = networked || tool.Category == "network"
		if slices.Contains(task.Required[:i], name) {
			t.Errorf("%s requires %s twice", task.ID, name)
		}
		for _, d := range tool.Dependencies {
			if !slices.Contains(task.Required[:i], d) {
				t.Errorf("%s: %s needs %s, which is not required earlier", task.ID, name, d)
			}
		}
	}
	if task.Type == "api_integration" && !networked {
		t.Errorf("%s has no network tool: %v", task.ID, task.Required)
	}
}

func checkInputs(t *testing.T, catalog *assay.Catalog, task assay.Task) {
	t.Helper()
	in := decode(t, task.Inputs)
	for _, name := range task.Required {
		tool, _ := catalog.Tool(name)
		for _, p := range tool.Parameters {
			v, ok := in[p.Name]
			if p.Name == "data" && !ok {
				_, ok = in["source"]
				v = map[string]any{}
			}
			if p.Required && !ok {
				t.Errorf("%s: input %s of %s is missing", task.ID, p.Name, name)
			}
			if ok && jsonType(v) != p.Type {
				t.Errorf("%s: input %s of %s has type %s, want %s",
					task.ID, p.Name, name, jsonType(v), p.Type)
			}
		}
	}
	checkSchema(t, task.ID, in)
}

// checkSchema checks that the records satisfy the schema, so that a validation can succeed.
func checkSchema(t *testing.T, id assay.TaskID, in map[string]any) {
	t.Helper()
	schema, ok := in["schema"].(map[string]any)
	if !ok {
		return
	}
	object := func(parent map[string]any, name string) map[string]any {
		return parent[name].(map[string]any)
	}
	items := object(object(object(schema, "properties"), "records"), "items")
	fields := object(items, "properties")
	for _, r := range records(in) {
		for _, name := range items["required"].([]any) {
			if _, ok := r[name.(string)]; !ok {
				t.Errorf("%s: a record lacks %s", id, name)
			}
		}
		for name, v := range r {
			field := object(fields, name)
			if enum, ok := field["enum"].([]any); ok && !slices.Contains(enum, v) {
				t.Errorf("%s: %s is %v, want one of %v", id, name, v, enum)
			}
			low, ok := field["minimum"].(float64)
			if ok && (v.(float64) < low || v.(float64) > field["maximum"].(float64)) {
				t.Errorf("%s: %s is %v, which is out of range", id, name, v)
			}
		}
	}
}

// checkExpected computes the result of the last tool independently.
func checkExpected(t *testing.T, catalog *assay.Catalog, task assay.Task) {
	t.Helper()
	in, want := decode(t, task.Inputs), decode(t, task.Expected)
	tool, _ := catalog.Tool(task.Required[len(task.Required)-1])
	if len(want) != len(tool.Returns) {
		t.Errorf("%s expects the result %v from %s", task.ID, want, tool.Name)
	}
	for _, r := range tool.Returns {
		if v, ok := want[r.Name]; !ok || jsonType(v) != r.Type {
			t.Errorf("%s expects %s = %v, want type %s", task.ID, r.Name, v, r.Type)
		}
	}

	rows := kept(task, in, records(in))
	meta := want["metadata"].(map[string]any)
	if n, ok := meta["records"]; ok {
		count, stated := in["record_count"].(float64)
		if !stated {
			count = float64(len(rows))
		}
		if n != count || count == 0 {
			t.Errorf("%s expects %v records, the inputs have %v", task.ID, n, count)
		}
	}
	if n, ok := meta["groups"]; ok {
		groups := make(map[any]bool)
		for _, r := range rows {
			groups[r[in["group_by"].(string)]] = true
		}
		if n != float64(len(groups)) {
			t.Errorf("%s expects %v groups, the inputs have %d", task.ID, n, len(groups))
		}
	}
	if result, ok := want["result"].(map[string]any); ok && result["value"] != nil {
		formula := in["formula"].(string)
		field := strings.TrimSuffix(strings.TrimPrefix(formula, "sum("), ")")
		var sum float64
		for _, r := range rows {
			sum += r[field].(float64)
		}
		if result["value"] != sum {
			t.Errorf("%s expects the sum %v, the inputs have %v", task.ID, result["value"], sum)
		}
	}
}

func records(in map[string]any) []map[string]any {
	data, ok := in["data"].(map[string]any)
	if !ok {
		return nil
	}
	var rows []map[string]any
	for _, r := range data["records"].([]any) {
		rows = append(rows, r.(map[string]any))
	}
	return rows
}

func kept(task assay.Task, in map[string]any, rows []map[string]any) []map[string]any {
	if !slices.Contains(task.Required, "data_processing_filter") {
		return rows
	}
	filter := in["filter"].(map[string]any)
	return slices.DeleteFunc(rows, func(r map[string]any) bool {
		v := r[filter["field"].(string)]
		if least, ok := filter["at_least"].(float64); ok {
			return v.(float64) < least
		}
		return v != filter["equals"]
	})
}

func decode(t *testing.T, raw json.RawMessage) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func jsonType(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return fmt.Sprintf("%T", v)
}

func TestGenerateStopsWhenTheCallerBreaks(t *testing.T) {
	t.Parallel()
	n := 0
	for range library.Generate() {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("got %d tasks, want 3", n)
	}
}

// TestInputsHaveTheSameNames checks that the names of inputs do not hint at the tools.
func TestInputsHaveTheSameNames(t *testing.T) {
	t.Parallel()
	var names []string
	for task := range oncePerWording {
		got := slices.Sorted(maps.Keys(decode(t, task.Inputs)))
		if names == nil {
			names = got
		}
		if !slices.Equal(got, names) {
			t.Fatalf("%s has the inputs %v, other tasks have %v", task.ID, got, names)
		}
	}
}

// TestNoChainPays checks that an agent that always makes the same calls is right at fewer than 2 %
// of the tasks of a type. Calls that only read do not cost such an agent, so no chain of a type may
// become a different chain when they are left out.
func TestNoChainPays(t *testing.T) {
	t.Parallel()
	catalog := assay.NewCatalog(library.Tools())
	chains := make(map[string]map[string][]string)
	times := make(map[string]int)
	for task := range at("easy") {
		name := task.Type + ": " + strings.Join(task.Required, " ")
		if chains[task.Type] == nil {
			chains[task.Type] = make(map[string][]string)
		}
		chains[task.Type][name] = task.Required
		times[name]++
	}
	for _, all := range chains {
		for name, chain := range all {
			if 50*times[name] >= library.TasksPerType {
				t.Errorf("%d of %d tasks require %s", times[name], library.TasksPerType, name)
			}
			for other, longer := range all {
				if other != name && isWithin(chain, longer) && onlyReads(catalog, longer, chain) {
					t.Errorf("%s does all that is required by %s", other, name)
				}
			}
		}
	}
}

// isWithin reports whether a list remains if some members of a longer one are left out.
func isWithin(list, longer []string) bool {
	for _, name := range longer {
		if len(list) > 0 && list[0] == name {
			list = list[1:]
		}
	}
	return len(list) == 0
}

// onlyReads reports whether the tools, except some, have no effect.
func onlyReads(catalog *assay.Catalog, tools, except []string) bool {
	return !slices.ContainsFunc(tools, func(name string) bool {
		tool, _ := catalog.Tool(name)
		return tool.Effect != "" && !slices.Contains(except, name)
	})
}
