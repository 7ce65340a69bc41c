//go:build !race

package sim_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/world"
)

// TestGamingAgentsDoNotRead plays tasks that differ only in their description. The agents that do
// not do the task make the same calls. The sprayer does so with every tool setting.
func TestGamingAgentsDoNotRead(t *testing.T) {
	t.Parallel()
	models := sim.New(catalog, sim.Latency{})
	for _, task := range builtinTasks()[:2] {
		for _, model := range sim.Gaming {
			for i, setting := range settings {
				trial := trial(model, setting, assay.Optimal, .7, uint64(i))
				trial.World = world.Assay1Name
				other := task
				other.Description = "Do as you like."
				_, a := runner.Run(t.Context(), models, new(trial), &task)
				_, b := runner.Run(t.Context(), models, new(trial), &other)
				if !slices.Equal(called(a), called(b)) {
					t.Errorf("%s, task %s: calls %v, and %v for another text",
						model, task.ID, called(a), called(b))
				}
			}
		}
	}
}

// TestCopierRepeatsThePlan checks that all calls are from the plan, in whole copies.
func TestCopierRepeatsThePlan(t *testing.T) {
	t.Parallel()
	k := newTalk(t, sim.Copier, assay.Discover, assay.Optimal, task(fetcher, parser))
	for range 2 {
		got := k.next(t)
		if tools := executes(k.setting, got); !slices.Equal(tools, []string{fetcher, parser}) {
			t.Errorf("a reply calls %v, want the whole plan", tools)
		}
		k.play(fetcher + "+ " + parser + "!")
	}
}

// TestSprayerSearchesOnce checks that the first reply only searches and that later ones call the
// tools found, the most frequent first.
func TestSprayerSearchesOnce(t *testing.T) {
	t.Parallel()
	k := newTalk(t, sim.Sprayer, assay.Discover, assay.Baseline, task(fetcher, parser))
	first := k.next(t)
	if len(first.Calls) != 60 || len(executes(k.setting, first)) > 0 {
		t.Fatalf("the first reply has %d calls, want 60 searches", len(first.Calls))
	}
	k.add(first.Calls, found(parser), found(logger, fetcher), found(fetcher))
	got := executes(k.setting, k.next(t))
	if len(got) == 0 || got[0] != fetcher || slices.Contains(got, transformer) {
		t.Errorf("the next reply calls %v, want %s first", got, fetcher)
	}
}

// TestGuesserFitsInputs checks that the names of the inputs suggest tools.
func TestGuesserFitsInputs(t *testing.T) {
	t.Parallel()
	for inputs, want := range map[string]string{
		`{"destination":"reports/x","data":{}}`: "destination",
		`{"source":"inbox/x"}`:                  "source",
		`{"schema":{},"data":{}}`:               "schema",
	} {
		task := task(fetcher)
		task.Inputs = []byte(inputs)
		got := newTalk(t, sim.Guesser, assay.Listed, assay.Baseline, task).next(t)
		tools := executes(assay.Listed, got)
		if len(tools) != 1 {
			t.Fatalf("with the inputs %s: %+v, want one call", inputs, got)
		}
		tool, _ := catalog.Tool(tools[0])
		fits := slices.ContainsFunc(tool.Parameters, func(p assay.Parameter) bool {
			return p.Name == want
		})
		needed := strings.Contains(tools[0], "parser") // before a tool that depends on it
		if !fits && !needed {
			t.Errorf("with the inputs %s the guesser calls %v", inputs, tools)
		}
	}
}
