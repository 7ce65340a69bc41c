package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// A block is a stretch of attempts and what was found in it.
type block struct {
	first, last int64
	rows        []checked
	problems    []Problem // of the reading itself
	err         error
}

// A checked attempt was compared with its seal.
type checked struct {
	id         int64
	key        trialKey
	run        assay.RunID
	number     int
	cell       assay.Cell
	settles    bool
	transcript bool
	unsealed   bool
	unreadable bool // and nothing but its id is known
	sum        sum
	finished   int64 // in nanoseconds of Unix
	problems   []Problem
	// minor problems leave the attempt itself as it was saved: its transcript is lost, or
	// its seal cannot be read.
	minor int
}

// unreadableSeal stands for a seal that may be there and cannot be read.
const unreadableSeal int64 = 0

// sealedText is the query for the attempts of a stretch of row IDs with their seals,
// without the tables that cannot be read. The columns in front are those that
// [verifier.seal] takes.
func sealedText(readable map[string]bool) string {
	text, from := "SELECT a.id, a.trial", " FROM attempts a NOT INDEXED"
	column := func(table, column, join string) {
		if !readable[table] {
			text += ", NULL"
			return
		}
		text += ", " + column
		from += join
	}
	column("runs", "r.id", " LEFT JOIN runs r ON r.seq = a.run")
	text += ", a.number"
	column("attempt_seals", "s.sum, s.script", " LEFT JOIN attempt_seals s ON s.attempt = a.id")
	if !readable["attempt_seals"] {
		text = strings.TrimSuffix(text, "NULL") + fmt.Sprint(unreadableSeal, ", NULL")
	}
	column("dropped", "d.digest", " LEFT JOIN dropped d ON d.attempt = a.id")
	column("transcripts", "x.body", " LEFT JOIN transcripts x ON x.attempt = a.id")
	return text + ", a." + strings.Join(attemptNames(), ", a.") + from + " WHERE a.id BETWEEN ? AND ? ORDER BY a.id"
}

// read checks a stretch of attempts. Where a part of it cannot be read, it goes
// on with the halves, down to one row, and of that part by part.
func (v *verifier) read(ctx context.Context, first, last int64) (b block) {
	b = block{first: first, last: last}
	rows, err := v.check(ctx, first, last)
	if isDamage(err) && ctx.Err() == nil && first == last {
		rows, err = v.checkOne(ctx, first)
	}
	switch {
	case err == nil:
		b.rows = rows
	case !isDamage(err) || ctx.Err() != nil:
		b.err = err
	case first == last:
		b.problems = []Problem{{"file", fmt.Sprintf("attempt with row ID %d", first), "cannot be read: " + firstLine(err), doRecover, true}}
		b.rows = []checked{{id: first, unreadable: true}}
	default:
		half := first + (last-first)/2
		l, r := v.read(ctx, first, half), v.read(ctx, half+1, last)
		b.rows, b.problems = append(l.rows, r.rows...), append(l.problems, r.problems...)
		b.err = errors.Join(l.err, r.err)
	}
	return b
}

func (v *verifier) check(ctx context.Context, first, last int64) (all []checked, err error) {
	bodies := make(map[int64]*assay.Transcript)
	err = eachRaw(ctx, v.db.reader, v.text, []any{first, last}, func(row []any) (bool, error) {
		c, t := v.seal(ctx, row)
		if t != nil {
			bodies[c.id] = t
		}
		all = append(all, c)
		return true, nil
	})
	if err != nil {
		return nil, v.db.readError(err)
	}
	return all, v.content(ctx, all, bodies, "SELECT a.id, "+bereftColumn+", "+resultColumns+" FROM "+resultTables+
		" WHERE a.id BETWEEN ? AND ? ORDER BY a.id", first, last)
}

// checkOne checks an attempt part by part.
func (v *verifier) checkOne(ctx context.Context, id int64) ([]checked, error) {
	row, err := v.db.piecemeal(ctx, id)
	if err != nil || row == nil {
		return nil, v.db.wrap(err)
	}
	c, t := v.seal(ctx, row)
	all := []checked{c}
	return all, v.contentByTable(ctx, all, map[int64]*assay.Transcript{id: t})
}

// piecemeal reads what [sealedText] does of one attempt, with nil for each part but the
// attempt's own row that cannot be read, or [unreadableSeal]. Without that row there is
// none.
func (db *DB) piecemeal(ctx context.Context, id int64) (row []any, err error) {
	one := func(text string, arg any) (found []any, err error) {
		err = eachRaw(ctx, db.reader, text, []any{arg}, func(row []any) (bool, error) {
			found = slices.Clone(row)
			return true, nil
		})
		return found, err
	}
	own, err := one("SELECT id, trial, run, number, "+strings.Join(attemptNames(), ", ")+" FROM attempts NOT INDEXED WHERE id = ?", id)
	if err != nil || own == nil {
		return nil, err
	}
	part := func(text string, arg any, instead ...any) []any {
		found, failed := one(text, arg)
		switch {
		case failed == nil && found != nil:
			return found
		case failed == nil:
			return make([]any, len(instead))
		case !isDamage(failed):
			err = errors.Join(err, failed)
		}
		return instead
	}
	run := part("SELECT id FROM runs NOT INDEXED WHERE seq = ?", own[2], nil)
	seal := part("SELECT sum, script FROM attempt_seals WHERE attempt = ?", id, unreadableSeal, nil)
	digest := part("SELECT digest FROM dropped WHERE attempt = ?", id, nil)
	body := part("SELECT body FROM transcripts WHERE attempt = ?", id, nil)
	return slices.Concat(own[:2], run, own[3:4], seal, digest, body, own[4:]), err
}

// seal compares a row with its seal and reads its transcript.
func (v *verifier) seal(ctx context.Context, row []any) (c checked, t *assay.Transcript) {
	id, _ := row[0].(int64)
	key, _ := row[1].([]byte)
	run, _ := row[2].(string)
	number, _ := row[3].(int64)
	c = checked{id: id, run: assay.RunID(run), number: int(number)}
	copy(c.key[:], key)
	name := nameAttempt(c.key.id(), c.number)
	complain := func(check, what, do string) {
		c.problems = append(c.problems, Problem{check, name, what, do, true})
	}
	script, text, err := v.db.script(ctx, row)
	if err != nil {
		complain("transcript", firstLine(err), doRecover)
		if script == nil { // without which nothing can be proved
			return c, nil
		}
		c.minor++
	}
	if text != nil {
		c.transcript, t = true, new(assay.Transcript)
		if err := json.Unmarshal(text, t); err != nil {
			complain("transcript", "its transcript cannot be read: "+firstLine(err), doRecover)
			t = nil
		}
	}
	c.sum = identify(c.key, run, row[8:], script)
	switch want := row[4].(type) {
	case []byte:
		if is := sealAttempt(c.sum, id, number); !bytes.Equal(is[:], want) {
			what := "it is not what was saved"
			if script == nil {
				what += ", or its transcript is lost"
			}
			complain("seal", what, doRecover)
		}
	case int64:
		c.unsealed = true
		c.minor++
		complain("seal", "its seal cannot be read, so that nothing proves it", doRecover)
	default:
		c.unsealed = id <= v.unsealed
		if !c.unsealed {
			complain("seal", "it has no seal: another program added it, or the seal is lost", doRecover)
		}
	}
	return c, t
}

// script returns what a seal has of a transcript, and its JSON, of a row of
// [sealedText]. Where the transcript is lost or is not the one that was saved, that is
// an error, and there may be the first alone.
func (db *DB) script(ctx context.Context, row []any) (script, text []byte, err error) {
	noted, _ := row[5].([]byte)
	dropped, _ := row[6].([]byte)
	body, ok := row[7].([]byte)
	switch {
	case !ok && dropped != nil:
		return dropped, nil, nil
	case !ok && noted != nil:
		return noted, nil, errors.New("its transcript is lost")
	case !ok:
		return nil, nil, nil
	}
	if text, err = db.decompress(ctx, body); err != nil {
		return noted, nil, fmt.Errorf("its transcript cannot be read: %w", err)
	}
	if script = digest(text); noted != nil && !bytes.Equal(script, noted) {
		return noted, nil, errors.New("its transcript is not what was saved")
	}
	return script, text, nil
}

// whole tells whether the attempt is as it was saved, for all that is known.
func (c *checked) whole() bool { return !c.unreadable && len(c.problems) == c.minor }

// content reads the same attempts as everybody does, by a query, and looks at what they
// say.
func (v *verifier) content(ctx context.Context, all []checked, bodies map[int64]*assay.Transcript, text string, args ...any) error {
	rows, err := v.db.reader.QueryContext(ctx, text, args...)
	if err != nil {
		return v.db.readError(err)
	}
	defer rows.Close()
	at := make(map[int64]*checked, len(all))
	for i := range all {
		at[all[i].id] = &all[i]
	}
	var alone []*checked
	for rows.Next() {
		var id int64
		var bereft bool
		a, err := make(lists).scanAttempt(rows, &id, &bereft)
		c := at[id]
		if c == nil {
			continue // saved since
		}
		if bereft {
			alone = append(alone, c)
			continue
		}
		name := nameAttempt(c.key.id(), c.number)
		if err != nil {
			c.problems = append(c.problems, Problem{"row", name, "cannot be read: " + firstLine(err), doRecover, true})
			continue
		}
		c.cell, c.settles, c.finished = a.Cell, a.Settles(), a.FinishedAt.UnixNano()
		if err := a.CheckID(); err != nil {
			c.problems = append(c.problems, Problem{"identity", name, "its trial's row was changed: " + err.Error(), doRestore, true})
		}
		if err := check(&a); err != nil {
			c.problems = append(c.problems, Problem{"row", name, err.Error(), doRecover, true})
		}
		c.problems = append(c.problems, v.inspect(&Stored{a, bodies[id]})...)
	}
	if err := rows.Err(); err != nil {
		return v.db.readError(err)
	}
	for _, c := range alone {
		one := []checked{*c}
		if err := v.contentByTable(ctx, one, bodies); err != nil {
			return err
		}
		*c = one[0]
	}
	return nil
}

// contentByTable is content for one attempt whose trial the index of trials does not
// find. Perhaps it is the index that is hurt.
func (v *verifier) contentByTable(ctx context.Context, one []checked, bodies map[int64]*assay.Transcript) error {
	row := v.byTable.of(ctx, v.db, one[0].key)
	if row == 0 || one[0].run == "" {
		c := &one[0]
		c.problems = append(c.problems, Problem{"reference", nameAttempt(c.key.id(), c.number), "its trial or its run is missing", doRestore, true})
		return nil
	}
	return v.content(ctx, one, bodies, "SELECT a.id, "+bereftColumn+", "+resultColumns+" FROM "+tablesByRow+" WHERE a.id = ?", row, one[0].id)
}
