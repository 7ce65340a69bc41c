package score_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/world"
)

// TestReasonIsTotal checks that every episode has an end, that exactly the ones without full success
// have a cause, and that the cause is a place in the episode.
func TestReasonIsTotal(t *testing.T) {
	t.Parallel()
	judge := score.New(catalog)
	check := func(t *rapid.T, e score.Explanation, tr *assay.Transcript) {
		r := e.Reason
		full := e.Outcome.Level == assay.FullSuccess
		switch {
		case (r.Stop == "") != (tr.Ended == ""):
			t.Fatalf("%q has the end %q", tr.Ended, r.Stop)
		case (r.Cause == "") != full, !full && !slices.Contains(assay.Causes, r.Cause):
			t.Fatalf("%s has the cause %q", e.Outcome.Level, r.Cause)
		case !full && (r.Because == "" || r.Right == ""):
			t.Fatalf("no reason: %+v", r)
		case r.Turn < 0 || r.Turn > max(len(tr.Turns), 1) && len(tr.Turns) > 0:
			t.Fatalf("turn %d of %d", r.Turn, len(tr.Turns))
		case r.Call < 0 || r.Call > len(tr.Calls):
			t.Fatalf("call %d of %d", r.Call, len(tr.Calls))
		case r.Call > 0 && tr.Calls[r.Call-1].Turn != r.Turn:
			t.Fatalf("call %d is not in turn %d", r.Call, r.Turn)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		trial, task, tr := anyEpisode(t)
		check(t, judge.Explain(trial, &task, &tr), &tr)
	})
	rapid.Check(t, func(t *rapid.T) {
		task, tr := anyOwn(t)
		own := score.New(assay.NewCatalog([]assay.Tool{{Name: "get"}, {Name: "pay", Effect: "pays"}}))
		check(t, own.Explain(trialIn(world.OwnName), task, tr), tr)
	})
}
