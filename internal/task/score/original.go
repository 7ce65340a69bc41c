package score

import (
	"fmt"
	"slices"

	"github.com/assay-eval/assay"
)

// pilotScores gives the scores that the original's batch runner recorded, and
// the executor's level; [batchLevel] gives its own. It gave the scorer the successful calls A
// and not the history, so that "no history" stands for how calls went.
//
// The plan E is the one that was shown, flawed or not; without one it is the
// required tools R, and all scores are 0 where A or E is empty.
//
//	workflow = .4 |set(E) ∩ set(A)| / |set(E)| + .3 LCS(E, A) / |E| + .2 |A| / calls + .02 [A = E]
//	phase2   = (achievement + quality) / 2
//	final    = phase2
//
// Achievement and quality are adjusted by the executor's verdict. The floors
// that lie below what any A gives are left out.
func pilotScores(tr *assay.Transcript, o *assay.Outcome) *assay.PilotScores {
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
	steps, exact := distinct(plan), 0.0
	if slices.Equal(plan, o.ExecutedTools) {
		exact = .2
	}
	return blend(
		term{.4, share(steps, o.ExecutedTools)},
		term{.3, float64(common(plan, o.ExecutedTools)) / float64(len(plan))},
		term{.2, float64(len(o.ExecutedTools)) / float64(o.ToolCalls)},
		term{.1, exact},
	)
}

// achievementScore: any success counts as output, which decides the weights,
// and two tools as all the progress there can be. A required tool that was not
// called counts 0; the original took the likeness of its embedding to the
// nearest tool that was.
func achievementScore(o *assay.Outcome) float64 {
	const output = 1
	return blend(
		term{.5, output},
		term{.3, min(1, float64(len(distinct(o.ExecutedTools)))/2)},
		term{.2, share(o.RequiredTools, o.ExecutedTools)},
	)
}

// qualityScore: without a history the share of successes is taken to be 0.8,
// and nothing is known to have been recovered.
func qualityScore(o *assay.Outcome, workflow float64) float64 {
	const worked, recovered = .8, 0
	return blend(
		term{.4, worked},
		term{.3, pilotEfficiency(len(distinct(o.ExecutedTools)), len(o.ExecutedTools))},
		term{.2, workflow},
		term{.1, recovered},
	)
}

// pilotEfficiency falls with repeats, and faster beyond two calls a tool.
func pilotEfficiency(unique, total int) float64 {
	ratio := float64(unique) / float64(total)
	if total <= 2*unique {
		return min(1, 1.2*ratio)
	}
	return .8 * ratio
}

func batchLevel(p *assay.PilotScores, w *witness) assay.Level {
	// What is 0.8 on paper can come out a digit below.
	reaches := func(score, least float64) bool { return score > least-1e-9 }
	scores := func() string { return fmt.Sprintf("workflow %.3f, phase 2 %.3f", p.WorkflowScore, p.Phase2Score) }
	switch {
	case w.need("workflow and phase 2 scores of at least 0.8", reaches(p.WorkflowScore, .8) && reaches(p.Phase2Score, .8), scores):
		return assay.FullSuccess
	case w.ask("one of them of at least 0.5", reaches(p.WorkflowScore, .5) || reaches(p.Phase2Score, .5), scores):
		return assay.PartialSuccess
	}
	return assay.Failure
}

type term struct{ weight, value float64 }

// blend is a weighted sum. The conversion keeps processors that could from
// fusing it, so that all get the same last digit.
func blend(terms ...term) float64 {
	sum := 0.0
	for _, t := range terms {
		sum += float64(t.weight * t.value)
	}
	return sum
}

// distinct returns the tools of a list once each.
func distinct(tools []string) []string {
	var once []string
	for _, t := range tools {
		if !slices.Contains(once, t) {
			once = append(once, t)
		}
	}
	return once
}
