package main

import (
	"context"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/bm25"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/policy"
)

// wordings is measurement 6: how far the text of a task determines its tools. A reader ranks the
// tools by how well they fit any clause of the text. If it tries them in that order, the number of
// tries for a step is the rank of the step's tool among the tools that the task does not require,
// and log2 of the rank is the information that the text leaves open. A blind reader is given the
// text of another task of the same type and difficulty.
//
// It ends with the effects of flaws on the chances.
func (b *bench) wordings(context.Context) ([]row, error) {
	reader := newReader(library.Tools())
	var rows []row
	for _, difficulty := range assay.Difficulties {
		tasks := tasksAt(difficulty)
		var sum, blind tally
		for i, task := range tasks {
			reader.read(&sum, task, task.Description, difficulty)
			reader.read(&blind, task, other(tasks, i).Description, difficulty)
		}
		n, found := float64(sum.steps), float64(sum.found)
		rows = append(rows,
			newRow(difficulty+": bits that the text leaves open, a step", count, sum.bits/n),
			newRow(difficulty+": the same for a blind reader", count, blind.bits/n),
			newRow(difficulty+": steps among the best five", share, found/n),
			newRow(difficulty+": the same for a blind reader", share, float64(blind.found)/n),
			newRow(difficulty+": tasks solved with the right one of five a step", share,
				float64(sum.solved)/float64(len(tasks))),
			newRow(difficulty+": the same for a blind reader", share,
				float64(blind.solved)/float64(len(tasks))),
		)
	}
	return append(rows, flaws()...), nil
}

// tasksAt returns the built-in tasks at a difficulty, type by type.
func tasksAt(difficulty string) []assay.Task {
	var tasks []assay.Task
	for task := range library.Generate() {
		if task.Difficulty == difficulty {
			tasks = append(tasks, task)
		}
	}
	return tasks
}

// other returns the next task of the same type that requires other tools.
func other(tasks []assay.Task, i int) assay.Task {
	for k := range tasks {
		t := tasks[(i+k)%len(tasks)]
		if t.Type == tasks[i].Type && !slices.Equal(t.Required, tasks[i].Required) {
			return t
		}
	}
	panic("bench: all tasks of a type require the same tools")
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

// A tally sums up a reader's results at tasks.
type tally struct {
	steps, found, solved int
	bits                 float64
}

// mostRank is the number of tools for each step that the better reader chooses from.
const mostRank = 5

// read adds the information in a text about a task.
func (r *reader) read(sum *tally, task assay.Task, text, difficulty string) {
	steps := task.Required
	if difficulty == "very_hard" {
		steps = r.essential(task.Required)
	}
	scores := r.scores(text)
	var found []string
	for _, step := range steps {
		rank := r.rank(scores, step, task.Required)
		sum.steps++
		sum.bits += math.Log2(rank)
		if rank <= mostRank {
			sum.found++
			found = append(found, step)
		}
	}
	if slices.Equal(policy.Sequence(r.catalog, found), task.Required) {
		sum.solved++
	}
}

// essential returns the fewest steps from which the others follow as dependencies. The wording
// very_hard mentions no others.
func (r *reader) essential(required []string) []string {
	steps := slices.Clone(required)
	for i := len(steps) - 2; i >= 0; i-- {
		fewer := slices.Delete(slices.Clone(steps), i, i+1)
		if slices.Equal(policy.Sequence(r.catalog, fewer), required) {
			steps = fewer
		}
	}
	return steps
}

var clauseEnd = regexp.MustCompile(`[.;:]\s+|,\s+(?:and\s+)?|\s+(?:and|then)\s+|\.$`)

// scores returns how well each tool fits the clause that it fits best.
func (r *reader) scores(text string) map[string]float64 {
	scores := make(map[string]float64)
	tools := r.catalog.All()
	for _, clause := range clauseEnd.Split(text, -1) {
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
