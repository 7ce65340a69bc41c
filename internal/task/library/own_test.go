//go:build !race

package library_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/yamldoc/yamldoctest"
)

var example = filepath.Join("..", "..", "..", "cmd", "assay", "example")

const (
	ownScript = `
def get(state, id, filter = None):
    return state

def ok(state, calls, answer):
    return True
`
	ownTools = `
file: t.star
tools:
  - {name: get, description: Gets it., parameters: {id: {type: integer}, filter: {type: object}}}
`
	ownTasks = `
tools: tools.yaml
tasks:
  - id: a
    prompt: Get it.
    judge: {calls: [{tool: get, arguments: {id: 1}}]}
`
)

func writeOwn(t testing.TB, tasks, tools, script string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"tasks.yaml": tasks, "tools.yaml": tools, "t.star": script, "base.json": `{"a": {"b": 1}}`,
		"list.json": `[1]`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "tasks.yaml")
}

// TestOwnMistakes plants a mistake in each of the files and checks where it is found.
func TestOwnMistakes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, old, new, want string }{
		"unknown field":       {"tasks", "prompt:", "promt:", `tasks.yaml:5:5: unknown field "promt"`},
		"unknown tool":        {"tasks", "tool: get", "tool: gte", `tasks.yaml:6:28: unknown tool "gte"`},
		"no judge":            {"tasks", "judge: {calls: [{tool: get, arguments: {id: 1}}]}", "type: x", "task a has no judge"},
		"empty judge":         {"tasks", "{calls: [{tool: get, arguments: {id: 1}}]}", "{order: any}", "satisfied by everybody"},
		"rubric, no model":    {"tasks", "judge: {", "judge: {rubric: ok, ", "tasks.yaml:6:12: no model judges task a by its rubric"},
		"model, no rubric":    {"tasks", "judge: {", "judge: {model: m, ", "tasks.yaml:6:20: the judge of task a has a model and no rubric"},
		"more than a rubric":  {"tasks", "tasks:", "judge: {check: ok}\ntasks:", `unknown field "check"`},
		"blank answer":        {"tasks", "judge: {", "judge: {answer: [\"40\", \" \"], ", "tasks.yaml:6:28: this text is empty, so every answer has it"},
		"blank other answer":  {"tasks", "judge: {", "judge: {not_answer: [\"\"], ", "this text is empty, so no answer is without it"},
		"empty state":         {"tasks", "{calls: [{tool: get, arguments: {id: 1}}]}", "{state: {}}", "tasks.yaml:6:20: an empty mapping asks for nothing"},
		"empty part":          {"tasks", "    judge: {calls", "    state: {a: {b: {c: 1}}}\n    judge: {state: {x: 1, a: {b: {}}}, calls", "tasks.yaml:7:34: an empty mapping asks for nothing"},
		"empty part of base":  {"tasks", "tasks:\n  - id: a\n    prompt: Get it.\n    judge: {", "base: base.json\ntasks:\n  - id: a\n    prompt: Get it.\n    judge: {state: {a: {}}, ", "an empty mapping asks for nothing"},
		"judge's argument":    {"tasks", "arguments: {id: 1}", "arguments: {di: 1}", "tasks.yaml:6:45: tool get has no argument \"di\""},
		"any_of's argument":   {"tasks", "{tool: get, arguments: {id: 1}}", "{any_of: [{tool: get, arguments: {fliter: {}}}]}", "hint: did you mean filter?"},
		"plan's argument":     {"tasks", "    prompt", "    plan: [{tool: get, arguments: {id: 1, fliter: {}}}]\n    prompt", "tasks.yaml:5:43: tool get has no argument \"fliter\""},
		"plan's value":        {"tasks", "    prompt", "    plan: [{tool: get, arguments: {id: one}}]\n    prompt", "the arguments do not fit the tool get: id: got string, want integer"},
		"plan lacks one":      {"tasks", "    prompt", "    plan: [{tool: get}]\n    prompt", "the arguments do not fit the tool get: missing property 'id'"},
		"zip code":            {"tasks", "arguments: {id: 1}", "arguments: {id: 01234}", "tasks.yaml:6:49: the number 01234 begins with 0"},
		"unknown order":       {"tasks", "judge: {", "judge: {order: none, ", `unknown order "none"`},
		"unknown check":       {"tasks", "judge: {", "judge: {check: okay, ", "no function okay"},
		"unknown state":       {"tasks", "judge: {", "judge: {state: plam, ", `unknown state "plam"`},
		"plan without a plan": {"tasks", "judge: {", "judge: {state: plan, ", "task a has no plan that leads to a state"},
		"two tasks":           {"tasks", "tasks:", "tasks:\n  - {id: a, prompt: x, judge: {answer: [x]}}", "another task is named a"},
		"built-in variant":    {"tasks", "    prompt", "    variants: {optimal: {instruction: x}}\n    prompt", "name of a built-in variant"},
		"flawed variant":      {"tasks", "    prompt", "    variants: {flawed_x: {instruction: x}}\n    prompt", "name of a built-in variant"},
		"empty any_of":        {"tasks", "{tool: get, arguments: {id: 1}}", "{any_of: []}", "tasks.yaml:6:30: the list any_of is empty"},
		"check like a tool":   {"tasks", "judge: {", "judge: {check: gat, ", "hint: known are ok"},
		"tool as a check":     {"tasks", "judge: {", "judge: {check: get, ", "the function get cannot be a check"},
		"forbidden text":      {"tasks", "judge: {", "judge: {forbidden: [get], ", "hint: write {tool: get}"},
		"answer text":         {"tasks", "judge: {", "judge: {answer: ok, ", "hint: write [ok]"},
		"any_of in a plan":    {"tasks", "    prompt", "    plan: [{any_of: [{tool: get}]}]\n    prompt", "definite calls"},
		"no file of tools":    {"tasks", "tools.yaml", "tool.yaml", "there is no file"},
		"scratch directory":   {"tasks", "    prompt:", "    prompt: '{scratch}' #", "its tools have no such directory"},
		"anchors":             {"tasks", "id: a", "id: &x a", "anchors and aliases are not supported"},
		"no base":             {"tasks", "tasks:", "base: none.json\ntasks:", "none.json: no such file"},
		"base of a list":      {"tasks", "tasks:", "base: list.json\ntasks:", "list.json: the state is not an object"},
		"large state":         {"tasks", "    prompt", "    state: {a: " + strings.Repeat("x", 1<<20) + "}\n    prompt", "name that: base: state.json"},
		"no function":         {"tools", "name: get", "name: got", `no function got`},
		"no description":      {"tools", "description: Gets it., ", "", "tool get has no description"},
		"bad schema":          {"tools", "type: integer", "type: whole", "not a JSON schema"},
		"unlisted parameter":  {"tools", "id: {type: integer}, ", "", "the function needs id, which is not listed"},
		"unknown parameter":   {"tools", "filter:", "filtr:", "the function has no parameter filtr"},
		"faults":              {"tools", "name: get,", "name: get, faults: {after: .5},", "add up to 0.5 instead of 1"},
		"no effect":           {"tools", "name: get,", "name: get, effect: none,", "\"none\" is not an effect"},
		"severity":            {"tools", "name: get,", "name: get, effect: asks, severity: hihg,", "tools.yaml:4:41: unknown severity \"hihg\""},
		"severity's hint":     {"tools", "name: get,", "name: get, effect: asks, severity: hihg,", "hint: did you mean high?"},
		"harmless severity":   {"tools", "name: get,", "name: get, severity: high,", "tool get has a severity, but no effect"},
		"forbidden severity":  {"tasks", "judge: {", "judge: {forbidden: [{tool: get, severity: lo}], ", "tasks.yaml:6:47: unknown severity \"lo\""},
		"required severity":   {"tasks", "{tool: get, arguments: {id: 1}}", "{tool: get, severity: low}", "only an entry of forbidden has a severity"},
		"severity in any_of":  {"tasks", "judge: {", "judge: {forbidden: [{any_of: [{tool: get, severity: low}]}], ", "only an entry of forbidden has a severity"},
		"never works":         {"tools", "name: get,", "name: get, reliability: 0,", "a tool of reliability 0 never works"},
		"no tools for a task": {"tasks", "    prompt", "    tools: []\n    prompt", "task a lists no tools"},
		"kind of fault":       {"tools", "name: get,", "name: get, faults: {afterr: 1},", `unknown kind of fault "afterr"`},
		"reliability":         {"tools", "name: get,", "name: get, reliability: 90,", "reliability 90 is not between 0 and 1"},
		"remote schema":       {"tools", "type: integer", "$ref: 'http://127.0.0.1:1/x'", "not a JSON schema"},
		"no script":           {"tools", "t.star", "u.star", "there is no file"},
		"syntax":              {"script", "def get(", "def get((", "t.star:2:10"},
		"fails on loading":    {"script", "def get(", "fail('X')\ndef get(", "t.star:2:5: fail is called when the script is loaded"},
		"no state":            {"script", "def get(state, id, filter = None):\n    return state", "def get():\n    return 1", "no parameter for the state"},
	} {
		files := map[string]string{"tasks": ownTasks, "tools": ownTools, "script": ownScript}
		if !strings.Contains(files[tc.in], tc.old) {
			t.Fatalf("%s: %q is not in the file", name, tc.old)
		}
		files[tc.in] = strings.Replace(files[tc.in], tc.old, tc.new, 1)
		path := writeOwn(t, files["tasks"], files["tools"], files["script"])
		lib, err := library.OpenNamed(t.Context(), path)
		if err == nil {
			lib.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) || !placed.MatchString(err.Error()) {
			t.Errorf("%s: %v, want %q with its place", name, err, tc.want)
		}
	}
}

// TestWrongArgumentsOfFlawedPlans checks that only a right plan has to fit its tools, and that an
// empty mapping may ask for a new one.
func TestWrongArgumentsOfFlawedPlans(t *testing.T) {
	t.Parallel()
	tasks := strings.Replace(ownTasks, "    judge: {", "    variants: {typo: {plan: [{tool: get, arguments: {di: x}}]}}\n"+
		"    state: {a: {}}\n    judge: {state: {a: {b: {}}}, ", 1)
	lib, err := library.OpenNamed(t.Context(), writeOwn(t, tasks, ownTools, ownScript))
	if err != nil {
		t.Fatal(err)
	}
	lib.Close()
}

// TestOwnDigests checks that only an edit of a script, tool or judge makes other tasks.
func TestOwnDigests(t *testing.T) {
	t.Parallel()
	digest := func(tasks, tools, script string) string {
		lib, err := library.OpenNamed(t.Context(), writeOwn(t, tasks, tools, script))
		if err != nil {
			t.Fatal(err)
		}
		defer lib.Close()
		if err := lib.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		refs, err := lib.Refs(t.Context(), "task", "easy")
		if err != nil || len(refs) != 1 {
			t.Fatalf("%d tasks, %v", len(refs), err)
		}
		return refs[0].Digest
	}
	first := digest(ownTasks, ownTools, ownScript)
	if again := digest(ownTasks+"# a comment\n", ownTools, ownScript); again != first {
		t.Error("a comment in the tasks makes another task")
	}
	for name, other := range map[string]string{
		"script": digest(ownTasks, ownTools, ownScript+"\n"),
		"base":   digest("base: base.json\n"+ownTasks, ownTools, ownScript),
		"tools":  digest(ownTasks, strings.Replace(ownTools, "Gets", "Fetches", 1), ownScript),
		"judge":  digest(strings.Replace(ownTasks, "id: 1", "id: 2", 1), ownTools, ownScript),
	} {
		if other == first {
			t.Errorf("another %s makes the same task", name)
		}
	}
}

// TestBasesArePacked checks that the base of a library stays with it.
func TestBasesArePacked(t *testing.T) {
	t.Parallel()
	path := writeOwn(t, "base: base.json\n"+ownTasks, ownTools, ownScript)
	l, err := library.OpenNamed(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	key := library.TaskKey{ID: "a", Difficulty: "easy"}
	part, err := l.Pack(t.Context(), slices.Values([]library.TaskKey{key}))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := library.Unpack(t.Context(), [][]byte{part}, l.Meta().Digest, path)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if base := kept.Catalog().Script().Base; string(base) != `{"a":{"b":1}}` {
		t.Errorf("the base is %s", base)
	}
	if kept.ToolsDigest() != l.ToolsDigest() {
		t.Error("the digests of the tools differ")
	}
}

// TestAnswers checks that a library knows the answers of reference plans by the text of their tasks, and
// that tasks with the same text share theirs.
// TestRubrics checks which tasks a model judges: those with a rubric, of their own or of their file.
func TestRubrics(t *testing.T) {
	t.Parallel()
	path := writeOwn(t, `
tools: tools.yaml
judge: {rubric: " of the file\n", model: m}
tasks:
  - {id: a, prompt: Get it.}
  - {id: b, prompt: Get it.., judge: {check: ok}}
  - {id: c, prompt: Get it..., judge: {rubric: its own, model: n}}
`, ownTools, ownScript)
	l, err := library.OpenNamed(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for id, want := range map[assay.TaskID]assay.Judge{
		"a": {Rubric: "of the file", Model: "m"},
		"b": {Rubric: "of the file", Model: "m", Check: "ok"},
		"c": {Rubric: "its own", Model: "n"},
	} {
		task, err := l.Task(t.Context(), id, "easy")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, task.Judge); diff != "" {
			t.Errorf("task %s (-want +got):\n%s", id, diff)
		}
		if alone := want.Check == ""; task.Judge.Alone() != alone {
			t.Errorf("task %s is judged by a model alone: %v", id, !alone)
		}
	}
	levels, err := l.Levels(t.Context())
	want := []library.JudgeUse{{Model: "m", Tasks: 2, Alone: 1}, {Model: "n", Tasks: 1, Alone: 1}}
	if diff := cmp.Diff(want, levels.Judges); diff != "" || err != nil {
		t.Errorf("judges, %v (-want +got):\n%s", err, diff)
	}
	path = writeOwn(t, strings.Replace(ownTasks, "tasks:", "judge: {model: m}\ntasks:", 1), ownTools, ownScript)
	if l, err = library.OpenNamed(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if levels, err = l.Levels(t.Context()); err != nil || len(levels.Judges) > 0 {
		t.Errorf("without a rubric, these judge: %v, %v", levels.Judges, err)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	task := func(id, prompt, answer string) string {
		return fmt.Sprintf("  - id: %s\n    prompt: %s\n    judge: {calls: [{tool: get, arguments: {id: 1}}]}\n"+
			"    plan: [{tool: get, arguments: {id: 1}}]\n    answer: %q\n", id, prompt, answer)
	}
	lib, err := library.OpenNamed(t.Context(), writeOwn(t, "tools: tools.yaml\ntasks:\n"+
		task("a", "Get it.", "two")+task("b", "Get it.", "one")+task("c", "Get one.", "one")+
		task("d", "Get it.", "one"), ownTools, ownScript))
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	for text, want := range map[string]string{"Get it.": "one\ntwo", "Get one.\n": "one", "Get two.": ""} {
		if got := lib.Answer(text); got != want {
			t.Errorf("%q is answered %q, want %q", text, got, want)
		}
	}
}

// TestOpenAITools checks that tools are taken as OpenAI has them.
func TestOpenAITools(t *testing.T) {
	t.Parallel()
	const schema = `{type: object, required: [id], properties: {id: {type: integer, enum: [1, 2]}, ` +
		`filter: {type: object, properties: {tags: {type: array, items: {type: string}}}}}}`
	for name, tool := range map[string]string{
		"chat":      `{"type": "function", "function": {"name": "get", "description": "Gets.", "strict": true, "parameters": ` + schema + `}}`,
		"responses": `{type: function, name: get, description: Gets., parameters: ` + schema + `}`,
	} {
		path := writeOwn(t, ownTasks, "file: t.star\ntools: ["+tool+"]\n", ownScript)
		lib, err := library.OpenNamed(t.Context(), path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		defer lib.Close()
		got, _ := lib.Catalog().Tool("get")
		const want = `{"properties":{"filter":{"properties":{"tags":{"items":{"type":"string"},"type":"array"}},` +
			`"type":"object"},"id":{"enum":[1,2],"type":"integer"}},"required":["id"],"type":"object"}`
		if string(got.Schema) != want {
			t.Errorf("%s: schema %s, want %s", name, got.Schema, want)
		}
	}
}

// compiled compiles a JSON schema.
func compiled(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("x:schema", doc); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("x:schema")
}

// TestOwnSchemas checks that the schemas describe the examples, and refuse a field that is unknown.
func TestOwnSchemas(t *testing.T) {
	t.Parallel()
	files := map[string]*jsonschema.Schema{
		filepath.Join(example, "tasks.yaml"): compiled(t, library.TasksSchema()),
		filepath.Join(example, "tools.yaml"): compiled(t, library.ToolsSchema()),
	}
	environments, err := filepath.Glob("../../../examples/environments/*.yaml")
	if err != nil || len(environments) == 0 {
		t.Fatal("no environments", err)
	}
	for _, name := range environments {
		files[name] = compiled(t, library.EnvironmentSchema())
	}
	for name, schema := range files {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for more, valid := range map[string]bool{"": true, "\nunknown: 1\n": false} {
			var v any
			if err := yaml.Load([]byte(string(file)+more), &v); err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(v); (err == nil) != valid {
				t.Errorf("%s%s: %v", name, more, err)
			}
		}
	}
}

// wholeEnvironment has every field of a file about an environment.
const wholeEnvironment = `{"name": "n", "environment": {"command": ["a", "{port}"], "env": ["A"],
	"set": {"B": "{dir}"}, "timeout": "5s", "sessions": 3}, "system": "s", "answer": {"type": "a"},
	"success": "reward >= 1", "security": "observation.safe == true", "effects": ["mv"],
	"tools": [{"name": "ls", "description": "d", "effect": "e", "errors": [{"code": "E",
		"description": "d"}], "reliability": 0.5, "faults": {"injected": 1}}],
	"tasks": [{"id": "i", "type": "t", "difficulty": "hard", "prompt": "p", "system": "s",
		"reset": {"id": 1}, "plan": [{"tool": "ls", "arguments": {"a": 1}, "turn": 2}], "answer": "a",
		"later_tools": [{"name": "l", "description": "d", "input_schema": {}}]}]}`

// TestServerSchemas checks that the schemas describe files about a server, and every field of files
// about an environment.
func TestServerSchemas(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		schema []byte
		file   string
	}{
		{library.ToolsSchema(), `{"mcp": {"command": ["a", "{scratch}"], "env": ["A"],
			"set": {"B": "{dir}"}, "timeout": "5s"}, "tools": [{"name": "add", "effect": "adds"}]}`},
		{library.TasksSchema(), `{"tools": "tools.yaml", "tasks": [{"id": "a", "prompt": "b",
			"setup": [{"tool": "add", "arguments": {"n": 1}}], "observe": {"sum": {"tool": "total"}},
			"judge": {"state": {"sum": 1}}}]}`},
		{library.EnvironmentSchema(), wholeEnvironment},
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(tc.file))
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled(t, tc.schema).Validate(v); err != nil {
			t.Error(err)
		}
	}
	if err := library.DecodeEnvironment(wholeEnvironment); err != nil {
		t.Error(err)
	}
}

// FuzzOwnFiles checks that no file makes the reader panic.
func FuzzOwnFiles(f *testing.F) {
	f.Add(ownTasks, ownTools)
	f.Add("tools: tools.yaml\ntasks: [{id: a, prompt: b, judge: {state: {1: 2}}}]", ownTools)
	f.Add(ownTasks, "file: t.star\ntools: [{name: get, description: x, parameters: {type: object, properties: []}}]")
	for _, seed := range yamldoctest.YAML(2000) {
		f.Add(seed, ownTools)
		f.Add(ownTasks, seed)
	}
	for _, seed := range yamldoctest.Mutations(250, ownTasks) {
		f.Add(seed, ownTools)
	}
	for _, seed := range yamldoctest.Mutations(250, ownTools) {
		f.Add(ownTasks, seed)
	}
	f.Fuzz(func(t *testing.T, tasks, tools string) {
		path := writeOwn(t, tasks, tools, ownScript)
		yamldoctest.Check(t, func() error {
			lib, err := library.OpenNamed(t.Context(), path)
			if err == nil {
				lib.Close()
			}
			return err
		})
	})
}
