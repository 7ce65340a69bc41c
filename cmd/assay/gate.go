package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/atomicfile"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/sections"
	"github.com/assay-eval/assay/internal/result/stat"
	"github.com/assay-eval/assay/internal/store"
)

// gateFlags are the flags of gate, including the flags of documents.
type gateFlags struct {
	documentFlags
	baseline, side string
	margin         string
	tasks          string
	atLeast        string
	always         []string
	faults         []string
	atMost         string
	allow          []string
	junit          string
	plan           bool
	run            runFlags // of a candidate that is a file
}

func newGate(p *process) *cobra.Command {
	var f gateFlags
	cmd := &cobra.Command{
		Use:   "gate CANDIDATE|FILE [--baseline STORE|FILE|NAME] [--at-least PERCENT] [--always TASK]",
		Short: "Decide whether a candidate is as good as a baseline, for CI",
		Long: `Gate tests whether a candidate is worse than a baseline by less than a margin, on the
same tasks under the same conditions, and whether it meets demands. The verdict is one of

  pass           exit code 0: a loss of the margin is ruled out, with 95 % confidence
  fail           exit code 4: there is a loss; at most 1 in 100 equal candidates fails
  inconclusive   exit code 5: neither; --plan says how many trials decide it

--tasks says what the verdict is about: these tasks, which is the default for a library of
your own with at most 50 tasks, or more tasks similar to them. The other answer is shown, too.
Few tasks rule out no small loss in similar ones: 59 are needed for 5 points, 29 for 10.

--fault KIND --at-most 5pt passes if the fault costs each model at most 5 points where it strikes,
with 95 % confidence, and fails if it costs more, with 99.5 %. It judges the forks of the
experiment, which ` + "`assay fork`" + ` plays, and needs no baseline.

--at-least passes if the candidate's rate is at least that, with 95 % confidence, and fails if
it is less, with 99.5 %. --always fails if a trial of the task fails. Neither needs a baseline.
The worst verdict counts.

CANDIDATE is an experiment, run, model or variant of the store, as for compare. The baseline
is another store, a file of JSON lines that export wrote, also compressed with gzip or zstd,
or a name in the same store. In another store, it is what CANDIDATE names there, or else its
only experiment; --side names another one.

If the candidate is an experiment file, its pending trials run first, in four parts, until
the verdict is certain. The early looks ask for more certainty, so that all looks together
keep the promises above. Demands are judged at the end.

Sides with different prompts, judges, worlds or texts of tasks are refused unless --allow
names what may differ. Of trials that were worked on again (run --retry) the first outcome
counts, also for --at-least and --always. A side that lacks it is refused unless --allow
retries accepts later ones. While more than 5 % of the trials of a side are pending, there is
no verdict.`,
		Example: `  assay gate nightly --baseline main.db --margin 5pt
  assay gate my-model@v2 --baseline my-model@v1 --tasks similar
  assay gate nightly --at-least 90% --always refund-lamp --always 'never-*'
  assay gate nightly --fault after --fault down --at-most 5pt
  assay gate nightly --baseline main.jsonl.zst --junit gate.xml --format md >> summary.md
  assay gate nightly.yaml --revision 4be1a2f --store next.db --baseline main.db
  assay gate nightly --baseline main.db --plan --margin 3pt`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := f.check(p, args[0]); err != nil {
				return err
			}
			if isFile(args[0]) && !f.plan {
				return p.gate(cmd.Context(), args[0], f) // runs handle signals themselves
			}
			return untilInterrupted(cmd.Context(), p, func(ctx context.Context) error {
				return p.gate(ctx, args[0], f)
			})
		},
	}
	f.flags(cmd, "")
	flags := cmd.Flags()
	flags.StringVar(&f.baseline, "baseline", "",
		"a store, a `file` of JSON lines, or a name in the same store")
	flags.StringVar(&f.side, "side", "", "the `name` of the baseline in its store")
	flags.StringVar(&f.margin, "margin", "5pt", "the tolerated `loss`, in percentage points")
	flags.StringVar(&f.tasks, "tasks", "",
		"what the verdict is about: "+strings.Join(report.Questions, ", ")+" to these")
	flags.StringVar(&f.atLeast, "at-least", "", "the lowest `rate` of full success, as in 90%")
	flags.StringArrayVar(&f.always, "always", nil,
		"a `task` that must succeed in every trial: a name, a pattern, or @FILE with one a line; "+
			"repeatable")
	flags.StringSliceVar(&f.faults, "fault", nil,
		"with --at-most: a `kind` of fault of tools; may be given several times")
	flags.StringVar(&f.atMost, "at-most", "",
		"the most `points` of success that the fault may cost where it strikes, as in 5pt; see assay fork")
	choice(cmd, "fault", faultNames()...)
	choice(cmd, "tasks", report.Questions...)
	flags.StringSliceVar(&f.allow, "allow", nil,
		"what may differ: "+strings.Join(report.Unlikenesses, ", "))
	flags.StringVar(&f.junit, "junit", "", "also write the verdict to a JUnit `file`")
	flags.StringVar(&f.run.revision, "revision", "",
		"with a file: your `name` for this version of the models, as in run")
	flags.StringVar(&f.run.providers, "providers", "",
		"with a file: the providers `file` to use instead of the experiment's")
	simLatencyFlag(cmd, &f.run.simLatency)
	flags.BoolVar(&f.plan, "plan", false,
		"only show how many trials and dollars a verdict takes")
	_ = cmd.RegisterFlagCompletionFunc("allow",
		cobra.FixedCompletions(report.Unlikenesses, cobra.ShellCompDirectiveNoFileComp))
	cmd.ValidArgsFunction = namesIn(&f.store, query.Names)
	return cmd
}

// isFile reports whether a candidate is an experiment file.
func isFile(candidate string) bool {
	return slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(candidate))
}

func (f *gateFlags) check(p *process, candidate string) error {
	if err := f.documentFlags.check(p); err != nil {
		return err
	}
	switch {
	case f.plan && f.junit != "":
		return usageError("--junit writes a verdict, and --plan has none\nhint: leave one of them out")
	case f.tasks != "" && !slices.Contains(report.Questions, f.tasks):
		return usageError("--tasks %q: it is one of %s", f.tasks, strings.Join(report.Questions, ", "))
	case (len(f.faults) > 0) != (f.atMost != ""):
		return usageError("--fault and --at-most belong together\nhint: --fault after --at-most 5pt")
	case len(f.faults) > 0 && (f.plan || isFile(candidate)):
		return usageError("--fault judges forks that were played before\n" +
			"hint: `assay run FILE`, `assay fork`, and then the gate with the experiment's name")
	case f.baseline != "" || !f.plan && (f.atLeast != "" || len(f.always) > 0 || len(f.faults) > 0):
		return errors.Join(checkAllowed(f.allow), checkFaults(f.faults))
	}
	hint := "hint: --at-least, --always and --fault need none"
	if f.plan {
		hint = "hint: --plan plans the comparison with it"
	}
	return usageError("--baseline is missing: name a store, an exported file, or an experiment, "+
		"run, model or variant of the same store\n%s", hint)
}

// terms returns the terms that the flags ask for.
func (f *gateFlags) terms() (t report.Terms, err error) {
	t = report.Terms{Tasks: f.tasks, Chosen: f.tasks != "", Look: report.Looks(1)[0]}
	if t.Margin, err = pointsOf("--margin", f.margin); err != nil {
		return t, err
	}
	for _, kind := range f.faults {
		t.Faults = append(t.Faults, assay.ToolFault(kind))
	}
	if f.atMost != "" {
		if t.AtMost, err = pointsOf("--at-most", f.atMost); err != nil {
			return t, err
		}
	}
	if f.atLeast != "" {
		if t.AtLeast, err = percent(f.atLeast); err != nil {
			return t, err
		}
	}
	for _, name := range f.always {
		path, isFile := strings.CutPrefix(name, "@")
		if !isFile {
			t.Always = append(t.Always, name)
			continue
		}
		names, err := linesOf(path)
		if err != nil {
			return t, fmt.Errorf("--always: %w", err)
		}
		t.Always = append(t.Always, names...)
	}
	return t, nil
}

// percent parses a rate such as 90% and returns a share of 1.
func percent(text string) (float64, error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "%")
	value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(value > 0 && value < 100) {
		return 0, usageError("--at-least %q: give a percentage between 0 and 100, as in 90%%", text)
	}
	return value / 100, nil
}

// linesOf returns the lines of a file that are neither empty nor comments.
func linesOf(path string) (lines []string, err error) {
	b, err := os.ReadFile(path)
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	if err == nil && len(lines) == 0 {
		err = fmt.Errorf("%s names no task", path)
	}
	return lines, err
}

// checkAllowed returns a usage error if --allow has an unknown value.
func checkAllowed(allow []string) error {
	for _, name := range allow {
		if !slices.Contains(report.Unlikenesses, name) {
			return usageError("--allow %q: it is one of %s", name,
				strings.Join(report.Unlikenesses, ", "))
		}
	}
	return nil
}

// pointsOf parses the value of a flag such as 5pt and returns a share of 1.
func pointsOf(flag, text string) (float64, error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "pt")
	value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !ok || err != nil || !(value > 0 && value < 100) {
		return 0, usageError("%s %q: give percentage points between 0 and 100, as in 5pt", flag, text)
	}
	return value / 100, nil
}

func (p *process) gate(ctx context.Context, candidate string, f gateFlags) (err error) {
	terms, err := f.terms()
	if err != nil {
		return err
	}
	path := candidate
	if isFile(path) {
		if err := atomicfile.Check(f.output, cmp.Or(f.junit, "-")); err != nil {
			return err
		}
		e, err := f.run.experiment([]string{path})
		if err != nil {
			return err
		}
		candidate = "experiment:" + e.Name
	}
	base := new(query.Baseline)
	if f.baseline != "" {
		base, err = query.BaselineRequest{
			Name: f.baseline, Side: f.side, Candidate: candidate, Store: f.store,
			Open: p.openToRead, Plan: job.PlannedTrials,
		}.Find(ctx)
		if err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, base.Close()) }()
	m := candidateLook{
		candidate: candidate, base: base, flags: f, terms: terms, planner: job.PlannedTrials,
	}
	switch {
	case f.plan:
		return p.planGate(ctx, m)
	case isFile(path):
		return p.runGate(ctx, m, path)
	}
	g, err := p.measure(ctx, m)
	if err != nil {
		return err
	}
	return p.deliverVerdict(g, f, path)
}

// planGate shows how large a run has to be. Without a candidate that can be measured, the baseline
// has to do.
func (p *process) planGate(ctx context.Context, m candidateLook) error {
	var plan *report.GatePlan
	suite := m.base.Suite(ctx)
	g, err := p.measure(ctx, m)
	if err == nil {
		plan = g.Plan(m.terms)
	} else {
		why, _, _ := strings.Cut(err.Error(), "\n")
		if !m.terms.Chosen {
			m.terms.Tasks = suite.Question()
		}
		fmt.Fprintf(p.err, "assay: planned from the baseline alone: %s\n", why)
		plan, err = report.PlanGate(m.base.Name, m.flags.cluster, m.terms,
			m.base.Attempts(m.flags.where))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", m.base.Name, err)
	}
	plan.Library = suite.Tasks
	return m.flags.write(p, plan, func() (*document.Document, error) {
		return sections.GatePlan(plan), nil
	})
}

// A candidateLook is one look at a candidate.
type candidateLook struct {
	candidate string
	base      *query.Baseline
	flags     gateFlags
	terms     report.Terms
	planner   query.Planner
}

// measure compares the candidate with the baseline.
func (p *process) measure(ctx context.Context, m candidateLook) (g *report.Gate, err error) {
	db := m.base.In(m.flags.store)
	if db == nil {
		if db, err = p.openToRead(ctx, m.flags.store); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
	}
	if err := checkWhere(ctx, db, m.flags.where, m.base.All()); err != nil {
		return nil, err
	}
	if !m.terms.Chosen {
		m.terms.Tasks = query.SuiteOf(ctx, db, m.candidate).Question()
	}
	g, err = query.GateRequest{
		Candidate: m.candidate, Baseline: m.base, Where: m.flags.where,
		Cluster: m.flags.cluster, Terms: m.terms, Allow: m.flags.allow,
	}.Gate(ctx, db, m.planner)
	if errors.Is(err, report.ErrNothingInCommon) || errors.Is(err, query.ErrOneSide) {
		return nil, sanitizedError{err}
	}
	return g, err
}

// maxLooks is how often a gate that runs its candidate looks at the results.
const maxLooks = 4

// looksOf returns how often a gate looks at the results. It says before anything is spent if no run
// of so many tasks can pass. Early looks ask for more certainty, so they are left out if a pass is
// only possible without them.
func (p *process) looksOf(m candidateLook, suite report.Suite) (int, error) {
	switch {
	case m.flags.baseline == "":
		return 1, nil // demands are about all trials
	case cmp.Or(m.terms.Tasks, suite.Question()) == report.These:
		return maxLooks, nil
	}
	n, cluster, err := report.ClustersOf(m.flags.cluster, m.base.Attempts(m.flags.where))
	if err != nil {
		return 0, err
	}
	tooFew := func(looks int) string {
		return sections.TooFew(n, cluster, m.terms.Margin, report.Looks(looks)[looks-1].Pass)
	}
	switch text := tooFew(1); {
	case text != "":
		fmt.Fprintf(p.err, "assay: this gate cannot pass, only fail: %s\n", text)
	case tooFew(maxLooks) != "":
		return 1, nil
	}
	return maxLooks, nil
}

// runGate runs the candidate part by part, until the verdict is certain. A part has the first
// trials of each model, balanced over the cells, so the results of a look do not depend on which
// trials end first.
func (p *process) runGate(ctx context.Context, m candidateLook, path string) (err error) {
	f := &m.flags
	f.run.store = f.store
	var most, looks int
	err = untilInterrupted(ctx, p, func(ctx context.Context) error {
		var suite report.Suite
		if most, suite, err = f.trialsPerModel(ctx, path, m.terms.Always); err != nil {
			return err
		}
		looks, err = p.looksOf(m, suite)
		return err
	})
	if err != nil {
		return err
	}
	f.run.budgets = new(commonBudgets) // all looks have one budget
	for _, m.terms.Look = range report.Looks(looks) {
		f.run.limit = (most*m.terms.Look.Number + looks - 1) / looks
		e, err := f.run.experiment([]string{path})
		if err != nil {
			return err
		}
		err = p.runQuietly(ctx, e, f.run)
		switch coded := (*codedError)(nil); {
		case errors.As(err, &coded) && coded.code == exitInterrupted:
			return &codedError{exitInterrupted, errors.New("interrupted before the verdict\n" +
				"hint: run the same command again; stored results are not computed twice")}
		case err != nil:
			return err
		}
		m.planner = plannedUpTo(f.run, path)
		var g *report.Gate
		err = untilInterrupted(ctx, p, func(ctx context.Context) error {
			g, err = p.measure(ctx, m)
			return err
		})
		if err != nil {
			return err
		}
		if spent := f.run.budgets.spent(); len(spent) > 0 && g.Verdict == report.Inconclusive {
			fmt.Fprintf(p.err, "assay: %s, so the gate ends with what is done\n"+
				"hint: the same command goes on, with a fresh budget\n", strings.Join(spent, "; "))
			return p.deliverVerdict(g, *f, path)
		}
		if m.terms.Look.Number == looks || g.Verdict != report.Inconclusive {
			return p.deliverVerdict(g, *f, path)
		}
		fmt.Fprintf(p.err, "assay: look %d of %d: no verdict after %d trials\n",
			m.terms.Look.Number, looks, g.Candidate.Trials)
	}
	return nil
}

// trialsPerModel returns the most trials that a model has in an experiment file, and its library. It
// returns [report.ErrNoTask] if a name fits no task.
func (f *gateFlags) trialsPerModel(
	ctx context.Context, path string, names []string,
) (int, report.Suite, error) {
	e, err := f.run.experiment([]string{path})
	if err != nil {
		return 0, report.Suite{}, err
	}
	j, err := job.Open(ctx, e, 0)
	if err != nil {
		return 0, report.Suite{}, err
	}
	most, trials, tasks := 0, make(map[string]int), make(map[assay.TaskID]bool)
	for t := range j.Trials() {
		trials[t.Model]++
		most = max(most, trials[t.Model])
		tasks[t.Task] = true
	}
	_, err = report.MatchTasks(names, slices.Collect(maps.Keys(tasks)))
	suite, errSuite := query.LibraryOf(ctx, j)
	return most, suite, errors.Join(err, errSuite, j.Close())
}

// plannedUpTo returns a planner of the trials that an experiment file has within its limit.
func plannedUpTo(f runFlags, path string) query.Planner {
	return func(ctx context.Context, _ *store.DB, _ store.Experiment) iter.Seq2[assay.Trial, error] {
		return func(yield func(assay.Trial, error) bool) {
			e, err := f.experiment([]string{path})
			var j *job.Job
			if err == nil {
				j, err = job.Open(ctx, e, f.limit)
			}
			if err != nil {
				yield(assay.Trial{}, err)
				return
			}
			defer j.Close() // it was only read
			for t := range j.Trials() {
				if !yield(t, nil) {
					return
				}
			}
		}
	}
}

// planCommand is the command that plans the gate of a candidate. It works as it is printed.
func (f *gateFlags) planCommand(candidate string) string {
	words := []string{"assay", "gate", candidate, "--baseline", f.baseline}
	for _, flag := range []struct{ name, value, usual string }{
		{"--side", f.side, ""},
		{"--store", f.store, defaultStore},
		{"--tasks", f.tasks, ""},
		{"--cluster", f.cluster, stat.Auto},
		{"--margin", f.margin, ""},
	} {
		if flag.value != flag.usual {
			words = append(words, flag.name, flag.value)
		}
	}
	for _, condition := range f.conditions {
		words = append(words, "--where", condition)
	}
	for i, w := range words {
		words[i] = assay.ShellWord(w)
	}
	return strings.Join(append(words, "--plan"), " ")
}

// deliverVerdict writes the verdict, and returns it as an exit code.
func (p *process) deliverVerdict(g *report.Gate, f gateFlags, candidate string) error {
	commands := sections.GateCommands{Show: "assay show %s", Plan: f.planCommand(candidate)}
	commands.Show += assay.StorePath(f.store).Option()
	g.AddPower()
	err := f.write(p, g, func() (*document.Document, error) { return sections.Gate(g, commands), nil })
	if err == nil && f.junit != "" {
		err = atomicfile.Write(p.out, f.junit, func(w io.Writer) error {
			return sections.WriteJUnit(w, g, commands)
		})
	}
	switch {
	case err != nil:
		return err
	case g.Verdict == report.Fail:
		return &codedError{code: exitFail}
	case g.Verdict == report.Inconclusive:
		return &codedError{code: exitInconclusive}
	}
	return nil
}
