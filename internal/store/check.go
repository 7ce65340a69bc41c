package store

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/assay-eval/assay"
)

// A checked attempt was compared with its seal.
type checked struct {
	id         int64
	key        trialKey
	run        assay.RunID
	number     int
	settles    bool
	round      int
	transcript bool
	sum        sum
	finished   int64 // Unix time in nanoseconds
	problems   []Problem
	bare       bool // the transcript is lost, which is one of the problems
}

// intact reports whether the attempt itself is as it was saved.
func (c *checked) intact() bool { return len(c.problems) == 0 || c.bare && len(c.problems) == 1 }

// read checks a range of attempts, as far as SQLite returns them.
func (v *verifier) read(ctx context.Context, first, last int64) (rows []checked, err error) {
	in := newInterned()
	// After an error, each is read alone.
	bodies, _ := v.db.bodies(ctx, "attempt BETWEEN ? AND ?", first, last)
	err = v.db.eachAttempt(ctx, attemptQuery{}, "a.id BETWEEN ? AND ?", []any{first, last},
		func(s *storedAttempt) (bool, error) {
			rows = append(rows, v.check(ctx, s, bodies, in))
			return true, nil
		})
	return rows, err
}

// check compares an attempt with its seal and looks at its content.
func (v *verifier) check(
	ctx context.Context, s *storedAttempt, bodies map[int64][]byte, in *interned,
) checked {
	c := checked{
		id: s.id, key: s.key, run: assay.RunID(s.run), number: int(s.number), sum: s.identity(),
	}
	complain := func(check, what, do string) {
		c.problems = append(c.problems, Problem{check, s.name(), what, do, true})
	}

	text, err := v.db.textOf(ctx, s.id, s.script, bodies)
	if err != nil {
		complain("transcript", firstLine(err), doRecover)
		c.bare = true
	}
	var t *assay.Transcript
	if text != nil {
		c.transcript, t = true, new(assay.Transcript)
		if err := json.Unmarshal(text, t); err != nil {
			complain("transcript", "cannot be read: "+firstLine(err), doRecover)
			t = nil
		}
	}
	if err := s.checkSeal(); err != nil {
		complain("seal", firstLine(err), doRecover)
	}

	var a assay.Attempt
	switch err := s.load(&a, in); {
	case errors.Is(err, errDangling):
		complain("reference", "its trial or its run is missing", doRestore)
		return c
	case err != nil:
		complain("row", "cannot be read: "+firstLine(err), doRecover)
		return c
	}
	c.settles, c.round = a.Settles(), a.Round
	c.finished = a.FinishedAt.UnixNano()
	if err := a.CheckID(); err != nil {
		complain("identity", "the row of its trial was changed: "+err.Error(), doRestore)
	}
	if err := check(&a); err != nil {
		complain("row", err.Error(), doRecover)
	}
	c.problems = append(c.problems, v.inspect(&Stored{a, t})...)
	return c
}
