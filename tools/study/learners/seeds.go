package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/floor"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/fresh"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// seedDifferences returns how much the libraries of twenty seeds differ in difficulty. The reference agent
// that compares words plays every task without a plan, on tools that always work. Policies that search a
// path name the tools of every task, and the best possible rates are exact.
func seedDifferences(ctx context.Context) ([]row, error) {
	bySeed := make([]map[string]float64, 20)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for seed := range bySeed {
		g.Go(func() (err error) {
			bySeed[seed], err = playFresh(ctx, fmt.Sprint(seed), tasksPerType)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var rows []row
	for _, name := range slices.Sorted(maps.Keys(bySeed[0])) {
		low, high := 1.0, 0.0
		for _, rates := range bySeed {
			low, high = min(low, rates[name]), max(high, rates[name])
		}
		rows = append(rows, row{name, fmt.Sprintf("%s to %s", percent(low), percent(high))})
	}
	return rows, nil
}

const ceiling = "best possible rate"

// playFresh returns the rates of a seed's library by what they measure.
func playFresh(
	ctx context.Context, seed string, perType int,
) (rates map[string]float64, err error) {
	dir, err := os.MkdirTemp("", "assay-learners")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	lib, err := create(ctx, filepath.Join(dir, "fresh.db"), seed, perType)
	if err != nil {
		return nil, err
	}
	defer lib.Close()
	player := floor.NewPlayer(lib)
	rates = make(map[string]float64)
	for _, reliability := range []float64{.9, .8} {
		name := fmt.Sprintf("%s at reliability %v", ceiling, reliability)
		rates[name] = bestRate(fresh.New(seed), perType, reliability)
	}
	l, err := freshLesson(seed, perType)
	if err != nil {
		return nil, err
	}
	for _, policy := range floors() {
		for difficulty, tasks := range l.tasks {
			right := score([]*lesson{l}, difficulty, policy.learn(nil, difficulty))
			rates[policy.name+" "+difficulty] = float64(right) / float64(len(tasks))
		}
	}
	tasks, err := fresh.New(seed).Tasks(perType)
	if err != nil {
		return nil, err
	}
	for task := range tasks {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		cell := assay.Cell{
			Model: sim.Expert, Variant: assay.Baseline, Reliability: 1,
			Difficulty: task.Difficulty, TaskType: task.Type,
		}
		ref := assay.TaskRef{ID: task.ID, Digest: task.Digest()}
		trial := assay.NewTrial(cell, ref, freshSetting, plan.DefaultSeed, 1)
		a, _ := player.Play(ctx, floor.Policy{Name: sim.Expert}, trial, &task, 0)
		if key := sim.Expert + " " + task.Difficulty; a.Level == assay.FullSuccess {
			rates[key] += 1 / float64(perType*len(assay.TaskTypes))
		} else if rates[key] == 0 {
			rates[key] = 0 // so that it has a row
		}
	}
	return rates, nil
}

var freshSetting = assay.Setting{
	World: world.Assay1Name, Protocol: assay.Native, Tools: assay.Listed,
	Turns: plan.DefaultTurns, Calls: plan.DefaultCalls,
}

// create makes the library of a seed at path and opens it.
func create(ctx context.Context, path, seed string, perType int) (*library.Library, error) {
	g := fresh.New(seed)
	tasks, err := g.Tasks(perType)
	if err != nil {
		return nil, err
	}
	if err := library.Create(ctx, path, library.Meta{Name: seed}, g.Tools(), tasks); err != nil {
		return nil, err
	}
	return library.Open(ctx, path)
}

// bestRate returns the mean of the best possible rates of a library's tasks.
func bestRate(g *fresh.Grammar, perType int, reliability float64) float64 {
	catalog := assay.NewCatalog(g.Tools())
	trial := assay.Trial{Cell: assay.Cell{Reliability: reliability}, Setting: freshSetting}
	tasks, _ := g.Tasks(perType) // the number is valid, because the library has been made
	sum, n := 0.0, 0.0
	for task := range tasks {
		if task.Difficulty == assay.Difficulties[0] {
			n++
			sum += workflow.Solve(catalog, workflow.ProblemOf(&trial, task.Required)).Success()
		}
	}
	return sum / n
}
