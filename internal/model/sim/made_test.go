//go:build !race

package sim_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// mediumTasks are a fifth of the built-in tasks of each type, in the default wording.
var mediumTasks = sync.OnceValue(func() (tasks []assay.Task) {
	n := 0
	for task := range library.Generate() {
		if task.Difficulty != "medium" {
			continue
		}
		if n++; n%5 == 0 {
			tasks = append(tasks, task)
		}
	}
	return tasks
})

// made returns the models, which know the tasks.
func made(tasks []assay.Task) *sim.Models {
	byText := make(map[string]assay.Task)
	for _, t := range tasks {
		byText[t.Description] = t
	}
	return sim.New(catalog, sim.Latency{}).KnowingTasks(func(text string) (assay.Task, bool) {
		t, ok := byText[text]
		return t, ok
	})
}

// A share counts how often something happened that could have.
type share struct{ happened, n int }

func (s *share) add(happened bool) {
	s.n++
	if happened {
		s.happened++
	}
}

// fits reports whether the share is within 3.5 standard errors of a probability, which chance misses
// once in 2,000 shares.
func (s *share) fits(p float64) bool {
	n := float64(s.n)
	return math.Abs(float64(s.happened)-n*p) <= 3.5*math.Sqrt(n*p*(1-p))+1e-9
}

// A madeEpisode is an episode of a made model, with the plan that its task needs.
type madeEpisode struct {
	attempt    *assay.Attempt
	transcript *assay.Transcript
	needed     []workflow.Step
	task       *assay.Task
}

// playMade plays a model at all tasks, some times.
func playMade(
	t *testing.T, model, variant string, reliability float64, kinds string, repeats int,
	see func(e madeEpisode),
) {
	t.Helper()
	tasks := mediumTasks()
	models, runner := made(tasks), episode.NewRunner(catalog, 0)
	for i := range tasks {
		if flaw, ok := assay.FlawOf(variant); ok &&
			!workflow.Applies(catalog, world.Assay1Name, &tasks[i], flaw, assay.Severe) {
			continue
		}
		for repeat := range repeats {
			trial := trial(model, assay.Listed, variant, reliability, uint64(i*repeats+repeat+1))
			trial.World, trial.Calls, trial.Turns, trial.Faults = world.Assay1Name, 30, 40, kinds
			if strings.HasPrefix(variant, "flawed_") {
				trial.Severity = assay.Severe
			}
			a, tr := runner.Run(t.Context(), models, &trial, &tasks[i])
			if a.FaultKind != "" {
				t.Fatalf("%s: %s", model, a.FaultDetail)
			}
			see(madeEpisode{
				a, tr, workflow.For(catalog, world.Assay1Name, &tasks[i]).Steps, &tasks[i],
			})
		}
	}
}

// TestMadeModelsDoWhatTheyAreMadeFor estimates each parameter from the transcripts of a model that is
// otherwise faultless, and finds its true value.
func TestMadeModelsDoWhatTheyAreMadeFor(t *testing.T) {
	t.Parallel()
	repeats, truths := 2, []float64{0, .35, 1}
	if testing.Short() {
		repeats, truths = 1, []float64{.35}
	}
	for _, tc := range []struct {
		parameter, variant string
		reliability        float64
		kinds              string
		more               string
		count              func(s *share, e madeEpisode)
	}{
		{"right_tool", assay.Baseline, 1, "", "+retries=0", func(s *share, e madeEpisode) {
			tools := called(e.transcript)
			for i, step := range e.needed {
				if i == len(tools) {
					break
				}
				s.add(tools[i] == step.Tool)
				if tools[i] != step.Tool { // later steps may be refused for it
					break
				}
			}
		}},
		{"right_arguments", assay.Optimal, 1, "", "+retries=0", func(s *share, e madeEpisode) {
			for i, c := range e.transcript.Calls {
				if i < len(e.needed) && c.Tool == e.needed[i].Tool {
					s.add(c.Arguments == string(e.needed[i].Arguments))
				}
			}
		}},
		{"follows_flaw", "flawed_tool_misuse", 1, "", "", func(s *share, e madeEpisode) {
			tools := called(e.transcript)
			same := len(tools) == len(e.needed)
			for i, step := range e.needed {
				same = same && tools[i] == step.Tool
			}
			s.add(!same)
		}},
		{"retries", assay.Optimal, .8, "", "", func(s *share, e madeEpisode) {
			calls := e.transcript.Calls
			for i, c := range calls {
				if !c.OK {
					s.add(i+1 < len(calls))
				}
			}
		}},
		// Each tool is called twice, because the first success of a tool cannot be stale.
		{"notices", "flawed_redundant_operations", .7, "stale=1", "+follows_flaw=1", func(s *share, e madeEpisode) {
			calls := e.transcript.Calls
			for i, c := range calls {
				if c.OK && !c.Happened() {
					s.add(i+1 < len(calls) && calls[i+1].Tool == c.Tool)
				}
			}
		}},
		{"repeats_effect", assay.Optimal, .7, "after=1", "", func(s *share, e madeEpisode) {
			calls := e.transcript.Calls
			for i, c := range calls {
				tool, _ := catalog.Tool(c.Tool)
				if !c.OK && c.Happened() && tool.Effect != "" {
					s.add(i+1 < len(calls) && calls[i+1].Tool == c.Tool)
				}
			}
		}},
		{"claims_falsely", assay.Optimal, .8, "", "+retries=0", func(s *share, e madeEpisode) {
			calls := e.transcript.Calls
			if i := slices.IndexFunc(calls, func(c assay.CallRecord) bool { return !c.OK }); i >= 0 {
				s.add(i+1 == len(calls) && e.transcript.Ended == assay.Finished)
			}
		}},
	} {
		for _, truth := range truths {
			t.Run(fmt.Sprintf("%s=%g", tc.parameter, truth), func(t *testing.T) {
				t.Parallel()
				var s share
				repeats := repeats
				if truth == 0 || truth == 1 { // no repeat may differ
					repeats = 1
				}
				model := fmt.Sprintf("sim/made:%s=%g%s+random=1", tc.parameter, truth, tc.more)
				playMade(t, model, tc.variant, tc.reliability, tc.kinds, repeats,
					func(e madeEpisode) { tc.count(&s, e) })
				if s.n < 20 || !s.fits(truth) {
					t.Errorf("%d of %d, want a share of %g", s.happened, s.n, truth)
				}
			})
		}
	}
}

// TestFaultlessMadeModel checks that a model without parameters solves what can be solved: every task
// on tools that work, whatever its plan is.
func TestFaultlessMadeModel(t *testing.T) {
	t.Parallel()
	for _, variant := range []string{assay.Baseline, assay.Optimal, "flawed_sequence_disorder"} {
		playMade(t, sim.Made, variant, 1, "", 1, func(e madeEpisode) {
			if e.attempt.Level != assay.FullSuccess {
				t.Errorf("%s, task %s: %s, %s; calls %v", variant, e.task.ID, e.attempt.Level,
					e.attempt.Cause, called(e.transcript))
			}
		})
	}
}

// TestMadeModelsAreMonotone checks that a better model succeeds wherever a worse one does, because
// both draw the same numbers.
func TestMadeModelsAreMonotone(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ worse, better, variant string }{
		{"right_tool=0.6", "right_tool=0.8", assay.Baseline},
		{"right_arguments=0.6", "right_arguments=0.8", assay.Baseline},
		{"follows_flaw=0.8", "follows_flaw=0.4", "flawed_missing_step"},
		{"retries=0.3", "retries=0.9", assay.Optimal},
	} {
		won := make(map[string][]bool)
		for _, parameters := range []string{tc.worse, tc.better} {
			playMade(t, "sim/made:"+parameters, tc.variant, .9, "", 1, func(e madeEpisode) {
				won[parameters] = append(won[parameters], e.attempt.Level == assay.FullSuccess)
			})
		}
		gained := 0
		for i, better := range won[tc.better] {
			switch {
			case won[tc.worse][i] && !better:
				t.Errorf("%s fails at an episode in which %s succeeds", tc.better, tc.worse)
			case better && !won[tc.worse][i]:
				gained++
			}
		}
		if gained < 10 {
			t.Errorf("%s gains %d episodes over %s, want 10", tc.better, gained, tc.worse)
		}
	}
}

// TestRandomness checks that repeats of a task differ as often as the model is random, and that two
// seeds draw other numbers.
func TestRandomness(t *testing.T) {
	t.Parallel()
	differ := func(model string) (s share) {
		first := make(map[assay.TaskID][]string)
		playMade(t, model, assay.Baseline, 1, "", 2, func(e madeEpisode) {
			tools := called(e.transcript)
			if before, second := first[e.task.ID]; second {
				s.add(!slices.Equal(before, tools))
			}
			first[e.task.ID] = tools
		})
		return s
	}
	const half = "sim/made:right_tool=0.5"
	fixed, some, all := differ(half), differ(half+"+random=0.3"), differ(half+"+random=1")
	if fixed.happened != 0 || some.happened <= 10 || all.happened <= some.happened {
		t.Errorf("repeats that differ: %+v, %+v with random=0.3, %+v with random=1", fixed, some, all)
	}
	var plain, seeded []string
	playMade(t, half, assay.Baseline, 1, "", 1, func(e madeEpisode) {
		plain = append(plain, strings.Join(called(e.transcript), " "))
	})
	playMade(t, half+"+seed=7", assay.Baseline, 1, "", 1, func(e madeEpisode) {
		seeded = append(seeded, strings.Join(called(e.transcript), " "))
	})
	if slices.Equal(plain, seeded) {
		t.Error("another seed draws the same numbers")
	}
}

// TestMadeNames checks which names are models, and what a wrong one is told.
func TestMadeNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"sim/made", "sim/careful:retries=.2", "sim/made:right_tool=0.9+seed=7", "sim/eager:random=1",
	} {
		if err := sim.CheckName(name); err != nil || !sim.Is(name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, want := range map[string]string{
		"sim/made:":                        `sim/made has no parameter ""`,
		"sim/made:rigth_tool=0.9":          `sim/made has no parameter "rigth_tool"; did you mean right_tool?`,
		"sim/brittle:retries":              `retries is "", want a probability from 0 to 1; for example retries=0.9`,
		"sim/judge:errs=2":                 `sim/judge has the parameters "errs=2", want errs and a probability from 0 to 1; for example sim/judge:errs=0.1`,
		"sim/judge:retries=1":              `sim/judge has the parameters "retries=1", want errs`,
		"sim/made:retries=2":               `retries is "2", want a probability from 0 to 1; for example retries=0.9`,
		"sim/made:retries=NaN":             `retries is "NaN", want a probability from 0 to 1; for example retries=0.9`,
		"sim/made:seed=1.5":                `seed is "1.5", want a whole number; for example seed=7`,
		"sim/made:retries=0.1+retries=0.2": `retries is set twice; `,
	} {
		err := sim.CheckName(name)
		wrong, ok := err.(*sim.NameError)
		if !ok || sim.Is(name) || !strings.HasPrefix(wrong.Message+"; "+wrong.Hint, want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if err := sim.CheckName("gpt-4o:right_tool=2"); err != nil || sim.Is("gpt-4o:right_tool=2") {
		t.Errorf("another model's name: %v", err)
	}
	resp, err := sim.New(catalog, sim.Latency{}).Chat(context.Background(),
		&assay.Request{Model: "sim/made:retries=2"})
	if f := assay.AsFault(err); f == nil || f.Kind != assay.NotFound {
		t.Errorf("a wrong name is answered by %+v", resp)
	}
}
