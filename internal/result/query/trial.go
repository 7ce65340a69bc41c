package query

import (
	"context"
	"errors"
	"fmt"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/score"
)

// A Trial is one attempt at a trial, with its transcript.
type Trial struct {
	assay.Attempt
	// Attempts counts the attempts at the trial.
	Attempts int
	// SupersededBy is the number of the attempt whose outcome counts instead of this one's, or 0.
	SupersededBy int
	// Transcript is nil if it is missing. Then NoTranscript gives the reason.
	Transcript   *assay.Transcript
	NoTranscript string
	// Private means that the texts of the trial's library are hidden.
	Private bool
}

// FindTrial returns an attempt at the trial whose ID starts with a text. Number chooses the
// attempt; 0 stands for the one whose outcome counts, or the latest one. Without reveal, the texts
// of private libraries are hidden.
func FindTrial(
	ctx context.Context, db *store.DB, text string, number int, reveal bool,
) (*Trial, error) {
	id, err := db.FindTrial(ctx, text)
	if err != nil {
		return nil, err
	}
	var attempts []assay.Attempt
	for a, err := range db.Attempts(ctx, store.Filter{Trial: id, All: true}) {
		if err != nil {
			return nil, err
		}
		attempts = append(attempts, a)
	}
	a, err := chooseAttempt(attempts, number)
	if n := db.Skipped(); err != nil && n > 0 {
		err := fmt.Errorf("%d attempts at trial %s cannot be read or proved", n, id)
		return nil, assay.WithHint(err, assay.HintVerify)
	}
	if err != nil {
		return nil, err
	}

	t := &Trial{Attempt: a, Attempts: len(attempts)}
	for _, other := range attempts {
		if a.Settles() && other.Settles() && other.Round > a.Round {
			t.SupersededBy = other.Number
		}
	}
	tr, err := db.Transcript(ctx, a.ID, a.Number)
	switch {
	case errors.Is(err, store.ErrNotFound):
		t.NoTranscript = "there is no transcript: it was deleted, or never saved"
	case errors.Is(err, store.ErrDamaged):
		t.NoTranscript = "the transcript is damaged: \"assay store verify\" says more"
	case err != nil:
		return nil, err
	default:
		t.Transcript = &tr
	}
	v, err := readVeil(ctx, db, reveal)
	if err != nil {
		return nil, err
	}
	t.Attempt, t.Transcript = v.attempt(t.Attempt), v.transcript(a.Run, t.Transcript)
	t.Private = v.hides(a.Run)
	return t, nil
}

func chooseAttempt(attempts []assay.Attempt, number int) (assay.Attempt, error) {
	if len(attempts) == 0 {
		return assay.Attempt{}, errors.New("the trial has no attempt yet")
	}
	best := attempts[len(attempts)-1]
	for _, a := range attempts {
		if a.Number == number {
			return a, nil
		}
		if a.Settles() {
			best = a
		}
	}
	if number != 0 {
		return best, fmt.Errorf("trial %s has %d attempts, but not number %d",
			best.ID, len(attempts), number)
	}
	return best, nil
}

// Opening returns the messages with which the trial began.
func (t *Trial) Opening() []assay.Message {
	for i, m := range t.Transcript.Messages {
		if m.Role == assay.Assistant {
			return t.Transcript.Messages[:i]
		}
	}
	return t.Transcript.Messages
}

// Opinions returns the opinions of models on the reason for the outcome.
func (t *Trial) Opinions(
	ctx context.Context, db *store.DB,
) (all []store.Classification, err error) {
	for o, err := range db.Classifications(ctx, "", t.ID) {
		if err != nil {
			return nil, err
		}
		if t.Private {
			o.Reason = hide(o.Reason)
		}
		if o.Number == t.Number {
			all = append(all, o)
		}
	}
	return all, nil
}

// Explain explains rule by rule how the outcome came about. It returns nil for a fault and for an
// attempt without a transcript, and for a private one, because an explanation quotes the task.
func (t *Trial) Explain(ctx context.Context, db *store.DB) (*score.Explanation, error) {
	if t.Private || t.Transcript == nil || !t.Settles() || score.Version(t.World) == "" {
		return nil, nil
	}
	libraries := NewLibraries(db)
	task, judge, err := libraries.Task(ctx, &t.Attempt)
	if err != nil {
		return nil, errors.Join(err, libraries.Close())
	}
	e := judge.Explain(&t.Attempt.Trial, task, t.Transcript)
	return &e, libraries.Close()
}
