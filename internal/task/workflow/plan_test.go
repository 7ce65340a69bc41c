package workflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/policy"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/assay1"
)

// A corpus is a set of tasks over a catalog. Tasks that differ only in their wording count as one.
type corpus struct {
	name    string
	catalog *assay.Catalog
	tasks   []assay.Task
}

// corpora runs a check on the built-in library, and on the original's if it is available.
func corpora(t *testing.T, check func(t *testing.T, c corpus)) {
	t.Helper()
	t.Run("built-in", func(t *testing.T) {
		t.Parallel()
		c := corpus{"built-in", assay.NewCatalog(library.Tools()), nil}
		seen := make(map[string]bool)
		for task := range library.Generate() {
			key := fmt.Sprint(task.ID, task.Required, string(task.Inputs))
			if !seen[key] {
				c.tasks = append(c.tasks, task)
			}
			seen[key] = true
		}
		check(t, c)
	})
	t.Run("original", func(t *testing.T) {
		t.Parallel()
		catalog, tasks := pilotData(t)
		check(t, corpus{"original", catalog, tasks})
	})
}

// perfect returns a trial of assay-1 in which no call fails by chance.
func perfect() *assay.Trial {
	return &assay.Trial{
		Cell:    assay.Cell{Reliability: 1},
		Setting: assay.Setting{World: world.Assay1Name},
	}
}

// TestPlanWorks checks that assay-1 accepts every step of a plan and that together they are a full
// success. In the pilot world, the steps must be the required tools.
func TestPlanWorks(t *testing.T) {
	t.Parallel()
	corpora(t, func(t *testing.T, c corpus) {
		for _, task := range c.tasks {
			checkPlan(t, c.catalog, &task)
			var names []string
			for _, s := range workflow.For(c.catalog, world.PilotName, &task).Steps {
				names = append(names, s.Tool)
			}
			if !slices.Equal(names, task.Required) {
				t.Errorf("%s: the pilot's plan is %v, want %v", task.ID, names, task.Required)
			}
		}
		t.Logf("%d plans", len(c.tasks))
	})
}

type failer interface {
	Helper()
	Errorf(format string, args ...any)
}

func checkPlan(t failer, catalog *assay.Catalog, task *assay.Task) {
	t.Helper()
	w := world.Begin(context.Background(), catalog, perfect(), task)
	for i, s := range workflow.For(catalog, world.Assay1Name, task).Steps {
		rec, err := w.Call(i, s.Tool, string(s.Arguments))
		if err != nil || !rec.OK {
			t.Errorf("%s: step %d, %s %s: %v %s", task.ID, i+1, s.Tool, s.Arguments, err, rec.Error)
		}
		tool, _ := catalog.Tool(s.Tool)
		if len(tool.Dependencies) > 0 && takesInput(tool) && !policy.TakesData(tool) && !refersBack(s) {
			t.Errorf("%s: step %d, %s %s does not use an earlier result",
				task.ID, i+1, s.Tool, s.Arguments)
		}
	}
	tr := &assay.Transcript{Calls: w.Calls(), Ended: assay.Finished}
	if o := assay1.Verdict(catalog, *task, tr, nil); o.Level != assay.FullSuccess ||
		o.Wasted > 0 || o.Precision != 1 || o.Broken != "" || o.UnwantedEffects > 0 {
		t.Errorf("%s: the plan is not a full success: %+v", task.ID, o)
	}
}

func takesInput(tool assay.Tool) bool {
	return slices.ContainsFunc(tool.Parameters, func(p assay.Parameter) bool {
		return p.Type == "object" && (p.Name == "options" || p.Name == "data")
	})
}

// refersBack reports whether a step refers to anything but the inputs.
func refersBack(s workflow.Step) bool {
	type ref struct{ Ref string }
	var args map[string]json.RawMessage
	var data ref
	var options struct{ Input ref }
	if json.Unmarshal(s.Arguments, &args) != nil {
		return false
	}
	// A value of another type is not a reference.
	_ = json.Unmarshal(args["data"], &data)
	_ = json.Unmarshal(args["options"], &options)
	name := data.Ref + options.Input.Ref
	return name != "" && name != "inputs" && name != "inputs.data"
}

func TestPlanDescribesToolsLikeCatalog(t *testing.T) {
	t.Parallel()
	tools := []assay.Tool{
		{
			Name: "read", Description: "Read a thing.",
			Parameters: []assay.Parameter{
				{Name: "source", Type: "string", Required: true},
				{Name: "options", Type: "object"},
			},
			Returns: []assay.Return{
				{Name: "success", Type: "boolean"},
				{Name: "data", Type: "object"},
				{Name: "rows", Type: "integer"},
				{Name: "metadata", Type: "object"},
			},
		},
		{
			Name: "write", Description: "Write <a> thing.", Dependencies: []string{"read"},
			Parameters: []assay.Parameter{
				{Name: "destination", Type: "string", Required: true},
				{Name: "data", Type: "object", Required: true},
				{Name: "options", Type: "object"},
			},
			Returns: []assay.Return{
				{Name: "success", Type: "boolean"}, {Name: "metadata", Type: "object"},
			},
		},
	}
	task := &assay.Task{
		Required: []string{"write"}, Inputs: json.RawMessage(`{"source": "a <b> & c"}`),
	}
	got := workflow.For(assay.NewCatalog(tools), world.Assay1Name, task)
	want := workflow.Plan{Steps: []workflow.Step{
		{
			Tool: "read", Purpose: "Read a thing.",
			Arguments: json.RawMessage(`{"source":"a <b> & c"}`),
			Gives:     []string{"data (object)", "rows (integer)"},
		},
		{
			Tool: "write", Purpose: "Write <a> thing.",
			Arguments: json.RawMessage(`{"destination":"data/output.json","data":{"ref":"read"}}`),
			Needs:     []string{"read"},
			Gives:     []string{"metadata (object)"},
		},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = workflow.For(assay.NewCatalog(tools), world.PilotName, task)
	if len(got.Steps) != 1 {
		t.Errorf("the pilot's plan has %d steps, want 1", len(got.Steps))
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	req := func(name, typ string) assay.Parameter {
		return assay.Parameter{Name: name, Type: typ, Required: true}
	}
	opt := func(name, typ string) assay.Parameter { return assay.Parameter{Name: name, Type: typ} }
	for _, tc := range []struct {
		name    string
		params  []assay.Parameter
		inputs  string
		earlier []string
		want    string
	}{
		{"nothing", nil, ``, nil, `{}`},
		{
			"optional parameters but data are left out",
			[]assay.Parameter{opt("data", "object"), opt("options", "object"), opt("n", "number")},
			`{"n": 3}`, nil, `{"data":{"ref":"inputs.n"}}`,
		},
		{
			"data of the latest step that passes data on",
			[]assay.Parameter{req("data", "object")},
			`{"data": 1}`,
			[]string{"passes", "passes too", "other", "more"},
			`{"data":{"ref":"passes too"}}`,
		},
		{
			"data of the latest dependency that gives a result",
			[]assay.Parameter{req("data", "object")},
			`{}`,
			[]string{"passes", "need", "more", "other"},
			`{"data":{"ref":"need"}}`,
		},
		{
			"data of no step",
			[]assay.Parameter{req("data", "object")},
			`{"source": "x", "n": 1}`,
			[]string{"more", "other"},
			`{"data":{"ref":"inputs.source"}}`,
		},
		{
			"data of the inputs",
			[]assay.Parameter{req("data", "object")},
			`{"data": [1]}`,
			nil, `{"data":{"ref":"inputs.data"}}`,
		},
		{
			"null counts as missing",
			[]assay.Parameter{req("data", "object")},
			`{"data": null}`, nil, `{"data":{"ref":"inputs"}}`,
		},
		{
			"inputs that are not an object",
			[]assay.Parameter{req("data", "object")},
			`[{"data": 1}]`, nil, `{"data":{"ref":"inputs"}}`,
		},
		{
			"data that is a string",
			[]assay.Parameter{req("data", "string"), opt("options", "object")},
			`{"data": "x"}`,
			[]string{"passes"},
			`{"data":"x"}`,
		},
		{
			"options of a tool without data",
			[]assay.Parameter{req("source", "string"), opt("options", "object")},
			`{}`,
			[]string{"need", "more", "other"},
			`{"source":"data/input.json","options":{"input":{"ref":"more"}}}`,
		},
		{
			"an object",
			[]assay.Parameter{req("schema", "object"), req("data", "object")},
			`{"schema": {"a": 1}}`, nil,
			`{"schema":{"ref":"inputs.schema"},"data":{"ref":"inputs.schema"}}`,
		},
		{
			"no object",
			[]assay.Parameter{req("schema", "object")},
			`{"schema": "a"}`, nil,
			`{"schema":{}}`,
		},
		{
			"texts",
			[]assay.Parameter{
				req("source", "string"), req("destination", "string"),
				req("input_format", "string"), req("mode", "string"),
			},
			`{"mode": "", "source": 7}`, nil,
			`{"source":"data/input.json","destination":"data/output.json","input_format":"json","mode":"default"}`,
		},
		{
			"given texts",
			[]assay.Parameter{req("source", "string"), req("input_format", "string")},
			`{"input_format": "c\u0073v", "source": "a\"b"}`, nil,
			`{"source":"a\"b","input_format":"c\u0073v"}`,
		},
		{
			"numbers",
			[]assay.Parameter{
				req("a", "number"), req("b", "integer"), req("c", "integer"),
				req("d", "integer"),
			},
			`{"a": 1.5, "b": 2.5, "c": 3.0}`, nil, `{"a":1.5,"b":1,"c":3.0,"d":1}`,
		},
		{
			"other defaults",
			[]assay.Parameter{req("a", "boolean"), req("b", "array")},
			`{"a": 1}`, nil, `{"a":true,"b":[]}`,
		},
		{
			"others",
			[]assay.Parameter{req("a", "boolean"), req("b", "array")},
			`{"a": false, "b": [1]}`, nil, `{"a":false,"b":[1]}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			returns := func(name string) []assay.Return {
				return []assay.Return{{Name: name, Type: "object"}, {Name: "metadata", Type: "object"}}
			}
			catalog := assay.NewCatalog([]assay.Tool{
				{Name: "passes", Returns: returns("data")},
				{Name: "passes too", Returns: returns("transformed_data")},
				{Name: "need", Returns: returns("result")},
				{Name: "more", Returns: returns("metadata")},
				{Name: "other", Returns: returns("result")},
				{
					Name: "tool", Parameters: tc.params, Returns: returns("data"),
					Dependencies: []string{"more", "need"},
				},
			})
			got := string(workflow.Arguments(catalog, "tool", json.RawMessage(tc.inputs), tc.earlier))
			if got != tc.want {
				t.Errorf("arguments = %s, want %s", got, tc.want)
			}
		})
	}
}

// anyTask draws a task over a catalog whose tools have parameters, results and descriptions.
func anyTask(t *rapid.T) (*assay.Catalog, *assay.Task) {
	bare := anyCatalog(t, 9)
	var tools []assay.Tool
	for _, tool := range bare.All() {
		tool.Category = rapid.SampledFrom([]string{"near", "far"}).Draw(t, "category")
		descriptions := []string{"Reads records.", "Writes records.", "Sends a letter."}
		tool.Description = rapid.SampledFrom(descriptions).Draw(t, "description")
		tool.Parameters = rapid.SliceOfNDistinct(rapid.Custom(anyParameter), 0, 4, func(p assay.Parameter) string {
			return p.Name
		}).Draw(t, "parameters")
		tools = append(tools, tool)
	}
	catalog := assay.NewCatalog(tools)
	inputs := rapid.MapOfN(rapid.SampledFrom(parameterNames), rapid.Custom(anyInput), 0, 5).Draw(t, "inputs")
	raw, err := json.Marshal(inputs)
	if err != nil {
		t.Fatal(err)
	}
	id := assay.TaskID(rapid.StringN(0, 8, -1).Draw(t, "id"))
	return catalog, &assay.Task{ID: id, Required: anyRequired(t, catalog, 7), Inputs: raw}
}

var parameterNames = []string{
	"data", "options", "source", "destination", "schema", "file_format", "é", "n",
}

var parameterTypes = []string{
	"string", "number", "integer", "boolean", "object", "array", "file",
}

func anyParameter(t *rapid.T) assay.Parameter {
	return assay.Parameter{
		Name:     rapid.SampledFrom(parameterNames).Draw(t, "name"),
		Type:     rapid.SampledFrom(parameterTypes).Draw(t, "type"),
		Required: rapid.Bool().Draw(t, "required"),
	}
}

func anyInput(t *rapid.T) any {
	values := []any{
		nil, true, "text", `{"ref":"a"}`, "<&>", 2.5, 7,
		[]any{},
		map[string]any{},
		map[string]any{"ref": "nowhere"},
	}
	return rapid.SampledFrom(values).Draw(t, "value")
}

func TestPlanWorksForAnyTask(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		catalog, task := anyTask(t)
		checkPlan(t, catalog, task)
	})
}
