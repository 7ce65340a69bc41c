package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/classify"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/run/audit"
)

type classifyFlags struct {
	store, model, providers, experiment string

	limit      int
	simLatency time.Duration
	asJSON     bool
}

func newClassify(p *process) *cobra.Command {
	var f classifyFlags
	cmd := &cobra.Command{
		Use:   "classify --model MODEL",
		Short: "Ask a model why trials failed",
		Long: `Classify shows a model every stored outcome that is not a full success, and asks for
the reason: one of the eight error categories, with a confidence and a sentence. It
stores the answer next to the category that the rules gave. It changes no outcome
and never blocks a run. At the end, it prints how far the model and the rules agree.

Outcomes on which the model has an opinion already are skipped, so the same command
continues where it was stopped.`,
		Example: `  assay store classify --model gpt-5-nano --providers providers.yaml
  assay store classify --model sim/judge --experiment quickstart --limit 100`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			var sum *audit.Opinions
			err := untilInterrupted(cmd.Context(), p, func(ctx context.Context) (err error) {
				sum, err = askModel(ctx, p, f)
				return err
			})
			if sum == nil {
				return err
			}
			err = errors.Join(err, p.either(f.asJSON, sum, func() { writeClassified(p, sum) }))
			switch {
			case err != nil:
				return err
			case sum.Unreadable+sum.Faulted > 0:
				return &codedError{code: exitIncomplete}
			}
			return nil
		},
	}
	storeFlag(cmd, &f.store)
	cmd.Flags().StringVar(&f.model, "model", "", "the `model` to ask")
	cmd.Flags().StringVar(&f.providers, "providers", "", "the providers `file` that lists it")
	cmd.Flags().StringVar(&f.experiment, "experiment", "", "only outcomes of this `experiment`")
	cmd.Flags().IntVar(&f.limit, "limit", 0, "ask about at most `N` outcomes; 0 for all")
	cmd.Flags().DurationVar(&f.simLatency, "sim-latency", defaultSimLatency,
		"median time that a built-in model takes to reply")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
	_ = cmd.MarkFlagFilename("providers", "yaml", "yml")
	return cmd
}

func (f classifyFlags) check() error {
	switch {
	case f.model == "":
		return usageError("--model is missing\n" +
			"hint: --model NAME --providers FILE, or --model sim/judge to try it without a key")
	case f.providers == "" && !sim.Is(f.model):
		hint := assay.NameHint(f.model, sim.Names)
		if !strings.HasPrefix(hint, "did") {
			hint = "--providers FILE names the providers file for other models"
		}
		return usageError("unknown built-in model %q\nhint: %s", f.model, hint)
	case f.limit < 0:
		return usageError("--limit is %d, want 0 or more", f.limit)
	}
	return nil
}

// askModel asks the model. Ctrl-C keeps the answers so far.
func askModel(ctx context.Context, p *process, f classifyFlags) (sum *audit.Opinions, err error) {
	pool, closePool, err := job.OnePool(ctx, job.One{
		Name: "classify", Model: f.model, Providers: f.providers,
	}, p.env, f.simLatency)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closePool()) }()
	db, err := openExisting(ctx, f.store)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if f.experiment != "" {
		e, err := query.FindExperiment(ctx, db, f.experiment)
		if err != nil {
			return nil, err
		}
		f.experiment = e.Name
	}
	_, effort := plan.SplitLevel(f.model)
	return audit.Ask(ctx, db, pool, audit.Question{
		Model:      f.model,
		Sampling:   assay.Sampling{Effort: effort},
		Experiment: f.experiment,
		Limit:      f.limit,
		Width:      pool.Width(),
		Progress:   askProgress(p),
	})
}

// progressEvery is the interval between lines of progress.
const progressEvery = 5 * time.Second

// askProgress prints the first fault, and the progress at intervals.
func askProgress(p *process) func(classify.Summary, error) {
	next := time.Now().Add(progressEvery)
	faulted := false
	return func(s classify.Summary, fault error) {
		if fault != nil && !faulted {
			faulted = true
			fmt.Fprintf(p.err, "%s\n", fault)
		}
		if time.Now().Before(next) {
			return
		}
		next = time.Now().Add(progressEvery)
		fmt.Fprintf(p.err, "%d answered, %d unreadable, %d faulted\n",
			s.Answered, s.Unreadable, s.Faulted)
	}
}

func writeClassified(p *process, s *audit.Opinions) {
	w := p.out
	fmt.Fprintf(w, "%s gave %d opinions (%d before), %d replies could not be read, "+
		"%d requests faulted; %d tokens", s.Model, s.Answered, s.Before, s.Unreadable, s.Faulted,
		s.Tokens)
	switch {
	case s.Unpriced:
		fmt.Fprint(w, ", ", assay.CostText(s.CostUSD, 4, s.Model))
	case s.CostUSD > 0:
		fmt.Fprint(w, ", ", assay.CostText(s.CostUSD, 4))
	}
	fmt.Fprintln(w)
	if s.Opinions == 0 {
		return
	}
	t := document.NewTextTable(append([]string{"rules ↓  model →", ""}, s.Categories...)...)
	for i, row := range s.Counts {
		cells := []string{s.Categories[i], ""}
		for _, n := range row {
			text := fmt.Sprint(n)
			if n == 0 {
				text = "·"
			}
			cells = append(cells, text)
		}
		t.Row(cells...)
	}
	fmt.Fprintf(w, "\n%s\n\nThe model agrees with the rules on %d of %d outcomes",
		t, s.Agreed, s.Opinions)
	if s.Kappa != nil {
		fmt.Fprintf(w, " (Cohen's kappa %.2f)", *s.Kappa)
	}
	fmt.Fprintf(w,
		".\nOpinions are stored next to the rules' answers; `assay show TRIAL` prints them.\n")
}
