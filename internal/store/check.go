package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/assay-eval/assay"
)

// A sealedAttempt is an attempt as SQLite returns it, with everything that its seal covers.
type sealedAttempt struct {
	id, number int64
	key        trialKey
	run        string // empty if the run is missing
	result     []any  // a row of resultColumns
	sum        []byte // the seal; nil if it is missing
	saved      []byte // the digest of the transcript that was saved
	dropped    bool   // a user deleted the transcript
	body       []byte // the stored transcript
	texts      *interned
}

// frontColumns is how many of resultColumns come before the fields of trial and attempt.
const frontColumns = 6

func (s *sealedAttempt) trialValues() []any {
	return s.result[frontColumns:][:len(trialFields)]
}

func (s *sealedAttempt) attemptValues() []any {
	return s.result[frontColumns+len(trialFields):]
}

// eachSealedAttempt visits the attempts in a range of row IDs. Transcripts have a query of
// their own, so damage to them loses transcripts only. The attempt is good until the next one.
func (db *DB) eachSealedAttempt(
	ctx context.Context, first, last int64, visit func(*sealedAttempt) (bool, error),
) error {
	query := "SELECT attempt, body FROM transcripts WHERE attempt BETWEEN ? AND ?"
	bodies, err := table[int64, []byte](ctx, db.reader, query, first, last)
	if err != nil && (!isDamage(err) || ctx.Err() != nil) {
		return db.readError(err)
	}

	texts := newInterned()
	query = "SELECT s.sum, s.script, d.attempt, " + resultColumns + " FROM " + resultTables +
		" LEFT JOIN attempt_seals s ON s.attempt = a.id LEFT JOIN dropped d ON d.attempt = a.id" +
		" WHERE a.id BETWEEN ? AND ? ORDER BY a.id"
	return db.wrap(eachRaw(ctx, db.reader, query, []any{first, last},
		func(row []any) (bool, error) {
			s := &sealedAttempt{result: row[3:], texts: texts}
			s.sum, _ = row[0].([]byte)
			s.saved, _ = row[1].([]byte)
			s.dropped = row[2] != nil
			s.id, _ = s.result[0].(int64)
			key, _ := s.result[1].([]byte)
			copy(s.key[:], key)
			s.number, _ = s.result[2].(int64)
			s.run, _ = s.result[5].(string)
			s.body = bodies[s.id]
			return visit(s)
		}))
}

// transcript returns the JSON of the transcript that was saved, or nil if there is none or a user
// deleted it.
func (s *sealedAttempt) transcript(ctx context.Context, db *DB) ([]byte, error) {
	if s.body == nil {
		if s.saved != nil && !s.dropped {
			return nil, errors.New("its transcript is lost")
		}
		return nil, nil
	}
	text, err := db.decompress(ctx, s.body)
	if err != nil {
		return nil, fmt.Errorf("its transcript cannot be read: %w", err)
	}
	if !bytes.Equal(digest(text), s.saved) {
		return nil, errors.New("its transcript differs from the one that was saved")
	}
	return text, nil
}

// identity returns the sum that the attempt's seal covers.
func (s *sealedAttempt) identity() sum {
	return identify(s.key, s.run, s.attemptValues(), s.saved)
}

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
	err = v.db.eachSealedAttempt(ctx, first, last, func(s *sealedAttempt) (bool, error) {
		rows = append(rows, v.check(ctx, s))
		return true, nil
	})
	return rows, err
}

// check compares an attempt with its seal and looks at its content.
func (v *verifier) check(ctx context.Context, s *sealedAttempt) checked {
	c := checked{id: s.id, key: s.key, run: assay.RunID(s.run), number: int(s.number)}
	name := nameAttempt(c.key.id(), c.number)
	complain := func(check, what, do string) {
		c.problems = append(c.problems, Problem{check, name, what, do, true})
	}

	text, err := s.transcript(ctx, v.db)
	if err != nil {
		complain("transcript", firstLine(err), doRecover)
		c.bare = true
	}
	var t *assay.Transcript
	if text != nil {
		c.transcript, t = true, new(assay.Transcript)
		if err := json.Unmarshal(text, t); err != nil {
			complain("transcript", "its transcript cannot be read: "+firstLine(err), doRecover)
			t = nil
		}
	}
	c.sum = s.identity()
	if want := sealAttempt(c.sum, s.id, s.number); s.sum == nil {
		complain("seal", "it has no seal: another program added it, or the seal is lost",
			doRecover)
	} else if !bytes.Equal(want[:], s.sum) {
		complain("seal", "it is not as it was saved", doRecover)
	}
	v.checkContent(&c, s, t, complain)
	return c
}

func (v *verifier) checkContent(
	c *checked, s *sealedAttempt, t *assay.Transcript, complain func(check, what, do string),
) {
	var a assay.Attempt
	switch _, err := loadResult(resultFields, s.result, &a, s.texts); {
	case errors.Is(err, errDangling):
		complain("reference", "its trial or its run is missing", doRestore)
		return
	case err != nil:
		complain("row", "cannot be read: "+firstLine(err), doRecover)
		return
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
}
