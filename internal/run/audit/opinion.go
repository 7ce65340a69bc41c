package audit

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/classify"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/store"
)

// Opinions counts the answers to [Ask], and compares all opinions of the model with the rules.
type Opinions struct {
	Model  string `json:"model"`
	Prompt string `json:"prompt"`
	// Before counts the outcomes on which the model had an opinion already.
	Before     int     `json:"before"`
	Answered   int     `json:"answered"`
	Unreadable int     `json:"unreadable"`
	Faulted    int     `json:"faulted"`
	Tokens     int     `json:"tokens"`
	CostUSD    float64 `json:"cost_usd"`
	// Unpriced is true if CostUSD leaves out replies of unknown cost.
	Unpriced bool `json:"unpriced,omitempty"`
	// Categories and Counts are a table of the rules' categories (rows) against the model's
	// (columns), over all opinions of this model and prompt.
	Categories []string `json:"categories"`
	Counts     [][]int  `json:"counts"`
	Agreed     int      `json:"agreed"`
	Opinions   int      `json:"opinions"`
	// Kappa is Cohen's kappa. It is nil if it is not defined.
	Kappa *float64 `json:"kappa"`
	// Fault is the first fault, if there was one.
	Fault string `json:"fault,omitempty"`
}

// A Question chooses the outcomes to ask about.
type Question struct {
	Model      string
	Sampling   assay.Sampling
	Experiment string // only outcomes of this experiment; all if empty
	Limit      int    // the largest number of outcomes; 0 for all
	// Width is the number of requests at the same time.
	Width int
	// Progress is called after each answer and fault.
	Progress func(classify.Summary, error)
}

// maxWorkers is the largest number of requests at the same time.
const maxWorkers = 64

// Ask asks the model why outcomes are not full successes, unless the store has its opinion on them,
// and stores its opinions next to the categories that the rules gave. The result is valid even if
// Ask returns an error.
func Ask(
	ctx context.Context, db *store.DB, model assay.Provider, q Question,
) (sum *Opinions, err error) {
	a := &asker{
		Question:  q,
		db:        db,
		libraries: query.NewLibraries(db),
		sum:       &Opinions{Model: q.Model, Prompt: classify.PromptVersion},
	}
	defer func() { err = errors.Join(err, a.libraries.Close()) }()
	if a.known, err = db.Classified(ctx, q.Model, classify.PromptVersion); err != nil {
		return nil, err
	}

	classifier := &classify.Classifier{Provider: model, Model: q.Model, Sampling: q.Sampling}
	width := min(max(1, q.Width), maxWorkers)
	done, err := classifier.Run(ctx, a.cases(ctx), width, a.save, a.progress)
	s := a.sum
	s.Answered, s.Unreadable, s.Faulted = done.Answered, done.Unreadable, done.Faulted
	s.Tokens, s.CostUSD, s.Unpriced = done.Total(), done.CostUSD, done.AtLeast()
	return s, errors.Join(err, a.compare(context.WithoutCancel(ctx)))
}

// An asker asks one question.
type asker struct {
	Question
	db        *store.DB
	libraries *query.Libraries
	known     store.Set
	sum       *Opinions
}

// cases yields the outcomes to ask about. If the task or the transcript of an outcome is missing,
// the case comes without it.
func (a *asker) cases(ctx context.Context) iter.Seq2[classify.Case, error] {
	return func(yield func(classify.Case, error) bool) {
		n := 0
		filter := store.Filter{Experiment: a.Experiment, OnlySettled: true}
		for s, err := range a.db.Transcripts(ctx, filter) {
			if err != nil && !errors.Is(err, store.ErrDamaged) {
				yield(classify.Case{}, err)
				return
			}
			if s.Attempt.Level == assay.FullSuccess {
				continue
			}
			if a.known.Has(s.Attempt.ID) {
				a.sum.Before++
				continue
			}
			if n++; a.Limit > 0 && n > a.Limit {
				return
			}
			task, _, err := a.libraries.Task(ctx, &s.Attempt)
			if err != nil && ctx.Err() != nil {
				return
			}
			c := classify.Case{Attempt: &s.Attempt, Task: task, Transcript: s.Transcript}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// save stores an answer. It ignores the signal to stop, because the answer has been paid for.
func (a *asker) save(c classify.Case, answer classify.Answer) error {
	return a.db.Classify(context.Background(), store.Classification{
		Trial:        c.Attempt.ID,
		Number:       c.Attempt.Number,
		Model:        a.Model,
		Prompt:       classify.PromptVersion,
		Category:     answer.Category,
		Confidence:   answer.Confidence,
		Reason:       answer.Reason,
		RuleCategory: c.Attempt.ErrorCategory,
		At:           time.Now().UTC(),
		InputTokens:  answer.InputTokens,
		OutputTokens: answer.OutputTokens,
		CostUSD:      answer.CostUSD,
		Raw:          answer.Raw,
	})
}

// progress remembers the first fault.
func (a *asker) progress(s classify.Summary, _ classify.Case, err error) {
	if errors.Is(err, classify.ErrUnreadable) {
		err = nil
	}
	if err != nil && a.sum.Fault == "" {
		a.sum.Fault = err.Error()
	}
	a.Progress(s, err)
}

// compare compares all opinions of the model with the rules.
func (a *asker) compare(ctx context.Context) error {
	var agreement classify.Agreement
	for o, err := range a.db.Classifications(ctx, a.Experiment, "") {
		if err != nil {
			return err
		}
		if o.Model == a.Model && o.Prompt == classify.PromptVersion {
			agreement.Add(o.RuleCategory, o.Category)
		}
	}
	s := a.sum
	s.Categories, s.Counts = agreement.Table()
	s.Agreed, s.Opinions = agreement.Agreed()
	if kappa, defined := agreement.Kappa(); defined {
		s.Kappa = &kappa
	}
	return nil
}
