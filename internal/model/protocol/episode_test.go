package protocol_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/model/simserver"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
)

// tellEpisodes runs whole episodes over HTTP, with models that think and insist on their thoughts.
// The episodes have to be the same as without a network. With -short, each model plays one of the
// four settings with each style.
func tellEpisodes(t *testing.T, c column) {
	catalog := assay.NewCatalog(library.Tools())
	models := sim.New(catalog, sim.Latency{})
	runner := episode.NewRunner(catalog, 0)
	for i, style := range thinkingStyles {
		s := c.stage(t, simserver.Config{Thinking: style, Provider: models, Models: sim.Names})
		for k, name := range []string{
			sim.Expert, sim.Obedient, sim.Mute, sim.Searcher, sim.Alphabet,
		} {
			client := c.open(t, s.url, name)
			for seed := range uint64(4) {
				if testing.Short() && seed != uint64(i+k)%4 {
					continue
				}
				trial := newTrial(name, seed)
				own, want := runner.Run(t.Context(), models, new(trial), new(task()))
				a, got := runner.Run(t.Context(), client, new(trial), new(task()))
				if a.Level != own.Level || a.Ended != own.Ended || a.FaultKind != "" {
					t.Fatalf("%s with %s, seed %d: %s, %s, %s; want %s, %s", name, style, seed,
						a.Level, a.Ended, a.FaultDetail, own.Level, own.Ended)
				}
				if d := cmp.Diff(want, got, withoutThinking, withoutCosts); d != "" {
					t.Errorf("%s with %s, seed %d: transcript differs from the one without "+
						"a network (-want +got):\n%s", name, style, seed, d)
				}
				if a.ToolCalls > trial.Calls || name == sim.Alphabet && a.ToolCalls < trial.Calls {
					t.Errorf("%s with %s: %d calls, limit %d", name, style, a.ToolCalls, trial.Calls)
				}
				if c.lost(got) {
					t.Errorf("%s with %s: the transcript has no thoughts", name, style)
				}
			}
		}
	}
}

var withoutCosts = cmpopts.IgnoreFields(assay.Transcript{}, "Turns", "Spans")

// lost reports whether a reply with calls has no state.
func (c column) lost(tr *assay.Transcript) bool {
	for _, m := range tr.Messages {
		if len(m.Calls) > 0 && m.State == nil {
			return true
		}
	}
	return false
}

// newTrial varies the wording of an episode with the seed.
func newTrial(model string, seed uint64) assay.Trial {
	return assay.Trial{
		ID: "test", Seed: seed,
		Cell: assay.Cell{Model: model, Variant: assay.Optimal, Reliability: .7},
		Setting: assay.Setting{
			World: world.Assay1Name, Turns: 15, Calls: 10,
			Protocol: assay.Protocols[seed%2], Tools: assay.ToolSettings[seed/2%2],
		},
	}
}

func task() assay.Task {
	return assay.Task{
		ID: "t", Type: "basic_task", Difficulty: "easy",
		Description: "Fetch the feed from the web address https://a.example.com/feed.\n\n" +
			"Later, parse the raw text into structured records.",
		Required: []string{"network_fetcher", "data_processing_parser"},
	}
}
