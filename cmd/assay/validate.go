package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/experiment/validate"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
)

func newValidate(p *process) *cobra.Command {
	var worlds []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "validate [LIBRARY]",
		Short: "Prove that tasks can be solved, and that doing nothing does not solve them",
		Long: `Validate plays every task of a library with two agents. The oracle knows the required
tools and follows the best policy. On tools that never fail, it must fully succeed at every
task that can be solved within the turn limit. On tools of reliability 0.8, it must succeed as
often as the planner computes, within a 99.9 % bound. The null agent does nothing and must
score nothing.

In assay-1, it also plays agents that do not do the task: they call everything, guess, copy a
flawed plan or only claim to be done. Each of them has to stay below 2 % full and 5 % partial
success in every cell: with each tool setting, at reliability 1, 0.9, 0.8 and 0.6, and with each
flaw and severity. --json shows the worst cells, and why some successes are fair.

In own-1, whose tools you wrote, it plays each task with its plan, with an agent that does
nothing, with agents that call every tool with made-up values or those of the prompt, and
with random calls. It names each task that its own plan does not solve (unsolvable), that is
solved by doing nothing, that the other agents solve (not discriminating), that is judged
differently twice, or at which a tool breaks. If the oracle is not within the bound, it names
the tasks at which it fails, and the tool and the fault that made it fail.

It also counts the tasks that need no skill: a policy solves them on tools that never fail
although it only compares words, guesses or calls everything. Above a quarter, a difficulty
is marked as not discriminating.

The exit code is 1 if any of that does not hold. If only an agent that does not do the task
succeeds too often in a library of your own, that is a warning.`,
		Example: `  assay library validate
  assay library validate pilot.db --world pilot`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string,
			cobra.ShellCompDirective,
		) {
			return []string{"db", "yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			name := library.BuiltinName
			if len(args) == 1 {
				name = args[0]
			}
			if err := checkWorlds(worlds); err != nil {
				return err
			}
			lib, err := library.OpenNamed(cmd.Context(), name)
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("world") && lib.Own() {
				worlds = []string{world.For(lib.Catalog())}
			}
			defer func() { err = errors.Join(err, lib.Close()) }()
			var proofs []validate.Proof
			err = untilInterrupted(cmd.Context(), p, func(ctx context.Context) error {
				for _, w := range worlds {
					show := p.progress("tasks played in " + w)
					proof, err := validate.Library(ctx, lib, w, show.at)
					show.end()
					if err != nil {
						return err
					}
					proofs = append(proofs, proof)
				}
				return nil
			})
			if err != nil {
				return err
			}
			result := map[string]any{"library": lib.Meta(), "worlds": proofs}
			err = p.either(asJSON, result, func() { writeProofs(p, lib.Meta(), proofs) })
			if err == nil && slices.ContainsFunc(proofs,
				func(proof validate.Proof) bool { return !proof.Sound }) {
				err = errors.New("the library is not sound")
			}
			return err
		},
	}
	cmd.Flags().StringSliceVar(&worlds, "world", world.Simulated, "the `worlds` to play in")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	choice(cmd, "world", world.Names...)
	return cmd
}

func checkWorlds(worlds []string) error {
	known := strings.Join(world.Names, ", ")
	for _, w := range worlds {
		if !slices.Contains(world.Names, w) {
			return usageError("unknown world %q\nhint: there are %s", w, known)
		}
	}
	if len(worlds) == 0 { // an empty flag would prove no library
		return usageError("--world names no world\nhint: there are %s", known)
	}
	return nil
}

func writeProofs(p *process, meta library.Meta, proofs []validate.Proof) {
	fmt.Fprintf(p.out, "library %s, digest %s\n\n", meta.Name, meta.Digest)
	t := document.NewTextTable("world", "verdict", "tasks", "unsolvable", "oracle", "planner",
		"distance")
	for _, proof := range proofs {
		verdict := "sound"
		if !proof.Sound {
			verdict = "NOT SOUND"
		}
		t.Row(proof.World, verdict, fmt.Sprint(proof.Tasks), fmt.Sprint(proof.Unsolvable),
			fmt.Sprintf("%.2f %%", 100*proof.Oracle), fmt.Sprintf("%.2f %%", 100*proof.Planned),
			fmt.Sprintf("%+.2f σ", proof.Z))
	}
	fmt.Fprintf(p.out, "%s\n\nFull success at reliability %v within %d calls.\n",
		t, validate.Reliability, plan.DefaultCalls)
	writeFloors(p, proofs)
	for _, proof := range proofs {
		for _, f := range []struct {
			text  string
			tasks []string
		}{
			{"no policy succeeds within the calls at", proof.Examples},
			{"the oracle fails, although no tool does, at", proof.Failed},
			{"doing nothing scores at", proof.Null},
		} {
			if len(f.tasks) > 0 {
				fmt.Fprintf(p.out, "%s: %s %s, …\n",
					proof.World, f.text, strings.Join(f.tasks, ", "))
			}
		}
		for _, f := range proof.Findings {
			fmt.Fprintf(p.out, "%s: %s\n", proof.World, sanitize(f.String()))
		}
		for _, g := range proof.Games {
			if g.Pays() {
				fmt.Fprintf(p.out, "%s: not doing the task pays: %s\n", proof.World, &g)
			}
		}
	}
}

// writeFloors shows how many tasks need no skill.
func writeFloors(p *process, proofs []validate.Proof) {
	t := document.NewTextTable("world", "difficulty", "tasks", "need no skill", "", "most by", "")
	rows := 0
	for _, proof := range proofs {
		for _, f := range proof.Floors {
			mark := ""
			if f.High() {
				mark = "not discriminating"
			}
			n, of := len(f.Solved), float64(f.Tasks)
			most := ""
			if f.Policy != "" {
				most = fmt.Sprintf("%s, %.0f %%", f.Policy, 100*float64(f.Best)/of)
			}
			t.Row(proof.World, f.Difficulty, fmt.Sprint(f.Tasks), fmt.Sprint(n),
				fmt.Sprintf("%.0f %%", 100*float64(n)/of), most, mark)
			rows++
		}
	}
	if rows > 0 {
		fmt.Fprintf(p.out, "\n%s\n\nA task needs no skill if an agent solves it that only compares words, "+
			"guesses or calls everything.\nThe one that solves most is the floor of reports "+
			"without a plan on tools that never fail.\n--json names these tasks.\n", t)
	}
}
