package main

import (
	"context"
	"fmt"
	"iter"
	"regexp"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/floor"
	"github.com/assay-eval/assay/internal/task/bm25"
	"github.com/assay-eval/assay/internal/task/fresh"
	"github.com/assay-eval/assay/internal/task/policy"
)

// unseen is the number of libraries on which learners are tried.
const unseen = 5

// leaks is measurement 8b: whether the libraries of fifteen seeds teach the tools of five others.
// Learners read the tasks and required tools of the former, and name the tools of the tasks of the
// latter in order. A tool that a learner remembers stands for the tool of the new library whose
// description shares most words with its own. The floor has learnt nothing.
func (b *bench) leaks(ctx context.Context) ([]figure, error) {
	var shelf []*lesson
	for seed := range b.size(15, 3) + unseen {
		l, err := freshLesson(fmt.Sprint(seed), b.size(30, 12))
		if err != nil {
			return nil, err
		}
		shelf = append(shelf, l)
	}
	shares := make([]float64, len(assay.Difficulties)*len(learners))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range shares {
		difficulty, l := assay.Difficulties[i/len(learners)], learners[i%len(learners)]
		g.Go(func() (err error) {
			shares[i], err = l.share(ctx, shelf, difficulty)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var rows []figure
	for i, right := range shares {
		difficulty, l := assay.Difficulties[i/len(learners)], learners[i%len(learners)]
		r, most := newRow(difficulty+": "+l.name, share, right), maxFloor[difficulty]
		switch first := i - i%len(learners); {
		case b.quick:
		case i > first:
			r = r.below(shares[first] + .02)
		case most > 0:
			r = r.below(most)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// share returns the share of the unseen libraries' tasks whose tools a learner names after it has
// learnt from the others.
func (l *learner) share(
	ctx context.Context, shelf []*lesson, difficulty string,
) (float64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	right := score(shelf[:unseen], difficulty, l.learn(shelf[unseen:], difficulty))
	return float64(right) / float64(unseen*len(shelf[0].tasks[difficulty])), nil
}

// maxFloor is what word overlap may solve.
var maxFloor = map[string]float64{"medium": .2, "hard": .05, "very_hard": .05}

// A lesson is a library with its tasks.
type lesson struct {
	catalog *assay.Catalog
	names   []string
	index   *bm25.Index // of the tools, as sim/expert knows them
	about   *bm25.Index // of their descriptions
	paths   *floor.Map
	tasks   map[string][]assay.Task
}

func freshLesson(seed string, perType int) (*lesson, error) {
	g := fresh.New(seed)
	tasks, err := g.Tasks(perType)
	if err != nil {
		return nil, err
	}
	return newLesson(g.Tools(), tasks), nil
}

func newLesson(tools []assay.Tool, tasks iter.Seq[assay.Task]) *lesson {
	l := &lesson{catalog: assay.NewCatalog(tools), paths: floor.NewMap(functionsOf(tools)), tasks: make(map[string][]assay.Task)}
	var texts, descriptions []string
	for _, t := range tools {
		l.names = append(l.names, t.Name)
		texts = append(texts, t.Name+" "+t.Name+" "+t.Description)
		descriptions = append(descriptions, t.Description)
	}
	l.index, l.about = bm25.New(texts), bm25.New(descriptions)
	for task := range tasks {
		l.tasks[task.Difficulty] = append(l.tasks[task.Difficulty], task)
	}
	return l
}

// solves reports whether named tools are the plan of a task, once dependencies are added.
func (l *lesson) solves(named []string, task assay.Task) bool {
	return slices.Equal(policy.Sequence(l.catalog, policy.Distinct(named)),
		policy.Sequence(l.catalog, task.Required))
}

// description returns the description of a tool.
func (l *lesson) description(name string) string {
	tool, _ := l.catalog.Tool(name)
	return tool.Description
}

// translate returns the tool whose description is most like another library's tool's.
func (l *lesson) translate(description string) string {
	hits := l.about.Search(description, 1)
	if len(hits) == 0 {
		return ""
	}
	return l.names[hits[0].Doc]
}

// A learner learns to name the tools of a task from libraries.
type learner struct {
	name  string
	learn func(known []*lesson, difficulty string) namer
}

// A namer names the tools of a task of a library in order.
type namer func(l *lesson, task assay.Task) []string

var learners = []learner{
	{"words shared with descriptions (floor)", func([]*lesson, string) namer { return overlap }},
	{"dictionary of phrases", learnSet(fitPhrases)},
	{"logistic regression over n-grams", learnSet(fitRegression)},
	{"nearest neighbour", learnSet(fitNeighbour)},
	{"ends of the task, and a path by shared words", learnPaths},
}

var clauseEnd = regexp.MustCompile(`[.;:]\s+|,\s+(?:and\s+)?|\s+(?:and|then)\s+|\.$`)

// overlap names the tool that shares most words with each clause.
func overlap(l *lesson, task assay.Task) (tools []string) {
	for _, clause := range clauseEnd.Split(task.Description, -1) {
		if len(bm25.Words(clause)) < 2 {
			continue
		}
		if hits := l.index.Search(clause, 1); len(hits) > 0 {
			tools = append(tools, l.names[hits[0].Doc])
		}
	}
	return tools
}
