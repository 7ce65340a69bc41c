//go:build !race

package sim_test

import (
	"fmt"
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

// builtinTasks returns some built-in tasks of each type, in the wording that agents with keyword
// search understand.
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

// TestListedInEpisodes checks that with a plan the agent calls its steps in order, each until it
// succeeds.
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

// TestObedientInEpisodes checks the same of the obedient agent in pilot, where no call is refused.
func TestObedientInEpisodes(t *testing.T) {
	t.Parallel()
	inEpisodes(t, sim.Obedient, untilItWorks)
}

// TestOptimalInEpisodes checks that with a plan the agent follows the exact policy for the ten
// calls of an episode.
func TestOptimalInEpisodes(t *testing.T) {
	t.Parallel()
	inEpisodes(t, sim.Optimal, func(w *pilot.World, task assay.Task) {
		policy := workflow.Solve(catalog, workflow.Problem{
			World: world.PilotName, Required: task.Required, Reliability: .7, Calls: 10,
		})
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

// playOut makes the chosen calls for at most ten turns.
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

// inEpisodes runs an agent through real episodes with a plan, and compares its calls with the calls
// that play makes in the world alone.
func inEpisodes(t *testing.T, model string, play func(w *pilot.World, task assay.Task)) {
	t.Helper()
	models := sim.New(catalog, sim.Latency{})
	for _, task := range builtinTasks() {
		for seed := range uint64(2) {
			for _, setting := range settings {
				trial := trial(model, setting, assay.Optimal, .7, seed)
				w := pilot.New(catalog, trial, task.Required)
				play(w, task)
				want := called(&assay.Transcript{Calls: w.Calls()})
				a, tr := runner.Run(t.Context(), models, new(trial), new(task))
				name := fmt.Sprintf("task %s, seed %d, %s", task.ID, seed, setting)
				if got := called(tr); !slices.Equal(got, want) || a.FaultKind != "" {
					t.Fatalf("%s: calls %v, fault %q; want %v", name, got, a.FaultDetail, want)
				}
				done := len(w.Succeeded()) == len(task.Required) && len(w.Calls()) < 10
				if done && a.Ended != assay.Finished {
					t.Fatalf("%s: all done in %d calls, but ended %s",
						name, len(w.Calls()), a.Ended)
				}
			}
		}
	}
}

// TestSearcherOnlySearches checks that the searcher never executes a tool and never repeats a
// query.
func TestSearcherOnlySearches(t *testing.T) {
	t.Parallel()
	for _, setting := range settings {
		for _, variant := range assay.PlainVariants {
			trial := trial(sim.Searcher, setting, variant, .8, 1)
			trial.Setting.Turns = 40
			models := sim.New(catalog, sim.Latency{})
			a, tr := runner.Run(t.Context(), models, new(trial), new(task(fetcher, parser)))
			if a.ToolCalls != 0 || a.Ended != assay.TurnLimit || a.Turns != 40 {
				t.Errorf("%s, %s: %d calls, ended %q after %d turns",
					setting, variant, a.ToolCalls, a.Ended, a.Turns)
			}
			want := assay.CategoryMaxTurns
			if setting == assay.Listed {
				want = assay.CategoryToolCallFormat
			}
			if a.ErrorCategory != want {
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
				t.Errorf("%s, %s: %d queries with %d words in 40 turns",
					setting, variant, len(queries), len(words))
			}
		}
	}
}

// TestMuteNeverCalls checks that the mute agent never calls a function and never repeats itself.
func TestMuteNeverCalls(t *testing.T) {
	t.Parallel()
	for _, setting := range settings {
		trial := trial(sim.Mute, setting, assay.Optimal, .8, 1)
		a, tr := runner.Run(t.Context(), sim.New(catalog, sim.Latency{}), &trial,
			new(task(fetcher)))
		if a.ErrorCategory != assay.CategoryToolCallFormat || a.Level != assay.Failure ||
			a.Assisted != 10 {
			t.Errorf("%s: level %s, category %s, assisted %d",
				setting, a.Level, a.ErrorCategory, a.Assisted)
		}
		said := map[string]bool{}
		for _, m := range tr.Messages {
			if m.Role == assay.Assistant && (len(m.Calls) > 0 || said[m.Content]) {
				t.Errorf("%s: replies %q with calls %v", setting, m.Content, m.Calls)
			}
			said[m.Content] = true
		}
	}
}

// TestFlawsDefeatTheObedient checks that an agent that follows plans to the letter fails with every
// flaw, and that one with its own judgement does not.
func TestFlawsDefeatTheObedient(t *testing.T) {
	t.Parallel()
	models := sim.New(catalog, sim.Latency{})
	tasks, repeats := builtinTasks(), uint64(3)
	if testing.Short() {
		tasks, repeats = tasks[:len(tasks)/2], 1
	}
	rate := func(model, variant string) (full, n int) {
		for i, task := range tasks {
			flaw, flawed := assay.FlawOf(variant)
			if flawed &&
				!workflow.Applies(catalog, world.Assay1Name, &task, flaw, assay.Severe) {
				continue
			}
			for repeat := range repeats {
				trial := trial(model, assay.Discover, variant, .8, uint64(i)*100+repeat)
				trial.World, trial.Severity = world.Assay1Name, assay.Severe
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
		judges := .85 - 4*math.Sqrt(.85*.15/float64(n)) // the expert does .85 with any plan
		t.Logf("%-28s obedient %.2f, expert %.2f of %d", variant, obedient, expert, n)
		switch {
		case variant == assay.Optimal && (obedient < .85 || expert < judges):
			t.Errorf("with the plan, rates are %.2f for the obedient and %.2f for the expert",
				obedient, expert)
		case variant == assay.Optimal:
		case obedient > .85 || variant != "flawed_redundant_operations" && obedient > .05:
			t.Errorf("%s: the obedient agent's rate is %.2f", variant, obedient)
		case expert < judges:
			t.Errorf("%s: the expert's rate is %.2f", variant, expert)
		}
	}
}
