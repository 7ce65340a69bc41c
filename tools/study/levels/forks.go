package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// A forkStudy draws experiments whose model tries again with a known probability after each call that
// failed, and is faultless otherwise. So what a fault causes at a call is known: with r calls that fail
// from there on if the model always tries again, it succeeds with the probability retries to the power r.
type forkStudy struct {
	tasks   []assay.Task
	models  *sim.Models
	runner  *episode.Runner
	retries float64
	each    int
}

const forkReliability = .7

func newForkStudy(each int) *forkStudy {
	s := &forkStudy{retries: .6, each: each}
	byText := make(map[string]assay.Task)
	for task := range library.Generate() {
		if task.Difficulty == "medium" {
			s.tasks = append(s.tasks, task)
			byText[task.Description] = task
		}
	}
	catalog := assay.NewCatalog(library.Tools())
	s.models = sim.New(catalog, sim.Latency{}).KnowingTasks(func(text string) (assay.Task, bool) {
		t, ok := byText[text]
		return t, ok
	})
	s.runner = episode.NewRunner(catalog, 0)
	return s
}

// A forkTally sums up over experiments. Errors are estimate less truth.
type forkTally struct {
	studies, covers   int
	error, square     float64 // of forks
	width, wholeWidth float64 // of the intervals of forks, and of whole trials with as many tokens
}

// studyForks prints how often the intervals of forks hold the truth, and how wide they are.
func studyForks(ctx context.Context, out io.Writer, studies int) error {
	if err := newForkStudy(4).study(ctx, out, studies, 10, 30, 100); err != nil {
		return err
	}
	if err := newForkStudy(2).study(ctx, out, studies, 10, 30); err != nil {
		return err
	}
	return newForkStudy(1).study(ctx, out, studies, 10, 30)
}

// study prints a table of experiments with so many tasks.
func (s *forkStudy) study(ctx context.Context, out io.Writer, studies int, sizes ...int) error {
	truth, err := s.population(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d forks on each side. A fault costs %.1f points of success where it strikes, by calculation.\n\n",
		s.each, 100*truth)
	fmt.Fprintln(out, "| tasks | mean error, in points (standard error) | interval holds the truth | width | width of whole trials | narrower |")
	fmt.Fprintln(out, "|--:|--:|--:|--:|--:|--:|")
	for _, tasks := range sizes {
		sum := forkTally{}
		for study := range studies {
			if err := s.add(ctx, &sum, tasks, truth, uint64(study)); err != nil {
				return err
			}
		}
		n := float64(sum.studies)
		mean := sum.error / n
		se := math.Sqrt((sum.square/n - mean*mean) / n)
		fmt.Fprintf(out, "| %d | %+.2f (%.2f) | %.1f %% | %.1f | %.1f | %.0f %% |\n", tasks, 100*mean, 100*se,
			100*float64(sum.covers)/n, 100*sum.width/n, 100*sum.wholeWidth/n, 100*(1-sum.width/sum.wholeWidth))
	}
	return nil
}

func (s *forkStudy) trial(task *assay.Task, seed uint64) assay.Trial {
	cell := assay.Cell{
		Model: fmt.Sprintf("sim/made:retries=%g+random=1", s.retries), Variant: assay.Optimal, Difficulty: task.Difficulty,
		TaskType: task.Type, Reliability: forkReliability,
	}
	set := assay.Setting{
		World: world.Assay1Name, Protocol: assay.Native, Tools: assay.Listed, Turns: 60, Calls: 50,
	}
	return assay.NewTrial(cell, assay.TaskRef{ID: task.ID, Digest: task.Digest()}, set, int64(seed), 1)
}

// points plays a trial, and returns the calls that met a fault which reached the model.
func (s *forkStudy) points(ctx context.Context, trial *assay.Trial, task *assay.Task) ([]assay.ForkPoint, *assay.Transcript) {
	_, tr := s.runner.Run(ctx, s.models, trial, task)
	var all []assay.ForkPoint
	for i, first := range spec.Planted(tr.Calls) {
		if first == i && tr.Calls[i].Turn < len(tr.Turns) {
			all = append(all, assay.ForkPoint{
				Trial: trial.ID, Attempt: 1, Call: i + 1, Fault: tr.Calls[i].Met(), Step: 1, Steps: 1,
			})
		}
	}
	return all, tr
}

// effect calculates what the fault of a call costs.
func (s *forkStudy) effect(
	ctx context.Context, trial *assay.Trial, task *assay.Task, at assay.ForkPoint, tr *assay.Transcript,
) (float64, error) {
	var succeeds [2]float64
	for i, spared := range []bool{false, true} {
		always := *trial
		always.Model = "sim/made:retries=1"
		fork := always.Forked(at, spared, 1)
		provider, err := episode.Continue(s.models, fork.Fork, tr)
		if err != nil {
			return 0, err
		}
		a, played := s.runner.Run(ctx, provider, &fork, task)
		if a.Level != assay.FullSuccess {
			return 0, fmt.Errorf("task %s: a model that always tries again does not succeed: %s", task.ID, a.FaultDetail)
		}
		succeeds[i] = 1
		for k := at.Call - 1; k < len(played.Calls); k++ {
			if played.Calls[k].Met() != "" {
				succeeds[i] *= s.retries
			}
		}
	}
	return succeeds[1] - succeeds[0], nil
}

// population calculates the mean effect at the calls of all tasks, in the luck of several seeds.
func (s *forkStudy) population(ctx context.Context) (float64, error) {
	const seeds = 12
	sum, n := 0.0, 0
	for seed := range uint64(seeds) {
		for i := range s.tasks {
			trial := s.trial(&s.tasks[i], 1_000_000+seed)
			points, tr := s.points(ctx, &trial, &s.tasks[i])
			for _, at := range points {
				e, err := s.effect(ctx, &trial, &s.tasks[i], at, tr)
				if err != nil {
					return 0, err
				}
				sum, n = sum+e, n+1
			}
		}
	}
	return sum / float64(n), nil
}

// add plays an experiment, its forks and, with as many tokens, whole trials, of which those count that
// reach the call.
func (s *forkStudy) add(ctx context.Context, sum *forkTally, tasks int, truth float64, seed uint64) error {
	random := rand.New(rand.NewPCG(seed, uint64(tasks)))
	f := &plan.Forks{Of: "e"}
	var forks, wholes []assay.Attempt
	for _, i := range random.Perm(len(s.tasks))[:tasks] {
		task := &s.tasks[i]
		trial := s.trial(task, seed)
		points, tr := s.points(ctx, &trial, task)
		for _, at := range points {
			f.Points = append(f.Points, plan.Forked{ForkPoint: at, Each: s.each})
			var spent [2]int // on forks that met the fault, and on those that were spared it
			for n := range s.each {
				for side, spared := range []bool{false, true} {
					fork := trial.Forked(at, spared, n+1)
					provider, err := episode.Continue(s.models, fork.Fork, tr)
					if err != nil {
						return err
					}
					a, _ := s.runner.Run(ctx, provider, &fork, task)
					spent[side] += a.Total()
					forks = append(forks, *a)
				}
			}
			for side, spared := range []bool{false, true} {
				for n := 0; spent[side] > 0; n++ {
					whole := trial.Forked(at, spared, 1000+n)
					a, played := s.runner.Run(ctx, s.models, &whole, task)
					if a.Total() > spent[side] && random.Float64()*float64(a.Total()) > float64(spent[side]) {
						break // so that as many tokens are spent on average
					}
					spent[side] -= a.Total()
					if len(played.Calls) >= at.Call {
						wholes = append(wholes, *a)
					}
				}
			}
		}
	}
	found, err := analyzed(f, forks)
	if err != nil || found == nil {
		return err
	}
	other, err := analyzed(f, wholes)
	if err != nil || other == nil {
		return err
	}
	d := -found.Difference - truth
	sum.studies++
	sum.error, sum.square = sum.error+d, sum.square+d*d
	if -found.Interval.High <= truth && truth <= -found.Interval.Low {
		sum.covers++
	}
	sum.width += found.Interval.High - found.Interval.Low
	sum.wholeWidth += other.Interval.High - other.Interval.Low
	return nil
}

// analyzed returns the figures of a report about forks, or nil without any.
func analyzed(f *plan.Forks, attempts []assay.Attempt) (*report.ForkEffect, error) {
	found, err := report.AnalyzeForks("e-forks", f, len(attempts), func(yield func(assay.Attempt, error) bool) {
		for _, a := range attempts {
			if !yield(a, nil) {
				return
			}
		}
	})
	if err != nil || len(found.Effects) == 0 {
		return nil, err
	}
	if len(found.Effects) > 1 {
		return nil, fmt.Errorf("there are %d effects of one model and kind of fault", len(found.Effects))
	}
	return &found.Effects[0], nil
}
