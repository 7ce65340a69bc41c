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
	"github.com/assay-eval/assay/internal/task/policy"
)

// checkLaw checks a law with random transcripts. It also plays 100 that are the same in every run, so
// that a test can require that all cases occur.
func checkLaw(t *testing.T, law func(*rapid.T)) {
	t.Helper()
	for range 10 {
		rapid.Check(t, law)
	}
	transcript := rapid.Custom(func(t *rapid.T) bool { law(t); return true })
	for seed := range 100 {
		transcript.Example(seed)
	}
}

// TestPilotLaws checks the laws of the score with random transcripts.
func TestPilotLaws(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	check := func(t *rapid.T) {
		task := anyTask().Draw(t, "task")
		tr := anyTranscript(task).Draw(t, "transcript")
		task0, tr0 := clone(t, task), clone(t, tr)
		o := judgePilot(catalog, task, &tr)

		if again := judgePilot(catalog, task, &tr); !cmp.Equal(o, again) {
			t.Fatalf("the score is not deterministic:\n%s", cmp.Diff(o, again))
		}
		if !cmp.Equal(task, task0) || !cmp.Equal(tr, tr0) {
			t.Fatalf("the input was changed:\n%s%s", cmp.Diff(task0, task), cmp.Diff(tr0, tr))
		}
		if !slices.Contains(assay.Levels, o.Level) {
			t.Fatalf("level %q", o.Level)
		}
		if full := o.Level == assay.FullSuccess; full != (o.ErrorCategory == "") ||
			full != o.OrderCorrect {
			t.Fatalf("level %s, category %q, order correct %v",
				o.Level, o.ErrorCategory, o.OrderCorrect)
		}
		known := o.ErrorCategory == "" || slices.Contains(assay.ErrorCategories, o.ErrorCategory)
		if !known || o.ErrorCategory == assay.CategoryTimeout {
			t.Fatalf("category %q", o.ErrorCategory)
		}
		if o.ErrorCategory == assay.CategoryToolCallFormat && len(tr.Calls) > 0 {
			t.Fatalf("category %s despite %d calls", o.ErrorCategory, len(tr.Calls))
		}
		if o.ErrorCategory == assay.CategoryParameterConfig {
			t.Fatal("no call of the pilot can be attributed to its arguments")
		}
		if !(o.Coverage >= 0 && o.Coverage <= 1) || o.OrderCorrect && o.Coverage != 1 {
			t.Fatalf("coverage %v, order correct %v", o.Coverage, o.OrderCorrect)
		}
		if o.Turns != len(tr.Turns) || o.ToolCalls != len(tr.Calls) || o.Ended != tr.Ended ||
			len(o.ExecutedTools) > o.ToolCalls || o.ExecutedTools == nil {
			t.Fatalf("counts: %+v", o)
		}
		measureLaws(t, &tr, &o)
		seen[string(o.Level)]++
		seen[o.ErrorCategory]++
	}
	verdicts := []string{
		string(assay.FullSuccess), string(assay.PartialSuccess), string(assay.Failure),
	}
	lacks := func(c string) bool {
		never := c == assay.CategoryParameterConfig || ofAgents[c] ||
			c == assay.CategoryUnwantedEffect || c == assay.CategoryJudge
		return seen[c] == 0 && !never
	}
	all := append(verdicts, assay.ErrorCategories...)
	checkLaw(t, check)
	for _, c := range all {
		if lacks(c) {
			t.Errorf("no transcript gave %s, so the test is too weak", c)
		}
	}
}

var anyCode = []string{
	"TIMEOUT", "INVALID_INPUT", "DEPENDENCY_ERROR", "PERMISSION_DENIED", "OPERATION_FAILED",
}

// TestCodesDoNotMatter checks that the code with which a tool failed, such as TIMEOUT, changes no
// verdict, and that no verdict is called a timeout.
func TestCodesDoNotMatter(t *testing.T) {
	t.Parallel()
	codes := rapid.SampledFrom(anyCode)
	rapid.Check(t, func(t *rapid.T) {
		task := anyTask().Draw(t, "task")
		tr := anyTranscript(task).Draw(t, "transcript")
		o := judgePilot(catalog, task, &tr)
		for i := range tr.Calls {
			if !tr.Calls[i].OK {
				tr.Calls[i].Code = codes.Draw(t, "code")
				tr.Calls[i].Error = tr.Calls[i].Code + ": agent timeout after 10 minutes"
			}
		}
		other := judgePilot(catalog, task, &tr)
		if diff := cmp.Diff(o, other); diff != "" {
			t.Fatalf("other codes change the verdict:\n%s", diff)
		}
		text := strings.ToLower(fmt.Sprint(other.Level, other.ErrorCategory, other.Ended))
		if strings.Contains(text, "timeout") {
			t.Fatalf("verdict %s", text)
		}
	})
}

func anyTask() *rapid.Generator[assay.Task] {
	return rapid.Custom(func(t *rapid.T) assay.Task {
		names := rapid.Permutation(catalog.Names()).Draw(t, "required")
		required := names[:rapid.IntRange(1, 4).Draw(t, "n")]
		if rapid.IntRange(0, 20).Draw(t, "odd") == 0 {
			required = append(required, required[0])
		}
		return task(rapid.SampledFrom(assay.TaskTypes).Draw(t, "type"), required...)
	})
}

// anyTranscript draws a transcript of pilot, where calls fail only by chance.
func anyTranscript(task assay.Task) *rapid.Generator[assay.Transcript] {
	words := []string{"~", ".", "!"}
	for _, name := range catalog.Names() {
		words = append(words, name+"+", name+"+", name+"-", name+"-,"+name+"+")
	}
	return episodes(task, words, []string{"read-", "read+", "parse+", "parse-"})
}

// episodes draws episodes in one of these ways: from all words, from the first three, from few, or
// as the task's plan with some words in between.
func episodes(task assay.Task, words, few []string) *rapid.Generator[assay.Transcript] {
	ends := []assay.Ended{
		assay.Finished, assay.Finished, assay.TurnLimit, assay.FailureStreak,
		assay.Loop, assay.CallLimit, assay.TokenLimit, "",
	}
	loop := rapid.Custom(func(t *rapid.T) assay.LoopRecord {
		return assay.LoopRecord{Kind: rapid.SampledFrom(assay.LoopKinds).Draw(t, "kind"), Began: 2, Noticed: 4}
	})
	return rapid.Custom(func(t *rapid.T) assay.Transcript {
		choices := [][]string{words, words, words[:3], few, nil, nil}
		from := rapid.SampledFrom(choices).Draw(t, "words")
		calls := []string{}
		if from != nil {
			calls = rapid.SliceOfN(rapid.SampledFrom(from), 0, 12).Draw(t, "calls")
		} else {
			steps := task.Required
			if rapid.Bool().Draw(t, "insert") {
				steps = policy.Sequence(catalog, task.Required)
			}
			for _, step := range append(steps, "") {
				if rapid.IntRange(0, 3).Draw(t, "noise") == 0 {
					calls = append(calls, rapid.SampledFrom(words).Draw(t, "word"))
				}
				if step != "" && rapid.IntRange(0, 7).Draw(t, "drop") > 0 {
					calls = append(calls, step+"+")
				}
			}
		}
		tr := transcript(strings.Join(calls, " "))
		tr.Ended = rapid.SampledFrom(ends).Draw(t, "ended")
		if rapid.Bool().Draw(t, "planned") {
			tr.Plan = rapid.SliceOfN(rapid.SampledFrom(catalog.Names()), 1, 5).Draw(t, "plan")
		}
		if rapid.Bool().Draw(t, "looped") {
			tr.Loops = rapid.SliceOfN(loop, 1, 2).Draw(t, "loops")
		}
		return *tr
	})
}

func clone[V any](t *rapid.T, v V) V {
	var c V
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}
