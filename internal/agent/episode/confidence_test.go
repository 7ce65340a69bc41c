package episode_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/task/world"
)

func asking(asks bool) assay.Trial {
	tr := limited(world.Simulated[0], assay.Listed, assay.Native)
	tr.AsksConfidence = asks
	return tr
}

// confident runs an episode whose model says that it is done in its first reply, and then answers the
// question about its confidence.
func confident(t *testing.T, asks bool, answer func() (*assay.Response, error)) (*assay.Attempt, *assay.Transcript, *fake) {
	t.Helper()
	f := &fake{chat: func(_ context.Context, n int) (*assay.Response, error) {
		if n == 1 {
			return &assay.Response{Message: saying("TASK_COMPLETED"), Usage: assay.Usage{InputTokens: 100, OutputTokens: 10}}, nil
		}
		return answer()
	}}
	a, tr := run(t, f, asking(asks))
	return a, tr, f
}

// TestConfidenceChangesNoOutcome checks that the question changes nothing but what it is for.
func TestConfidenceChangesNoOutcome(t *testing.T) {
	t.Parallel()
	plain, plainText, _ := confident(t, false, nil)
	if plain.Confidence != nil || plain.Level == "" {
		t.Fatalf("%+v", plain)
	}
	for _, tc := range []struct {
		reply string
		fault error
		want  float64 // -1 for none
	}{
		{"85", nil, .85},
		{"**62.5 %**", nil, .625},
		{"I am not sure.", nil, -1},
		{"", &assay.Fault{Kind: assay.Network}, -1},
	} {
		a, text, f := confident(t, true, func() (*assay.Response, error) {
			return &assay.Response{
				Message: saying(tc.reply), Usage: assay.Usage{InputTokens: 120, OutputTokens: 2}, Cost: .25,
			}, tc.fault
		})
		if got := a.Confidence; (got == nil) != (tc.want < 0) || got != nil && *got != tc.want {
			t.Errorf("%q: confidence %v", tc.reply, got)
		}
		if a.CostUSD != .25 || a.ConfidenceCostUSD != .25 || a.InputTokens != 220 || a.ConfidenceInputTokens != 120 || a.ConfidenceOutputTokens != 2 {
			t.Errorf("%q: %+v", tc.reply, a.Spend)
		}
		others := cmpopts.IgnoreFields(assay.Attempt{}, "Trial", "Spend", "StartedAt", "FinishedAt", "Confidence",
			"ConfidenceInputTokens", "ConfidenceOutputTokens", "ConfidenceCostUSD")
		if diff := cmp.Diff(plain, a, others); diff != "" {
			t.Errorf("%q changes the attempt:\n%s", tc.reply, diff)
		}
		if diff := cmp.Diff(plainText, text, cmpopts.IgnoreFields(assay.Transcript{}, "Confidence")); diff != "" {
			t.Errorf("%q changes the transcript:\n%s", tc.reply, diff)
		}
		asked := f.asked[1].Messages
		if !strings.Contains(asked[len(asked)-1].Content, "0 to 100") || asked[len(asked)-1].Role != assay.User {
			t.Errorf("asked %+v", asked)
		}
	}
}

// TestConfidenceOfInterrupted checks that a run that stops while it asks leaves the trial pending.
func TestConfidenceOfInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	f := &fake{chat: func(_ context.Context, n int) (*assay.Response, error) {
		if n > 1 {
			cancel()
			return &assay.Response{}, assay.AsFault(ctx.Err())
		}
		return &assay.Response{Message: saying("TASK_COMPLETED")}, nil
	}}
	if a, _ := episode.NewRunner(catalog, 0).Run(ctx, f, new(asking(true)), new(task())); a.FaultKind != assay.Interrupted || a.Level != "" {
		t.Errorf("%+v", a)
	}
}

// TestConfidenceID checks that only trials that ask have another ID.
func TestConfidenceID(t *testing.T) {
	t.Parallel()
	var ids []assay.TrialID
	for _, asks := range []bool{false, true} {
		trial := assay.NewTrial(assay.Cell{Model: "m"}, assay.TaskRef{ID: "t"}, assay.Setting{AsksConfidence: asks}, 1, 1)
		ids = append(ids, trial.ID)
	}
	if ids[0] == ids[1] {
		t.Error(ids)
	}
}
