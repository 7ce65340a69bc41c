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

// leaks returns whether the libraries of fifteen seeds teach the tools of five others. Learners read the
// tasks and required tools of the former, and name the tools of the tasks of the latter in order. A tool
// that a learner remembers stands for the tool of the new library whose description shares most words with
// its own. The floor is the best policy that has learnt nothing.
func leaks(ctx context.Context) ([]row, error) {
	var shelf []*lesson
	for seed := range 15 + unseen {
		l, err := freshLesson(fmt.Sprint(seed), 30)
		if err != nil {
			return nil, err
		}
		shelf = append(shelf, l)
	}
	all := append(floors(), learners...)
	shares := make([]float64, len(assay.Difficulties)*len(all))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range shares {
		difficulty, l := assay.Difficulties[i/len(all)], all[i%len(all)]
		g.Go(func() (err error) {
			shares[i], err = l.share(ctx, shelf, difficulty)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var rows []row
	for i, difficulty := range assay.Difficulties {
		of := shares[i*len(all) : (i+1)*len(all)]
		floor := slices.Max(of[:len(floors())])
		rows = append(rows, row{difficulty + ": floor", percent(floor)})
		for k, right := range of {
			text := percent(right)
			if k >= len(floors()) && !all[k].skilled && right > floor+.02 {
				text += ", two points above the floor"
			}
			rows = append(rows, row{difficulty + ": " + all[k].name, text})
		}
	}
	return rows, nil
}

// floors are the policies of package floor that name tools without a plan.
func floors() (all []learner) {
	named := func(name namer) func([]*lesson, string) namer {
		return func([]*lesson, string) namer { return name }
	}
	all = append(all, learner{name: "no learning: words shared with descriptions", learn: named(overlap)})
	for _, r := range floor.Readings {
		all = append(all, learner{
			name: "no learning: " + r.Name,
			learn: named(func(l *lesson, task assay.Task) []string {
				return r.Tools(l.paths, task.Description, diceOf(task))
			}),
		})
	}
	return all
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

// maxFloor is what policies without skill may solve.
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
	// skilled means that it does what the tasks ask for, so it may be above the floor.
	skilled bool
}

// A namer names the tools of a task of a library in order.
type namer func(l *lesson, task assay.Task) []string

var learners = []learner{
	{name: "dictionary of phrases", learn: learnSet(fitPhrases)},
	{name: "logistic regression over n-grams", learn: learnSet(fitRegression)},
	{name: "nearest neighbour", learn: learnSet(fitNeighbour)},
	{name: "ends of the task, and a path by shared words", learn: learnPaths},
	{name: "the same, and a comparison of numbers", learn: learnNumbers, skilled: true},
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
