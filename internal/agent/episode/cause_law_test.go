//go:build !race

package episode_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/world"
)

// moves are what a random model can do in a turn.
var moves = []string{
	"right", "right", "right", "right", "0", "1", "2", "wrong 0", "wrong 2", "odd 2", "useless", "harmful",
	"talk", "malformed", "again", "all", "claim",
}

// A drawn model makes moves, and the last one of them for ever.
type drawn struct {
	moves []string
	words string // for talk
}

func anyModel(t *rapid.T) *drawn {
	return &drawn{
		moves: rapid.SliceOfN(rapid.SampledFrom(moves), 1, 8).Draw(t, "moves"),
		words: "Let me see.",
	}
}

func (d *drawn) acts(s *scene) assay.Message { return d.move(s, s.turn) }

func (d *drawn) move(s *scene, turn int) assay.Message {
	move := d.moves[min(turn, len(d.moves)-1)]
	n := min(len(s.worked)-s.failures(), len(s.steps))
	kind, number, _ := strings.Cut(move, " ")
	step := map[string]int{"0": 0, "1": 1, "2": 2}
	odd := func(arguments string) assay.Message {
		return calls(assay.ToolCall{Name: s.steps[step[number]], Arguments: arguments})
	}
	switch kind {
	case "right":
		return s.next()
	case "0", "1", "2":
		return s.call(s.steps[step[kind]], step[kind])
	case "wrong": // it is refused
		return odd(`{"no such": 1}`)
	case "odd": // it is not, in worlds of own tools
		return odd(`{"name": "b", "euros": 40}`)
	case "useless":
		return s.call(s.useless, n)
	case "harmful":
		return s.call(s.harmful, n)
	case "malformed":
		return calls(assay.ToolCall{Name: "no_such_tool", Arguments: `{`})
	case "again":
		if turn > 0 {
			return d.move(s, turn-1)
		}
	case "all":
		var several []assay.ToolCall
		for i, tool := range s.steps {
			several = append(several, assay.ToolCall{Name: tool, Arguments: s.arguments(tool, i)})
		}
		return calls(several...)
	case "claim":
		return claim
	}
	return says(d.words)
}

func anyTrial(t *rapid.T, mixes ...string) assay.Trial {
	trial := assay.Trial{
		Cell: assay.Cell{
			Model: "m", Variant: assay.Baseline,
			Reliability: rapid.SampledFrom([]float64{1, .8, .5, .3}).Draw(t, "reliability"),
			Faults:      rapid.SampledFrom(mixes).Draw(t, "faults"),
		},
		Seed: rapid.Uint64Range(0, 1<<20).Draw(t, "seed"),
		Setting: assay.Setting{
			Protocol: assay.Native, Tools: assay.Listed, Turns: rapid.IntRange(2, 9).Draw(t, "turns"),
			Calls:  rapid.SampledFrom([]int{0, 0, 3, 5, 10}).Draw(t, "calls"),
			Tokens: rapid.SampledFrom([]int{0, 0, 0, 70}).Draw(t, "tokens"),
		},
	}
	return trial
}

// A performance is an episode with its reason.
type performance struct {
	outcome *assay.Outcome
	reason  score.Reason
	tr      *assay.Transcript
}

func playOn(t *rapid.T, h *theatre, trial assay.Trial, acts func(*scene) assay.Message) performance {
	trial.World = h.world
	if h.world == world.PilotName {
		trial.Faults = ""
	}
	a, tr := h.runner.Run(t.Context(), &actor{h, "", acts}, &trial, &h.task)
	if a.FaultKind != "" {
		t.Fatalf("%s: %s", a.FaultKind, a.FaultDetail)
	}
	e := h.judge.Explain(&trial, &h.task, tr)
	return performance{&e.Outcome, e.Reason, tr}
}

func (p performance) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %+v, %s\n", p.outcome.Level, p.reason, p.outcome.ErrorCategory)
	for _, c := range p.tr.Calls {
		fmt.Fprintf(&b, "%d %s %s ok %v %s %s\n", c.Turn, c.Tool, c.Arguments, c.OK, c.Met(), c.Code)
	}
	return b.String()
}

// resumes plays the first turns of an episode again, and then does what is left to do.
func resumes(tr *assay.Transcript, turns int) func(*scene) assay.Message {
	var replies []assay.Message
	for _, m := range tr.Messages {
		if m.Role == assay.Assistant && len(replies) < turns {
			replies = append(replies, m)
		}
	}
	return func(s *scene) assay.Message {
		if s.turn < len(replies) {
			return replies[s.turn]
		}
		// What worked in order is known from the calls of the replies.
		done, at := 0, 0
		for _, m := range s.said {
			for _, c := range m.Calls {
				if at < len(s.worked) && s.worked[at] && done < len(s.steps) && c.Name == s.steps[done] {
					done++
				}
				at++
			}
		}
		if done >= len(s.steps) {
			return claim
		}
		return s.call(s.steps[done], done)
	}
}

// often checks a law with as many models as it takes to see what it is about.
func often(t *testing.T, law func(*rapid.T)) {
	t.Helper()
	for range 4 {
		rapid.Check(t, law)
	}
	drawn := rapid.Custom(func(t *rapid.T) bool { law(t); return true })
	for seed := range 150 {
		drawn.Example(seed)
	}
}

// TestBadLuckIsLuck checks that bad luck is never the cause where a model that repeats what failed would
// have succeeded with the same luck: from the start, and from where the cause is said to be.
func TestBadLuckIsLuck(t *testing.T) {
	t.Parallel()
	places, seen := theatres(t), map[string]int{}
	often(t, func(t *rapid.T) {
		d, trial := anyModel(t), anyTrial(t, "", "before=0.5,stale=0.5", "before=0.5,slow=0.5")
		name := rapid.SampledFrom(all).Draw(t, "place")
		p := playOn(t, places[name], trial, d.acts)
		if p.reason.Cause != assay.BadLuck {
			return
		}
		seen[name]++
		met := slices.ContainsFunc(p.tr.Calls, func(c assay.CallRecord) bool { return c.Met() != "" })
		// Tokens are no luck, unless there was no call left for them.
		spent := trial.Calls > 0 && len(p.tr.Calls) >= trial.Calls
		if trial.Reliability == 1 || !met || p.reason.Stop == assay.OutOfTokens && !spent {
			t.Fatalf("there was no luck: %s", p)
		}
		trial.Tokens = 0
		for _, turns := range []int{0, p.reason.Turn - 1} {
			if again := playOn(t, places[name], trial, resumes(p.tr, turns)); again.reason.Cause == "" {
				t.Fatalf("bad luck in %s: %s\nbut after %d turns: %s", name, p, turns, again)
			}
		}
	})
	if len(seen) < 3 {
		t.Errorf("bad luck is only seen in %v, so the test is too weak", seen)
	}
}

// TestCauseDoesNotDependOnTheJudge plays the same models with judges that mean the same.
func TestCauseDoesNotDependOnTheJudge(t *testing.T) {
	t.Parallel()
	places, failed := theatres(t), 0
	often(t, func(t *rapid.T) {
		d, trial := anyModel(t), anyTrial(t, "", "after=1", "stale=1", "wrong_shape=1", "after=0.5,before=0.5", "before=0.5,down=0.5", "throttled=1")
		same := slices.Clone(judges[1:])                                // the first one asks for more
		if !slices.Contains(d.moves, "talk") && d.moves[0] != "again" { // a user takes any talk for an answer
			same = append(same, "reward")
		}
		var first performance
		for _, name := range same {
			p := playOn(t, places[name], trial, d.acts)
			switch {
			case p.reason.Cause == "":
			case first.outcome == nil:
				first = p
				failed++
			case p.reason.Cause != first.reason.Cause:
				t.Fatalf("%s: %s\nbut: %s", name, p, first)
			}
		}
	})
	if failed < 20 {
		t.Errorf("only %d models failed, so the test is too weak", failed)
	}
}

// TestCauseDoesNotDependOnWords plays the same models with other words.
func TestCauseDoesNotDependOnWords(t *testing.T) {
	t.Parallel()
	places, talked := theatres(t), 0
	often(t, func(t *rapid.T) {
		d, trial := anyModel(t), anyTrial(t, "", "after=1", "stale=1")
		name := rapid.SampledFrom(all).Draw(t, "place")
		first := playOn(t, places[name], trial, d.acts)
		for _, words := range []string{
			"", "I'm sorry, but I cannot go on.", "Es geht leider nicht.", "I have finished.", "I refuse.",
		} {
			d.words = words
			p := playOn(t, places[name], trial, d.acts)
			if p.reason.Cause != first.reason.Cause || p.outcome.ErrorCategory != first.outcome.ErrorCategory &&
				name != world.PilotName {
				t.Fatalf("%q in %s: %s\nbut: %s", words, name, p, first)
			}
		}
		if slices.Contains(d.moves, "talk") {
			talked++
		}
	})
	if talked < 10 {
		t.Errorf("only %d models talked, so the test is too weak", talked)
	}
}

// TestCauseIsTrue checks what causes say against what happened.
func TestCauseIsTrue(t *testing.T) {
	t.Parallel()
	places, seen := theatres(t), map[assay.Cause]int{}
	often(t, func(t *rapid.T) {
		d, trial := anyModel(t), anyTrial(t, "", "after=1", "stale=1", "wrong_shape=1", "before=0.5,down=0.5", "throttled=1",
			"partial=0.5,wrong_value=0.5", "corrupted=0.6,partial=0.4")
		trial.Variant = rapid.SampledFrom([]string{
			assay.Baseline, assay.Optimal, "flawed_missing_step", "flawed_redundant_operations",
		}).Draw(t, "variant")
		_, flawed := assay.FlawOf(trial.Variant)
		if flawed {
			trial.Severity = assay.Severe
		}
		acts := d.acts
		if rapid.Bool().Draw(t, "obeys") && trial.Variant != assay.Baseline {
			acts = (*scene).obey
		}
		name := rapid.SampledFrom(all).Draw(t, "place")
		p := playOn(t, places[name], trial, acts)
		seen[p.reason.Cause]++
		happened := func(tool string) bool {
			return slices.ContainsFunc(p.tr.Calls, func(c assay.CallRecord) bool { return c.Tool == tool && c.Happened() })
		}
		complete := !slices.ContainsFunc(places[name].steps, func(tool string) bool { return !happened(tool) })
		met := func(kinds ...assay.ToolFault) bool {
			return slices.ContainsFunc(p.tr.Calls, func(c assay.CallRecord) bool { return slices.Contains(kinds, c.Fault) })
		}
		for wrong, is := range map[string]bool{
			"a cause of a success, or none of a failure": (p.reason.Cause == "") != (p.outcome.Level == assay.FullSuccess),
			"a flaw of a right plan":                     p.reason.Cause == assay.FollowedFlaw && !flawed,
			"no action, but all was done":                p.reason.Cause == assay.NoAction && complete && p.outcome.OrderCorrect,
			"an end is missing, but a step is, too":      p.reason.Cause == assay.NoEnd && !complete,
			"an end is missing, but it came":             p.reason.Cause == assay.NoEnd && p.outcome.Ended == assay.Finished,
			"a wrong answer, but a step is missing":      p.reason.Cause == assay.WrongAnswer && !happened(places[name].steps[2]),
			"nobody can believe this answer": p.reason.Cause == assay.BelievedAnswer && (!met(assay.FaultStale, assay.FaultWrongShape, assay.FaultWrongValue, assay.FaultCorrupted, assay.FaultPartial) ||
				name == world.Assay1Name && !met(assay.FaultStale)),
			"an error that was no error": p.reason.Cause == assay.NotRetried && (p.reason.Call == 0 || p.tr.Calls[p.reason.Call-1].OK),
		} {
			if is {
				t.Fatalf("%s in %s: %s", wrong, name, p)
			}
		}
		if p.outcome.ErrorCategory == assay.CategoryToolSelection && p.outcome.OrderCorrect && complete {
			t.Fatalf("%s in %s: %s", p.outcome.ErrorCategory, name, p)
		}
	})
	if len(seen) < 12 {
		t.Errorf("only the causes %v are seen, so the test is too weak", seen)
	}
}

// TestNoCallIsAdvisedWhenNoneIsLeft plays models that end without a call when they may have used up
// all of them.
func TestNoCallIsAdvisedWhenNoneIsLeft(t *testing.T) {
	t.Parallel()
	places, seen := theatres(t), 0
	often(t, func(t *rapid.T) {
		d, trial := anyModel(t), anyTrial(t, "", "after=1", "stale=1")
		d.moves = append(d.moves, rapid.SampledFrom([]string{"talk", "claim"}).Draw(t, "end"))
		trial.Calls = rapid.IntRange(1, 4).Draw(t, "few calls")
		name := rapid.SampledFrom(append([]string{"blind", "guess"}, all...)).Draw(t, "place")
		p := playOn(t, places[name], trial, d.acts)
		// What would have been right comes after the call of the cause, or instead of it.
		made := p.reason.Call - 1
		switch p.reason.Cause {
		case assay.NotRetried, assay.BelievedAnswer, assay.AgentFailed:
			made++
		}
		if p.reason.Call == 0 {
			made = len(slices.DeleteFunc(slices.Clone(p.tr.Calls), func(c assay.CallRecord) bool {
				return c.Turn >= p.reason.Turn
			}))
		}
		if strings.Contains(p.reason.Right, "a call of") && made >= trial.Calls {
			t.Fatalf("none of %d calls is left in %s: %s", trial.Calls, name, p)
		}
		if len(p.tr.Calls) == trial.Calls && p.reason.Cause != "" {
			seen++
		}
	})
	if seen < 20 {
		t.Errorf("only %d models used up their calls, so the test is too weak", seen)
	}
}
