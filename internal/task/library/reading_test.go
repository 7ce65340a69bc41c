//go:build !race

package library_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/bm25"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/policy"
)

// TestEveryDifficultyCanBeRead checks that at every difficulty a reader knows more about a task's
// tools than a blind one, and that each difficulty leaves more open than the one before.
//
// A reader ranks the tools by how well they fit any clause of the text. If it tries them in that
// order, the number of tries for a step is the rank of the step's tool among the tools that the task
// does not require, and log2 of the rank is the information that the text leaves open. A blind
// reader is given the text of another task of the same type and difficulty.
func TestEveryDifficultyCanBeRead(t *testing.T) {
	t.Parallel()
	r := newReader(library.Tools())
	last := 0.0
	for _, difficulty := range assay.Difficulties {
		var tasks []assay.Task
		for task := range at(difficulty) {
			tasks = append(tasks, task)
		}
		var open, blind, found, blindFound, steps float64
		for i, task := range tasks {
			other := tasks[i]
			for k := i; other.Type != task.Type || slices.Equal(other.Required, task.Required); k++ {
				other = tasks[k%len(tasks)]
			}
			scores, otherScores := r.scores(task.Description), r.scores(other.Description)
			for _, step := range r.mentioned(&task) {
				steps++
				rank := r.rank(scores, step, task.Required)
				otherRank := r.rank(otherScores, step, task.Required)
				open, blind = open+math.Log2(rank), blind+math.Log2(otherRank)
				if rank <= 5 {
					found++
				}
				if otherRank <= 5 {
					blindFound++
				}
			}
		}
		open, blind = open/steps, blind/steps
		t.Logf("%-10s %.2f bits are open, %.2f for a blind reader", difficulty, open, blind)
		if open <= last || open > blind-.5 || found < blindFound+.15*steps {
			t.Errorf("%s: %.2f bits are open, %.2f before, %.2f for a blind reader; %.2f and %.2f found",
				difficulty, open, last, blind, found/steps, blindFound/steps)
		}
		last = open
	}
}

// A reader knows everything that can be read about the tools.
type reader struct {
	catalog *assay.Catalog
	index   *bm25.Index
}

func newReader(tools []assay.Tool) *reader {
	var texts []string
	for _, t := range tools {
		words := []string{t.Name, t.Name, t.Description, t.Effect}
		for _, p := range t.Parameters {
			words = append(words, p.Name, p.Description)
		}
		for _, r := range t.Returns {
			words = append(words, r.Description)
		}
		for _, e := range t.Errors {
			words = append(words, e.Description)
		}
		texts = append(texts, strings.Join(words, " "))
	}
	return &reader{assay.NewCatalog(tools), bm25.New(texts)}
}

// mentioned returns the steps of a task that its text mentions. The wording very_hard mentions only
// the fewest steps from which the others follow as dependencies.
func (r *reader) mentioned(task *assay.Task) []string {
	steps := slices.Clone(task.Required)
	for i := len(steps) - 2; i >= 0 && task.Difficulty == "very_hard"; i-- {
		fewer := slices.Delete(slices.Clone(steps), i, i+1)
		if slices.Equal(policy.Sequence(r.catalog, fewer), task.Required) {
			steps = fewer
		}
	}
	return steps
}

// scores returns how well each tool fits the clause that it fits best.
func (r *reader) scores(text string) map[string]float64 {
	scores := make(map[string]float64)
	tools := r.catalog.All()
	for _, clause := range clauseEnds.Split(text, -1) {
		for _, hit := range r.index.Search(clause, len(tools)) {
			name := tools[hit.Doc].Name
			scores[name] = max(scores[name], hit.Score)
		}
	}
	return scores
}

// rank returns the mean rank of a tool among the tools that are not required. Equal scores share a
// rank.
func (r *reader) rank(scores map[string]float64, tool string, required []string) float64 {
	rank := 1.0
	for _, t := range r.catalog.All() {
		switch {
		case slices.Contains(required, t.Name):
		case scores[t.Name] > scores[tool]:
			rank++
		case scores[t.Name] == scores[tool]:
			rank += .5
		}
	}
	return rank
}
