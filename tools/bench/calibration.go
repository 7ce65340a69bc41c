package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

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

// calibration is measurement 8a: how much the libraries of twenty seeds differ in difficulty. Each
// reference agent that depends on the text plays every task without a plan, on tools that always
// work; the best possible rates are exact.
func (b *bench) calibration(ctx context.Context) ([]row, error) {
	seeds, perType := b.size(20, 3), b.size(126, 10)
	var rates spread
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for seed := range seeds {
		g.Go(func() error { return b.playFresh(ctx, fmt.Sprint(seed), perType, &rates) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var rows []row
	for _, name := range rates.names {
		of := rates.of[name]
		low, high := slices.Min(of), slices.Max(of)
		bound := .03
		if strings.HasPrefix(name, ceiling) {
			bound = .01
		}
		if b.quick { // a library has 50 tasks of a difficulty
			bound = .2
		}
		rows = append(rows, newRow(name+": largest − smallest", share, high-low).below(bound).
			because("%.1f to %.1f %%", 100*low, 100*high))
	}
	return rows, nil
}

const ceiling = "best possible rate"

// A spread holds the rates of all seeds by what they measure.
type spread struct {
	mu    sync.Mutex
	names []string
	of    map[string][]float64
}

func (s *spread) add(name string, rate float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[string][]float64)
	}
	if s.of[name] == nil {
		s.names = append(s.names, name)
		slices.Sort(s.names)
	}
	s.of[name] = append(s.of[name], rate)
}

// textReaders are the reference agents whose success depends on the text of the task. Obedient and
// Batcher act as Listed and Optimal do if there is no plan, and the others never succeed.
var textReaders = []string{sim.Expert, sim.Optimal, sim.Listed}

// playFresh adds the rates of a seed's library.
func (b *bench) playFresh(ctx context.Context, seed string, perType int, rates *spread) error {
	lib, err := b.fresh(ctx, seed, perType)
	if err != nil {
		return err
	}
	defer lib.Close()
	player := floor.NewPlayer(lib)
	for _, reliability := range []float64{.9, .8} {
		rates.add(fmt.Sprintf("%s at reliability %v", ceiling, reliability),
			bestRate(fresh.New(seed), perType, reliability))
	}
	counts, err := lib.Counts(ctx)
	if err != nil {
		return err
	}
	full, all := make(map[string]float64), make(map[string]float64)
	for _, c := range counts {
		refs, err := lib.Refs(ctx, c.Type, c.Difficulty)
		if err != nil {
			return err
		}
		for _, ref := range refs {
			task, err := lib.Task(ctx, ref.ID, c.Difficulty)
			if err != nil {
				return err
			}
			for _, agent := range textReaders {
				key := agent + " " + c.Difficulty
				all[key]++
				cell := assay.Cell{
					Model: agent, Variant: assay.Baseline, Reliability: 1,
					Difficulty: c.Difficulty, TaskType: c.Type,
				}
				trial := assay.NewTrial(cell, ref, freshSetting, plan.DefaultSeed, 1)
				a, _ := player.Play(ctx, floor.Policy{Name: agent}, trial, &task, 0)
				if a.Level == assay.FullSuccess {
					full[key]++
				}
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	for key, n := range all {
		rates.add(key, full[key]/n)
	}
	return nil
}

var freshSetting = assay.Setting{
	World: world.Assay1Name, Protocol: assay.Native, Tools: assay.Listed,
	Turns: plan.DefaultTurns, Calls: plan.DefaultCalls,
}

// fresh opens the library of a seed.
func (b *bench) fresh(ctx context.Context, seed string, perType int) (*library.Library, error) {
	g := fresh.New(seed)
	tasks, err := g.Tasks(perType)
	if err != nil {
		return nil, err
	}
	path := b.path("fresh-" + seed + ".db")
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
