package sim_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/pilot"
)

// builtinTasks returns some of the built-in tasks, of each type, in the
// wording that agents who search by keywords understand.
func builtinTasks() []assay.Task {
	var tasks []assay.Task
	n := 0
	for task := range library.Generate() {
		if task.Difficulty != "easy" {
			continue
		}
		if n++; n%9 == 0 {
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// TestListedInEpisodes: with a plan the agent calls its steps in order, each
// until it succeeds.
func TestListedInEpisodes(t *testing.T) {
	t.Parallel()
	inEpisodes(t, sim.Listed, untilItWorks)
}

func untilItWorks(w *pilot.World, task assay.Task) {
	next := 0
	playOut(w, func() string {
		if n := len(w.Calls()); n > 0 && w.Calls()[n-1].OK {
			next++
		}
		if next == len(task.Required) {
			return ""
		}
		return task.Required[next]
	})
}

// TestObedientInEpisodes: in pilot, where no call is refused, it is the same.
func TestObedientInEpisodes(t *testing.T) {
	t.Parallel()
	inEpisodes(t, sim.Obedient, untilItWorks)
}

// TestOptimalInEpisodes: with a plan the agent calls what the exact policy for
// the ten calls of an episode says.
func TestOptimalInEpisodes(t *testing.T) {
	t.Parallel()
	inEpisodes(t, sim.Optimal, func(w *pilot.World, task assay.Task) {
		policy := workflow.Solve(catalog, workflow.Problem{World: world.PilotName, Required: task.Required, Reliability: .7, Calls: 10})
		var history []workflow.Call
		playOut(w, func() string {
			if n := len(w.Calls()); n > 0 {
				c := w.Calls()[n-1]
				history = append(history, workflow.Call{Tool: c.Tool, OK: c.OK})
			}
			return policy.Next(history)
		})
	})
}

// playOut calls what choose says, as long as an episode of ten turns lasts.
func playOut(w *pilot.World, choose func() string) {
	for turn := 1; turn <= 10; turn++ {
		tool := choose()
		if tool == "" {
			return
		}
		if _, err := w.Call(turn, tool, ""); err != nil {
			panic(err)
		}
		if _, stop := w.Stop(); stop {
			return
		}
	}
}

// inEpisodes runs an agent through real episodes with a plan, and compares the
// calls with those that play makes in the world alone.
func inEpisodes(t *testing.T, model string, play func(w *pilot.World, task assay.Task)) {
	t.Helper()
	models := sim.New(catalog, sim.Latency{})
	for _, task := range builtinTasks() {
		for seed := range uint64(4) {
			for _, setting := range settings {
				trial := trial(model, setting, assay.Optimal, .7, seed)
				w := pilot.New(catalog, trial, task.Required)
				play(w, task)
				want := called(&assay.Transcript{Calls: w.Calls()})
				a, tr := runner.Run(t.Context(), models, new(trial), new(task))
				if got := called(tr); !slices.Equal(got, want) || a.FaultKind != "" {
					t.Fatalf("task %s, seed %d, %s: calls %v, fault %q; want %v", task.ID, seed, setting, got, a.FaultDetail, want)
				}
				if len(w.Succeeded()) == len(task.Required) && len(w.Calls()) < 10 && a.Ended != assay.Finished {
					t.Fatalf("task %s, seed %d, %s: ended %s with all done in %d calls", task.ID, seed, setting, a.Ended, len(w.Calls()))
				}
			}
		}
	}
}

// TestSearcher never executes a tool and never repeats a query.
func TestSearcher(t *testing.T) {
	t.Parallel()
	for _, setting := range settings {
		for _, variant := range assay.PlainVariants {
			trial := trial(sim.Searcher, setting, variant, .8, 1)
			trial.Setting.Turns = 40
			a, tr := runner.Run(t.Context(), sim.New(catalog, sim.Latency{}), new(trial), new(task(fetcher, parser)))
			if a.ToolCalls != 0 || a.Ended != assay.TurnLimit || a.Turns != 40 {
				t.Errorf("%s, %s: %d calls, ended %q after %d turns", setting, variant, a.ToolCalls, a.Ended, a.Turns)
			}
			if want := map[string]string{assay.Discover: assay.CategoryMaxTurns, assay.Listed: assay.CategoryToolCallFormat}[setting]; a.ErrorCategory != want {
				t.Errorf("%s, %s: category %s, want %s", setting, variant, a.ErrorCategory, want)
			}
			queries, words := map[string]bool{}, map[string]bool{}
			for _, m := range tr.Messages {
				for _, c := range m.Calls {
					if c.Name != "tool_search" || queries[c.Arguments] {
						t.Errorf("%s, %s: call %s %s", setting, variant, c.Name, c.Arguments)
					}
					queries[c.Arguments] = true
					word, _, _ := strings.Cut(c.Arguments, ",")
					words[word] = true
				}
			}
			if len(queries) != 40 || len(words) < 10 {
				t.Errorf("%s, %s: %d queries by %d words in 40 turns", setting, variant, len(queries), len(words))
			}
		}
	}
}

// TestMute never calls a function and never says the same twice.
func TestMute(t *testing.T) {
	t.Parallel()
	for _, setting := range settings {
		a, tr := runner.Run(t.Context(), sim.New(catalog, sim.Latency{}), new(trial(sim.Mute, setting, assay.Optimal, .8, 1)), new(task(fetcher)))
		if a.ErrorCategory != assay.CategoryToolCallFormat || a.Level != assay.Failure || a.Assisted != 10 {
			t.Errorf("%s: level %s, category %s, assisted %d", setting, a.Level, a.ErrorCategory, a.Assisted)
		}
		said := map[string]bool{}
		for _, m := range tr.Messages {
			if m.Role == assay.Assistant && (len(m.Calls) > 0 || said[m.Content]) {
				t.Errorf("%s: says %q, calls %v", setting, m.Content, m.Calls)
			}
			said[m.Content] = true
		}
	}
}

// TestSkillIsAsComputed: in assay-1 the agents that carry a plan out succeed as
// often as the planner computes, under both protocols and in both settings.
func TestSkillIsAsComputed(t *testing.T) {
	t.Parallel()
	models := sim.New(catalog, sim.Latency{})
	for _, tc := range []struct {
		model       string
		reliability float64
		required    []string
	}{
		{sim.Listed, .5, []string{fetcher, parser, transformer}},
		{sim.Optimal, .6, []string{parser, transformer, checker, writer}},
		{sim.Obedient, .5, []string{fetcher, writer}}, // with three more that the writer needs
	} {
		const n = 2000
		won, best := 0, 0.0
		for seed := range uint64(n) {
			trial := trial(tc.model, settings[seed%2], assay.Optimal, tc.reliability, seed)
			trial.World, trial.Protocol = world.Assay1Name, assay.Protocols[seed/2%2]
			a, _ := runner.Run(t.Context(), models, &trial, new(task(tc.required...)))
			if a.Level == assay.FullSuccess {
				won++
			}
			best = a.Best
		}
		got, sigma := float64(won)/n, math.Sqrt(best*(1-best)/n)
		t.Logf("%s, %v at %v: %.4f, computed %.4f ± %.4f", tc.model, tc.required, tc.reliability, got, best, 4*sigma)
		if math.Abs(got-best) > 4*sigma || best < .1 || best > .99 {
			t.Errorf("%s, %v at %v: success of %d trials = %.4f, want %.4f ± %.4f", tc.model, tc.required, tc.reliability, n, got, best, 4*sigma)
		}
	}
}

// TestFlawsFellTheObedient: an agent that follows plans to the letter falls
// under every flaw, and one that judges for itself does not.
func TestFlawsFellTheObedient(t *testing.T) {
	t.Parallel()
	models := sim.New(catalog, sim.Latency{})
	tasks := builtinTasks()
	rate := func(model, variant string) (full, n int) {
		for i, task := range tasks {
			if flaw, flawed := assay.FlawOf(variant); flawed && !workflow.Applies(catalog, world.Assay1Name, &task, flaw) {
				continue
			}
			for repeat := range uint64(3) {
				trial := trial(model, assay.Discover, variant, .8, uint64(i)*100+repeat)
				trial.World, trial.Severity = world.Assay1Name, "severe"
				a, _ := runner.Run(t.Context(), models, &trial, &task)
				if a.FaultKind != "" {
					t.Fatalf("%s, %s, task %s: %s", model, variant, task.ID, a.FaultDetail)
				}
				n++
				if a.Level == assay.FullSuccess {
					full++
				}
			}
		}
		return full, n
	}
	for _, variant := range assay.Variants[2:] { // the optimal plan and the flawed ones
		o, n := rate(sim.Obedient, variant)
		e, _ := rate(sim.Expert, variant)
		obedient, expert := float64(o)/float64(n), float64(e)/float64(n)
		t.Logf("%-28s obedient %.2f, expert %.2f of %d", variant, obedient, expert, n)
		switch {
		case variant == assay.Optimal && (obedient < .85 || expert < .7):
			t.Errorf("with the plan the obedient succeeds in %.2f and the expert in %.2f", obedient, expert)
		case variant == assay.Optimal:
		case obedient > .85 || variant != "flawed_redundant_operations" && obedient > .05:
			t.Errorf("%s: the obedient succeeds in %.2f", variant, obedient)
		case expert < .7:
			t.Errorf("%s: the expert succeeds in %.2f", variant, expert)
		}
	}
}
