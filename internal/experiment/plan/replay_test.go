package plan_test

import (
	"slices"
	"testing"

	"github.com/assay-eval/assay"
)

// TestReplaysPlayTrialsAgain checks that replays follow the trials of the same file without them, which
// keep their IDs, and differ from them by nothing but their number and what models draw.
func TestReplaysPlayTrialsAgain(t *testing.T) {
	t.Parallel()
	const file = "models: [a]\nvariants: [baseline, optimal]\ntasks_per_type: 2\nrepeats: 2\n"
	once := slices.Collect(expand(t, load(t, file+"name: e\n"), 3).Trials("a"))
	p := expand(t, load(t, file+"name: e\nreplays: 2\n"), 3)
	all := slices.Collect(p.Trials("a"))
	if len(all) != 3*len(once) || p.Planned("a") != len(all) {
		t.Fatalf("%d trials, planned %d, without replays %d", len(all), p.Planned("a"), len(once))
	}
	ids, draws := make(map[assay.TrialID]bool), make(map[uint64]bool)
	for i, trial := range all {
		first := once[i%len(once)]
		if trial.Replay != i/len(once) || trial.CheckID() != nil || trial.Seed != first.Seed || ids[trial.ID] {
			t.Fatalf("trial %d: %+v", i, trial)
		}
		if trial.Replayed(0) != first || first.ModelSeed() != first.Seed {
			t.Fatalf("%+v is not a replay of %+v", trial, first)
		}
		ids[trial.ID] = true
		if i%len(once) == 0 {
			draws[trial.ModelSeed()] = true
		}
	}
	if len(draws) != 3 {
		t.Errorf("models draw the same in replays: %v", draws)
	}
}
