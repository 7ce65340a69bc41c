package pilot

import (
	"fmt"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// scores returns the scores that the original's batch runner recorded, and the executor's level.
// [batchLevel] adds the batch runner's own level. The runner passed the successful calls A to the
// scorer but not the history, so fixed values stand in for how the calls went.
//
// The plan E is the one that the model was shown, flawed or not. Without one it is the required
// tools R. All scores are 0 if A or E is empty.
//
//	workflow = .4 |set(E) ∩ set(A)| / |set(E)| + .3 LCS(E, A) / |E|
//	         + .2 |A| / calls + .02 [A = E]
//	phase2   = (achievement + quality) / 2
//	final    = phase2
//
// Achievement and quality are adjusted by the executor's verdict. Floors below the value that any
// A gives are left out.
func scores(tr *assay.Transcript, o *assay.Outcome) *assay.PilotScores {
	p := &assay.PilotScores{Executor: o.Level}
	plan := tr.Plan
	if len(plan) == 0 {
		plan = o.RequiredTools
	}
	if len(plan) == 0 || len(o.ExecutedTools) == 0 {
		return p
	}

	p.WorkflowScore = workflowScore(plan, o)
	achievement, quality := achievementScore(o), qualityScore(o, p.WorkflowScore)
	switch o.Level {
	case assay.FullSuccess:
		quality = max(.7, quality)
	case assay.Failure:
		achievement, quality = float64(.8*achievement), float64(.8*quality)
	}
	p.QualityScore = quality
	p.Phase2Score = (achievement + quality) / 2
	p.FinalScore = p.Phase2Score
	return p
}

func workflowScore(plan []string, o *assay.Outcome) float64 {
	steps, exact := policy.Distinct(plan), 0.0
	if slices.Equal(plan, o.ExecutedTools) {
		exact = .2
	}
	return blend(
		weightedTerm{.4, spec.Share(steps, o.ExecutedTools)},
		weightedTerm{.3, float64(spec.Common(plan, o.ExecutedTools)) / float64(len(plan))},
		weightedTerm{.2, float64(len(o.ExecutedTools)) / float64(o.ToolCalls)},
		weightedTerm{.1, exact},
	)
}

// achievementScore counts any success as output, which decides the weights, and two tools as full
// progress. A required tool that was not called counts 0. The original took the similarity of its
// embedding to the nearest tool that was called.
func achievementScore(o *assay.Outcome) float64 {
	const output = 1
	return blend(
		weightedTerm{.5, output},
		weightedTerm{.3, min(1, float64(len(policy.Distinct(o.ExecutedTools)))/2)},
		weightedTerm{.2, spec.Share(o.RequiredTools, o.ExecutedTools)},
	)
}

// qualityScore assumes a share of successes of 0.8 and no recovered failures, because the
// original had no history here.
func qualityScore(o *assay.Outcome, workflow float64) float64 {
	const worked, recovered = .8, 0
	return blend(
		weightedTerm{.4, worked},
		weightedTerm{.3, efficiency(len(policy.Distinct(o.ExecutedTools)), len(o.ExecutedTools))},
		weightedTerm{.2, workflow},
		weightedTerm{.1, recovered},
	)
}

// efficiency falls with repeats, and faster beyond two calls per tool.
func efficiency(unique, total int) float64 {
	ratio := float64(unique) / float64(total)
	if total <= 2*unique {
		return min(1, 1.2*ratio)
	}
	return .8 * ratio
}

func batchLevel(p *assay.PilotScores, why *spec.Rationale) assay.Level {
	// A value of 0.8 on paper can come out one digit lower.
	reaches := func(score, least float64) bool { return score > least-1e-9 }
	values := func() string {
		return fmt.Sprintf("workflow %.3f, phase 2 %.3f", p.WorkflowScore, p.Phase2Score)
	}
	both := reaches(p.WorkflowScore, .8) && reaches(p.Phase2Score, .8)
	either := reaches(p.WorkflowScore, .5) || reaches(p.Phase2Score, .5)
	switch {
	case why.Need("workflow and phase 2 scores of at least 0.8", both, values):
		return assay.FullSuccess
	case why.Ask("one of them of at least 0.5", either, values):
		return assay.PartialSuccess
	}
	return assay.Failure
}

type weightedTerm struct{ weight, value float64 }

// blend returns a weighted sum. The conversion keeps processors from fusing multiplication and
// addition, so the last digit is the same on all of them.
func blend(terms ...weightedTerm) float64 {
	sum := 0.0
	for _, t := range terms {
		sum += float64(t.weight * t.value)
	}
	return sum
}
