package main

import (
	"slices"
	"time"

	"github.com/assay-eval/assay"
	"github.com/spf13/cobra"
)

type runFlags struct {
	chosen
	store      string
	display    string
	simLatency time.Duration
	// logDir is empty for the default.
	logDir, logLevel string
	debugTrials      []string
	// quickstart says that nobody named an experiment.
	quickstart bool
}

const defaultSimLatency = 100 * time.Millisecond

var displays = []string{"auto", "live", "plain", "json", "none"}

func newRun(p *process) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [FILE]",
		Short: "Run what is pending of an experiment",
		Long: `Run works on every trial of an experiment that has no outcome yet. Without FILE
it runs the built-in quickstart on simulated models: no key, no network.

A run writes a log, one JSON object a line, into STORE.logs; logs are kept for 30 days, and
a gigabyte of them.

Each result is on disk before it is counted. Running again continues where the
last run ended, however it ended. The first Ctrl-C starts nothing new and lets
episodes in flight finish; the second aborts them. Neither loses a result.

Exit codes: 0 complete, 1 error, 2 wrong usage or file, 3 finished with pending or
parked trials, 130 interrupted.`,
		Example: `  assay run
  assay run experiment.yaml
  assay run experiment.yaml --store results.db --display json
  assay run experiment.yaml --limit 50
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
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(displays, f.display) {
				return usageError("unknown display %q\nhint: %s", f.display, assay.NameHint(f.display, displays))
			}
			if _, ok := logLevels[f.logLevel]; !ok {
				return usageError("unknown level %q\nhint: --log-level is debug, info, warn or error", f.logLevel)
			}
			if err := checkDebugTrials(f.debugTrials); err != nil {
				return err
			}
			e, err := f.experiment(args)
			if err != nil {
				return err
			}
			f.quickstart = len(args) == 0 && f.suite == ""
			return runExperiment(cmd.Context(), p, e, f)
		},
	}
	storeFlag(cmd, &f.store)
	f.flags(cmd)
	cmd.Flags().StringVar(&f.display, "display", "auto", "how to show progress: auto, live, plain, json or none")
	cmd.Flags().DurationVar(&f.simLatency, "sim-latency", defaultSimLatency, "median time that the built-in simulated models take to reply")
	cmd.Flags().StringVar(&f.logDir, "log-dir", "", "the `directory` of logs, a file a run; none for no log (default STORE.logs)")
	cmd.Flags().StringVar(&f.logLevel, "log-level", "info", "what is logged: debug, info, warn, or error for all errors alone")
	cmd.Flags().StringSliceVar(&f.debugTrials, "debug-trials", nil, "write whole episodes of trials whose IDs begin with `PREFIX` beside the log; all for every one")
	choice(cmd, "display", displays...)
	choice(cmd, "log-level", "debug", "info", "warn", "error")
	return cmd
}
