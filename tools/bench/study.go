package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/library"
)

// A study is a population of tasks and of models that are equally good. The chance of a trial is
// logistic in the sum of the mean, the condition, the task, its sequence of tools, and the model's
// own effect on the sequence. The last three are normal with the given standard deviations. Models
// whose names have the same number are a pair, which shares the tasks and sequences.
type study struct {
	name       string
	tasks      int
	sequences  int // of unequal numbers of tasks; 0 if each task has its own
	conditions int // reliabilities, up to four
	repeats    int
	// unequal gives the models of a pair one and three repeats, by turns of the conditions.
	unequal bool
	models  []string
	// variants are equally good, too. Without any, there is one.
	variants []string

	mean, task, sequence, own float64
}

// independent and clustered are the effects of tasks, and of sequences with their tasks.
func (s study) independent() study {
	s.mean, s.task = .8, 1
	return s
}

func (s study) clustered(sequences int) study {
	s.sequences, s.mean, s.task, s.sequence, s.own = sequences, .8, .5, 1, .7
	return s
}

// numbered returns names with numbers from first on.
func numbered(prefix string, first, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%s%04d", prefix, first+i))
	}
	return names
}

var conditionEffects = []float64{0, -1, 1, -.5}

var studyReliabilities = []float64{.9, .8, .7, .6}

// store plans the study over a separate library, stores an outcome for each trial, and returns the
// path of the store.
func (b *bench) store(ctx context.Context, s study) (path string, err error) {
	lib := b.path("library.db")
	err = library.Create(ctx, lib, library.Meta{Name: s.name}, library.Tools(), s.library())
	if err != nil {
		return "", err
	}
	file, err := b.write("study.yaml", s.experiment(lib))
	if err != nil {
		return "", err
	}
	e, err := plan.Load(file)
	if err != nil {
		return "", err
	}
	spec, err := json.Marshal(e)
	if err != nil {
		return "", err
	}
	tasks, err := library.Open(ctx, lib)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, tasks.Close()) }()
	p, err := e.Expand(ctx, tasks.Refs, nil)
	if err != nil {
		return "", err
	}
	path = b.path("study.db")
	meta := tasks.Meta()
	return path, save(ctx, path, store.Experiment{
		Name: e.Name, Spec: spec,
		Library: store.Library{Path: lib, Name: meta.Name, Digest: meta.Digest},
	}, s.outcomes(p))
}

// experiment returns the text of the experiment file.
func (s study) experiment(lib string) string {
	var reliabilities []string
	for _, r := range studyReliabilities[:s.conditions] {
		reliabilities = append(reliabilities, assay.FormatReliability(r))
	}
	return fmt.Sprintf(`name: bench
models: [%s]
variants: [%s]
task_types: [basic_task]
difficulties: [easy]
tasks_per_type: all
reliabilities: [%s]
repeats: %d
library: %q
providers: none.yaml
`, strings.Join(s.models, ", "), cmp.Or(strings.Join(s.variants, ", "), "optimal"),
		strings.Join(reliabilities, ", "), s.repeats, lib)
}

// library yields the tasks of the study.
func (s study) library() iter.Seq[assay.Task] {
	tools := library.Tools()
	return func(yield func(assay.Task) bool) {
		for i := range s.tasks {
			n := s.sequenceOf(i)
			task := assay.Task{
				ID: taskID(i), Type: "basic_task", Difficulty: "easy",
				Description: fmt.Sprintf("Task %d.", i),
				Required: []string{
					tools[n%len(tools)].Name, tools[(n+1+n/len(tools))%len(tools)].Name,
				},
			}
			if !yield(task) {
				return
			}
		}
	}
}

func taskID(i int) assay.TaskID { return assay.TaskID(fmt.Sprintf("task_%04d", i)) }

// sequenceOf returns the number of a task's sequence. The first tasks have one each; others prefer
// low numbers.
func (s study) sequenceOf(task int) int {
	if task < s.sequences || s.sequences == 0 {
		return task
	}
	return int(math.Pow(draw(s.name, "sequence", task).Float64(), 2) * float64(s.sequences))
}

// draw returns random numbers that depend on the parts only.
func draw(parts ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintln(h, parts...)
	return rand.New(rand.NewPCG(h.Sum64(), 13))
}

// outcomes yields an attempt for each trial that the study has.
func (s study) outcomes(p *plan.Plan) iter.Seq2[assay.Attempt, error] {
	tasks := make(map[assay.TaskID]int)
	for i := range s.tasks {
		tasks[taskID(i)] = i
	}
	return func(yield func(assay.Attempt, error) bool) {
		for _, m := range s.models {
			side, pair := m[0], m[1:]
			chances := make(map[assay.TaskID]float64) // as logits, without the condition
			for id, i := range tasks {
				n := s.sequenceOf(i)
				chances[id] = s.mean + s.task*draw(s.name, pair, "task", i).NormFloat64() +
					s.sequence*draw(s.name, pair, "tools", n).NormFloat64() +
					s.own*draw(s.name, m, "tools", n).NormFloat64()
			}
			luck := draw(s.name, m)
			for t := range p.Trials(m) {
				condition := slices.Index(studyReliabilities, t.Reliability)
				if s.unequal && t.Repeat > 1 && condition%2 == int(side)%2 {
					continue
				}
				a := settledAttempt(t)
				a.RequiredTools = []string{fmt.Sprint("tool ", s.sequenceOf(tasks[t.Task]))}
				if luck.Float64() < logistic(chances[t.Task]+conditionEffects[condition]) {
					a.Level, a.ErrorCategory = assay.FullSuccess, ""
				}
				if !yield(a, nil) {
					return
				}
			}
		}
	}
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// rate returns the rate of success under the first condition over all tasks and sequences. It
// integrates over the normal distribution.
func (s study) rate() (rate float64) {
	spread := math.Sqrt(s.task*s.task + s.sequence*s.sequence + s.own*s.own)
	const step = .01
	for z := -8.; z < 8; z += step {
		rate += logistic(s.mean+spread*z) * math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) * step
	}
	return rate
}
