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
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
	"github.com/assay-eval/assay/internal/run/plan"
	"github.com/assay-eval/assay/internal/store"
)

// planned is what `assay plan` says.
type planned struct {
	Experiment string `json:"experiment"`
	Cells      int    `json:"cells"`
	Planned    int    `json:"planned"`
	Done       int    `json:"done"`
	Pending    int    `json:"pending"`
	// Gaps say what is missing of each part for each model.
	Gaps []gap `json:"gaps"`
	// NotApplicable counts the tasks that are left out of flawed cells.
	NotApplicable []report.LeftOut `json:"not_applicable"`
	Power         []power          `json:"power"`
	// Ceilings are what the best policy reaches, at each reliability.
	Ceilings []ceiling `json:"ceilings"`
	forecast
	Cost float64 `json:"cost_usd"`
}

// A gap is what a part of an experiment still lacks for a model. What two parts
// share counts in both.
type gap struct {
	Model   string `json:"model"`
	Part    string `json:"part"`
	Planned int    `json:"planned"`
	Done    int    `json:"done"`
	Pending int    `json:"pending"`
}

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

func makePlan(ctx context.Context, p *process, e *plan.Experiment, path string, limit int, simLatency time.Duration) (out planned, err error) {
	j, err := openJob(ctx, e, limit)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	// A plan needs no key, so any will do.
	keyless := *p
	keyless.env = func(name string) (string, bool) {
		if v, ok := p.env(name); ok && v != "" {
			return v, true
		}
		return "none", true
	}
	pools, err := j.preparePools(&keyless, simLatency)
	if err != nil {
		return out, err
	}
	defer pools.close()
	var db *store.DB
	var settled store.Set
	if _, missing := os.Stat(path); !errors.Is(missing, fs.ErrNotExist) {
		if db, err = p.openForOne(ctx, path); err != nil {
			return out, err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		if err := pools.recall(ctx, db); err != nil {
			return out, err
		}
		if settled, err = db.Settled(ctx); err != nil {
			return out, err
		}
	}
	out = planned{Experiment: e.Name, Planned: j.planned()}
	pending := make(map[string]int)
	for _, m := range e.Models {
		done := make(map[assay.Cell]int)
		if settled.Len() > 0 { // else a million identities need not be made
			for t := range j.plan.Trials(m) {
				if settled.Has(t.ID) {
					done[t.Cell]++
				}
			}
		}
		pending[m] = j.plan.Planned(m)
		gaps := make([]gap, len(j.plan.Parts()))
		for cell, planned := range j.plan.Cells(m) {
			out.Cells++
			out.Done += done[cell]
			pending[m] -= done[cell]
			for i, part := range j.plan.Parts() {
				if part.Has(cell) {
					gaps[i].Planned += planned
					gaps[i].Done += done[cell]
				}
			}
		}
		for i, g := range gaps {
			g.Model, g.Part, g.Pending = m, j.plan.Parts()[i].Name, g.Planned-g.Done
			out.Gaps = append(out.Gaps, g)
		}
	}
	out.Pending = out.Planned - out.Done
	out.Power = j.power()
	for _, n := range j.plan.NotApplicable() {
		out.NotApplicable = append(out.NotApplicable, report.LeftOut(n))
	}
	if out.Ceilings, err = j.ceilings(ctx); err != nil {
		return out, err
	}
	if out.forecast, err = j.foresee(ctx, db, pools.configs, pending, simLatency); err != nil {
		return out, err
	}
	for _, m := range out.Models {
		out.Cost += m.Cost
	}
	return out, nil
}

func writePlan(p *process, e *plan.Experiment, out planned) {
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

// power is the least difference between two rows of a part's tables that the
// part shows in 80 of 100 repetitions, tested at 5 %, for rates around one half,
// where it is largest. Differences are shares of 1.
type power struct {
	Part string `json:"part"`
	// Tasks and Repeats are of the smallest row: a model in a variant, a severity, a
	// difficulty and a reliability.
	Tasks   int `json:"tasks"`
	Repeats int `json:"repeats"`
	// Detectable is between rows whose sides have nothing in common, and Paired
	// where both sides find the same tasks hard. Two repeats of a task are taken to
	// correlate by one half.
	Detectable float64 `json:"detectable"`
	Paired     float64 `json:"detectable_paired"`
}

// alike is how much two repeats of a task are taken to resemble each other; nobody
// knows before a run.
const alike = .5

func (j *job) power() (all []power) {
	factors := j.experiment.EachFactors()
	for i, part := range j.plan.Parts() {
		rows := make(map[assay.Cell]int)
		for _, m := range part.Models {
			for cell, n := range j.plan.Cells(m) {
				if part.Has(cell) {
					cell.TaskType = ""
					rows[cell] += n
				}
			}
		}
		repeats := max(1, factors[i].Repeats)
		least := 0
		for _, n := range rows {
			if tasks := n / repeats; tasks > 0 && (least == 0 || tasks < least) {
				least = tasks
			}
		}
		if least > 0 {
			all = append(all, power{part.Name, least, repeats, stat.Detectable(least, repeats, alike, 0), stat.Detectable(least, repeats, alike, alike)})
		}
	}
	return all
}

func writePower(p *process, all []power) {
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
func writeGaps(p *process, out planned) {
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
