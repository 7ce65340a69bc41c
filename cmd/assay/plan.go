package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/experiment/validate"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/sections"
	"github.com/assay-eval/assay/internal/result/stat"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/library"
)

func newPlan(p *process) *cobra.Command {
	var path string
	var which chosen
	var asJSON bool
	var simLatency time.Duration
	cmd := &cobra.Command{
		Use:   "plan [FILE]",
		Short: "Estimate requests, cost, time and bottleneck",
		Long: `Plan counts the pending trials of an experiment and estimates their requests,
tokens, dollars and time. It sends no request and needs no key: it runs the same
scheduler as a run does, in virtual time.

If the store has earlier attempts of a model, the estimate is based on them. For a
new model it is based on a rehearsal with simulated agents and on an assumed time
per reply. If nothing states or shows how fast an endpoint is, or which limits it
has, the time is a range; a run measures both within half a minute.`,
		Example: `  assay plan experiment.yaml
  assay plan experiment.yaml --store results.db --json
  assay plan --suite all --model sim/optimal`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeYAML,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx := cmd.Context()
			e, err := which.experiment(which.file(args))
			if err != nil {
				return err
			}
			j, err := job.Open(ctx, e, which.limit)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, j.Close()) }()
			out, err := estimate(ctx, p, j, path, simLatency)
			if err != nil {
				return err
			}
			return p.either(asJSON, out, func() { writePlan(p, j, out) })
		},
	}
	storeFlag(cmd, &path)
	which.flags(cmd)
	simLatencyFlag(cmd, &simLatency)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// simLatencyFlag adds --sim-latency to a command.
func simLatencyFlag(cmd *cobra.Command, latency *time.Duration) {
	cmd.Flags().DurationVar(latency, "sim-latency", defaultSimLatency,
		"median time that a built-in simulated model takes to reply")
}

// estimate bases the estimate on earlier attempts if the store exists.
func estimate(
	ctx context.Context, p *process, j *job.Job, path string, simLatency time.Duration,
) (out job.Estimate, err error) {
	var db *store.DB
	if _, missing := os.Stat(path); !errors.Is(missing, fs.ErrNotExist) {
		if db, err = p.openForOne(ctx, path); err != nil {
			return out, err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
	}
	return j.Estimate(ctx, db, p.env, simLatency)
}

func writePlan(p *process, j *job.Job, out job.Estimate) {
	p.say("experiment %s: %d cells, %d trials planned, %d done, %d pending",
		out.Experiment, out.Cells, out.Planned, out.Done, out.Pending)
	fmt.Fprintln(p.out)
	if j.Experiment.Library != plan.BuiltinLibrary {
		p.say("Library %s: %s.", sanitize(out.Library.Name), sanitize(out.Library.Source))
		fmt.Fprintln(p.out)
	}
	if len(out.Changed) > 0 {
		p.say("%s", changesText(j.Experiment.Library, out.Changed, out.Pending))
		fmt.Fprintln(p.out)
	}
	writeGaps(p, out)
	writeCeilings(p, out.Ceilings)
	writeUnsolvable(p, out.Unsolvable)
	writeUnsound(p.out, j, &out.Unsound)
	for _, note := range append(out.Notes, j.SimNote()) {
		if note != "" {
			p.say("%s", sanitize(note))
			fmt.Fprintln(p.out)
		}
	}
	writePower(p, out.Power)
	writeForecast(p, j.Experiment, out)
}

// writeGaps shows the pending trials of each part if there are several parts or if some trials
// are done.
func writeGaps(p *process, out job.Estimate) {
	if out.Done > 0 || len(out.Gaps) > len(out.Models) {
		t := p.table("model", "part", "planned", "done", "pending")
		for _, g := range out.Gaps {
			t.Row(g.Model, g.Part, fmt.Sprint(g.Planned), fmt.Sprint(g.Done), fmt.Sprint(g.Pending))
		}
		fmt.Fprintf(p.out, "%s\n\n", t)
	}
	writeLeftOut(p, out.NotApplicable)
}

// writeLeftOut shows how many tasks have each flaw at each severity unless all of them have all.
func writeLeftOut(p *process, left []plan.NotApplicable) {
	var flaws []string
	sums := make(map[string]plan.NotApplicable)
	out := 0
	for _, l := range left {
		key := report.PromptKey(l.Variant, l.Severity)
		if _, ok := sums[key]; !ok {
			flaws = append(flaws, key)
		}
		sums[key] = plan.NotApplicable{Tasks: sums[key].Tasks + l.Tasks, Of: sums[key].Of + l.Of}
		out += l.Tasks
	}
	if out == 0 {
		return
	}
	t := p.table("flaw and severity", "tasks with it", "of")
	for _, key := range flaws {
		t.Row(key, fmt.Sprint(sums[key].Of-sums[key].Tasks), fmt.Sprint(sums[key].Of))
	}
	fmt.Fprintf(p.out, "%s\n\n", t)
	p.say("The other tasks are left out: their plans have no room for the flaw, or are too short " +
		"for it to differ from a worse severity.")
	fmt.Fprintln(p.out)
}

func writeCeilings(p *process, ceilings []job.Ceiling) {
	const unknown = "the tasks have no plans, answers can hide what has happened, or episodes end at a limit of " +
		"tokens or dollars or in a loop."
	// The mean of few trials is that of other tasks than the row beside it.
	lacks := func(c job.Ceiling) bool { return 10*c.Unknown > c.Trials+c.Unknown }
	if !slices.ContainsFunc(ceilings, func(c job.Ceiling) bool { return c.Best != nil }) {
		p.say("There is no best possible rate, because " + unknown)
		fmt.Fprintln(p.out)
		return
	}
	mixes := slices.ContainsFunc(ceilings, func(c job.Ceiling) bool {
		return c.Faults != ceilings[0].Faults
	})
	partly := slices.ContainsFunc(ceilings, func(c job.Ceiling) bool { return c.Unknown > 0 })
	heads := []string{"reliability", "", "best possible", "expected calls"}
	if mixes {
		heads[1] = "faults of tools"
	}
	if partly {
		heads = append(heads, "known of trials")
	}
	t := p.table(heads...)
	for _, c := range ceilings {
		mix := ""
		if mixes {
			mix = report.MixName(c.Faults)
		}
		best, calls := "?", "?"
		if !lacks(c) {
			best, calls = fmt.Sprintf("%.1f %%", 100**c.Best), fmt.Sprintf("%.1f", *c.Calls)
		}
		row := []string{assay.FormatReliability(c.Reliability), mix, best, calls}
		if partly {
			row = append(row, fmt.Sprintf("%.0f %%", 100*float64(c.Trials)/float64(c.Trials+c.Unknown)))
		}
		t.Row(row...)
	}
	fmt.Fprintf(p.out, "%s\n\n", t)
	p.say(report.BestMeaning)
	if partly {
		p.say("Of the other trials it is not known, because " + unknown)
	}
	fmt.Fprintln(p.out)
}

func writeUnsolvable(p *process, u job.Unsolvable) {
	if u.Tasks > 0 {
		p.say("No policy can solve %d of %s within the limits, for example %s. They lower every "+
			"rate alike; `assay library validate` names more of them.",
			u.Tasks, assay.Counted(u.Of, "task"), u.Example)
		fmt.Fprintln(p.out)
	}
}

// writeUnsound names the tasks that are not sound, if there are any.
func writeUnsound(out io.Writer, j *job.Job, u *validate.Unsound) {
	lines := u.Note(validateCommand + j.LibraryPath())
	for _, line := range lines {
		fmt.Fprintln(out, sanitize(line))
	}
	if len(lines) > 0 {
		fmt.Fprintln(out)
	}
}

func writePower(p *process, all []job.Power) {
	if len(all) == 0 {
		return
	}
	t := p.table("part", "", "tasks", "repeats", "detectable", "5 points", "10 points", "20 points")
	between := func(format string, a, b float64) string {
		return fmt.Sprintf("%.0f–"+format, 100*min(a, b), 100*max(a, b))
	}
	for _, x := range all {
		a, b := x.Power, x.PairedPower
		t.Row(x.Part, "", fmt.Sprint(x.Tasks), fmt.Sprint(x.Repeats),
			between("%.0f points", x.Paired, x.Detectable), between("%.0f %%", a.At5, b.At5),
			between("%.0f %%", a.At10, b.At10), between("%.0f %%", a.At20, b.At20))
	}
	fmt.Fprintf(p.out, "%s\n\n", t)
	p.say("Detectable: smallest difference between two rows, such as two models in one variant, "+
		"found in 80 of 100 runs; then the share of runs that find one of 5, 10 and 20 points. The "+
		"better figure is for rows that find the same tasks hard, the other one for rows that do not. "+
		"This assumes a correlation of %g between repeats, so new tasks count for more than "+
		"repeats.", job.RepeatCorrelation)
	var few []string
	for _, x := range all {
		if x.Cluster == stat.BySequence {
			few = append(few, fmt.Sprintf("part %s has %s in %s",
				x.Part, assay.Counted(x.Sequences, "sequence"), assay.Counted(x.Tasks, "task")))
		}
	}
	if len(few) > 0 {
		p.say("Tasks of one sequence of tools are alike, so the sequences are what is compared: %s.",
			strings.Join(few, ", "))
	}
	fmt.Fprintln(p.out)
}

func writeForecast(p *process, e *plan.Experiment, out job.Estimate) {
	t := p.table("model", "", "trials", "requests", "input\ntokens", "output\ntokens",
		"cost", "time", "bottleneck", "based on")
	var unpriced []string
	for _, m := range out.Models {
		cost := "–"
		if m.Cost > 0 {
			cost = assay.CostText(m.Cost, 2)
		}
		if m.Unpriced {
			unpriced = append(unpriced, m.Model)
			if cost = "≥ " + cost; m.Cost == 0 {
				cost = "unknown"
			}
		}
		t.Row(m.Model, "", fmt.Sprint(m.Trials), fmt.Sprint(m.Requests),
			fmt.Sprint(m.InputTokens), fmt.Sprint(m.OutputTokens),
			cost, wallText(m.Wall, m.Range), cmp.Or(m.Bound, "–"), m.Basis)
	}
	fmt.Fprintf(p.out, "%s\n\n", t)

	aside := func(who string, f job.AsideForecast) {
		var unknown []string
		if f.Unpriced {
			unknown = []string{f.Model}
		}
		unpriced = append(unpriced, unknown...)
		p.say("The %s %s: about %s, %s, %s, going by %s.", who, f.Model,
			assay.Counted(f.Requests, "request"), assay.Counted(f.Tokens, "token"),
			assay.CostText(f.Cost, 2, unknown...), assay.Counted(f.Settled, "attempt"))
	}
	if out.User != nil {
		aside("simulated user", *out.User)
	} else if e.User != "" {
		p.say("The forecast leaves out what the simulated user %s costs. `assay run --limit 5` finds out.",
			e.User)
	}
	for _, f := range out.Judges {
		aside("judge", f)
	}
	if judges := e.Judges; len(judges) > 0 && len(out.Judges) == 0 {
		p.say("The forecast leaves out what the judge %s costs. `assay run --limit 5` finds out.",
			judgeNames(judges))
	}
	total := "Models run side by side: about " + sections.Duration(out.Wall) + " in all"
	if out.Unknown != "" {
		total = fmt.Sprintf("Models run side by side: %s in all (%s)",
			wallText(out.Wall, out.Range), out.Unknown)
	}
	if out.Cost > 0 || len(unpriced) > 0 {
		total += ", " + assay.CostText(out.Cost, 2, unpriced...)
	}
	p.say("%s.", total)
	for _, text := range beyondBudgets(e.Budget, out) {
		p.say("%s", text)
	}
}

func judgeNames(judges []library.JudgeUse) string {
	var names []string
	for _, j := range judges {
		names = append(names, j.Model)
	}
	return strings.Join(names, ", ")
}

// beyondBudgets says how far budgets of the run and of models go that are smaller than what is expected.
func beyondBudgets(budgets plan.Budgets, out job.Estimate) (texts []string) {
	add := func(whose string, b plan.Budget, trials, tokens int, usd float64) {
		share, limit := 1.0, ""
		if b.USD > 0 && b.USD < share*usd {
			share, limit = b.USD/usd, fmt.Sprintf("$%g", b.USD)
		}
		if b.Tokens > 0 && float64(b.Tokens) < share*float64(tokens) {
			share, limit = float64(b.Tokens)/float64(tokens), assay.Counted(b.Tokens, "token")
		}
		pays := int(share * float64(trials))
		switch {
		case limit == "":
		case pays == 0:
			each := assay.CostText(usd/float64(trials), 2)
			if usd == 0 || !strings.HasPrefix(limit, "$") {
				each = assay.Counted(tokens/trials, "token")
			}
			texts = append(texts, fmt.Sprintf("%s budget of %s does not pay for a single trial, which costs about %s.",
				whose, limit, each))
		default:
			texts = append(texts, fmt.Sprintf("%s budget of %s pays for about %d of these %s; the others will stay pending.",
				whose, limit, pays, assay.Counted(trials, "trial")))
		}
	}
	var trials, tokens int
	for _, m := range out.Models {
		trials, tokens = trials+m.Trials, tokens+m.InputTokens+m.OutputTokens
	}
	add("The run's", budgets.Budget, trials, tokens, out.Cost)
	for _, m := range out.Models {
		add(m.Model+"'s", budgets.PerModel, m.Trials, m.InputTokens+m.OutputTokens, m.Cost)
	}
	return texts
}

// table returns a table that fits the terminal. Its first two columns stay on the left.
func (p *process) table(heads ...string) *document.TextTable {
	return document.NewScreenTable(p.terminal, 2, heads...)
}

// maxChanges is how many changes of a library are named in a message.
const maxChanges = 5

// changesText describes the changes of a library since the latest run.
func changesText(path string, changes []library.Change, pending int) string {
	names := make([]string, 0, maxChanges+1)
	for i, c := range changes {
		if i == maxChanges {
			names = append(names, fmt.Sprintf("and %d more", len(changes)-i))
			break
		}
		names = append(names, c.String())
	}
	return fmt.Sprintf("Since the latest run, %s has changed: %s. %s pending; results of the earlier "+
		"version stay in the store.", path, strings.Join(names, ", "), countedVerb(pending,
		"trial", "is", "are"))
}
