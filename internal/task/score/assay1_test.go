package score_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
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

func TestAssay1Category(t *testing.T) {
	t.Parallel()
	const (
		format     = assay.CategoryToolCallFormat
		maxTurns   = assay.CategoryMaxTurns
		selection  = assay.CategoryToolSelection
		config     = assay.CategoryParameterConfig
		order      = assay.CategorySequenceOrder
		dependency = assay.CategoryDependency
		other      = assay.CategoryOther
	)
	for _, tc := range []struct{ name, required, calls, want string }{
		{"full success has none", "read parse", "read+ parse+ !", ""},

		// 1. There was no call.
		{"no turn", "read", "", format},
		{"talk", "read", ". . .", format},
		{"a claim and nothing else", "read", "!", format},
		{"searches until the end", "read", "~ ~ ~", maxTurns},
		{"a search and a claim", "read", "~ !", selection},
		{"one search among talk", "read", ". ~ .", format},
		{"one search among talk, and a claim", "read", ". ~ . !", format},
		{"as many searches as corrections", "read", ". ~ ~ .", maxTurns},
		{"as many searches as corrections, and a claim", "read", ". ~ !", selection},

		{"no claim", "read parse", "read+ parse+", maxTurns},
		{"no claim, and other calls", "read", "read+ note+ read? note+", maxTurns},

		// 2. An unwanted effect.
		{"an effect that was not asked for", "read", "read+ send+ !", assay.CategoryUnwantedEffect},
		{"the same effect twice", "send", "send+ send+ !", assay.CategoryUnwantedEffect},

		// 3. All but the end. The claim is missing, or it handed over another result.
		{"another result", "read", "read+ note+ !", selection},

		// 4. The step succeeded too early.
		{"all worked, in the wrong order", "read note", "note+ read+ !", order},
		{"and then bad luck", "read note", "note+ read+ note-", order},
		{"and then mistakes", "read note", "note+ read+ note? note?", order},
		{"and one is still left out", "read note post", "note+ read+ !", order},
		{"as a dependency, and then needlessly", "parse read", "read+ read+ parse+ read-", order},

		// 5. Mistakes, and wrong data or values.
		{"wrong data", "read trim", "read+ trim+ !", config},
		{"wrong data before a missing dependency", "read trim parse", "read+ trim+ parse<", config},
		{"wrong arguments", "read", "read? read?", config},
		{"wrong arguments and a claim", "read", "read? !", config},
		{"wrong arguments for a dependency", "parse", "read? read?", config},
		{"wrong arguments for a dependency of a later tool", "note parse", "read? read?", config},
		{"wrong arguments after bad luck", "read", "read- read- read- read?", config},
		{"a missing dependency", "parse", "parse< parse<", dependency},
		{"a dependency's missing dependency", "shape", "parse< parse<", dependency},
		{"the last mistake decides", "parse", "parse? parse<", dependency},
		{"the last mistake decides, too", "parse", "parse< parse?", config},
		{"a mistake before foreign calls", "read", "read? note+ note+", config},
		{"a mistake before bad luck", "read", "read? read- read-", other},

		// 6. The latest call of the step was a mistake.
		{
			"the plan in reverse, and a claim", "read parse shape", "shape< parse< read+ !",
			dependency,
		},
		{
			"the plan in reverse, and no turn left", "read parse shape", "shape< parse< read+",
			dependency,
		},
		{
			"the plan in reverse, up to the one that is left out", "parse shape",
			"shape< parse< read+ !", dependency,
		},
		{"the plan in reverse, and other calls", "read parse", "parse< read+ note+ !", dependency},
		{
			"the plan in reverse, and bad luck with its first step", "read parse",
			"parse< read- !", other,
		},
		{"refused, and then something before it worked", "read parse", "parse? read+ !", config},
		{"the latest decides", "read parse", "parse? parse< read+ !", dependency},
		{"the latest decides, too", "read parse", "parse< parse? read+ !", config},
		{"a mistake with a later tool", "read parse shape", "shape< read+ !", selection},
		{"a mistake, and then bad luck in its place", "read parse", "parse< read+ parse- !", other},
		{
			"a mistake with the step, which had succeeded too early", "read note",
			"note+ note? read+ !", order,
		},

		// 7. A foreign tool.
		{"another tool instead", "read", "note+ post+", selection},
		{"another tool instead, by mistake", "read", "note?", selection},
		{"another tool instead, by bad luck", "read", "note-", selection},
		{"another tool after bad luck", "read", "read- read- note+", selection},
		{"another tool and a later one", "read parse", "parse< note+", selection},
		{"another tool, earlier", "read parse", "note+ read- read- read+", other},

		// 9. A later tool.
		{"a later tool instead", "read note", "note+ note+", order},
		{"a later tool instead, which builds on the step", "read parse", "parse< parse<", order},
		{"a later tool, and a claim", "read note", "note+ !", selection},
		{"a later tool after bad luck", "read note", "read- note+ !", order},
		{"skipped one in the middle", "read note post", "read+ post+", order},
		{"a later tool, earlier", "read note post", "post+ read- read- read+", other},

		// 8 and 10. A claim.
		{"left out", "read parse", "read+ !", selection},
		{"left out after bad luck with another", "read parse", "read- read- read+ !", selection},
		{"left out, and the last one again", "read parse", "read+ read+ !", selection},
		{"gave up", "read parse", "read+ parse- !", other},
		{"gave up early", "read", "read- !", other},
		{
			"too early once, then bad luck with what it needs", "parse",
			"parse< read- read- read-", other,
		},
		{"gave up on a dependency", "parse", "read- !", other},
		{"not again in its place", "parse read", "read+ parse+ !", order},

		// 11. Cut off.
		{"bad luck", "read", "read- read- read-", other},
		{"bad luck until the last turn", "read parse", "read- read- read+", other},
		{"bad luck in most turns", "read", "~ read- read-", other},
		{"bad luck in half of the lost turns", "read", "~ read-", maxTurns},
		{"searches, then bad luck", "read", "~ ~ ~ read- read-", maxTurns},
		{"talk after the first steps", "read parse", "read+ . .", maxTurns},
		{"the same again", "read parse", "read+ read+ read+", maxTurns},
		{"fewer turns than steps", "read parse shape", "read+ parse+", maxTurns},
		{"bad luck with the second of two places", "parse read", "read+ parse+ read- read-", other},
		{"no turn for the second of two places", "parse read", "read+ parse+", maxTurns},
		{"two unlucky calls of one turn", "read", "read-,read- .", maxTurns},
		{
			"bad luck beside success costs no turn", "read parse shape",
			"read-,read+ parse- parse+", other,
		},
		{
			"bad luck beside success costs no turn, too", "read parse shape",
			"read-,read+ . parse-,parse+", maxTurns,
		},
		{"a mistake that was made good", "read parse", "read? read+", config},
		{
			"mistakes, and then too few turns", "read parse shape", "read? parse< read+ parse+",
			dependency,
		},
		{"mistakes in most turns", "read parse", "read? . ~ read? read+", config},
		{
			"mistakes with what had succeeded", "read parse shape", "read+ read? read? parse+",
			config,
		},
		{"mistakes and as much talk", "read parse", "read? . read+", maxTurns},
		{"mistakes and as many searches", "read parse", "read? ~ read+", maxTurns},
		{
			"mistakes and as many needless calls", "read parse shape",
			"read? read+ read+ parse+", maxTurns,
		},
		{"two mistakes of one turn", "read parse", "read?,read? . read+", maxTurns},
		{
			"a mistake beside success costs no turn", "read parse shape", "read?,read+ parse+",
			maxTurns,
		},
		{
			"a mistake beside a needless call", "read parse shape", "read+ read?,read+ parse+",
			maxTurns,
		},
		{"more bad luck than mistakes", "read parse", "read? read- read- read+", other},
		{"as much bad luck as mistakes", "read parse", "read? read- read+", config},
		{"mistakes, and only the claim is missing", "read", "read? read? read+", maxTurns},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := judgeAssay1(catalog, task("basic_task", strings.Fields(tc.required)...),
				episode(tc.calls))
			if o.ErrorCategory != tc.want {
				t.Errorf("%q for %q gives %q, want %q",
					tc.calls, tc.required, o.ErrorCategory, tc.want)
			}
		})
	}
}

// TestEndsOfReplies checks that an episode that ran out of tokens or money, or ended by a loop, is
// judged like one that ran out of turns.
func TestEndsOfReplies(t *testing.T) {
	t.Parallel()
	for calls, want := range map[string]string{
		"~ ~ ~":               assay.CategoryMaxTurns,
		"read+":               assay.CategoryMaxTurns,
		"read+ parse- parse-": assay.CategoryOther,
		"read+ note+":         assay.CategoryToolSelection,
	} {
		for _, end := range []assay.Ended{
			assay.TurnLimit, assay.TokenLimit, assay.CostLimit, assay.Loop,
		} {
			tr := transcript(calls)
			tr.Ended = end
			got := judgeAssay1(catalog, task("basic_task", "read", "parse"), tr).ErrorCategory
			if got != want {
				t.Errorf("%q, ended %s: %s, want %s", calls, end, got, want)
			}
		}
	}
}

// TestArgumentsNameTheDependency checks references to missing dependencies. assay-1 finds a
// dangling reference before it looks at dependencies, but the error is the same.
func TestArgumentsNameTheDependency(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ calls, arguments, want string }{
		{"parse?", `{"data": {"ref": "read"}}`, assay.CategoryDependency},
		{"parse?", `{"source": "read"}`, assay.CategoryDependency},
		{"parse?", `{"data": {"ref": "reads"}}`, assay.CategoryParameterConfig},
		{"parse?", `{"data": {"ref": "shape"}}`, assay.CategoryParameterConfig},
		{"read+ parse?", `{"data": {"ref": "read"}, "no": 1}`, assay.CategoryParameterConfig},
		{"parse? read+ !", `{"data": {"ref": "read"}}`, assay.CategoryDependency},
		{"parse? read+ !", `{"data": {"ref": "shape"}}`, assay.CategoryParameterConfig},
	} {
		tr := episode(tc.calls)
		wrong := slices.IndexFunc(tr.Calls, func(c assay.CallRecord) bool { return c.Mistake })
		tr.Calls[wrong].Arguments = tc.arguments
		got := judgeAssay1(catalog, task("basic_task", "parse"), tr).ErrorCategory
		if got != tc.want {
			t.Errorf("%q with %s: %s, want %s", tc.calls, tc.arguments, got, tc.want)
		}
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
		Level: assay.Failure, Ended: assay.Finished,
		ErrorCategory: assay.CategoryToolSelection, Turns: 8, ToolCalls: 6,
		RequiredTools: []string{"parse", "shape"}, ExecutedTools: []string{"read", "parse", "read"},
		Coverage: .5, Assisted: 1, ScoreVersion: score.Version(world.Assay1Name),
		Adherence: 2. / 3, GivenAdherence: new(2. / 3),
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
		if is(assay.CategoryUnwantedEffect) != (o.UnwantedEffects > 0) ||
			is(assay.CategoryDependency) && o.Mistakes == 0 ||
			is(assay.CategoryParameterConfig) && o.Wasted == 0 ||
			is(assay.CategoryToolCallFormat) && o.ToolCalls > 0 ||
			is(assay.CategoryOther) && o.Failures == 0 {
			t.Fatalf("category %s with %d mistakes, %d failures, %d calls",
				o.ErrorCategory, o.Mistakes, o.Failures, o.ToolCalls)
		}
		// A model that wastes no calls and does not stop early only lacked time or luck.
		right := o.Wasted == 0 && o.ToolCalls > 0 && o.Ended != assay.Finished
		if right && !is(assay.CategoryOther, assay.CategoryMaxTurns) {
			t.Fatalf("category %s without a wasted call", o.ErrorCategory)
		}
		// If most turns held only mistakes, the reason is neither bad luck nor lack of time. The
		// same is true of corrections without any call.
		only := o.Mistakes == o.ToolCalls && o.Mistakes > 0 && o.Extra == 0 &&
			2*o.Mistakes > o.Turns
		if only && o.Ended != assay.Finished && is(assay.CategoryMaxTurns, assay.CategoryOther) {
			t.Fatalf("category %s for mistakes in %d of %d turns",
				o.ErrorCategory, o.Mistakes, o.Turns)
		}
		if o.ToolCalls == 0 && 2*o.Assisted > o.Turns && !is(assay.CategoryToolCallFormat) {
			t.Fatalf("category %s without calls and with corrections in %d of %d turns",
				o.ErrorCategory, o.Assisted, o.Turns)
		}
		measureLaws(t, &tr, &o)
		seen[string(o.Level)]++
		seen[o.ErrorCategory]++
	}
	verdicts := []string{
		string(assay.FullSuccess), string(assay.PartialSuccess), string(assay.Failure),
	}
	lacks := func(c string) bool { return seen[c] == 0 && !ofAgents[c] }
	all := append(verdicts, assay.ErrorCategories...)
	checkLaw(t, check, func() bool { return !slices.ContainsFunc(all, lacks) })
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
