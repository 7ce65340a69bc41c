package workflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
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
)

// TestFlawLaws checks the guarantees of all flaws, for every task of the known libraries in both
// worlds. One task in thirty is enough for -short.
func TestFlawLaws(t *testing.T) {
	t.Parallel()
	corpora(t, func(t *testing.T, c corpus) {
		applied := make(map[string]int) // flawed plans by world, flaw and number of severities
		for i, task := range c.tasks {
			if c.name == "original" && i%5 != 0 || testing.Short() && i%30 != 0 {
				continue
			}
			for _, name := range world.Simulated {
				for _, flaw := range assay.Flaws {
					n := len(checkFlaw(t, c.catalog, name, &task, flaw, uint64(i)))
					checkSeverities(t, c.catalog, name, &task, flaw, n)
					applied[fmt.Sprintf("%s, %s with %d severities", name, flaw, n)]++
				}
			}
		}
		for _, key := range slices.Sorted(maps.Keys(applied)) {
			t.Logf("%s: %d tasks", key, applied[key])
		}
	})
}

// one holds the flaws that apply to a plan with a single step.
var one = map[assay.Flaw]bool{
	assay.ToolMisuse: true, assay.ParameterError: true, assay.RedundantOperations: true,
}

// checkSeverities checks that a flaw has as many severities as the plan's length allows.
func checkSeverities(
	t *testing.T, catalog *assay.Catalog, worldName string, task *assay.Task, flaw assay.Flaw,
	got int,
) {
	t.Helper()
	steps := workflow.For(catalog, worldName, task).Steps
	n, want := len(steps), min(3, len(steps))
	switch linked := 0; {
	case n == 1 && !one[flaw]:
		want = 0
	case !distinct(stepTools(steps)): // depends on which tools occur twice
		return
	case flaw == assay.SequenceDisorder:
		return
	case flaw == assay.LogicalInconsistency:
		for _, s := range steps {
			if reference.Match(s.Arguments) {
				linked++
			}
		}
		want = min(3, linked)
	case flaw == assay.MissingStep, flaw == assay.SemanticDrift:
		want = min(3, n-1)
	}
	if got != want {
		t.Errorf("%s, %s, %s with %d steps has %d severities, want %d",
			task.ID, worldName, flaw, n, got, want)
	}
}

// checkFlaw checks a flaw in all severities. It returns the flawed plans.
func checkFlaw(
	t failer, catalog *assay.Catalog, worldName string, task *assay.Task, flaw assay.Flaw,
	seed uint64,
) (found [][]workflow.Step) {
	t.Helper()
	plan := workflow.For(catalog, worldName, task)
	before := deepCopy(plan)
	last := 0
	for _, severity := range assay.Severities {
		applies := workflow.Applies(catalog, worldName, task, flaw, severity)
		got, ok := workflow.Flawed(catalog, plan, task, flaw, severity, seed)
		switch {
		case ok != applies:
			t.Errorf("%s, %s %s: Flawed = %v, Applies = %v", task.ID, severity, flaw, ok, applies)
		case !reflect.DeepEqual(plan, before):
			t.Errorf("%s, %s %s changes the plan:\n%s",
				task.ID, severity, flaw, cmp.Diff(before, plan))
		case !ok:
			if severity == assay.Severe && len(found) > 0 {
				t.Errorf("%s, %s applies, but not severely", task.ID, flaw)
			}
			continue
		}
		if d := size(flaw, plan.Steps, got.Steps); d <= last {
			diff := cmp.Diff(plan.Steps, got.Steps)
			t.Errorf("%s, %s %s: the dose is %d, want more than %d\n%s",
				task.ID, severity, flaw, d, last, diff)
		} else {
			last = d
		}
		if len(found) > 0 {
			checkNested(t, plan.Steps, found[len(found)-1], got.Steps, flaw)
		}
		found = append(found, got.Steps)
		checkSteps(t, catalog, task, flaw, got)
		checkKind(t, plan.Steps, got.Steps, flaw)
		ignored := []assay.Flaw{ // where arguments are ignored
			assay.RedundantOperations, assay.ParameterError, assay.LogicalInconsistency,
		}
		if worldName == world.Assay1Name {
			checkCopies(t, catalog, task, flaw, plan, got)
		} else if !slices.Contains(ignored, flaw) && inOrder(task.Required, stepTools(got.Steps)) {
			t.Errorf("%s, %s %s keeps the required order: %v",
				task.ID, severity, flaw, stepTools(got.Steps))
		}
		again, _ := workflow.Flawed(catalog, deepCopy(plan), task, flaw, severity, seed)
		if !reflect.DeepEqual(got, again) {
			t.Errorf("%s, %s is not deterministic:\n%s", task.ID, flaw, cmp.Diff(got, again))
		}
	}
	return found
}

// size returns the dose of a flaw. Steps that refer to a changed step may have changed too, which
// does not count.
func size(flaw assay.Flaw, plan, flawed []workflow.Step) int {
	n := 0
	switch flaw {
	case assay.MissingStep, assay.RedundantOperations:
		return max(len(plan)-len(flawed), len(flawed)-len(plan))
	case assay.SequenceDisorder:
		from, to := stepTools(plan), stepTools(flawed)
		for i, a := range to {
			for _, b := range to[i+1:] {
				if slices.Index(from, b) < slices.Index(from, a) {
					n++
				}
			}
		}
		return n
	}
	for i := range plan {
		byTool := flaw == assay.ToolMisuse || flaw == assay.SemanticDrift
		if byTool && plan[i].Tool != flawed[i].Tool ||
			!byTool && string(plan[i].Arguments) != string(flawed[i].Arguments) {
			n++
		}
	}
	return n
}

// checkSteps checks that everything in a step except its arguments comes from the catalog.
func checkSteps(
	t failer, catalog *assay.Catalog, task *assay.Task, flaw assay.Flaw, plan workflow.Plan,
) {
	t.Helper()
	for _, s := range plan.Steps {
		tool, ok := catalog.Tool(s.Tool)
		alone := &assay.Task{Required: []string{s.Tool}}
		want := workflow.For(catalog, world.PilotName, alone).Steps[0]
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
		if len(before) > 2 && len(before)-len(after) <= len(before)-2 {
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

// checkCopies checks that in assay-1, an agent without bad luck never succeeds by following a
// flawed plan to the letter, once or up to nine times in a row, although it claims the result of
// the last required tool. Operations that are only redundant succeed unless they have an effect.
func checkCopies(
	t failer, catalog *assay.Catalog, task *assay.Task, flaw assay.Flaw, plan, flawed workflow.Plan,
) {
	t.Helper()
	w := world.Begin(context.Background(), catalog, perfect(), task)
	if flaw == assay.RedundantOperations {
		obey(t, w, flawed)
		sound := world.Begin(context.Background(), catalog, perfect(), task)
		obey(t, sound, plan)
		want := judge(catalog, task, sound).Level == assay.FullSuccess &&
			!repeatsEffect(catalog, flawed.Steps)
		if full := judge(catalog, task, w).Level == assay.FullSuccess; full != want {
			t.Errorf("%s, %s: full success = %v, want %v", task.ID, flaw, full, want)
		}
		return
	}
	for copies := range 9 {
		obey(t, w, flawed)
		switch o := judge(catalog, task, w); {
		case o.Level == assay.FullSuccess:
			t.Errorf("%s, %s: %d copies of the plan are a full success:\n%s",
				task.ID, flaw, copies+1, cmp.Diff(plan.Steps, flawed.Steps))
			return
		case o.UnwantedEffects > 0: // more copies cannot undo them
			return
		}
	}
}

// repeatsEffect reports whether a plan repeats a step that changes something.
func repeatsEffect(catalog *assay.Catalog, steps []workflow.Step) bool {
	for i, s := range steps[1:] {
		tool, _ := catalog.Tool(s.Tool)
		if tool.Effect != "" && reflect.DeepEqual(s, steps[i]) {
			return true
		}
	}
	return false
}

func obey(t failer, w world.World, plan workflow.Plan) {
	t.Helper()
	for i, s := range plan.Steps {
		if _, err := w.Call(i, s.Tool, string(s.Arguments)); err != nil {
			t.Errorf("%s: %v", s.Tool, err)
		}
	}
}

// judge returns the outcome if the agent stops here and hands over the result of the last required
// tool.
func judge(catalog *assay.Catalog, task *assay.Task, w world.World) assay.Outcome {
	claim := "TASK_COMPLETED: " + task.Required[len(task.Required)-1]
	tr := &assay.Transcript{
		Calls: w.Calls(), Ended: assay.Finished,
		Messages: []assay.Message{{Role: assay.Assistant, Content: claim}},
	}
	return world.Of(world.Assay1Name).Verdict(catalog, *task, tr, nil)
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

func anyFlaw(t *rapid.T) {
	catalog, task := anyTask(t)
	flaw := rapid.SampledFrom(assay.Flaws).Draw(t, "flaw")
	seed := rapid.Uint64().Draw(t, "seed")
	for _, name := range world.Simulated {
		checkFlaw(t, catalog, name, task, flaw, seed)
	}
}

func TestFlawLawsForAnyTask(t *testing.T) {
	t.Parallel()
	rapid.Check(t, anyFlaw)
}

func FuzzFlawed(f *testing.F) { f.Fuzz(rapid.MakeFuzz(anyFlaw)) }

// inOrder reports whether names are a subsequence of steps.
func inOrder(names, steps []string) bool {
	for _, s := range steps {
		if len(names) > 0 && names[0] == s {
			names = names[1:]
		}
	}
	return len(names) == 0
}
