package workflow_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/assay1"
)

// TestFlawLaws holds all flaws to what is promised of them, for every task of
// the known libraries in both worlds.
func TestFlawLaws(t *testing.T) {
	t.Parallel()
	corpora(t, func(t *testing.T, c corpus) {
		checked, applied := 0, 0
		for i, task := range c.tasks {
			if testing.Short() && i%10 != 0 {
				continue
			}
			for _, name := range world.Names {
				n := len(workflow.For(c.catalog, name, &task, 1).Steps)
				for _, flaw := range assay.Flaws {
					applies, graded := checkFlaw(t, c.catalog, name, &task, flaw, uint64(i))
					if n > 3 && !graded {
						t.Errorf("%s, %s, %s with %d steps: the mildest is the worst", task.ID, name, flaw, n)
					}
					if want := n > 1 || one[flaw]; applies != want {
						t.Errorf("%s, %s, %s with %d steps: applies = %v", task.ID, name, flaw, n, applies)
					}
					checked += len(assay.Severities)
					if applies {
						applied += len(assay.Severities)
					}
				}
			}
		}
		t.Logf("%d flawed plans checked, of which %d could be had", checked, applied)
	})
}

// one holds the flaws that a plan of one step can have.
var one = map[assay.Flaw]bool{assay.ToolMisuse: true, assay.ParameterError: true, assay.RedundantOperations: true}

// checkFlaw checks a flaw in all severities. It returns whether it applies, and
// whether the worst differs from the mildest.
func checkFlaw(t failer, catalog *assay.Catalog, worldName string, task *assay.Task, flaw assay.Flaw, seed uint64) (applies, graded bool) {
	t.Helper()
	plan := workflow.For(catalog, worldName, task, 1)
	before := deepCopy(plan)
	applies = workflow.Applies(catalog, worldName, task, flaw)
	last := 1
	var mildest, worst workflow.Plan
	var milder []workflow.Step
	for _, severity := range assay.Severities {
		got, ok := workflow.Flawed(catalog, plan, task, flaw, severity, seed)
		switch {
		case ok != applies:
			t.Errorf("%s, %s %s: Flawed = %v, Applies = %v", task.ID, severity, flaw, ok, applies)
		case !reflect.DeepEqual(plan, before):
			t.Errorf("%s, %s %s changes the plan:\n%s", task.ID, severity, flaw, cmp.Diff(before, plan))
		case !ok:
			continue
		}
		if d := edits(plan.Steps, got.Steps); d < last {
			t.Errorf("%s, %s %s: %d edits, want at least %d\n%s", task.ID, severity, flaw, d, last, cmp.Diff(plan.Steps, got.Steps))
		} else {
			last = d
		}
		if worst = got; severity == assay.Severities[0] {
			mildest = got
		}
		checkNested(t, plan.Steps, milder, got.Steps, flaw)
		milder = got.Steps
		checkSteps(t, catalog, task, flaw, got)
		checkKind(t, plan.Steps, got.Steps, flaw)
		if worldName == world.Assay1Name {
			checkOutcome(t, catalog, task, flaw, plan, got)
		} else if flaw != assay.RedundantOperations && flaw != assay.ParameterError && flaw != assay.LogicalInconsistency &&
			inOrder(task.Required, stepTools(got.Steps)) {
			t.Errorf("%s, %s %s keeps the required order: %v", task.ID, severity, flaw, stepTools(got.Steps))
		}
	}
	again, _ := workflow.Flawed(catalog, deepCopy(plan), task, flaw, assay.Severities[2], seed)
	if !reflect.DeepEqual(worst, again) {
		t.Errorf("%s, %s differs from time to time:\n%s", task.ID, flaw, cmp.Diff(worst, again))
	}
	return applies, !reflect.DeepEqual(mildest, worst)
}

// checkSteps: but for its arguments a step says what the catalog says.
func checkSteps(t failer, catalog *assay.Catalog, task *assay.Task, flaw assay.Flaw, plan workflow.Plan) {
	t.Helper()
	for _, s := range plan.Steps {
		tool, ok := catalog.Tool(s.Tool)
		want := workflow.For(catalog, world.PilotName, &assay.Task{Required: []string{s.Tool}}, 1).Steps[0]
		want.Arguments = s.Arguments
		if !ok || s.Purpose != tool.Description || !reflect.DeepEqual(s, want) {
			t.Errorf("%s, %s: a step differs from the catalog:\n%s", task.ID, flaw, cmp.Diff(want, s))
		}
		if !json.Valid(s.Arguments) {
			t.Errorf("%s, %s: the arguments of %s are no JSON: %s", task.ID, flaw, s.Tool, s.Arguments)
		}
	}
}

// checkKind: a flaw changes what it is about and nothing else.
func checkKind(t failer, before, after []workflow.Step, flaw assay.Flaw) {
	t.Helper()
	from, to := stepTools(before), stepTools(after)
	added := slices.DeleteFunc(slices.Clone(to), func(name string) bool { return slices.Contains(from, name) })
	ok := false
	switch flaw {
	case assay.SequenceDisorder:
		ok = slices.Equal(slices.Sorted(slices.Values(from)), slices.Sorted(slices.Values(to))) && !slices.Equal(from, to)
	case assay.ToolMisuse:
		ok = len(from) == len(to) && len(added) > 0 && distinct(added) && linked(after)
	case assay.SemanticDrift:
		ok = linked(after) && len(from) == len(to) && len(added) > 0 && distinct(added) && from[0] == to[0] && added[len(added)-1] == to[len(to)-1]
	case assay.ParameterError, assay.LogicalInconsistency:
		ok = slices.Equal(from, to)
	case assay.MissingStep:
		ok = len(after) < len(before) && len(after) > 0 && edits(before, after) == len(before)-len(after)
		if len(before) > 2 {
			ok = ok && edits(before[:1], after[:1]) == 0 && edits(before[len(before)-1:], after[len(after)-1:]) == 0
		}
	case assay.RedundantOperations:
		compact := slices.CompactFunc(slices.Clone(after), func(a, b workflow.Step) bool { return edits([]workflow.Step{a}, []workflow.Step{b}) == 0 })
		ok = len(after) > len(before) && edits(before, compact) == 0
	}
	if !ok {
		t.Errorf("%s makes of\n%v\nthis:\n%v", flaw, from, to)
	}
}

// linked reports whether steps refer to the inputs and to earlier steps only.
func linked(steps []workflow.Step) bool {
	for i, s := range steps {
		for _, m := range reference.FindAllSubmatch(s.Arguments, -1) {
			name := string(m[1])
			if name != "inputs" && !strings.HasPrefix(name, "inputs.") && !slices.Contains(stepTools(steps[:i]), name) {
				return false
			}
		}
	}
	return true
}

var reference = regexp.MustCompile(`{"ref":"([^"]*)"}`)

// checkNested: what a flaw does to a plan it does in its worse forms too.
func checkNested(t failer, plan, milder, worse []workflow.Step, flaw assay.Flaw) {
	t.Helper()
	nested := true
	switch {
	case milder == nil:
	case flaw == assay.MissingStep:
		nested = inOrder(stepTools(worse), stepTools(milder))
	case flaw == assay.RedundantOperations:
		nested = inOrder(stepTools(milder), stepTools(worse))
	case flaw == assay.ToolMisuse:
		for i := range plan {
			nested = nested && (milder[i].Tool == plan[i].Tool || milder[i].Tool == worse[i].Tool)
		}
	case flaw == assay.ParameterError, flaw == assay.LogicalInconsistency:
		for i := range plan {
			nested = nested && (reflect.DeepEqual(milder[i], plan[i]) || reflect.DeepEqual(milder[i], worse[i]))
		}
	}
	if !nested {
		t.Errorf("%s: the worse form does not hold the milder one:\n%s", flaw, cmp.Diff(milder, worse))
	}
}

func distinct(names []string) bool {
	return len(slices.Compact(slices.Sorted(slices.Values(names)))) == len(names)
}

func stepTools(steps []workflow.Step) []string {
	var names []string
	for _, s := range steps {
		names = append(names, s.Tool)
	}
	return names
}

// checkOutcome follows a flawed plan to the letter in assay-1 without bad luck:
// each step until it works, but once when it is refused.
func checkOutcome(t failer, catalog *assay.Catalog, task *assay.Task, flaw assay.Flaw, plan, flawed workflow.Plan) {
	t.Helper()
	w := world.Begin(catalog, perfect(), task)
	refused, invalid := 0, 0
	for i, s := range flawed.Steps {
		rec, err := w.Call(i, s.Tool, string(s.Arguments))
		if err != nil {
			t.Errorf("%s, %s: %v", task.ID, flaw, err)
		}
		if rec.Mistake {
			refused++
		}
		if rec.Code == assay1.InvalidInput {
			invalid++
		}
	}
	success := fullSuccess(world.Assay1Name, task.Required, w)
	switch {
	case flaw == assay.RedundantOperations:
		if !success || refused > 0 || len(w.Calls()) <= len(plan.Steps) {
			t.Errorf("%s, %s: success %v with %d calls and %d refused, want it with more than %d", task.ID, flaw, success, len(w.Calls()), refused, len(plan.Steps))
		}
	case success:
		t.Errorf("%s: a plan with %s succeeds in full:\n%s", task.ID, flaw, cmp.Diff(plan.Steps, flawed.Steps))
	case (flaw == assay.ParameterError || flaw == assay.LogicalInconsistency) && invalid < edits(plan.Steps, flawed.Steps):
		t.Errorf("%s, %s: %d steps refused as invalid, want those that differ\n%s", task.ID, flaw, invalid, cmp.Diff(plan.Steps, flawed.Steps))
	}
}

// edits is the Levenshtein distance of steps.
func edits(a, b []workflow.Step) int {
	switch {
	case len(a) == 0:
		return len(b)
	case len(b) == 0:
		return len(a)
	}
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i, s := range a {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j, u := range b {
			next[j+1] = min(prev[j+1], next[j]) + 1
			if s.Tool == u.Tool && string(s.Arguments) == string(u.Arguments) {
				next[j+1] = min(next[j+1], prev[j])
			} else {
				next[j+1] = min(next[j+1], prev[j]+1)
			}
		}
		prev = next
	}
	return prev[len(b)]
}

func deepCopy(plan workflow.Plan) workflow.Plan {
	steps := slices.Clone(plan.Steps)
	for i, s := range steps {
		steps[i].Arguments = slices.Clone(s.Arguments)
		steps[i].Needs, steps[i].Gives = slices.Clone(s.Needs), slices.Clone(s.Gives)
	}
	plan.Steps = steps
	return plan
}

// TestWrongToolsAreSimilar: a wrong tool is one of the nearest, not always the
// same, and drift goes to the nearest each time.
func TestWrongToolsAreSimilar(t *testing.T) {
	t.Parallel()
	catalog := assay.NewCatalog([]assay.Tool{
		{Name: "post_letter", Category: "post", Description: "Sends a letter abroad."},
		{Name: "file_read", Category: "file", Description: "Reads records out of storage."},
		{Name: "file_scan", Category: "file", Description: "Looks through records in storage."},
		{Name: "post_fetch", Category: "post", Description: "Reads records out of boxes."},
		{Name: "file_pack", Category: "file", Description: "Makes archives smaller."},
		{Name: "post_stamp", Category: "post", Description: "Sticks paper on a letter."},
	})
	chosen := make(map[string]int)
	for seed := range uint64(60) {
		task := &assay.Task{ID: "t", Required: []string{"file_read"}}
		plan, ok := workflow.Flawed(catalog, workflow.For(catalog, world.Assay1Name, task, 1), task, assay.ToolMisuse, "light", seed)
		if !ok {
			t.Fatal("no tool can be misused")
		}
		chosen[plan.Steps[0].Tool]++
	}
	if len(chosen) != 3 || chosen["post_letter"]+chosen["post_stamp"] > 0 {
		t.Errorf("chosen in place of file_read: %v", chosen)
	}
	task := &assay.Task{ID: "t", Required: []string{"file_read", "file_pack", "post_fetch"}}
	plan, _ := workflow.Flawed(catalog, workflow.For(catalog, world.Assay1Name, task, 1), task, assay.SemanticDrift, "severe", 1)
	if got, want := stepTools(plan.Steps), []string{"file_read", "file_scan", "post_letter"}; !slices.Equal(got, want) {
		t.Errorf("drift leads along %v, want %v", got, want)
	}
}

// TestMisuseKeepsLaterResults: what refers to the second run of a tool goes on
// to do so when the first run is replaced.
func TestMisuseKeepsLaterResults(t *testing.T) {
	t.Parallel()
	var tools []assay.Tool
	for _, tool := range append(slices.Clone(chain().All()), assay.Tool{Name: "f"}) {
		tool.Parameters = []assay.Parameter{{Name: "options", Type: "object"}}
		tools = append(tools, tool)
	}
	catalog := assay.NewCatalog(tools)
	task := &assay.Task{Required: []string{"b", "a", "e"}} // the plan is a, b, a, e
	plan := workflow.For(catalog, world.Assay1Name, task, 1)
	for seed := range uint64(20) {
		got, _ := workflow.Flawed(catalog, plan, task, assay.ToolMisuse, "light", seed)
		wrong := got.Steps[0].Tool
		if wrong == "a" {
			continue
		}
		for i, want := range []string{1: wrong, 2: "b", 3: "a"} {
			if want := fmt.Sprintf(`{"options":{"input":{"ref":%q}}}`, want); i > 0 && string(got.Steps[i].Arguments) != want {
				t.Errorf("with %s in place of the first a, step %d is called with %s, want %s", wrong, i+1, got.Steps[i].Arguments, want)
			}
		}
		return
	}
	t.Error("no seed replaces the first step")
}

// TestMisfitsAreRefused: all ways in which arguments are made wrong are wrong.
func TestMisfitsAreRefused(t *testing.T) {
	t.Parallel()
	var params []assay.Parameter
	for _, typ := range []string{"string", "number", "integer", "boolean", "array", "file"} {
		params = append(params, assay.Parameter{Name: typ, Type: typ, Required: true})
	}
	params = append(params, assay.Parameter{Name: "settings", Type: "object", Required: true})
	// Without the letter in the middle, options is optons, all is al, and
	// inputs.settings is inputs.ettings.
	options := []assay.Parameter{{Name: "options", Type: "object"}, {Name: "optons", Type: "object"}}
	catalog := assay.NewCatalog([]assay.Tool{{Name: "all", Parameters: params}, {Name: "sink", Parameters: options}, {Name: "bare"}, {Name: "al"}})
	task := &assay.Task{Required: []string{"al", "all", "sink", "bare"}, Inputs: json.RawMessage(`{"settings": {}, "ettings": 1}`)}
	plan := workflow.For(catalog, world.Assay1Name, task, 1)
	ways := make(map[string]bool)
	for seed := range uint64(500) {
		got, ok := workflow.Flawed(catalog, plan, task, assay.ParameterError, "severe", seed)
		if !ok {
			t.Fatal("no argument can be wrong")
		}
		w := world.Begin(catalog, perfect(), task)
		for i, s := range got.Steps {
			rec, err := w.Call(i, s.Tool, string(s.Arguments))
			if err != nil {
				t.Fatal(err)
			}
			if wrong := !reflect.DeepEqual(s, plan.Steps[i]); wrong {
				ways[s.Tool+string(s.Arguments)] = true
				if rec.Code != assay1.InvalidInput {
					t.Errorf("%s %s: %q, want %s", s.Tool, s.Arguments, rec.Code, assay1.InvalidInput)
				}
			}
		}
	}
	// Each of seven arguments can be left out and be misspelt, six be of
	// another type, one refer to nothing. Options can be misspelt, be of another
	// type and refer to nothing. And there is one way for each tool without.
	if want := 7 + 7 + 6 + 1 + 3 + 2; len(ways) != want {
		t.Errorf("arguments are wrong in %d ways, want %d", len(ways), want)
	}
}

func anyFlaw(t *rapid.T) {
	catalog, task := anyTask(t)
	flaw := rapid.SampledFrom(assay.Flaws).Draw(t, "flaw")
	seed := rapid.Uint64().Draw(t, "seed")
	for _, name := range world.Names {
		checkFlaw(t, catalog, name, task, flaw, seed)
	}
}

func TestAnyFlaw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, anyFlaw)
}

func FuzzFlawed(f *testing.F) { f.Fuzz(rapid.MakeFuzz(anyFlaw)) }
