//go:build !race

package library_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/yamldoc/yamldoctest"
)

// withRegistry imports one task with a registry.
func withRegistry(t testing.TB, registry string) (*library.Library, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "registry.json")
	if err := os.WriteFile(path, []byte(registry), 0o600); err != nil {
		t.Fatal(err)
	}
	const task = `[{
		"id": "a", "task_type": "simple_task", "description": "x", "required_tools": ["x_a"]
	}]`
	_, l, err := imported(t, task, func(o *library.ImportOptions) { o.Tools = path })
	return l, err
}

func TestRegistrySortsToolsByExecutionOrderThenName(t *testing.T) {
	t.Parallel()
	const errs = `"errors": [{"code": "TIMEOUT"}]`
	l, err := withRegistry(t, "\xef\xbb\xbf{"+
		`"x_b": {`+errs+`, "metadata": {"category": "c", "operation": "o"}},
		 "x_y_c": {`+errs+`, "dependencies": ["x_a"],
			"dependency_metadata": {"execution_order": 1}},
		 "x_a": {"name": "x_a", `+errs+`},
		 "x_d": {`+errs+`, "dependency_metadata": {"execution_order": 0}}}`)
	if err != nil {
		t.Fatal(err)
	}
	var got [][3]string
	for _, tool := range l.Catalog().All() {
		got = append(got, [3]string{tool.Name, tool.Category, tool.Operation})
	}
	want := [][3]string{
		{"x_d", "x", "d"}, {"x_y_c", "x_y", "c"}, {"x_a", "x", "a"}, {"x_b", "c", "o"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

// placed matches an error with a file, a line, a column and an excerpt.
var placed = regexp.MustCompile(`(?m)\.(json|yaml|star):[1-9]\d*:[1-9]\d*: [^^]*\n[ |\t]*\^`)

func TestRegistryErrorsExplainTheProblem(t *testing.T) {
	t.Parallel()
	const errs = `"errors": [{"code": "TIMEOUT"}]`
	tool := func(fields string) string { return `{"x_a": {` + errs + `, ` + fields + `}}` }
	for _, tt := range []struct{ name, registry, want string }{
		{
			"unknown dependency", tool(`"dependencies": ["x_aa"]`),
			`tool x_a: dependency "x_aa" is not in the registry; did you mean x_a?`,
		},
		{
			"unknown severity", tool(`"effect": "pays", "severity": "hihg"`),
			`tool x_a: unknown severity "hihg"; did you mean high?`,
		},
		{
			"severity without effect", tool(`"severity": "high"`),
			"tool x_a: it has a severity, but no effect; add one, or remove the severity",
		},
		{
			"cycle", `{"x_a": {` + errs + `, "dependencies": ["x_b"]},
				"x_b": {` + errs + `, "dependencies": ["x_c"]},
				"x_c": {` + errs + `, "dependencies": ["x_b"]}}`,
			"registry.json:2:5: tool x_b: its dependencies form a cycle, x_b → x_c → x_b; remove one of them",
		},
		{"own dependency", tool(`"dependencies": ["x_a"]`), "x_a → x_a"},
		{
			"no errors", `{"x_a": {}}`,
			`tool x_a: add at least one error code, for example {"code": "TIMEOUT"}`,
		},
		{
			"no code", `{"x_a": {"errors": [{}]}}`,
			`tool x_a: error 1 has no code; add one, for example "TIMEOUT"`,
		},
		{
			"parameter type", tool(`"parameters": [{"name": "p", "type": "dict"}]`),
			`tool x_a: parameter "p" has the unknown type "dict"; use one of string,`,
		},
		{
			"parameter without name", tool(`"parameters": [{"type": "string"}]`),
			"tool x_a: parameter 1 has no name; add one",
		},
		{
			"parameter twice", tool(`"parameters": [
				{"name": "p", "type": "string"}, {"name": "p", "type": "string"}]`),
			`tool x_a: parameter "p" is defined twice; remove or rename one`,
		},
		{
			"result type", tool(`"returns": [{"name": "r", "type": ""}]`),
			`tool x_a: result "r" has the unknown type ""; use one of string,`,
		},
		{
			"tool twice", `{"x_a": {` + errs + `}, "x_a": {` + errs + `}}`,
			`registry.json:1:44: tool x_a: defined more than once; remove or rename the others`,
		},
		{"no name", `{"": {` + errs + `}}`, "the key is empty; use the tool's name"},
		{"no tools", `{}`, "there are no tools; define at least one"},
		{"null", `null`, "there are no tools; define at least one"},
		{
			"neither an object nor a list", `"x_a"`,
			"registry.json:1:1: a tool registry must be a JSON object",
		},
		{"list without tools", `[]`, "there are no tools; define at least one"},
		{"list without names", `[{"type": "function"}]`, "tool 1 of the list has no name"},
		{
			"list with a tool twice", `[{"name": "x_a"}, {"function": {"name": "x_a"}}]`,
			"registry.json:1:19: tool x_a: defined more than once",
		},
		{
			"list with a broken schema", `[{"name": "x_a", "parameters": {"type": "objekt"}}]`,
			"tool x_a: ",
		},
		{"list with a wrong type", `[{"name": 7}]`, "registry.json:1:11: "},
		{
			"wrong type", "{\"x_a\": {\n\"errors\": 5}}",
			"registry.json:2:11: errors must be a list, not a number",
		},
		{
			"broken", "{\"x_a\": {\n  \"errors\" []}}",
			"registry.json:2:12: invalid character '[' after object key\n" +
				"  2 |   \"errors\" []}}\n    |            ^",
		},
		{"cut", `{"x_a": {`, "registry.json:1:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := withRegistry(t, tt.registry)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got\n%v\nwant\n%s", err, tt.want)
			}
			if !placed.MatchString(err.Error()) {
				t.Errorf("the error doesn't show its place: %v", err)
			}
		})
	}
}

func FuzzRegistry(f *testing.F) {
	const plain = `{"x_a": {"errors": [{"code": "TIMEOUT"}],
		"parameters": [{"name": "p", "type": "string", "default": {}}]}}`
	for _, seed := range append(yamldoctest.Mutations(100, plain), plain) {
		f.Add([]byte(seed))
	}
	f.Add([]byte(`{"x_a": {"dependencies": ["x_b"]}, "x_b": {"dependencies": ["x_a"]}}`))
	f.Add([]byte("{\"x_a\": {\n  \"errors\" []}}"))
	for _, seed := range yamldoctest.JSON(2000) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, registry []byte) {
		l, err := withRegistry(t, string(registry))
		if err != nil {
			return
		}
		valid := json.Valid([]byte(strings.TrimPrefix(string(registry), "\xef\xbb\xbf")))
		if !valid || l.Verify(t.Context()) != nil {
			t.Error("a broken registry was accepted")
		}
	})
}
