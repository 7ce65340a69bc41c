package library_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/library"
)

func TestGeneratorVersionPinsItsTasks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lib.db")
	if err := library.Create(t.Context(), path, library.Meta{Name: "x"}, library.Tools(), library.Generate()); err != nil {
		t.Fatal(err)
	}
	l := open(t, path)
	if got := l.Meta().Digest; got != library.BuiltinDigest {
		t.Errorf("the built-in library has the digest %s, pinned is %s for GeneratorVersion %s.\n"+
			"Was a change of tools or tasks intended? Then pin the new digest and raise GeneratorVersion.",
			got, library.BuiltinDigest, library.GeneratorVersion)
	}
}

// requiredTools is how many tools a task of each type requires.
var requiredTools = map[string][2]int{
	"simple_task": {1, 2}, "basic_task": {3, 3}, "data_pipeline": {4, 5},
	"api_integration": {3, 4}, "multi_stage_pipeline": {5, 7},
}

func TestGenerate(t *testing.T) {
	t.Parallel()
	catalog := assay.NewCatalog(library.Tools())
	perType := make(map[string]int)
	used := make(map[string]bool)
	ids := make(map[assay.TaskID]bool)
	texts := make(map[string]assay.TaskID)
	for task := range library.Generate() {
		perType[task.Type]++
		if ids[task.ID] {
			t.Errorf("%s is there twice", task.ID)
		}
		ids[task.ID] = true
		if other, dup := texts[task.Description]; dup {
			t.Errorf("%s and %s have one description: %s", other, task.ID, task.Description)
		}
		texts[task.Description] = task.ID
		if task.Difficulty != "easy" {
			t.Errorf("%s has the difficulty %q", task.ID, task.Difficulty)
		}
		for _, name := range task.Required {
			used[name] = true
		}
		checkRequired(t, catalog, task)
		checkDescription(t, catalog, task)
		checkInputs(t, catalog, task)
		checkExpected(t, catalog, task)
	}
	want := make(map[string]int)
	for _, typ := range assay.TaskTypes {
		want[typ] = 126
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

func checkRequired(t *testing.T, catalog *assay.Catalog, task assay.Task) {
	t.Helper()
	if n, lim := len(task.Required), requiredTools[task.Type]; n < lim[0] || n > lim[1] {
		t.Errorf("%s requires %d tools, want %v", task.ID, n, lim)
	}
	networked := false
	for i, name := range task.Required {
		tool, ok := catalog.Tool(name)
		if !ok {
			t.Errorf("%s requires %q, which is no tool", task.ID, name)
		}
		networked = networked || tool.Category == "network"
		if slices.Contains(task.Required[:i], name) {
			t.Errorf("%s requires %s twice", task.ID, name)
		}
		for _, d := range tool.Dependencies {
			if !slices.Contains(task.Required[:i], d) {
				t.Errorf("%s: %s needs %s, which is not required before it", task.ID, name, d)
			}
		}
	}
	if task.Type == "api_integration" && !networked {
		t.Errorf("%s uses no network: %v", task.ID, task.Required)
	}
}

var (
	sentence = regexp.MustCompile(`\. |\.$`)
	leftover = regexp.MustCompile(`[{}]|  `)
)

func checkDescription(t *testing.T, catalog *assay.Catalog, task assay.Task) {
	t.Helper()
	text := strings.ToLower(task.Description)
	for _, name := range catalog.Names() {
		if strings.Contains(text, name) || strings.Contains(text, strings.ReplaceAll(name, "_", " ")) {
			t.Errorf("%s tells the name of %s: %s", task.ID, name, task.Description)
		}
	}
	if n := len(sentence.FindAllString(task.Description, -1)); n < 1 || n > 3 {
		t.Errorf("%s has %d sentences: %s", task.ID, n, task.Description)
	}
	if leftover.MatchString(task.Description) {
		t.Errorf("%s has an unfilled or empty mark: %s", task.ID, task.Description)
	}
}

func checkInputs(t *testing.T, catalog *assay.Catalog, task assay.Task) {
	t.Helper()
	in := decode(t, task.Inputs)
	for _, name := range task.Required {
		tool, _ := catalog.Tool(name)
		for _, p := range tool.Parameters {
			v, ok := in[p.Name]
			if p.Required && !ok {
				t.Errorf("%s: no input %s for %s", task.ID, p.Name, name)
			}
			if ok && jsonType(v) != p.Type {
				t.Errorf("%s: input %s is a %s, want a %s for %s", task.ID, p.Name, jsonType(v), p.Type, name)
			}
		}
	}
	for _, key := range []string{"source", "input_format", "output_format", "archive", "gateway", "queue", "contract", "system", "destination"} {
		v, ok := in[key].(string)
		if ok && !strings.Contains(strings.ToLower(task.Description), strings.ToLower(v)) {
			t.Errorf("%s does not mention its %s %s: %s", task.ID, key, v, task.Description)
		}
	}
	checkSchema(t, task.ID, in)
}

// checkSchema checks that the records are as the schema demands, so that a
// validation can be expected to pass.
func checkSchema(t *testing.T, id assay.TaskID, in map[string]any) {
	t.Helper()
	schema, ok := in["schema"].(map[string]any)
	if !ok {
		return
	}
	items := schema["properties"].(map[string]any)["records"].(map[string]any)["items"].(map[string]any)
	fields := items["properties"].(map[string]any)
	for _, r := range records(in) {
		for _, name := range items["required"].([]any) {
			if _, ok := r[name.(string)]; !ok {
				t.Errorf("%s: a record lacks %s", id, name)
			}
		}
		for name, v := range r {
			field := fields[name].(map[string]any)
			if enum, ok := field["enum"].([]any); ok && !slices.Contains(enum, v) {
				t.Errorf("%s: %s is %v, not of %v", id, name, v, enum)
			}
			if low, ok := field["minimum"].(float64); ok && (v.(float64) < low || v.(float64) > field["maximum"].(float64)) {
				t.Errorf("%s: %s is %v, out of range", id, name, v)
			}
		}
	}
}

// checkExpected works out anew what the last tool can say about the records.
func checkExpected(t *testing.T, catalog *assay.Catalog, task assay.Task) {
	t.Helper()
	in, want := decode(t, task.Inputs), decode(t, task.Expected)
	tool, _ := catalog.Tool(task.Required[len(task.Required)-1])
	if len(want) != len(tool.Returns) {
		t.Errorf("%s expects %v of %s", task.ID, want, tool.Name)
	}
	for _, r := range tool.Returns {
		if v, ok := want[r.Name]; !ok || jsonType(v) != r.Type {
			t.Errorf("%s expects %s = %v, want a %s", task.ID, r.Name, v, r.Type)
		}
	}
	rows := kept(in, records(in))
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
		var sum float64
		for _, r := range rows {
			sum += r[strings.TrimSuffix(strings.TrimPrefix(in["formula"].(string), "sum("), ")")].(float64)
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

func kept(in map[string]any, rows []map[string]any) []map[string]any {
	filter, ok := in["filter"].(map[string]any)
	if !ok {
		return rows
	}
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

func TestGenerateStops(t *testing.T) {
	t.Parallel()
	n := 0
	for range library.Generate() {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d tasks, want 3", n)
	}
}
