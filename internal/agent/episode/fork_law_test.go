//go:build !race

package episode_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// counting counts the requests that reach a provider.
type counting struct {
	assay.Provider
	asked int
}

func (c *counting) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	c.asked++
	return c.Provider.Chat(ctx, req)
}

// A fork begins as its attempt did, in every world and wherever a fault struck. If it meets the fault again
// and the model does the same, it is the same attempt, but pays only for what came after the fault. If it
// is spared, its call meets no fault, and everything before it is the same.
func TestForksBeginAsTheirAttempts(t *testing.T) {
	t.Parallel()
	places, spares := theatres(t), make(map[string]int) // by world
	often(t, func(t *rapid.T) {
		d, trial := anyModel(t), anyTrial(t, "", "before=0.5,after=0.5", "stale=0.5,wrong_shape=0.5", "down=0.3,throttled=0.7")
		h := places[rapid.SampledFrom(all).Draw(t, "place")]
		p := playOn(t, h, trial, d.acts)
		trial.World, trial.ID = h.world, assay.TrialID(strings.Repeat("0a", 16))
		for i, first := range spec.Planted(p.tr.Calls) {
			if first != i {
				continue
			}
			call := &p.tr.Calls[i]
			at := assay.ForkPoint{Trial: trial.ID, Attempt: 1, Call: i + 1, Fault: call.Met()}
			for _, spared := range []bool{false, true} {
				fork := trial.Forked(at, spared, 1)
				if fork.CheckID() != nil || fork.ID == trial.ID {
					t.Fatalf("fork %+v has the ID %s", fork.Fork, fork.ID)
				}
				model := &counting{Provider: &actor{h, "", d.acts}}
				provider, err := episode.Continue(model, fork.Fork, p.tr)
				if err != nil {
					t.Fatal(err)
				}
				a, tr := h.runner.Run(t.Context(), provider, &fork, &h.task)
				if a.FaultKind != "" {
					t.Fatalf("%s: %s", a.FaultKind, a.FaultDetail)
				}
				if model.asked != len(tr.Turns)-call.Turn || a.InputTokens != 10*model.asked {
					t.Fatalf("the model was asked %d times in %d turns, of which %d are shared, for %d tokens",
						model.asked, len(tr.Turns), call.Turn, a.InputTokens)
				}
				if !spared {
					if diff := cmp.Diff(p.tr.Calls, tr.Calls) + cmp.Diff(p.tr.Messages, tr.Messages); diff != "" {
						t.Fatalf("the fork differs from its attempt (-attempt +fork):\n%s", diff)
					}
					continue
				}
				spares[h.world]++
				if diff := cmp.Diff(p.tr.Calls[:i], tr.Calls[:i]); diff != "" {
					t.Fatalf("calls before the fault (-attempt +fork):\n%s", diff)
				}
				if got := &tr.Calls[i]; got.Met() != "" || !got.Happened() || got.Tool != call.Tool {
					t.Fatalf("call %d met %q: %+v", i+1, got.Met(), got)
				}
			}
		}
	})
	for _, name := range all {
		if w := places[name].world; spares[w] < 5 {
			t.Errorf("only %d calls of %s were spared a fault", spares[w], w)
		}
	}
}

// A fork whose conversation turns out differently is refused, and never goes on.
func TestForksRefuseAnotherBeginning(t *testing.T) {
	t.Parallel()
	h := theatres(t)["reward"]
	trial := assay.Trial{
		ID: assay.TrialID(strings.Repeat("0a", 16)), Cell: assay.Cell{Model: "m", Variant: assay.Baseline, Reliability: .3},
		Setting: assay.Setting{World: h.world, Protocol: assay.Native, Tools: assay.Listed, Turns: 6},
	}
	does := func(s *scene) assay.Message { return s.next() }
	var tr *assay.Transcript
	at := -1
	for ; at < 0; trial.Seed++ {
		_, tr = h.runner.Run(t.Context(), &actor{h, "", does}, &trial, &h.task)
		for i := range tr.Calls {
			if tr.Calls[i].Met() != "" && tr.Calls[i].Turn > 1 {
				at = i
			}
		}
	}
	trial.Seed--
	point := assay.ForkPoint{Trial: trial.ID, Attempt: 1, Call: at + 1, Fault: tr.Calls[at].Met()}
	fork := trial.Forked(point, true, 1)
	changed := *tr
	changed.Messages = append([]assay.Message(nil), tr.Messages...)
	changed.Messages[1].Content += " Quickly."
	model := &counting{Provider: &actor{h, "", does}}
	provider, err := episode.Continue(model, fork.Fork, &changed)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := h.runner.Run(t.Context(), provider, &fork, &h.task)
	if a.FaultKind != assay.Harness || !a.Parked || !strings.Contains(a.FaultDetail, "message 2 is ") || model.asked > 0 {
		t.Errorf("%d requests, fault %q: %s", model.asked, a.FaultKind, a.FaultDetail)
	}
	other := fork
	other.Fault = assay.FaultSlow
	if _, err := episode.Continue(model, other.Fork, tr); err == nil {
		t.Error("a fork of another fault was accepted")
	}
}
