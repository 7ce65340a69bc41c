package score_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/world/own"
)

// anyOwn draws a task of own-1 and an episode, whose calls are of few kinds so that they repeat.
func anyOwn(t *rapid.T) (*assay.Task, *assay.Transcript) {
	tools := rapid.SampledFrom([]string{"get", "pay", "send"})
	expected := rapid.Custom(func(t *rapid.T) assay.Expected {
		e := assay.Expected{Tool: tools.Draw(t, "tool")}
		if n := rapid.IntRange(0, 2).Draw(t, "n"); n > 0 {
			e.Arguments = json.RawMessage(fmt.Sprintf(`{"n":%d}`, n))
		}
		return e
	})
	perhaps := rapid.Custom(func(t *rapid.T) assay.Expected {
		if rapid.IntRange(0, 3).Draw(t, "alternatives") > 0 {
			return expected.Draw(t, "call")
		}
		return assay.Expected{Alternatives: rapid.SliceOfN(expected, 1, 2).Draw(t, "any of")}
	})
	task := &assay.Task{Judge: &assay.Judge{
		Calls:     rapid.SliceOfN(perhaps, 0, 3).Draw(t, "required"),
		AnyOrder:  rapid.Bool().Draw(t, "any order"),
		Allowed:   rapid.SliceOfN(expected, 0, 1).Draw(t, "allowed"),
		Forbidden: rapid.SliceOfN(expected, 0, 1).Draw(t, "forbidden"),
	}}
	task.Required = assay.Called(task.Judge.Calls)
	if rapid.Bool().Draw(t, "planned") {
		task.Reference = &assay.Reference{Calls: rapid.SliceOfN(expected, 1, 4).Draw(t, "plan")}
	}
	calls := rapid.Custom(func(t *rapid.T) assay.CallRecord {
		c := assay.CallRecord{Tool: tools.Draw(t, "tool"), Arguments: fmt.Sprintf(`{"n":%d}`,
			rapid.IntRange(1, 2).Draw(t, "n"))}
		switch rapid.IntRange(0, 4).Draw(t, "fate") {
		case 0:
			c.Mistake, c.Code = true, "NO"
		case 1:
			c.Code = "TIMEOUT"
		default:
			c.OK = true
		}
		return c
	})
	tr := &assay.Transcript{
		Ended: assay.Finished, Calls: rapid.SliceOfN(calls, 0, 6).Draw(t, "calls"),
	}
	return task, tr
}

// TestOwnExplanationsAgree checks that the parts of an explanation agree about an episode with own
// tools: the marks of its calls, the steps of the plan, the measures and the verdict.
func TestOwnExplanationsAgree(t *testing.T) {
	t.Parallel()
	judge := score.New(assay.NewCatalog([]assay.Tool{
		{Name: "get"}, {Name: "pay", Effect: "pays"}, {Name: "send", Effect: "sends"},
	}))
	trial := &assay.Trial{Cell: assay.Cell{Reliability: 1}, Setting: assay.Setting{
		World: own.Name, Calls: 10, Turns: 10,
	}}
	useful := []score.Mark{"required", "required and in order", "in the task's plan"}
	rapid.Check(t, func(t *rapid.T) {
		task, tr := anyOwn(t)
		e := judge.Explain(trial, task, tr)
		wasted, unwanted, good := 0, 0, 0
		for i, s := range e.Path {
			happened := tr.Calls[i].Happened()
			if s.Wasted {
				wasted++
			}
			if s.Unwanted != "" {
				unwanted++
			}
			if is := slices.Contains(useful, s.Mark); is {
				good++
				if s.Wasted || !happened || s.Step < 0 {
					t.Fatalf("call %d is %+v", i, s)
				}
			} else if happened && !s.Wasted {
				t.Fatalf("call %d happened, is %q, and is not wasted", i, s.Mark)
			}
		}
		o := e.Outcome
		if wasted != o.Wasted || unwanted != o.UnwantedEffects {
			t.Fatalf("%d wasted and %d unwanted calls in the path, %+v", wasted, unwanted, o)
		}
		if n := len(o.ExecutedTools); n > 0 && o.Precision != float64(good)/float64(n) {
			t.Fatalf("%d of %d useful, precision %v", good, n, o.Precision)
		}
		required, met := 0, 0
		for _, s := range e.Plan {
			if s.Optional {
				continue
			}
			if required++; s.InOrder {
				met++
			}
			if s.InOrder != (s.Call > 0) {
				t.Fatalf("step %+v", s)
			}
		}
		if n := len(task.Judge.Calls); required != n || o.OrderCorrect != (met == n) ||
			n > 0 && o.Coverage != float64(met)/float64(n) {
			t.Fatalf("%d of %d steps in place, %d required: %+v", met, required, n, o)
		}
		if o.UnwantedEffects == 0 && o.ErrorCategory == assay.CategoryUnwantedEffect {
			t.Fatalf("no unwanted effect, but %s", o.ErrorCategory)
		}
	})
}

// TestThePlanOfOwnTasksWastesNothing checks that each call of a plan counts once: no call is
// wasted, and all are if they are made again.
func TestThePlanOfOwnTasksWastesNothing(t *testing.T) {
	t.Parallel()
	judge := score.New(assay.NewCatalog([]assay.Tool{{Name: "get"}, {Name: "pay", Effect: "pays"}}))
	trial := &assay.Trial{Cell: assay.Cell{Reliability: 1}, Setting: assay.Setting{
		World: own.Name, Calls: 10, Turns: 10,
	}}
	get, pay := assay.Expected{Tool: "get"}, assay.Expected{Tool: "pay"}
	task := &assay.Task{
		Judge: &assay.Judge{Calls: []assay.Expected{pay}}, Required: []string{"pay"},
		Reference: &assay.Reference{Calls: []assay.Expected{get, pay}},
	}
	plan := []assay.CallRecord{{Tool: "get", OK: true}, {Tool: "pay", OK: true}}
	tr := &assay.Transcript{Ended: assay.Finished, Calls: plan}
	if e := judge.Explain(trial, task, tr); e.Outcome.Efficiency != 1 || e.Outcome.Precision != 1 ||
		strings.Contains(strings.Join(e.Text(), "\n"), "needless") {
		t.Errorf("the plan:\n%s", strings.Join(e.Text(), "\n"))
	}
	tr.Calls = slices.Concat(plan, plan)
	e := judge.Explain(trial, task, tr)
	if e.Outcome.Efficiency != .5 || e.Outcome.UnwantedEffects != 1 {
		t.Errorf("the plan twice:\n%s", strings.Join(e.Text(), "\n"))
	}
}

// TestOpinions checks what the opinion of a model changes. Its yes changes no outcome but for the words
// about it, and its no leaves no success. Only the judge is the cause exactly if nothing else was wrong.
func TestOpinions(t *testing.T) {
	t.Parallel()
	catalog := assay.NewCatalog([]assay.Tool{{Name: "get"}, {Name: "pay", Effect: "pays"}, {Name: "send", Effect: "sends"}})
	judge, seen := score.New(catalog), make(map[bool]int)
	rapid.Check(t, func(t *rapid.T) {
		task, tr := anyOwn(t)
		task.Judge.Rubric, task.Judge.Model = "r", "m"
		trial := &assay.Trial{Cell: assay.Cell{Reliability: 1}, Setting: assay.Setting{World: "own-1"}}
		tr.Messages = []assay.Message{{Role: assay.Assistant, Content: "TASK_COMPLETED"}}
		before := judge.Outcome(trial, task, tr)
		if before.Verdict != "" || before.JudgedAlone {
			t.Fatalf("before the judge was asked, it says %q", before.Verdict)
		}
		tr.Opinion = &assay.Opinion{Model: "m", Prompt: "p", Verdict: assay.Pass, Reason: "good"}
		yes := judge.Outcome(trial, task, tr)
		if yes.Verdict != assay.Pass || yes.JudgePrompt != "p" || yes.JudgedAlone != (len(task.Judge.Calls) == 0) {
			t.Fatalf("the outcome is %+v", yes)
		}
		yes.Verdict, yes.JudgePrompt, yes.JudgedAlone = "", "", false
		if diff := cmp.Diff(before, yes); diff != "" {
			t.Fatalf("a yes changes the outcome (-before +after):\n%s", diff)
		}
		tr.Opinion.Verdict, tr.Opinion.Reason = assay.Fail, "bad"
		no := judge.Explain(trial, task, tr)
		overruled := before.Level == assay.FullSuccess
		seen[overruled]++
		is := no.Outcome.Cause == assay.JudgeSaidNo && no.Outcome.ErrorCategory == assay.CategoryJudge &&
			no.Reason.Because == "bad (m)"
		if no.Outcome.Level != assay.Failure || is != overruled {
			t.Fatalf("%s before, then %s because of %s (%s)", before.Level, no.Outcome.Level, no.Outcome.Cause,
				no.Reason.Because)
		}
	})
	if seen[true] == 0 || seen[false] == 0 {
		t.Errorf("of all episodes, %v were a success but for the judge, so the test is too weak", seen)
	}
}
