package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/result/sections"
	"github.com/assay-eval/assay/internal/store"
)

// forkFlags are the flags of fork.
type forkFlags struct {
	documentFlags
	faults []string
	each   int
	points int
	dryRun bool
	run    runFlags
}

const (
	usualForks = 4
	mostForks  = 1000
)

func newFork(p *process) *cobra.Command {
	var f forkFlags
	cmd := &cobra.Command{
		Use:   "fork [EXPERIMENT]",
		Short: "Measure what each fault of a tool caused, by playing on with and without it",
		Long: `Fork takes the attempts of an experiment in which a tool failed by plan. From each call that
met a fault, it plays on several times with the fault and as often without it. Both begin as the
attempt did: the replies of its model are given again without asking it, and the tools are brought
to that point by the same calls. So the difference is what the fault caused, and most of the
variance between trials is not in it.

The forks of EXPERIMENT are an experiment of their own, EXPERIMENT-forks. They count in no success
rate. The same command goes on after a stop, and adds forks of further attempts. Budgets, limits
and prices are those of EXPERIMENT. --dry-run says how many forks there are and what they take, and plays none.

Foreign agents have no forks, because they cannot be put into the middle of a conversation, and
neither have attempts at which a model speaks as the user. An attempt whose beginning turns out
differently, such as one with an environment that gives other answers, is refused as a fault.

Exit codes: 0 complete, 1 error, 2 wrong usage, 3 finished with pending or parked forks,
130 interrupted.`,
		Example: `  assay fork --dry-run
  assay fork nightly --each 8
  assay fork nightly --fault after --fault down --points 50
  assay fork nightly --where model=my-model --output forks.html
  assay gate nightly --fault after --at-most 5pt`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(p); err != nil {
				return err
			}
			return p.fork(cmd.Context(), args, &f)
		},
	}
	flags := cmd.Flags()
	storeFlag(cmd, &f.store)
	formatFlag(cmd, &f.format, documentFormats, "text")
	flags.StringVarP(&f.output, "output", "o", "-", "the `file` to write; - is standard output")
	flags.BoolVar(&f.asJSON, "json", false, "the same as --format json")
	whereFlag(cmd, &f.conditions)
	flags.StringSliceVar(&f.faults, "fault", nil, "only this `kind` of fault; may be given several times")
	flags.IntVar(&f.each, "each", usualForks, "how many forks of a call meet the fault, and how many are spared it")
	flags.IntVar(&f.points, "points", 0, "at most `N` calls for each model and kind of fault, a sample; 0 for all")
	flags.BoolVar(&f.dryRun, "dry-run", false, "say how many forks there would be, and play none")
	flags.StringVar(&f.run.providers, "providers", "", "the providers `file` to use instead of the experiment's")
	flags.StringVar(&f.run.display, "display", "auto", "how to show progress: "+strings.Join(displays, ", "))
	simLatencyFlag(cmd, &f.run.simLatency)
	choice(cmd, "display", displays...)
	choice(cmd, "fault", faultNames()...)
	cmd.ValidArgsFunction = namesIn(&f.store, experimentNames)
	return cmd
}

func faultNames() (names []string) {
	for _, kind := range assay.ToolFaults {
		names = append(names, string(kind))
	}
	return names
}

func (f *forkFlags) check(p *process) error {
	f.cluster = "task"
	if err := f.documentFlags.check(p); err != nil {
		return err
	}
	if f.each < 1 || f.each > mostForks {
		return usageError("--each %d: want 1 to %d", f.each, mostForks)
	}
	if f.dryRun && (f.output != "-" || f.format != "text") {
		return usageError("--dry-run writes no document\nhint: leave --output and --format out")
	}
	if f.points < 0 {
		return usageError("--points %d: want 0 or more", f.points)
	}
	return checkFaults(f.faults)
}

// checkFaults returns a usage error if a kind of fault is unknown.
func checkFaults(kinds []string) error {
	for _, kind := range kinds {
		if known := faultNames(); !slices.Contains(known, kind) {
			hint := cmp.Or(assay.NameHint(kind, known), "the kinds are "+strings.Join(known, ", "))
			return usageError("--fault %s: there is no such kind of fault\nhint: %s", kind, hint)
		}
	}
	return nil
}

// fork plays the forks that are pending, and writes what they show.
func (p *process) fork(ctx context.Context, args []string, f *forkFlags) error {
	var e store.Experiment
	var points forkChoice
	err := untilInterrupted(ctx, p, func(ctx context.Context) (err error) {
		e, points, err = p.forkPoints(ctx, args, f)
		return err
	})
	if err != nil || f.dryRun {
		return err
	}
	f.run.store, f.run.logLevel = f.store, "info"
	f.run.fork = func(ctx context.Context) (j *job.Job, err error) {
		db, err := p.openToRead(ctx, f.store)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		return job.Forked(ctx, db, e, func(base *plan.Experiment) *plan.Experiment {
			if f.run.providers != "" {
				base.SetProviders(f.run.providers)
			}
			return base.Fork(points.all, points.played)
		})
	}
	if err := p.runQuietly(ctx, &plan.Experiment{Name: plan.ForksName(e.Name)}, f.run); err != nil {
		return err
	}
	return untilInterrupted(ctx, p, func(ctx context.Context) (err error) {
		db, err := p.openToRead(ctx, f.store)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		return writeForks(ctx, p, db, e.Name, &f.documentFlags)
	})
}

// A forkChoice has all calls with forks, of this command and of earlier ones, and those whose forks are played.
type forkChoice struct {
	all    []plan.Forked
	played map[assay.ForkPoint]bool
}

// forkPoints chooses the experiment, and the calls that have forks. It says what it found.
func (p *process) forkPoints(
	ctx context.Context, args []string, f *forkFlags,
) (e store.Experiment, points forkChoice, err error) {
	db, err := p.openToRead(ctx, f.store)
	if err != nil {
		return e, points, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := checkWhere(ctx, db, f.where); err != nil {
		return e, points, err
	}
	if e, err = forkedExperiment(ctx, db, args); err != nil {
		return e, points, err
	}
	j, err := job.Reopen(ctx, db, e)
	if err != nil {
		return e, points, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	warn := func(message string) { fmt.Fprintf(p.err, "assay: %s\n", message) }
	s, err := query.Select(ctx, db, query.Request{Experiment: e.Name}, warn)
	if err != nil {
		return e, points, err
	}
	show := p.progress("attempts read")
	found, err := query.FindForkPoints(ctx, s, j.Experiment, f.where, func(n int) { show.at(n, 0) })
	show.end()
	if err != nil {
		return e, points, err
	}
	for _, model := range slices.Sorted(maps.Keys(found.Unforkable)) {
		warn(model + " has no forks: " + found.Unforkable[model])
	}
	if found.Bare > 0 {
		warn(assay.Counted(found.Bare, "attempt") + " without a transcript or a task in the store have no forks")
	}
	known, err := knownForks(ctx, db, e.Name)
	if err != nil {
		return e, points, err
	}
	if points = f.choose(known, found); len(points.played) == 0 {
		return e, points, fmt.Errorf("no call of %s met a fault of a tool from which forks could go on\n"+
			"hint: tools fail in trials with a reliability below 1%s", e.Name, f.selecting())
	}
	done, err := settledForks(ctx, db)
	if err != nil {
		return e, points, err
	}
	var left pending
	for at := range points.played {
		n := max(0, 2*f.each-done[at.String()])
		left.forks += n
		left.tokens += n * found.Tokens[at]
		left.usd += float64(n) * found.USD[at]
	}
	return e, points, p.saySplit(points.played, left, f)
}

// settledForks counts the forks that have an outcome, by what they are of.
func settledForks(ctx context.Context, db *store.DB) (map[string]int, error) {
	done := make(map[string]int)
	for a, err := range db.Attempts(ctx, store.Filter{OnlySettled: true}) {
		if err != nil {
			return nil, err
		}
		if a.Of != "" {
			done[a.Of]++
		}
	}
	return done, nil
}

// pending is how many forks are left to play, and about what they take.
type pending struct {
	forks, tokens int
	usd           float64
}

// forkedExperiment returns the experiment that is named, or that of the latest run.
func forkedExperiment(ctx context.Context, db *store.DB, args []string) (e store.Experiment, err error) {
	all, err := chooseExperiments(ctx, db, args)
	if err != nil {
		return e, err
	}
	if len(all) == 0 {
		return e, errors.New("the store holds no experiment yet\nhint: `assay run` runs one")
	}
	e = latest(all)
	if of, forks := plan.ForkedFrom(e.Name); forks {
		return query.FindExperiment(ctx, db, of)
	}
	return e, nil
}

// knownForks returns how many forks on each side the calls of an experiment have already.
func knownForks(ctx context.Context, db *store.DB, experiment string) (each map[assay.ForkPoint]int, err error) {
	each = make(map[assay.ForkPoint]int)
	all, err := db.Experiments(ctx)
	for _, e := range all {
		if err == nil && e.Name == plan.ForksName(experiment) {
			var spec plan.Experiment
			err = json.Unmarshal(e.Spec, &spec)
			if spec.Forks != nil {
				for _, at := range spec.Forks.Points {
					each[at.ForkPoint] = at.Each
				}
			}
		}
	}
	return each, err
}

// choose chooses the calls that the flags select, and keeps those that have forks already, unless their
// attempts no longer count.
func (f *forkFlags) choose(known map[assay.ForkPoint]int, found *query.ForkPoints) forkChoice {
	type group struct {
		model string
		fault assay.ToolFault
	}
	n := make(map[group]int)
	c := forkChoice{played: make(map[assay.ForkPoint]bool)}
	for _, at := range found.Points {
		g := group{found.Models[at.Trial], at.Fault}
		each := known[at]
		if found.Chosen[at] && (len(f.faults) == 0 || slices.Contains(f.faults, string(at.Fault))) &&
			(f.points == 0 || n[g] < f.points) {
			n[g]++
			c.played[at] = true
			each = max(each, f.each)
		}
		if each > 0 {
			c.all = append(c.all, plan.Forked{ForkPoint: at, Each: each})
		}
	}
	return c
}

// selecting names the flags that select calls, as the end of a hint.
func (f *forkFlags) selecting() string {
	switch {
	case len(f.conditions) > 0:
		return ", and --where selects some of the attempts"
	case len(f.faults) > 0:
		return ", and --fault selects a kind"
	}
	return ""
}

// saySplit says of how many calls forks are played, by kind of fault, and what those that are left take.
func (p *process) saySplit(played map[assay.ForkPoint]bool, left pending, f *forkFlags) error {
	kinds := make(map[string]int)
	for at := range played {
		kinds[string(at.Fault)]++
	}
	var words []string
	for _, kind := range faultNames() {
		if kinds[kind] > 0 {
			words = append(words, fmt.Sprintf("%d %s", kinds[kind], kind))
		}
	}
	out := p.err
	if f.dryRun {
		out = p.out
	}
	takes := fmt.Sprintf("about %d tokens", left.tokens)
	if left.usd > 0 {
		takes += ", " + assay.DollarsText(left.usd, 2, false)
	}
	if all := 2 * f.each * len(played); left.forks < all {
		takes = fmt.Sprintf("%d of them are left to play; %s", left.forks, takes)
	}
	_, err := fmt.Fprintf(out, "%s met a fault (%s): %d forks; %s\n",
		assay.Counted(len(played), "call"), strings.Join(words, ", "), 2*f.each*len(played), takes)
	return err
}

// writeForks writes what the forks of an experiment show.
func writeForks(ctx context.Context, p *process, db *store.DB, experiment string, f *documentFlags) error {
	found, err := query.ForksOf(ctx, db, experiment)
	if err != nil {
		return err
	}
	err = f.write(p, found, func() (*document.Document, error) { return sections.Forks(found), nil })
	if err == nil && found.Done < found.Planned {
		return &codedError{code: exitIncomplete}
	}
	return err
}
