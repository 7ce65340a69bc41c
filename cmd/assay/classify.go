package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/classify"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/run/plan"
	"github.com/assay-eval/assay/internal/store"
)

// classifyFlags are those of `assay classify`.
type classifyFlags struct {
	store, model, providers, experiment string
	limit                               int
	simLatency                          time.Duration
	asJSON                              bool
}

func newClassify(p *process) *cobra.Command {
	var f classifyFlags
	cmd := &cobra.Command{
		Use:   "classify --model MODEL",
		Short: "Have a model say why outcomes are not full success",
		Long: `Classify shows a model every stored outcome that is not full success, and stores its
opinion on the reason beside the one that the rules gave: one of the same eight
categories, with a confidence and a sentence. It changes no outcome and never
stands in the way of a run. At the end it tells how far both agree.

Outcomes on which the model has an opinion already are passed over, so the same
command goes on where it was stopped.`,
		Example: `  assay classify --model gpt-5-nano --providers providers.yaml
  assay classify --model sim/judge --experiment quickstart --limit 100`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			var sum *classified
			err := untilInterrupted(cmd.Context(), p, func(ctx context.Context) (err error) {
				sum, err = classifyAll(ctx, p, f)
				return err
			})
			if sum == nil {
				return err
			}
			if f.asJSON {
				err = errors.Join(err, json.NewEncoder(p.out).Encode(sum))
			} else {
				writeClassified(p, sum)
			}
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
	cmd.Flags().StringVar(&f.providers, "providers", "", "the providers `file` that serves it")
	cmd.Flags().StringVar(&f.experiment, "experiment", "", "only outcomes of this `experiment`")
	cmd.Flags().IntVar(&f.limit, "limit", 0, "ask about `N` outcomes at most; 0 for all")
	cmd.Flags().DurationVar(&f.simLatency, "sim-latency", defaultSimLatency, "median time that a built-in model takes to reply")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
	_ = cmd.MarkFlagFilename("providers", "yaml", "yml")
	return cmd
}

func (f classifyFlags) check() error {
	switch {
	case f.model == "":
		return usageError("say which model to ask\nhint: --model NAME --providers FILE, or --model sim/judge to try it without a key")
	case f.providers == "" && !sim.Is(f.model):
		hint := assay.NameHint(f.model, sim.Names)
		if !strings.HasPrefix(hint, "did") {
			hint = "--providers FILE names the providers file that serves it"
		}
		return usageError("no built-in model is named %q\nhint: %s", f.model, hint)
	case f.limit < 0:
		return usageError("--limit is %d, want a number of outcomes", f.limit)
	}
	return nil
}

// classified is what `assay classify` says.
type classified struct {
	Model  string `json:"model"`
	Prompt string `json:"prompt"`
	// Before counts outcomes on which the model had an opinion already.
	Before     int     `json:"before"`
	Answered   int     `json:"answered"`
	Unreadable int     `json:"unreadable"`
	Faulted    int     `json:"faulted"`
	Tokens     int     `json:"tokens"`
	CostUSD    float64 `json:"cost_usd"`
	// Categories and Counts are the table of rules (rows) against opinions
	// (columns), over all opinions of this model and prompt.
	Categories []string `json:"categories"`
	Counts     [][]int  `json:"counts"`
	Agreed     int      `json:"agreed"`
	Opinions   int      `json:"opinions"`
	// Kappa is Cohen's; nil where it is not defined.
	Kappa *float64 `json:"kappa"`
	// Fault is the first one, empty without.
	Fault string `json:"fault,omitempty"`
}

func classifyAll(ctx context.Context, p *process, f classifyFlags) (sum *classified, err error) {
	pool, closePool, err := onePool(ctx, p, f)
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
		if _, err := chooseExperiments(ctx, db, []string{f.experiment}); err != nil {
			return nil, err
		}
	}
	c := &classification{db: db, flags: f, tasks: newTaskBook(db), sum: &classified{Model: f.model, Prompt: classify.PromptVersion}}
	defer func() { err = errors.Join(err, c.tasks.close()) }()
	if c.known, err = db.Classified(ctx, f.model, classify.PromptVersion); err != nil {
		return nil, err
	}
	asker := &classify.Classifier{Provider: pool, Model: f.model}
	done, err := asker.Run(ctx, c.cases(ctx), min(max(1, pool.Width()), mostWorkers), c.save, c.progress(p))
	s := c.sum
	s.Answered, s.Unreadable, s.Faulted = done.Answered, done.Unreadable, done.Faulted
	s.Tokens, s.CostUSD = done.Usage.Total(), done.Cost
	return s, errors.Join(err, c.agree(context.WithoutCancel(ctx)))
}

// mostWorkers bounds how many outcomes are asked about at once.
const mostWorkers = 64

// onePool returns the lanes of the one model that is asked.
func onePool(ctx context.Context, p *process, f classifyFlags) (*lane.Pool, func() error, error) {
	e := &plan.Experiment{Name: "classify", Limits: plan.Limits{Request: plan.DefaultRequest}}
	if err := e.SetModels([]string{f.model}); err != nil {
		return nil, nil, err
	}
	if f.providers != "" {
		e.SetProviders(f.providers)
	}
	lib, err := job.OpenLibrary(ctx, plan.BuiltinLibrary)
	if err != nil {
		return nil, nil, err
	}
	j := &job.Job{Experiment: e, Library: lib}
	pools, err := j.Pools(p.env, f.simLatency)
	if err != nil {
		return nil, nil, errors.Join(err, lib.Close())
	}
	pools.Open(lane.Options{Request: time.Duration(e.Limits.Request)})
	return pools.ByModel[f.model], func() error { pools.Close(); return lib.Close() }, nil
}

// classification is one run of `assay classify`.
type classification struct {
	db    *store.DB
	flags classifyFlags
	tasks *taskBook
	known store.Set
	sum   *classified
}

// cases yields the outcomes to ask about. One whose task or transcript is gone
// is asked about without.
func (c *classification) cases(ctx context.Context) iter.Seq2[classify.Case, error] {
	return func(yield func(classify.Case, error) bool) {
		n := 0
		for s, err := range c.db.Transcripts(ctx, store.Filter{Experiment: c.flags.experiment, OnlySettled: true}) {
			if err != nil && !errors.Is(err, store.ErrDamaged) {
				yield(classify.Case{}, err)
				return
			}
			if s.Attempt.Level == assay.FullSuccess {
				continue
			}
			if c.known.Has(s.Attempt.ID) {
				c.sum.Before++
				continue
			}
			if n++; c.flags.limit > 0 && n > c.flags.limit {
				return
			}
			task, _, err := c.tasks.task(ctx, &s.Attempt)
			if err != nil && ctx.Err() != nil {
				return
			}
			if !yield(classify.Case{Attempt: &s.Attempt, Task: task, Transcript: s.Transcript}, nil) {
				return
			}
		}
	}
}

// save stores an answer. It outlives the signal to stop: the answer is paid.
func (c *classification) save(k classify.Case, a classify.Answer) error {
	return c.db.Classify(context.Background(), store.Classification{
		Trial: k.Attempt.ID, Number: k.Attempt.Number, Model: c.flags.model, Prompt: classify.PromptVersion,
		Category: a.Category, Confidence: a.Confidence, Reason: a.Reason, RuleCategory: k.Attempt.ErrorCategory, At: time.Now().UTC(),
		InputTokens: a.Usage.InputTokens, OutputTokens: a.Usage.OutputTokens, CostUSD: a.Cost, Raw: a.Raw,
	})
}

// progressEvery is how often a line tells how far it is.
const progressEvery = 5 * time.Second

func (c *classification) progress(p *process) func(classify.Summary, classify.Case, error) {
	next := time.Now().Add(progressEvery)
	return func(s classify.Summary, _ classify.Case, err error) {
		if err != nil && c.sum.Fault == "" && !errors.Is(err, classify.ErrUnreadable) {
			c.sum.Fault = err.Error()
			fmt.Fprintf(p.err, "%s\n", err)
		}
		if time.Now().Before(next) {
			return
		}
		next = time.Now().Add(progressEvery)
		fmt.Fprintf(p.err, "%d answered, %d unreadable, %d faulted\n", s.Answered, s.Unreadable, s.Faulted)
	}
}

// agree compares all opinions of the model with the rules.
func (c *classification) agree(ctx context.Context) error {
	var a classify.Agreement
	for o, err := range c.db.Classifications(ctx, store.Filter{Experiment: c.flags.experiment}) {
		if err != nil {
			return err
		}
		if o.Model == c.flags.model && o.Prompt == classify.PromptVersion {
			a.Add(o.RuleCategory, o.Category)
		}
	}
	s := c.sum
	s.Categories, s.Counts = a.Table()
	s.Agreed, s.Opinions = a.Agreed()
	if kappa, defined := a.Kappa(); defined {
		s.Kappa = &kappa
	}
	return nil
}

func writeClassified(p *process, s *classified) {
	w := p.out
	fmt.Fprintf(w, "%s gave %d opinions (%d before), %d replies could not be read, %d requests faulted; %d tokens",
		s.Model, s.Answered, s.Before, s.Unreadable, s.Faulted, s.Tokens)
	if s.CostUSD > 0 {
		fmt.Fprintf(w, ", $%.4f", s.CostUSD)
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
	fmt.Fprintf(w, "\n%s\n\nThe model agrees with the rules on %d of %d outcomes", t, s.Agreed, s.Opinions)
	if s.Kappa != nil {
		fmt.Fprintf(w, " (Cohen's kappa %.2f)", *s.Kappa)
	}
	fmt.Fprintf(w, ".\nOpinions are stored beside the rules' answers; `assay show TRIAL` prints them.\n")
}
