package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/stat"
	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/run/plan"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
)

func newValidate(p *process) *cobra.Command {
	var worlds []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "validate [LIBRARY.db]",
		Short: "Prove that every task of a library can be solved, and not by doing nothing",
		Long: `Validate plays every task of a library with two agents. The oracle knows the
required tools and follows the best policy: on tools that never fail it has to
succeed fully at each task that can be done within the turns, and on tools of
reliability 0.8 as often as the planner computes, within a 99.9 % bound. The null
agent does nothing and has to score nothing.

The exit code is 1 if any of that does not hold.`,
		Example: `  assay library validate
  assay library validate pilot.db --world pilot`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"db"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			name := plan.BuiltinLibrary
			if len(args) == 1 {
				name = args[0]
			}
			if err := checkWorlds(worlds); err != nil {
				return err
			}
			lib, err := job.OpenLibrary(cmd.Context(), name)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, lib.Close()) }()
			var proofs []proof
			err = untilInterrupted(cmd.Context(), p, func(ctx context.Context) error {
				for _, w := range worlds {
					pr, err := newValidator(lib, w).all(ctx)
					if err != nil {
						return err
					}
					proofs = append(proofs, pr)
				}
				return nil
			})
			if err != nil {
				return err
			}
			if asJSON {
				err = json.NewEncoder(p.out).Encode(map[string]any{"library": lib.Meta(), "worlds": proofs})
			} else {
				err = writeProofs(p, lib.Meta(), proofs)
			}
			if err == nil && slices.ContainsFunc(proofs, func(pr proof) bool { return !pr.Sound }) {
				err = errors.New("the library is not sound")
			}
			return err
		},
	}
	cmd.Flags().StringSliceVar(&worlds, "world", world.Names, "the `worlds` to play in")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	choice(cmd, "world", world.Names...)
	return cmd
}

func checkWorlds(worlds []string) error {
	for _, w := range worlds {
		if !slices.Contains(world.Names, w) {
			return usageError("no world %q\nhint: there are %s", w, strings.Join(world.Names, " and "))
		}
	}
	if len(worlds) == 0 { // which would prove nothing
		return usageError("--world names no world\nhint: there are %s", strings.Join(world.Names, " and "))
	}
	return nil
}

// A proof is what playing all tasks in one world has shown.
type proof struct {
	World string `json:"world"`
	Tasks int    `json:"tasks"`
	// Unsolvable counts tasks at which no policy fully succeeds within the
	// turns; Examples names some of them.
	Unsolvable int      `json:"unsolvable"`
	Examples   []string `json:"examples,omitempty"`
	// Oracle is the oracle's rate of full success, Planned what the planner
	// computes for it, and Z their distance in standard deviations.
	Oracle  float64 `json:"oracle"`
	Planned float64 `json:"planned"`
	Z       float64 `json:"z"`
	// Failed names tasks at which the oracle fails although no tool does, and
	// Null those at which doing nothing scores.
	Failed []string `json:"failed,omitempty"`
	Null   []string `json:"null,omitempty"`
	Sound  bool     `json:"sound"`
}

// validatorReliability is that of the tools that fail at times.
const validatorReliability = 0.8

// leastOracle is how many episodes of the oracle there are at least.
const leastOracle = 1000

// A validator plays tasks in one world.
type validator struct {
	library *library.Library
	world   string
	runner  *episode.Runner
	models  *sim.Models
	proof   proof
	// rounds is how often the oracle plays each task on tools that fail; full,
	// planned and variance are sums over all of these episodes.
	rounds, full      int
	planned, variance float64
}

func newValidator(lib *library.Library, worldName string) *validator {
	return &validator{
		library: lib, world: worldName, runner: episode.NewRunner(lib.Catalog(), 0), models: sim.New(lib.Catalog(), sim.Latency{}),
		proof: proof{World: worldName},
	}
}

func (v *validator) all(ctx context.Context) (proof, error) {
	counts, err := v.library.Counts(ctx)
	if err != nil {
		return proof{}, err
	}
	v.rounds = 1 + leastOracle/max(1, v.library.Meta().Tasks)
	for _, c := range counts {
		refs, err := v.library.Refs(ctx, c.Type, c.Difficulty)
		if err != nil {
			return proof{}, err
		}
		for _, ref := range refs {
			task, err := v.library.Task(ctx, ref.ID, c.Difficulty)
			if err != nil {
				return proof{}, err
			}
			if err := v.play(ctx, &task); err != nil {
				return proof{}, err
			}
		}
	}
	p := &v.proof
	if n := float64(p.Tasks * v.rounds); n > 0 {
		p.Oracle, p.Planned = float64(v.full)/n, v.planned/n
	}
	if v.variance > 0 {
		p.Z = (float64(v.full) - v.planned) / math.Sqrt(v.variance)
	}
	// One episode more or less is no evidence where hardly any can fail.
	within := math.Abs(float64(v.full)-v.planned) <= stat.Z999*math.Sqrt(v.variance)+1
	p.Sound = within && len(p.Failed) == 0 && len(p.Null) == 0
	return *p, nil
}

// play plays one task: with the oracle on tools that never fail and on tools
// that do, and with the null agent.
func (v *validator) play(ctx context.Context, task *assay.Task) error {
	label := fmt.Sprintf("%s (%s)", task.ID, task.Difficulty)
	attempt := func(model string, agent assay.Provider, reliability float64, round int) (*assay.Attempt, error) {
		cell := assay.Cell{Model: model, Variant: assay.Baseline, Difficulty: task.Difficulty, TaskType: task.Type, Reliability: reliability}
		set := assay.Setting{World: v.world, Protocol: assay.Native, Tools: assay.Discover, Turns: plan.DefaultTurns}
		trial := assay.NewTrial(cell, assay.TaskRef{ID: task.ID, Digest: v.library.Digest(task)}, set, plan.DefaultSeed, luckOf(task, round))
		a, _ := v.runner.Run(ctx, agent, &trial, task)
		if a.FaultKind != "" {
			return nil, fmt.Errorf("task %s: %s", label, a.FaultDetail)
		}
		return a, nil
	}
	p := &v.proof
	p.Tasks++
	best := 0.0
	for round := range v.rounds {
		a, err := attempt("oracle", v.models.Oracle(task.Required, validatorReliability), validatorReliability, round)
		if err != nil {
			return err
		}
		if a.Level == assay.FullSuccess {
			v.full++
		}
		best = a.Best
		v.planned += best
		v.variance += best * (1 - best)
	}
	if best == 0 {
		p.Unsolvable++
		p.Examples = example(p.Examples, label)
	}
	reliable, err := attempt("oracle", v.models.Oracle(task.Required, 1), 1, 0)
	if err != nil {
		return err
	}
	if reliable.Best == 1 && reliable.Level != assay.FullSuccess {
		p.Failed = example(p.Failed, label)
	}
	null, err := attempt(sim.Mute, v.models, validatorReliability, 0)
	if err != nil {
		return err
	}
	if null.Level != assay.Failure || null.Coverage != 0 {
		p.Null = example(p.Null, label)
	}
	return nil
}

// allDifficulties are the levels of wording and the mixtures of them.
var allDifficulties = slices.Concat(assay.Difficulties, assay.Mixtures)

// luckOf numbers the wordings of a task and the rounds, so that each is played
// with luck of its own.
func luckOf(task *assay.Task, round int) int {
	return 1 + (1+slices.Index(allDifficulties, task.Difficulty))*(leastOracle+1) + round
}

// example keeps the first few of many.
func example(list []string, label string) []string {
	const most = 5
	if len(list) < most {
		list = append(list, label)
	}
	return list
}

func writeProofs(p *process, meta library.Meta, proofs []proof) error {
	fmt.Fprintf(p.out, "library %s, digest %s\n\n", meta.Name, meta.Digest)
	t := document.NewTextTable("world", "verdict", "tasks", "unsolvable", "oracle", "planner", "distance")
	for _, pr := range proofs {
		verdict := "sound"
		if !pr.Sound {
			verdict = "NOT SOUND"
		}
		t.Row(pr.World, verdict, fmt.Sprint(pr.Tasks), fmt.Sprint(pr.Unsolvable), fmt.Sprintf("%.2f %%", 100*pr.Oracle),
			fmt.Sprintf("%.2f %%", 100*pr.Planned), fmt.Sprintf("%+.2f σ", pr.Z))
	}
	fmt.Fprintf(p.out, "%s\n\nFull success at reliability %v within %d replies.\n", t, validatorReliability, plan.DefaultTurns)
	for _, pr := range proofs {
		for _, f := range []struct {
			text  string
			tasks []string
		}{
			{"no policy succeeds within the turns at", pr.Examples},
			{"the oracle fails, although no tool does, at", pr.Failed},
			{"doing nothing scores at", pr.Null},
		} {
			if len(f.tasks) > 0 {
				fmt.Fprintf(p.out, "%s: %s %s, …\n", pr.World, f.text, strings.Join(f.tasks, ", "))
			}
		}
	}
	return nil
}
