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

// TestFlawLaws checks the guarantees of all flaws, for every task of the known libraries in both
// worlds.
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
					// Tools that take no data and depend on nothing refer to nothing.
					refers := flaw != assay.LogicalInconsistency
					if n > 3 && !graded && refers {
						t.Errorf("%s, %s, %s with %d steps: light and severe are equal",
							task.ID, name, flaw, n)
					}
					if want := n > 1 || one[flaw]; applies != want && refers {
						t.Errorf("%s, %s, %s with %d steps: applies = %v",
							task.ID, name, flaw, n, applies)
					}
					checked += len(assay.Severities)
					if applies {
						applied += len(assay.Severities)
					}
				}
			}
		}
		t.Logf("checked %d flawed plans; %d of the flaws apply", checked, applied)
	})
}

// one holds the flaws that apply to a plan with a single step.
var one = map[assay.Flaw]bool{
	assay.ToolMisuse: true, assay.ParameterError: true, assay.RedundantOperations: true,
}

// checkFlaw checks a flaw in all severities. It returns whether the flaw applies, and whether
// severe differs from light.
func checkFlaw(
	t failer, catalog *assay.Catalog, worldName string, task *assay.Task, flaw assay.Flaw,
	seed uint64,
) (applies, graded bool) {
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
			t.Errorf("%s, %s %s changes the plan:\n%s",
				task.ID, severity, flaw, cmp.Diff(before, plan))
		case !ok:
			continue
		}
		if d := edits(plan.Steps, got.Steps); d < last {
			diff := cmp.Diff(plan.Steps, got.Steps)
			t.Errorf("%s, %s %s: %d edits, want at least %d\n%s",
				task.ID, severity, flaw, d, last, diff)
		} else {
			last = d
		}
		if worst = got; severity == assay.Light {
			mildest = got
		}
		checkNested(t, plan.Steps, milder, got.Steps, flaw)
		milder = got.Steps
		checkSteps(t, catalog, task, flaw, got)
		checkKind(t, plan.Steps, got.Steps, flaw)
		harmless := []assay.Flaw{
			assay.RedundantOperations, assay.ParameterError, assay.LogicalInconsistency,
		}
		if worldName == world.Assay1Name {
			checkOutcome(t, catalog, task, flaw, plan, got)
		} else if !slices.Contains(harmless, flaw) && inOrder(task.Required, stepTools(got.Steps)) {
			t.Errorf("%s, %s %s keeps the required order: %v",
				task.ID, severity, flaw, stepTools(got.Steps))
		}
	}
	again, _ := workflow.Flawed(catalog, deepCopy(plan), task, flaw, assay.Severe, seed)
	if !reflect.DeepEqual(worst, again) {
		t.Errorf("%s, %s is not deterministic:\n%s", task.ID, flaw, cmp.Diff(worst, again))
	}
	return applies, !reflect.DeepEqual(mildest, worst)
}

// checkSteps checks that everything in a step except its arguments comes from the catalog.
func checkSteps(
	t failer, catalog *assay.Catalog, task *assay.Task, flaw assay.Flaw, plan workflow.Plan,
) {
	t.Helper()
	for _, s := range plan.Steps {
		tool, ok := catalog.Tool(s.Tool)
		alone := &assay.Task{Required: []string{s.Tool}}
		want := workflow.For(catalog, world.PilotName, alone, 1).Steps[0]
		want.Arguments = s.Arguments
		if !ok || s.Purpose != tool.Description || !reflect.DeepEqual(s, want) {
			t.Errorf("%s, %s: a step differs from the catalog:\n%s",
				task.ID, flaw, cmp.Diff(want, s))
		}
		if !json.Valid(s.Arguments) {
			t.Errorf("%s, %s: the arguments of %s are not JSON: %s",
				task.ID, flaw, s.Tool, s.Arguments)
		}
	}
}

// checkKind checks that a flaw changes only the part of the plan that it is about.
func checkKind(t failer, before, after []workflow.Step, flaw assay.Flaw) {
	t.Helper()
	from, to := stepTools(before), stepTools(after)
	planned := func(name string) bool { return slices.Contains(from, name) }
	added := slices.DeleteFunc(slices.Clone(to), planned)
	replaced := len(from) == len(to) && len(added) > 0 && distinct(added)
	ok := false
	switch flaw {
	case assay.SequenceDisorder:
		a, b := slices.Sorted(slices.Values(from)), slices.Sorted(slices.Values(to))
		ok = slices.Equal(a, b) && !slices.Equal(from, to)
	case assay.ToolMisuse:
		ok = replaced && linked(after)
	case assay.SemanticDrift:
		ok = replaced && linked(after) && from[0] == to[0] && added[len(added)-1] == to[len(to)-1]
	case assay.ParameterError, assay.LogicalInconsistency:
		ok = slices.Equal(from, to)
	case assay.MissingStep:
		ok = len(after) < len(before) && len(after) > 0 && edits(before, after) == len(before)-len(after)
		if len(before) > 2 {
			ok = ok && edits(before[:1], after[:1]) == 0 &&
				edits(before[len(before)-1:], after[len(after)-1:]) == 0
		}
	case assay.RedundantOperations:
		compact := slices.CompactFunc(slices.Clone(after), func(a, b workflow.Step) bool {
			return edits([]workflow.Step{a}, []workflow.Step{b}) == 0
		})
		ok = len(after) > len(before) && edits(before, compact) == 0
	}
	if !ok {
		t.Errorf("%s turns\n%v\ninto\n%v", flaw, from, to)
	}
}

// linked reports whether steps refer only to the inputs and to earlier steps.
func linked(steps []workflow.Step) bool {
	for i, s := range steps {
		for _, m := range reference.FindAllSubmatch(s.Arguments, -1) {
			name := string(m[1])
			isInput := name == "inputs" || strings.HasPrefix(name, "inputs.")
			if !isInput && !slices.Contains(stepTools(steps[:i]), name) {
				return false
			}
		}
	}
	return true
}

var reference = regexp.MustCompile(`{"ref":"([^"]*)"}`)

// checkNested checks that a worse flaw includes the changes of the milder one.
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
		t.Errorf("%s: the worse flaw does not include the milder one:\n%s",
			flaw, cmp.Diff(milder, worse))
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

// checkOutcome follows a flawed plan to the letter in assay-1 without bad luck. It calls each step
// until it succeeds, but only once if it is refused.
func checkOutcome(
	t failer, catalog *assay.Catalog, task *assay.Task, flaw assay.Flaw, plan, flawed workflow.Plan,
) {
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
			t.Errorf("%s, %s: success %v with %d calls, %d refused; want success with more than %d calls, 0 refused",
				task.ID, flaw, success, len(w.Calls()), refused, len(plan.Steps))
		}
	case success:
		t.Errorf("%s: a plan with %s is a full success:\n%s",
			task.ID, flaw, cmp.Diff(plan.Steps, flawed.Steps))
	case flaw != assay.ParameterError && flaw != assay.LogicalInconsistency:
	case invalid < edits(plan.Steps, flawed.Steps):
		t.Errorf("%s, %s: %d steps refused as invalid, want every changed step\n%s",
			task.ID, flaw, invalid, cmp.Diff(plan.Steps, flawed.Steps))
	}
}

// edits returns the Levenshtein distance of steps.
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

// TestWrongToolsAreSimilar checks that a wrong tool is one of the most similar tools and not always
// the same, and that drift always goes to the most similar one.
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
		plan := workflow.For(catalog, world.Assay1Name, task, 1)
		plan, ok := workflow.Flawed(catalog, plan, task, assay.ToolMisuse, assay.Light, seed)
		if !ok {
			t.Fatal("no tool can be misused")
		}
		chosen[plan.Steps[0].Tool]++
	}
	if len(chosen) != 3 || chosen["post_letter"]+chosen["post_stamp"] > 0 {
		t.Errorf("chosen instead of file_read: %v", chosen)
	}
	task := &assay.Task{ID: "t", Required: []string{"file_read", "file_pack", "post_fetch"}}
	plan := workflow.For(catalog, world.Assay1Name, task, 1)
	plan, _ = workflow.Flawed(catalog, plan, task, assay.SemanticDrift, assay.Severe, 1)
	want := []string{"file_read", "file_scan", "post_letter"}
	if got := stepTools(plan.Steps); !slices.Equal(got, want) {
		t.Errorf("drift leads along %v, want %v", got, want)
	}
}

// TestMisuseKeepsLaterResults checks that references to the second run of a tool stay when the
// first run is replaced.
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
		got, _ := workflow.Flawed(catalog, plan, task, assay.ToolMisuse, assay.Light, seed)
		wrong := got.Steps[0].Tool
		if wrong == "a" {
			continue
		}
		for i, want := range []string{1: wrong} {
			want := fmt.Sprintf(`{"options":{"input":{"ref":%q}}}`, want)
			if args := string(got.Steps[i].Arguments); i > 0 && args != want {
				t.Errorf("with %s instead of the first a, step %d has arguments %s, want %s",
					wrong, i+1, args, want)
			}
		}
		return
	}
	t.Error("no seed replaces the first step")
}

// TestMisfitsAreRefused checks that the world refuses all variants of wrong arguments.
func TestMisfitsAreRefused(t *testing.T) {
	t.Parallel()
	var params []assay.Parameter
	for _, typ := range []string{"string", "number", "integer", "boolean", "array", "file"} {
		params = append(params, assay.Parameter{Name: typ, Type: typ, Required: true})
	}
	params = append(params, assay.Parameter{Name: "settings", Type: "object", Required: true})
	// Without its middle letter, options becomes optons, all becomes al, and inputs.settings
	// becomes inputs.ettings.
	options := []assay.Parameter{
		{Name: "options", Type: "object"}, {Name: "optons", Type: "object"},
	}
	catalog := assay.NewCatalog([]assay.Tool{
		{Name: "all", Parameters: params},
		{Name: "sink", Parameters: options},
		{Name: "bare"},
		{Name: "al"},
	})
	task := &assay.Task{
		Required: []string{"al", "all", "sink", "bare"},
		Inputs:   json.RawMessage(`{"settings": {}, "ettings": 1}`),
	}
	plan := workflow.For(catalog, world.Assay1Name, task, 1)
	ways := make(map[string]bool)
	for seed := range uint64(500) {
		got, ok := workflow.Flawed(catalog, plan, task, assay.ParameterError, assay.Severe, seed)
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
					t.Errorf("%s %s: %q, want %s",
						s.Tool, s.Arguments, rec.Code, assay1.InvalidInput)
				}
			}
		}
	}
	// Each of seven arguments can be left out or misspelt, six can have another type, and one can
	// refer to nothing. Each tool without arguments has one variant.
	if want := 7 + 7 + 6 + 1 + 3; len(ways) != want {
		t.Errorf("got %d variants of wrong arguments, want %d", len(ways), want)
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

func TestFlawLawsForAnyTask(t *testing.T) {
	t.Parallel()
	rapid.Check(t, anyFlaw)
}

func FuzzFlawed(f *testing.F) { f.Fuzz(rapid.MakeFuzz(anyFlaw)) }
