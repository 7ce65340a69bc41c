package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/store"
)

type runFlags struct {
	chosen
	store       string
	again       bool
	retry       []string // conditions
	display     string
	quiet       bool
	simLatency  time.Duration
	logLevel    string
	debugTrials []string
	// tryFirst is the command that checks the lanes. It is empty if a run does not offer it.
	tryFirst string
	view     string // the address of pages, or ""
	control  bool   // of the pages
	serve    string // the address for workers, or ""
	// budgets is what several runs of one command have spent together of one budget. It is nil if each
	// has its own.
	budgets *commonBudgets
	// quickstart is true if no experiment was named.
	quickstart bool
	// fork opens the job of `assay fork`. It is nil if a file or a suite has the experiment.
	fork func(context.Context) (*job.Job, error)
}

// commonBudgets has the stopper of the latest run, or nil before the first.
type commonBudgets struct{ latest *job.Stopper }

// spent words the budgets that have stopped trials of the latest run.
func (b *commonBudgets) spent() (texts []string) {
	if b.latest != nil {
		for _, e := range b.latest.Exhausted() {
			texts = append(texts, e.String())
		}
	}
	return texts
}

const defaultSimLatency = 100 * time.Millisecond

var (
	displays  = []string{"auto", "live", "plain", "json", "none"}
	logLevels = map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo,
		"warn": slog.LevelWarn, "error": slog.LevelError,
	}
)

// allTrials is a special value of --debug-trials.
const allTrials = "all"

func newRun(p *process) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [FILE]",
		Short: "Run the pending trials of an experiment",
		Long: `Run works on every trial of an experiment that has no outcome yet. Without FILE
it runs experiment.yaml in this directory. If there is none, it runs the built-in
quickstart on simulated models, without a key or a network.

Each result is on disk before it is counted. Running the same command again
continues where the last run ended, however it ended. The first Ctrl-C starts
nothing new and lets episodes in flight finish; the second aborts them. Neither
loses a result, unless another program has locked the store: the run then keeps
its results in memory and waits, and only the second Ctrl-C gives them up. The
next run then stores what they have cost.

A run sends traces to the collector of OpenTelemetry that OTEL_EXPORTER_OTLP_ENDPOINT
names.

Each run writes a log to STORE.logs, with one JSON object per line. Logs older than
30 days are removed, and the oldest ones once all logs together exceed a gigabyte.

` + simHelp + `
Exit codes: 0 complete, 1 error, 2 wrong usage or file, 3 finished with pending or
parked trials, 130 interrupted.`,
		Example: `  assay run
  assay run experiment.yaml
  assay run experiment.yaml --store results.db --display json
  assay run experiment.yaml --limit 50
  assay run experiment.yaml --view
  assay run experiment.yaml --serve :4222
  assay run experiment.yaml --again
  assay run --suite all --model my-model --providers providers.yaml

  # experiment.yaml
  name: first-try
  models: [my-model, sim/optimal]
  variants: [baseline, cot, optimal]
  reliabilities: [0.9, 0.7]
  tasks_per_type: 20
  providers: providers.yaml

  # providers.yaml
  providers:
    gateway:
      base_url: https://api.example.com/v1
      keys: [MY_KEY]            # names of environment variables
      models:
        my-model: {limits: {concurrency: 5, rpm: 600}}`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeYAML,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			args = f.file(args)
			e, err := f.experiment(args)
			if err != nil {
				return err
			}
			if f.serve != "" {
				e.Workers.Address, e.Workers.NATS = f.serve, ""
			}
			f.tryFirst = checkCommand(args, &f.chosen)
			f.quickstart = len(args) == 0 && f.suite == ""
			if f.quickstart {
				if err := f.checkQuickstart(cmd.Context()); err != nil {
					return err
				}
			}
			_, err = runExperiment(cmd.Context(), p, e, f)
			return err
		},
	}
	storeFlag(cmd, &f.store)
	f.flags(cmd)
	simLatencyFlag(cmd, &f.simLatency)
	flags := cmd.Flags()
	flags.BoolVar(&f.again, "again", false,
		"repeat everything once more, when all trials are done")
	flags.StringArrayVar(&f.retry, "retry", nil,
		"work again on trials with `faults`, failures, FIELD=VALUE or an ID that begins so, and "+
			"on no others; may be given several times")
	flags.StringVar(&f.display, "display", "auto",
		"how to show progress: "+strings.Join(displays, ", "))
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print errors and the last line only")
	flags.StringVar(&f.logLevel, "log-level", "info",
		"the lowest level that is logged: debug, info, warn or error")
	flags.StringSliceVar(&f.debugTrials, "debug-trials", nil,
		"write the episodes of trials whose IDs begin with `PREFIX` next to the log; 'all' for all")
	flags.StringVar(&f.view, "view", "",
		"serve live pages about the run to a browser, at a free port or at `ADDRESS`; see assay view")
	flags.Lookup("view").NoOptDefVal = viewAddr
	flags.BoolVar(&f.control, "control", false, "let the pages of --view change the run")
	flags.StringVar(&f.serve, "serve", "",
		"let workers carry out the attempts, which connect to `ADDRESS`, such as :4222 (only this "+
			"machine can reach it); see assay worker")
	choice(cmd, "display", displays...)
	choice(cmd, "log-level", "debug", "info", "warn", "error")
	return cmd
}

// check returns a usage error if a flag has an unknown value.
func (f *runFlags) check() error {
	if !slices.Contains(displays, f.display) {
		known := "known are " + strings.Join(displays, ", ")
		return usageError("unknown display %q\nhint: %s",
			f.display, cmp.Or(assay.NameHint(f.display, displays), known))
	}
	if f.control && f.view == "" {
		return usageError("--control belongs to --view\nhint: `assay ctl` controls a run as well")
	}
	if f.quiet && f.display != "auto" {
		return usageError("--quiet and --display exclude each other")
	}
	if _, ok := logLevels[f.logLevel]; !ok {
		return usageError("unknown level %q\nhint: --log-level is debug, info, warn or error",
			f.logLevel)
	}
	if f.again && f.limit > 0 {
		return usageError("--again repeats everything, which --limit excludes")
	}
	if f.again && len(f.retry) > 0 {
		return usageError("--again repeats everything, and --retry chooses trials: give one of them")
	}
	for _, p := range f.debugTrials {
		if p != allTrials && (p == "" || strings.Trim(p, "0123456789abcdef") != "") {
			return usageError("--debug-trials %q: trial IDs consist of hex digits\n"+
				"hint: give the beginning of an ID from an export or `assay report`, or all", p)
		}
	}
	return nil
}

// checkQuickstart returns a usage error if the store has other experiments only: whoever wants to go on with
// one of them does not want to pay for the quickstart. What is wrong with the store is found when it is
// opened for writing.
func (f *runFlags) checkQuickstart(ctx context.Context) error {
	db, err := store.OpenReadOnly(ctx, f.store)
	if err != nil {
		return nil
	}
	defer db.Close()
	all, err := db.Experiments(ctx)
	if err != nil || len(all) == 0 {
		return nil
	}
	var names []string
	for _, e := range all {
		if plan.RunVerb(e.Name) == "run" {
			return nil
		}
		names = append(names, e.Name)
	}
	return usageError("no experiment is named, and %s has no quickstart, but %s\n"+
		"hint: `assay %s%s` goes on; with another --store, `assay run` runs the quickstart",
		f.store, strings.Join(names, ", "), plan.RunVerb(names[0]), assay.StorePath(f.store).Option())
}

// log returns the directory and the content of the log.
func (f *runFlags) log(e *plan.Experiment) session.LogOptions {
	o := session.LogOptions{Dir: cmp.Or(e.Logs, f.store+".logs"), Level: logLevels[f.logLevel]}
	if e.Logs == plan.NoLogs {
		o.Dir = ""
	}
	if len(f.debugTrials) > 0 {
		o.Episodes = func(id assay.TrialID) bool {
			return slices.ContainsFunc(f.debugTrials, func(p string) bool {
				return p == allTrials || strings.HasPrefix(string(id), p)
			})
		}
	}
	return o
}

// open plans the experiment.
func (f *runFlags) open(
	ctx context.Context, p *process, e *plan.Experiment,
) (j *job.Job, err error) {
	if f.fork != nil {
		return f.fork(ctx)
	}
	if _, missing := os.Stat(f.store); !f.again || errors.Is(missing, fs.ErrNotExist) {
		return job.Open(ctx, e, f.limit)
	}
	db, err := p.openForOne(ctx, f.store)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return job.Again(ctx, db, e)
}

// runExperiment runs the pending trials, prints the results and chooses the exit code.
// stopped is true if a signal ended it, even if nothing was left to start by then.
func runExperiment(ctx context.Context, p *process, e *plan.Experiment, f runFlags) (stopped bool, err error) {
	var j *job.Job
	if err = untilInterrupted(ctx, p, func(ctx context.Context) error {
		j, err = f.open(ctx, p, e)
		return err
	}); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	d := &display{process: p, mode: f.displayMode(p), store: f.store}
	if d.mode == "live" {
		d.keys = openKeyboard(p.in)
		defer d.keys.Restore()
	}
	if err := checkWorkers(e); err != nil {
		return false, err
	}
	followers, err := openFollowers(ctx, d, e)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, followers.close(d)) }()
	if f.view != "" {
		v, err := f.openView(ctx, d, e.Name)
		if err != nil {
			return false, err
		}
		defer v.close()
	}
	unsound, err := j.QuickUnsound(ctx)
	if err != nil {
		return false, err
	}
	d.unsound = func() { writeUnsound(d, j, &unsound) }
	o := session.Options{
		Store: f.store, Program: version(), Host: hostName(), Env: p.env, SimLatency: f.simLatency,
		Signals: p.signals, Display: d, Words: words, Log: f.log(e), Observers: followers.observers(),
		Workers: f.workers(p, d, &e.Workers), Lease: time.Duration(e.Workers.Lease),
	}
	if len(f.retry) > 0 {
		if o.Retry, err = f.retried(ctx, p, j); err != nil {
			return false, err
		}
	}
	if f.budgets != nil {
		o.Earlier = f.budgets.latest
	}
	s, err := session.New(j, o)
	if err != nil {
		return false, err
	}
	if f.budgets != nil {
		f.budgets.latest = s.Stopper()
	}
	db, err := store.Open(ctx, f.store)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if d.mode == "live" && f.tryFirst != "" {
		if err := p.offerCheck(ctx, j, db, f.tryFirst); err != nil {
			return false, err
		}
	}

	sum, err := s.Run(ctx, db)
	if sum == nil {
		return false, err
	}
	if d.mode == "json" {
		d.object(sum)
	} else {
		r := runResult{process: p, job: j, db: db, sum: sum, flags: f}
		if printErr := r.print(ctx); printErr != nil && !brokenPipe(printErr) {
			return sum.Stopped, errors.Join(err, printErr)
		}
	}
	switch {
	case err != nil || sum.Unfinished() == 0:
		return sum.Stopped, err
	case sum.Stopped:
		return true, &codedError{code: exitInterrupted}
	}
	return false, &codedError{code: exitIncomplete}
}

// runQuietly runs pending trials for a verdict, which counts the trials that stay pending. The
// file's settings for workers, metrics and messages are for `assay run` only.
func (p *process) runQuietly(ctx context.Context, e *plan.Experiment, f runFlags) error {
	e.Workers, e.Metrics, e.Notify = plan.Workers{}, "", ""
	f.display, f.logLevel = "auto", "info"
	quiet := *p
	quiet.out = io.Discard
	stopped, err := runExperiment(ctx, &quiet, e, f)
	if err == nil && stopped {
		return &codedError{code: exitInterrupted}
	}
	if coded := (*codedError)(nil); errors.As(err, &coded) && coded.code == exitIncomplete {
		return nil
	}
	return err
}

func (f *runFlags) displayMode(p *process) string {
	switch {
	case f.display != "auto":
		return f.display
	case f.quiet:
		return "none"
	case p.errTerminal:
		return "live"
	}
	return "plain"
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}
