package score_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// acted plays turns in the trial's world. A turn lists tools joined by commas, with a "?" after
// those that get wrong arguments. "~" is a turn with a lookup, "." a turn without an action, and
// "!" a claim to be done.
func acted(
	t *testing.T, trial *assay.Trial, task *assay.Task, turns, plan string,
) *assay.Transcript {
	t.Helper()
	w := world.Begin(t.Context(), catalog, trial, task)
	tr := &assay.Transcript{Ended: assay.TurnLimit, Plan: strings.Fields(plan)}
	for i, word := range strings.Fields(turns) {
		m := assay.Message{Role: assay.Assistant, Content: "Next."}
		turn := assay.TurnRecord{Requests: 1}
		switch word {
		case "~":
			turn.Lookups = 1
		case ".":
			turn.Assisted = true
		case "!":
			if m.Content = "TASK_COMPLETED"; w.Ends(m.Content, false) {
				tr.Ended = assay.Finished
			}
		default:
			for call := range strings.SplitSeq(word, ",") {
				tool, wrong := strings.CutSuffix(call, "?")
				arguments := map[bool]string{true: `{"colour": "red"}`}[wrong]
				if _, err := w.Call(i+1, tool, arguments); err != nil {
					t.Fatal(err)
				}
			}
		}
		tr.Messages, tr.Turns = append(tr.Messages, m), append(tr.Turns, turn)
	}
	tr.Calls = w.Calls()
	return tr
}

func TestExplanationText(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, world           string
		seed                  uint64
		required, turns, plan string
		level                 assay.Level
		category              string
	}{
		{
			"assay-1-flawed-plan.txt", world.Assay1Name, 2, "read parse shape note post",
			"~ shape parse read,read parse? parse parse shape post post !",
			"shape parse read note post",
			assay.Failure, assay.CategorySequenceOrder,
		},
		{
			"assay-1-full.txt", world.Assay1Name, 2, "note shape",
			"note note read parse parse? parse shape,shape !", "",
			assay.FullSuccess, "",
		},
		{
			"pilot-flawed-plan.txt", world.PilotName, 2, "read parse note",
			"read read parse post note parse note", "read parse post parse",
			assay.FullSuccess, "",
		},
		{
			"pilot-dependency.txt", world.PilotName, 3, "shape writer",
			"shape shape note . writer !", "",
			assay.PartialSuccess, assay.CategoryDependency,
		},
		{
			"assay-1-no-call.txt", world.Assay1Name, 1, "read", "~ . . ~ .", "",
			assay.Failure, assay.CategoryMaxTurns,
		},
	} {
		trial, task := trialIn(tc.world), task("data_pipeline", strings.Fields(tc.required)...)
		trial.Seed, trial.Turns = tc.seed, 12
		e := score.New(catalog).Explain(trial, &task, acted(t, trial, &task, tc.turns, tc.plan))
		if e.Outcome.Level != tc.level || e.Outcome.ErrorCategory != tc.category {
			t.Errorf("%s: %s, %q; want %s, %q",
				tc.name, e.Outcome.Level, e.Outcome.ErrorCategory, tc.level, tc.category)
		}
		golden.Assert(t, strings.Join(e.Text(), "\n")+"\n", tc.name)
	}
}

// anyEpisode draws a trial in one of the worlds, a task and a transcript.
func anyEpisode(t *rapid.T) (*assay.Trial, assay.Task, assay.Transcript) {
	task := anyTask().Draw(t, "task")
	trial := trialIn(rapid.SampledFrom(world.Simulated).Draw(t, "world"))
	if trial.World == world.PilotName {
		return trial, task, anyTranscript(task).Draw(t, "transcript")
	}
	return trial, task, anyAssay1(task).Draw(t, "transcript")
}

func count[E any](s []E, fits func(E) bool) int {
	n := 0
	for _, e := range s {
		if fits(e) {
			n++
		}
	}
	return n
}

// TestMarksAddUp checks that the outcome's counts equal the sums of the marks, in both worlds.
func TestMarksAddUp(t *testing.T) {
	t.Parallel()
	judge, seen := score.New(catalog), map[score.Mark]int{}
	check := func(t *rapid.T) {
		trial, task, tr := anyEpisode(t)
		e := judge.Explain(trial, &task, &tr)
		o := e.Outcome
		marked := func(marks ...score.Mark) int {
			return count(e.Path, func(s score.PathStep) bool {
				return slices.Contains(marks, s.Mark)
			})
		}
		wasted := count(e.Path, func(s score.PathStep) bool { return s.Wasted })
		luck := count(e.Path, func(s score.PathStep) bool {
			return s.Wasted && s.Mark == score.Unlucky
		})
		recovered := count(e.Path, func(s score.PathStep) bool {
			return s.Recovered && s.Mark == score.Unlucky
		})
		useless := marked(score.OutOfOrder, score.Repeated, score.Needless, score.Unsound)
		ordered := count(e.Plan, func(s score.PlanStep) bool { return s.InOrder })
		for name, sum := range map[string][2]int{
			"calls":    {len(e.Path), o.ToolCalls},
			"mistakes": {marked(score.Mistaken), o.Mistakes},
			"failures": {marked(score.Unlucky), o.Failures},
			"successes": {
				marked(score.InOrder, score.Dependency) + useless, len(o.ExecutedTools),
			},
			"recovered": {recovered, o.Recovered},
			"extra": {
				count(e.Path, func(s score.PathStep) bool { return s.Extra }), o.Extra,
			},
			"wasted":         {wasted, o.Wasted},
			"wasted by mark": {marked(score.Mistaken) + useless + luck, o.Wasted},
			"steps in order": {ordered, marked(score.InOrder)},
		} {
			if sum[0] != sum[1] {
				t.Fatalf("%s: the marks add up to %d, but the outcome has %d\n%s",
					name, sum[0], sum[1], strings.Join(e.Text(), "\n"))
			}
		}
		done := map[string]bool{}
		for i, s := range e.Path {
			fresh := s.Mark == score.OutOfOrder || s.Mark == score.Needless
			if s.Mark == score.Repeated && !done[s.Tool] || fresh && done[s.Tool] {
				t.Fatalf("call %d is %s, but these succeeded before: %v", i+1, s.Mark, done)
			}
			done[s.Tool] = done[s.Tool] || tr.Calls[i].OK
			c := tr.Calls[i]
			if s.Turn != c.Turn || s.Tool != c.Tool || s.Code != c.Code || s.Chance != c.Chance ||
				s.Luck != c.Luck {
				t.Fatalf("call %d: %+v became %+v", i+1, c, s)
			}
			seen[s.Mark]++
		}
	}
	checkLaw(t, check)
	if len(seen) != 8 {
		t.Errorf("only the marks %v occurred, so the test is too weak", seen)
	}
}

// TestStepsAddUp checks that a plan's steps equal the sums of their calls, and that the number of
// steps in order agrees with the outcome's order and adherence.
func TestStepsAddUp(t *testing.T) {
	t.Parallel()
	judge, odd := score.New(catalog), 0
	check := func(t *rapid.T) {
		trial, task, tr := anyEpisode(t)
		e := judge.Explain(trial, &task, &tr)
		stepLaws(t, task.Required, e.Plan, &tr, e.Path, func(s score.PathStep) int {
			return s.Step
		})
		stepLaws(t, tr.Plan, e.Given, &tr, e.Path, func(s score.PathStep) int { return s.Given })
		inOrder := func(steps []score.PlanStep) int {
			return count(steps, func(s score.PlanStep) bool { return s.InOrder })
		}
		if all := inOrder(e.Plan) == len(task.Required); all != e.Outcome.OrderCorrect {
			t.Fatalf("all in order: %v, order correct: %v: %+v",
				all, e.Outcome.OrderCorrect, e.Plan)
		}
		if g := e.Outcome.GivenAdherence; g != nil {
			n := max(len(tr.Plan), len(e.Outcome.ExecutedTools))
			if got := float64(inOrder(e.Given)) / float64(n); !near(got, *g) {
				t.Fatalf("%d of %d in the given order, adherence %v", inOrder(e.Given), n, *g)
			}
		}
		for i, s := range e.Path {
			if s.Mark == score.InOrder && !e.Plan[s.Step].InOrder {
				t.Fatalf("call %d is in order, but its step %+v is not", i+1, e.Plan[s.Step])
			}
			if s.Mark == score.OutOfOrder && s.Step < 0 || s.Mark == score.Needless && s.Step >= 0 {
				t.Fatalf("call %d: %+v", i+1, s)
			}
		}
		if e.Outcome.Coverage < 1 && count(e.Plan, func(s score.PlanStep) bool {
			return s.Call == 0
		}) == 0 {
			odd++
		}
	}
	checkLaw(t, check)
	if odd == 0 {
		t.Error("no tool was required twice in pilot, so the test is too weak")
	}
}

func stepLaws(
	t *rapid.T, plan []string, steps []score.PlanStep,
	tr *assay.Transcript, path []score.PathStep, of func(score.PathStep) int,
) {
	if len(steps) != len(plan) {
		t.Fatalf("%d steps of %v", len(steps), plan)
	}
	for _, s := range path {
		if i := of(s); (i < 0) == slices.Contains(plan, s.Tool) || i >= 0 && plan[i] != s.Tool {
			t.Fatalf("%+v does not belong to a step of %v", s, plan)
		}
	}
	for i, s := range steps {
		want := score.PlanStep{Tool: plan[i], InOrder: s.InOrder}
		for k, call := range tr.Calls {
			if of(path[k]) != i {
				continue
			}
			want.Tries++
			switch {
			case call.OK && want.Call == 0:
				want.Turn, want.Call = call.Turn, k+1
			case call.Mistake:
				want.Mistakes++
			case !call.OK:
				want.Failures++
			}
		}
		if s != want || s.InOrder && s.Call == 0 {
			t.Fatalf("step %d is %+v, but its calls give %+v", i, s, want)
		}
	}
}

// TestRulesGiveTheOutcome checks that levels, and the categories of the world pilot, follow from the
// rules, and that the last rule states them.
func TestRulesGiveTheOutcome(t *testing.T) {
	t.Parallel()
	judge, gives := score.New(catalog), map[string]string{}
	asked, categories := map[string]bool{}, map[string]bool{}
	check := func(t *rapid.T) {
		trial, task, tr := anyEpisode(t)
		e := judge.Explain(trial, &task, &tr)
		if diff := cmp.Diff(judge.Outcome(trial, &task, &tr), e.Outcome); diff != "" {
			t.Fatalf("the explanation has a different outcome:\n%s", diff)
		}
		o := e.Outcome
		if p := o.Pilot; p == nil {
			levelLaw(t, e.Rules, "level", o.Level)
		} else {
			levelLaw(t, e.Rules, "executor", p.Executor)
			levelLaw(t, e.Rules, "paper", p.Paper)
			levelLaw(t, e.Rules, "batch", p.Batch)
		}
		last := e.Rules[len(e.Rules)-1]
		text := last.Rule + ", " + last.Because
		stated := strings.Contains(text, string(o.Level)) && strings.HasSuffix(text,
			o.ErrorCategory)
		denied := strings.HasSuffix(text, "no error category")
		if last.Verdict != "verdict" || !stated || denied != (o.ErrorCategory == "") {
			t.Fatalf("%q for level %s and category %q", text, o.Level, o.ErrorCategory)
		}
		for _, r := range e.Rules {
			if r.Rule == "" || r.Because == "" || r.Verdict == "" {
				t.Fatalf("%+v", r)
			}
			asked[trial.World+fmt.Sprint(r.Verdict, r.Rule, r.Holds)] = true
		}
		categories[o.ErrorCategory] = true
		category := of(e.Rules, "category")
		if own := o.Pilot != nil && o.ErrorCategory != ""; own != (len(category) > 0) {
			t.Fatalf("category %q by %v", o.ErrorCategory, category)
		} else if !own {
			return
		}
		fired := category[len(category)-1]
		if fired.Rule == "none of these" {
			fired.Rule += ", " + fired.Because
		}
		if before, ok := gives[trial.World+fired.Rule]; !fired.Holds ||
			ok && before != o.ErrorCategory {
			t.Fatalf("%+v gives %s, but gave %s before", fired, o.ErrorCategory, before)
		}
		gives[trial.World+fired.Rule] = o.ErrorCategory
	}
	lacks := func(c string) bool { return !ofAgents[c] && !categories[c] && c != assay.CategoryJudge }
	checkLaw(t, check)
	for _, c := range assay.ErrorCategories {
		if lacks(c) {
			t.Errorf("no episode has %s, so the test is too weak", c)
		}
	}
	if len(asked) < 40 {
		t.Errorf("only %d answers to rules occurred, so the test is too weak", len(asked))
	}
}

func of(rules []spec.Rule, decided string) []spec.Rule {
	var some []spec.Rule
	for _, r := range rules {
		if r.Verdict == decided {
			some = append(some, r)
		}
	}
	return some
}

// levelLaw checks that full success takes every condition. Without it, the last question
// distinguishes partial success from failure.
func levelLaw(t *rapid.T, rules []spec.Rule, decided string, level assay.Level) {
	rules = of(rules, decided)
	want := assay.FullSuccess
	unmet := func(r spec.Rule) bool { return strings.HasSuffix(r.Because, "→ no full success") }
	if slices.ContainsFunc(rules, unmet) {
		want = map[bool]assay.Level{true: assay.PartialSuccess, false: assay.Failure}[rules[len(rules)-1].Holds]
	}
	if level != want {
		t.Fatalf("%s is %s by %+v", decided, level, rules)
	}
}

// TestExplainIsPure checks that Explain does not change its input, gives the same result again and
// for stored data, and produces lines that fit.
func TestExplainIsPure(t *testing.T) {
	t.Parallel()
	judge := score.New(catalog)
	rapid.Check(t, func(t *rapid.T) {
		trial, task, tr := anyEpisode(t)
		task0, tr0 := clone(t, task), clone(t, tr)
		e := judge.Explain(trial, &task, &tr)
		if !cmp.Equal(task, task0) || !cmp.Equal(tr, tr0) {
			t.Fatalf("the input was changed:\n%s%s", cmp.Diff(task0, task), cmp.Diff(tr0, tr))
		}
		if diff := cmp.Diff(e, judge.Explain(trial, &task0, &tr0)); diff != "" {
			t.Fatalf("the explanation is not deterministic:\n%s", diff)
		}
		if diff := cmp.Diff(e, clone(t, e)); diff != "" {
			t.Fatalf("JSON changes the explanation:\n%s", diff)
		}
		for _, line := range e.Text() {
			trimmed := strings.TrimRight(line, " ")
			if utf8.RuneCountInString(line) > 110 || trimmed != line ||
				strings.Contains(line, "\n") {
				t.Fatalf("line %q", line)
			}
		}
	})
}

func TestExplanationJSON(t *testing.T) {
	t.Parallel()
	trial, task := trialIn(world.Assay1Name), task("basic_task", "read")
	tr := transcript("read< !")
	tr.Plan = []string{"note", "read"}
	b, err := json.Marshal(score.New(catalog).Explain(trial, &task, tr))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"plan":[{"tool":"read","turn":0,"call":0,"tries":1,"failures":0,"mistakes":1,"in_order":false}]`,
		`"path":[{"turn":1,"tool":"read","mark":"a mistake","code":"DEPENDENCY_ERROR","chance":0,"luck":0,` +
			`"step":0,"given_step":1,"wasted":true,"recovered":false,"extra":false}]`,
		`"given":[{"tool":"note",`,
		`"measures":[{"measure":"coverage","value":"0.00","because":"`,
		`{"verdict":"verdict","rule":"the level is failure","holds":true,"because":"the error category is dependency"}]`,
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s\ndoes not contain %s", b, want)
		}
	}
}

// TestExplainUnknownTools explains a stored transcript with tools that the catalog no longer has,
// and a task without required tools.
func TestExplainUnknownTools(t *testing.T) {
	t.Parallel()
	judge := score.New(assay.NewCatalog(nil))
	for _, name := range world.Simulated {
		for _, required := range [][]string{{"gone"}, {}} {
			task := task("simple_task", required...)
			e := judge.Explain(trialIn(name), &task, transcript("gone- other+"))
			if len(e.Path) != 2 || len(e.Plan) != len(required) || e.Outcome.ErrorCategory == "" {
				t.Errorf("%s: %+v", name, e)
			}
		}
	}
}
