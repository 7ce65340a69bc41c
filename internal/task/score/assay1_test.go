package score_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/world"
)

// episode returns a transcript that ends with a claim if the last turn is one, and otherwise at the
// turn limit.
func episode(calls string) *assay.Transcript {
	tr := transcript(calls)
	if !strings.HasSuffix(calls, "!") {
		tr.Ended = assay.TurnLimit
	}
	return tr
}

func TestAssay1Level(t *testing.T) {
	t.Parallel()
	const full, partial, failure = assay.FullSuccess, assay.PartialSuccess, assay.Failure
	for _, tc := range []struct {
		name, required, calls string
		want                  assay.Level
		coverage              float64
		order                 bool
	}{
		{"all in order", "read parse", "read+ parse+ !", full, 1, true},
		{"a claim is needed", "read parse", "read+ parse+", partial, 1, true},
		{"a claim before other calls does not count", "read", "read+ ! note+", partial, 1, true},
		{
			"others between", "read parse", "note+ read+ post- parse+ !", full,
			1, true,
		},
		{"dependencies", "shape", "read+ parse+ shape+ !", full, 1, true},
		{"the latest result is handed over", "read parse", "read+ parse+ read+ !", partial, 1, true},
		{"an unneeded read before", "read", "note+ read+ !", full, 1, true},
		{"half of the calls unneeded", "read", "note+ read+", partial, 1, true},
		{"more than half of the calls unneeded", "read", "note+ post+ read+", failure, 1, true},
		{"an effect", "read send", "read+ send+ !", full, 1, true},
		{"an effect, and a read after it", "read send", "read+ send+ read+ !", full, 1, true},
		{"an effect twice", "read send", "read+ send+ send+ !", partial, 1, true},
		{"an effect after bad luck", "read send", "read+ send- send+ !", full, 1, true},
		{"an effect too early", "read send", "send+ read+ send+ !", partial, 1, true},
		{"another effect", "read", "send+ read+ !", partial, 1, true},
		{"another effect failed", "read", "send- read+ !", full, 1, true},
		{"data of nothing", "read trim", "read+ trim+ !", failure, .5, false},
		{"out of order, and again in order", "read note", "note+ read+ note+ !", full, 1, true},
		{"out of order", "read note", "note+ read+ !", partial, 1, false},
		{
			"a dependency that is required later", "parse read", "read+ parse+ read+ !", full,
			1, true,
		},
		{"and was not called again", "parse read", "read+ parse+ !", partial, 1, false},
		{"a tool required twice", "read read", "read+ read+ !", full, 1, true},
		{"and called once", "read read", "read+ !", partial, 1, false},
		{
			"three of five", "read parse shape note post", "read+ parse+ shape+ !", partial, .6,
			false,
		},
		{"one of two", "read parse", "read+ !", failure, .5, false},
		{"a failed call is not done", "read", "read- !", failure, 0, false},
		{"nothing", "read", "!", failure, 0, false},
		{"nothing required", "", "read+ !", failure, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := judgeAssay1(catalog, task("basic_task", strings.Fields(tc.required)...),
				episode(tc.calls))
			if o.Level != tc.want || o.Coverage != tc.coverage || o.OrderCorrect != tc.order {
				t.Errorf("%s, coverage %v, order %v; want %s, %v, %v",
					o.Level, o.Coverage, o.OrderCorrect, tc.want, tc.coverage, tc.order)
			}
		})
	}
}

// TestCategory checks reasons and the categories that follow from them. TestCauses in package
// episode has the same for episodes that are played, in every world.
func TestCategory(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, required, calls string
		stop                  assay.Stop
		cause                 assay.Cause
		category              string
		turn, call            int
	}{
		{"talk", "read", ". . .", assay.OutOfTurns, assay.NoAction, assay.CategoryMaxTurns, 1, 0},
		{"a claim and nothing else", "read", "!", assay.Answered, assay.FalseClaim, assay.CategoryToolSelection, 1, 0},
		{"searches until the end", "read", "~ ~ ~", assay.OutOfTurns, assay.NoAction, assay.CategoryMaxTurns, 1, 0},
		{"no claim", "read parse", "read+ parse+", assay.OutOfTurns, assay.HitLimit, assay.CategoryMaxTurns, 2, 0},
		{"no claim, and other calls", "read", "read+ note+ read? note+", assay.OutOfTurns, assay.NoEnd, assay.CategoryMaxTurns, 2, 2},
		{"an effect that was not asked for", "read", "read+ send+ !", assay.Answered, assay.HarmfulEffect, assay.CategoryUnwantedEffect, 2, 2},
		{"the same effect twice", "send", "send+ send+ !", assay.Answered, assay.RepeatedEffect, assay.CategoryUnwantedEffect, 2, 2},
		{"another result", "read", "read+ note+ !", assay.Answered, assay.WrongAnswer, assay.CategoryOther, 3, 0},
		{"all worked, in the wrong order", "read note", "note+ read+ !", assay.Answered, assay.WrongOrder, assay.CategorySequenceOrder, 1, 1},
		{"and then bad luck", "read note", "note+ read+ note-", assay.OutOfTurns, assay.WrongOrder, assay.CategorySequenceOrder, 1, 1},
		{"as a dependency, and then needlessly", "parse read", "read+ read+ parse+ read-", assay.OutOfTurns, assay.RetriedTooMuch, assay.CategoryMaxTurns, 2, 2},
		{"wrong data", "read trim", "read+ trim+ !", assay.Answered, assay.WrongArgument, assay.CategoryParameterConfig, 2, 2},
		{"wrong data before a missing dependency", "read trim parse", "read+ trim+ parse<", assay.OutOfTurns, assay.WrongArgument, assay.CategoryParameterConfig, 2, 2},
		{"wrong arguments", "read", "read? read?", assay.OutOfTurns, assay.WrongArgument, assay.CategoryParameterConfig, 1, 1},
		{"wrong arguments and a claim", "read", "read? !", assay.Answered, assay.WrongArgument, assay.CategoryParameterConfig, 1, 1},
		{"wrong arguments for a dependency", "parse", "read? read?", assay.OutOfTurns, assay.WrongArgument, assay.CategoryParameterConfig, 1, 1},
		{"a missing dependency", "parse", "parse< parse<", assay.OutOfTurns, assay.SkippedStep, assay.CategoryDependency, 1, 1},
		{"a mistake before foreign calls", "read", "read? note+ note+", assay.OutOfTurns, assay.WrongArgument, assay.CategoryParameterConfig, 1, 1},
		{"a mistake before bad luck", "read", "read? read- read-", assay.OutOfTurns, assay.BadLuck, assay.CategoryOther, 3, 3},
		{"the plan in reverse, and a claim", "read parse shape", "shape< parse< read+ !", assay.Answered, assay.WrongOrder, assay.CategoryDependency, 1, 1},
		{"the plan in reverse, and bad luck with its first step", "read parse", "parse< read- !", assay.Answered, assay.NotRetried, assay.CategoryOther, 2, 2},
		{"refused, and then something before it worked", "read parse", "parse? read+ !", assay.Answered, assay.WrongOrder, assay.CategoryDependency, 1, 1},
		{"a mistake with a later tool", "read parse shape", "shape< read+ !", assay.Answered, assay.SkippedStep, assay.CategoryDependency, 1, 1},
		{"a mistake, and then bad luck in its place", "read parse", "parse< read+ parse- !", assay.Answered, assay.NotRetried, assay.CategoryOther, 3, 3},
		{"another tool instead", "read", "note+ post+", assay.OutOfTurns, assay.WrongTool, assay.CategoryToolSelection, 1, 1},
		{"another tool after bad luck", "read", "read- read- note+", assay.OutOfTurns, assay.BadLuck, assay.CategoryOther, 2, 2},
		{"another tool and a later one", "read parse", "parse< note+", assay.OutOfTurns, assay.SkippedStep, assay.CategoryDependency, 1, 1},
		{"another tool, earlier", "read parse", "note+ note+ note+ read- read+", assay.OutOfTurns, assay.WrongTool, assay.CategoryToolSelection, 1, 1},
		{"another tool, earlier, without a chance", "read parse", "note+ read- read- read+", assay.OutOfTurns, assay.BadLuck, assay.CategoryOther, 3, 3},
		{"a later tool instead", "read note", "note+ note+", assay.OutOfTurns, assay.SkippedStep, assay.CategorySequenceOrder, 1, 1},
		{"a later tool, and a claim", "read note", "note+ !", assay.Answered, assay.SkippedStep, assay.CategorySequenceOrder, 1, 1},
		{"a later tool after bad luck", "read note", "read- note+ !", assay.Answered, assay.SkippedStep, assay.CategorySequenceOrder, 2, 2},
		{"skipped one in the middle", "read note post", "read+ post+", assay.OutOfTurns, assay.SkippedStep, assay.CategorySequenceOrder, 2, 2},
		{"a later tool, earlier", "read note post", "post+ read- read- read+", assay.OutOfTurns, assay.WrongOrder, assay.CategorySequenceOrder, 1, 1},
		{"left out", "read parse", "read+ !", assay.Answered, assay.SkippedStep, assay.CategoryToolSelection, 2, 0},
		{"left out, and the last one again", "read parse", "read+ read+ !", assay.Answered, assay.SkippedStep, assay.CategoryToolSelection, 3, 0},
		{"gave up", "read parse", "read+ parse- !", assay.Answered, assay.NotRetried, assay.CategoryOther, 2, 2},
		{"gave up early", "read", "read- !", assay.Answered, assay.NotRetried, assay.CategoryOther, 1, 1},
		{"too early once, then bad luck with what it needs", "parse", "parse< read- read- read-", assay.OutOfTurns, assay.BadLuck, assay.CategoryOther, 4, 4},
		{"gave up on a dependency", "parse", "read- !", assay.Answered, assay.NotRetried, assay.CategoryOther, 1, 1},
		{"not again in its place", "parse read", "read+ parse+ !", assay.Answered, assay.SkippedStep, assay.CategoryToolSelection, 3, 0},
		{"bad luck", "read", "read- read- read-", assay.OutOfTurns, assay.BadLuck, assay.CategoryOther, 3, 3},
		{"bad luck until the last turn", "read parse", "read- read- read+", assay.OutOfTurns, assay.BadLuck, assay.CategoryOther, 2, 2},
		{"searches, then bad luck", "read", "~ ~ ~ read- read-", assay.OutOfTurns, assay.HitLimit, assay.CategoryMaxTurns, 5, 0},
		{"talk after the first steps", "read parse", "read+ . .", assay.OutOfTurns, assay.NoAction, assay.CategoryMaxTurns, 2, 0},
		{"the same again", "read parse", "read+ read+ read+", assay.OutOfTurns, assay.RetriedTooMuch, assay.CategoryMaxTurns, 2, 2},
		{"fewer turns than steps", "read parse shape", "read+ parse+", assay.OutOfTurns, assay.HitLimit, assay.CategoryMaxTurns, 2, 0},
		{"two unlucky calls of one turn", "read", "read-,read- .", assay.OutOfTurns, assay.NotRetried, assay.CategoryOther, 1, 2},
		{"a mistake that was made good", "read parse", "read? read+", assay.OutOfTurns, assay.WrongArgument, assay.CategoryParameterConfig, 1, 1},
		{"mistakes in most turns", "read parse", "read? . ~ read? read+", assay.OutOfTurns, assay.WrongArgument, assay.CategoryParameterConfig, 1, 1},
		{"mistakes with what had succeeded", "read parse shape", "read+ read? read? parse+", assay.OutOfTurns, assay.WrongArgument, assay.CategoryParameterConfig, 2, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			task := task("basic_task", strings.Fields(tc.required)...)
			e := score.New(catalog).Explain(trialIn(world.Assay1Name), &task, episode(tc.calls))
			r, o := e.Reason, e.Outcome
			if r.Stop != tc.stop || r.Cause != tc.cause || r.Turn != tc.turn || r.Call != tc.call ||
				o.ErrorCategory != tc.category || o.Stop != r.Stop || o.Cause != r.Cause {
				t.Errorf("%s, %+v", o.ErrorCategory, r)
			}
		})
	}
}

// TestReversePlan plays every part of the chain of dependencies backwards in the world itself. If
// the first step succeeded, the error is a dependency. If not, and the model claims to be done, it
// is only bad luck.
func TestReversePlan(t *testing.T) {
	t.Parallel()
	chain := []string{"read", "parse", "shape", "writer"}
	seen := map[string]int{}
	for seed := range uint64(40) {
		for n := 2; n <= len(chain); n++ {
			for _, ended := range []assay.Ended{assay.Finished, assay.TurnLimit} {
				trial, task := trialIn(world.Assay1Name), task("basic_task", chain[:n]...)
				trial.Seed = seed
				w, tr := world.Begin(t.Context(), catalog, trial, &task), &assay.Transcript{Ended: ended}
				for turn, tool := range slices.Backward(chain[:n]) {
					if _, err := w.Call(n-turn, tool, ""); err != nil {
						t.Fatal(err)
					}
					tr.Turns = append(tr.Turns, assay.TurnRecord{})
				}
				tr.Calls = w.Calls()
				got := judgeAssay1(catalog, task, tr).ErrorCategory
				seen[got]++
				want, worked := assay.CategoryOther, tr.Calls[n-1].OK
				if worked {
					want = assay.CategoryDependency
				}
				if got != want && (worked || ended == assay.Finished) {
					t.Errorf("seed %d, %d steps, ended %s: %s, want %s", seed, n, ended, got, want)
				}
			}
		}
	}
	if seen[assay.CategoryDependency] == 0 || seen[assay.CategoryOther] == 0 {
		t.Errorf("categories %v, so the test is too weak", seen)
	}
}

func TestAssay1Outcome(t *testing.T) {
	t.Parallel()
	tr := episode(". read+,note- ~ parse? parse- parse+ read+ !")
	tr.Plan = []string{"read", "shape", "parse"}
	got := judgeAssay1(catalog, task("data_pipeline", "parse", "shape"), tr)
	want := assay.Outcome{
		Level: assay.Failure, Ended: assay.Finished, Stop: assay.Answered, Cause: assay.SkippedStep,
		ErrorCategory: assay.CategoryToolSelection, Turns: 8, ToolCalls: 6,
		RequiredTools: []string{"parse", "shape"}, ExecutedTools: []string{"read", "parse", "read"},
		Coverage: .5, Assisted: 1, ScoreVersion: score.Version(world.Assay1Name),
		Adherence: 2. / 3, GivenAdherence: new(2. / 3),
		FaultsDelivered: 2, FaultsDetected: 1, FaultsRecovered: 1,
		Mistakes: 1, Failures: 2, Recovered: 1, Wasted: 3, Efficiency: .5, Extra: 1,
		Precision: 2. / 3,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcome:\n%s", diff)
	}
}

// anyAssay1 draws transcripts with calls of every kind, possible or not.
func anyAssay1(task assay.Task) *rapid.Generator[assay.Transcript] {
	words := []string{"~", ".", "!"}
	for _, name := range catalog.Names() {
		words = append(words, name+"+", name+"+", name+"-", name+"?", name+"<", name+"?,"+name+"+")
	}
	return episodes(task, words, []string{"read-", "read+", "read?", "parse+", "parse-", "parse<"})
}

// TestAssay1Laws checks the laws of the score with random transcripts.
func TestAssay1Laws(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	check := func(t *rapid.T) {
		task := anyTask().Draw(t, "task")
		tr := anyAssay1(task).Draw(t, "transcript")
		task0, tr0 := clone(t, task), clone(t, tr)
		o := judgeAssay1(catalog, task, &tr)

		if again := judgeAssay1(catalog, task, &tr); !cmp.Equal(o, again) {
			t.Fatalf("the score is not deterministic:\n%s", cmp.Diff(o, again))
		}
		if !cmp.Equal(task, task0) || !cmp.Equal(tr, tr0) {
			t.Fatalf("the input was changed:\n%s%s", cmp.Diff(task0, task), cmp.Diff(tr0, tr))
		}
		stored := clone(t, tr)
		if again := judgeAssay1(catalog, task, &stored); !cmp.Equal(o, again) {
			t.Fatalf("the stored transcript gets a different score:\n%s", cmp.Diff(o, again))
		}
		full, done := o.Level == assay.FullSuccess, o.Coverage == 1 && o.OrderCorrect &&
			o.Ended == assay.Finished && o.UnwantedEffects == 0
		if full != (o.ErrorCategory == "") || full && !done {
			t.Fatalf("level %s, category %q, coverage %v, order correct %v, ended %s",
				o.Level, o.ErrorCategory, o.Coverage, o.OrderCorrect, o.Ended)
		}
		known := o.ErrorCategory == "" || slices.Contains(assay.ErrorCategories, o.ErrorCategory)
		if !known || o.ErrorCategory == assay.CategoryTimeout {
			t.Fatalf("category %q", o.ErrorCategory)
		}
		earned := o.Coverage >= .6 && o.Efficiency >= .5
		if o.OrderCorrect && o.Coverage != 1 || !full && (o.Level == assay.PartialSuccess) != earned ||
			o.Pilot != nil {
			t.Fatalf("level %s, coverage %v, order correct %v", o.Level, o.Coverage, o.OrderCorrect)
		}
		is := func(categories ...string) bool {
			return slices.Contains(categories, o.ErrorCategory)
		}
		if is(assay.CategoryUnwantedEffect) && o.UnwantedEffects == 0 ||
			is(assay.CategoryDependency) && o.Mistakes == 0 ||
			is(assay.CategoryParameterConfig) && o.Wasted == 0 ||
			is(assay.CategoryMaxTurns) && o.Ended == assay.Finished ||
			is(assay.CategoryToolCallFormat) { // it has no messages
			t.Fatalf("category %s with %d mistakes, %d failures, %d calls, ended by %s",
				o.ErrorCategory, o.Mistakes, o.Failures, o.ToolCalls, o.Ended)
		}
		// A model that wastes no calls and does not stop early only lacked time or luck, unless a tool
		// that it needs early is also required later, so that calling it looks like skipping a step.
		plan := policy.Sequence(catalog, task.Required)
		right := o.Wasted == 0 && o.ToolCalls > 0 && o.Stop != assay.Answered &&
			len(policy.Distinct(plan)) == len(plan)
		if right && !is(assay.CategoryOther, assay.CategoryMaxTurns) {
			t.Fatalf("category %s without a wasted call", o.ErrorCategory)
		}
		// If most turns held only mistakes, the reason is neither bad luck nor lack of time.
		only := o.Mistakes == o.ToolCalls && o.Mistakes > 0 && o.Extra == 0 &&
			2*o.Mistakes > o.Turns
		if only && o.Stop != assay.Answered && is(assay.CategoryMaxTurns, assay.CategoryOther) {
			t.Fatalf("category %s for mistakes in %d of %d turns",
				o.ErrorCategory, o.Mistakes, o.Turns)
		}
		measureLaws(t, &tr, &o)
		seen[string(o.Level)]++
		seen[o.ErrorCategory]++
	}
	verdicts := []string{
		string(assay.FullSuccess), string(assay.PartialSuccess), string(assay.Failure),
	}
	lacks := func(c string) bool {
		return seen[c] == 0 && !ofAgents[c] && c != assay.CategoryToolCallFormat && c != assay.CategoryJudge
	}
	all := append(verdicts, assay.ErrorCategories...)
	checkLaw(t, check)
	for _, c := range all {
		if lacks(c) {
			t.Errorf("no transcript gave %s, so the test is too weak", c)
		}
	}
}

// TestAssay1CodesOfLuckDoNotMatter checks that the code of a failure by chance changes no verdict.
func TestAssay1CodesOfLuckDoNotMatter(t *testing.T) {
	t.Parallel()
	codes := rapid.SampledFrom(anyCode)
	rapid.Check(t, func(t *rapid.T) {
		task := anyTask().Draw(t, "task")
		tr := anyAssay1(task).Draw(t, "transcript")
		o := judgeAssay1(catalog, task, &tr)
		for i := range tr.Calls {
			if c := &tr.Calls[i]; !c.OK && !c.Mistake {
				c.Code = codes.Draw(t, "code")
				c.Error = c.Code + ": agent timeout after 10 minutes"
			}
		}
		if diff := cmp.Diff(o, judgeAssay1(catalog, task, &tr)); diff != "" {
			t.Fatalf("other codes change the verdict:\n%s", diff)
		}
	})
}

// TestGivingUpOnAnOutage checks the cause of an attempt that ends when a tool is down: bad luck if no other
// does the same, and else that the other one was not called.
func TestGivingUpOnAnOutage(t *testing.T) {
	t.Parallel()
	one := assay.NewCatalog([]assay.Tool{{Name: "read"}})
	two := assay.NewCatalog([]assay.Tool{{Name: "read"}, {Name: "read2", StandsFor: "read"}})
	trial, task := trialIn(world.Assay1Name), task("basic_task", "read")
	trial.Faults, trial.Reliability, trial.Calls = "down=1", .5, 5
	first := func(tool string) assay.CallRecord {
		w := world.Begin(t.Context(), two, trial, &task)
		c, err := w.Call(1, tool, "{}")
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for first("read").OK || !first("read2").OK {
		trial.Seed++
	}
	tr := &assay.Transcript{
		Ended: assay.Finished, Calls: []assay.CallRecord{first("read")}, Turns: make([]assay.TurnRecord, 2),
		Messages: []assay.Message{{Role: assay.Assistant, Content: "TASK_COMPLETED"}},
	}
	r := score.New(one).Explain(trial, &task, tr).Reason
	if r.Cause != assay.BadLuck || !strings.Contains(r.Because, "cannot do without it") {
		t.Errorf("one tool: %+v", r)
	}
	r = score.New(two).Explain(trial, &task, tr).Reason
	if r.Cause != assay.NotRetried || r.Right != "a call of read2, which does the same" {
		t.Errorf("two tools: %+v", r)
	}
	tr.Calls = append(tr.Calls, first("read2"))
	tr.Calls[1].Turn = 2
	tr.Turns = append(tr.Turns, assay.TurnRecord{})
	e := score.New(two).Explain(trial, &task, tr)
	if e.Outcome.Coverage != 1 || e.Path[0].Reaction == nil || !e.Path[0].Reaction.Recovered || !e.Path[0].Reaction.Detected {
		t.Errorf("the second tool was called: %+v, %+v", e.Outcome, e.Path[0].Reaction)
	}
}
