package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/run/plan"
	"github.com/assay-eval/assay/internal/store"
)

func newPlan(p *process) *cobra.Command {
	var path string
	var which chosen
	var asJSON bool
	var simLatency time.Duration
	cmd := &cobra.Command{
		Use:   "plan [FILE]",
		Short: "Say what a run would do, cost and take, and what binds it",
		Long: `Plan counts the trials of an experiment that are pending and forecasts requests,
tokens, dollars and time, by working through the lanes in virtual time, with the
code that does it in a run. It asks no endpoint and needs no key.

What a trial takes is known from earlier attempts in the store; for a model that
was never asked it comes from a rehearsal with simulated agents, and the time to
a reply is assumed.`,
		Example: `  assay plan experiment.yaml
  assay plan experiment.yaml --store results.db --json
  assay plan --suite all --model sim/optimal`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := which.experiment(args)
			if err != nil {
				return err
			}
			out, err := makePlan(cmd.Context(), p, e, path, which.limit, simLatency)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(p.out).Encode(out)
			}
			writePlan(p, e, out)
			return nil
		},
	}
	storeFlag(cmd, &path)
	which.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().DurationVar(&simLatency, "sim-latency", defaultSimLatency, "median time that the built-in simulated models take to reply")
	return cmd
}

// makePlan estimates an experiment with what its store knows, if there is one yet.
func makePlan(
	ctx context.Context, p *process, e *plan.Experiment, path string, limit int, simLatency time.Duration,
) (out job.Estimate, err error) {
	j, err := job.Open(ctx, e, limit)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()

	var db *store.DB
	if _, missing := os.Stat(path); !errors.Is(missing, fs.ErrNotExist) {
		if db, err = p.openForOne(ctx, path); err != nil {
			return out, err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
	}
	return j.Estimate(ctx, db, p.env, simLatency)
}

func writePlan(p *process, e *plan.Experiment, out job.Estimate) {
	w := p.out
	fmt.Fprintf(w, "experiment %s: %d cells, %d trials planned, %d done, %d pending\n\n", out.Experiment, out.Cells, out.Planned, out.Done, out.Pending)
	writeGaps(p, out)
	writeCeilings(p, out.Ceilings)
	writePower(p, out.Power)
	t := document.NewTextTable("model", "trials", "requests", "input tokens", "output tokens", "cost", "time", "bound by", "from")
	for _, m := range out.Models {
		cost := "–"
		if m.Cost > 0 {
			cost = fmt.Sprintf("$%.2f", m.Cost)
		}
		bound := m.Bound
		if bound == "" {
			bound = "–"
		}
		t.Row(m.Model, fmt.Sprint(m.Trials), fmt.Sprint(m.Requests), fmt.Sprint(m.InputTokens), fmt.Sprint(m.OutputTokens),
			cost, duration(m.Wall), bound, m.Basis)
	}
	fmt.Fprintf(w, "%s\n\nModels run side by side: about %s in all", t, duration(out.Wall))
	if out.Cost > 0 {
		fmt.Fprintf(w, ", $%.2f", out.Cost)
	}
	fmt.Fprintln(w, ".")
	if b := e.Budget; b.USD > 0 && out.Cost > b.USD {
		fmt.Fprintf(w, "That is more than the run's budget of $%g: the rest will stay pending.\n", b.USD)
	}
}

func writePower(p *process, all []job.Power) {
	t := document.NewTextTable("part", "", "tasks", "repeats", "detectable", "if alike")
	for _, x := range all {
		t.Row(x.Part, "", fmt.Sprint(x.Tasks), fmt.Sprint(x.Repeats), fmt.Sprintf("%.1f points", 100*x.Detectable), fmt.Sprintf("%.1f points", 100*x.Paired))
	}
	if len(all) > 0 {
		fmt.Fprintf(p.out, "%s\n\nDetectable is the least difference between two rows, such as two models in one variant at one\nreliability, that shows in 80 of 100 repetitions; less if both sides find the same tasks hard. Repeats\ncount for less than new tasks: two of a task are taken to correlate by one half.\n\n", t)
	}
}

// writeGaps shows what is missing, part by part, where there are several or
// something is done already.
func writeGaps(p *process, out job.Estimate) {
	if out.Done > 0 || len(out.Gaps) > len(out.Models) {
		t := document.NewTextTable("model", "part", "planned", "done", "pending")
		for _, g := range out.Gaps {
			t.Row(g.Model, g.Part, fmt.Sprint(g.Planned), fmt.Sprint(g.Done), fmt.Sprint(g.Pending))
		}
		fmt.Fprintf(p.out, "%s\n\n", t)
	}
	if len(out.NotApplicable) > 0 {
		n := 0
		for _, l := range out.NotApplicable {
			n += l.Tasks
		}
		fmt.Fprintf(p.out, "%d tasks have too few steps for a flaw, and are left out of its cells.\n\n", n)
	}
}

// duration says seconds as a person would.
func duration(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < 48*time.Hour:
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%.1f days", d.Hours()/24)
}

func writeCeilings(p *process, ceilings []job.Ceiling) {
	t := document.NewTextTable("reliability", "", "best possible", "calls expected")
	for _, c := range ceilings {
		t.Row(assay.FormatReliability(c.Reliability), "", fmt.Sprintf("%.1f %%", 100*c.Best), fmt.Sprintf("%.1f", c.Calls))
	}
	fmt.Fprintf(p.out, "%s\n\nThat is how often the best policy fully succeeds, with one call a reply.\n\n", t)
}
