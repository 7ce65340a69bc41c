package sim_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/episode"
	"github.com/assay-eval/assay/internal/library"
	"github.com/assay-eval/assay/internal/provider/sim"
	"github.com/assay-eval/assay/internal/score"
	"github.com/assay-eval/assay/internal/workflow"
	"github.com/assay-eval/assay/internal/world"
)

// builtinTasks returns some of the built-in tasks, of each type.
func builtinTasks() []assay.Task {
	var tasks []assay.Task
	n := 0
	for task := range library.Generate() {
		if n++; n%21 == 0 {
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// TestListedInEpisodes: with a plan the agent calls its steps in order, each
// until it succeeds.
func TestListedInEpisodes(t *testing.T) {
	t.Parallel()
	inEpisodes(t, sim.Listed, func(w *world.Pilot, task assay.Task) {
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
	})
}

// TestObedientInEpisodes: with a plan the agent calls each step once.
func TestObedientInEpisodes(t *testing.T) {
	t.Parallel()
	inEpisodes(t, sim.Obedient, func(w *world.Pilot, task assay.Task) {
		playOut(w, func() string {
			if n := len(w.Calls()); n < len(task.Required) {
				return task.Required[n]
			}
			return ""
		})
	})
}

// TestOptimalInEpisodes: with a plan the agent calls what the exact policy for
// the ten calls of an episode says.
func TestOptimalInEpisodes(t *testing.T) {
	t.Parallel()
	inEpisodes(t, sim.Optimal, func(w *world.Pilot, task assay.Task) {
		policy := workflow.Solve(catalog, workflow.Problem{Required: task.Required, Reliability: .7, Calls: 10})
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
func playOut(w *world.Pilot, choose func() string) {
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
func inEpisodes(t *testing.T, model string, play func(w *world.Pilot, task assay.Task)) {
	t.Helper()
	models := sim.New(catalog, sim.Latency{})
	for _, task := range builtinTasks() {
		for seed := range uint64(4) {
			for _, setting := range settings {
				trial := trial(model, setting, episode.Optimal, .7, seed)
				w := world.NewPilot(catalog, trial)
				play(w, task)
				want := called(&assay.Transcript{Calls: w.Calls()})
				a, tr := runner.Run(t.Context(), models, new(trial), new(task))
				if got := called(tr); !slices.Equal(got, want) || a.FaultKind != "" {
					t.Fatalf("task %s, seed %d, %s: calls %v, fault %q; want %v", task.ID, seed, setting, got, a.FaultDetail, want)
				}
				if w.Worked(task.Required) && len(w.Calls()) < 10 && a.Ended != assay.Finished {
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
		for _, variant := range episode.Variants {
			trial := trial(sim.Searcher, setting, variant, .8, 1)
			trial.Setting.Turns = 40
			a, tr := runner.Run(t.Context(), sim.New(catalog, sim.Latency{}), new(trial), new(task(fetcher, parser)))
			if a.ToolCalls != 0 || a.Ended != assay.TurnLimit || a.Turns != 40 {
				t.Errorf("%s, %s: %d calls, ended %q after %d turns", setting, variant, a.ToolCalls, a.Ended, a.Turns)
			}
			if want := map[string]string{episode.Discover: score.MaxTurns, episode.Listed: score.ToolCallFormat}[setting]; a.ErrorCategory != want {
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
		a, tr := runner.Run(t.Context(), sim.New(catalog, sim.Latency{}), new(trial(sim.Mute, setting, episode.Optimal, .8, 1)), new(task(fetcher)))
		if a.ErrorCategory != score.ToolCallFormat || a.Level != assay.Failure || a.Assisted != 10 {
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

// TestObedientEarnsTheProduct: an agent that calls each tool of a chain once
// succeeds with the product of the calls' chances.
func TestObedientEarnsTheProduct(t *testing.T) {
	t.Parallel()
	models := sim.New(catalog, sim.Latency{})
	for _, tc := range []struct {
		reliability float64
		chain       []string
	}{
		{.8, []string{fetcher, parser, transformer}},
		{1, []string{parser, transformer, checker, writer}},
		{.9, []string{fetcher, transformer, writer}}, // the last two lack one tool each
	} {
		want := 1.0
		for i, name := range tc.chain {
			tool, _ := catalog.Tool(name)
			var deps []world.Dependency
			for _, d := range tool.Dependencies {
				if !slices.Contains(tc.chain[:i], d) {
					deps = append(deps, world.Missing)
				}
			}
			want *= world.PilotChance(tc.reliability, deps, slices.Repeat([]bool{true}, i))
		}
		const n = 1500
		won := 0
		for seed := range uint64(n) {
			a, _ := runner.Run(t.Context(), models, new(trial(sim.Obedient, settings[seed%2], episode.Optimal, tc.reliability, seed)), new(task(tc.chain...)))
			if a.Level == assay.FullSuccess {
				won++
			}
		}
		got, sigma := float64(won)/n, math.Sqrt(want*(1-want)/n)
		t.Logf("%v at %v: %.4f, exact %.4f ± %.4f", tc.chain, tc.reliability, got, want, 4*sigma)
		if math.Abs(got-want) > 4*sigma {
			t.Errorf("%v at %v: success of %d trials = %.4f, want %.4f ± %.4f", tc.chain, tc.reliability, n, got, want, 4*sigma)
		}
	}
}
