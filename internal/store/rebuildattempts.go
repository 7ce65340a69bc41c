package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/assay-eval/assay"
)

// ofJournal stands for the source of attempts that come from journals.
const ofJournal = -1

// A foundAttempt is an intact attempt of a source.
type foundAttempt struct {
	finished int64
	sum      sum
	key      trialKey
	run      string
	id       int64
	source   int32
	settles  bool
	round    int32
	bare     bool // it has no transcript
}

// A mergedTrial is a trial that the new store has.
type mergedTrial struct {
	number   int             // of its latest attempt
	outcomes []*foundAttempt // at most one for each round
}

// find looks at every attempt of all sources and keeps the intact ones.
func (b *rebuilder) find() error {
	for i, s := range b.sources {
		b.renamed = append(b.renamed, make(map[int64]int64))
		b.paid = append(b.paid, make(map[int64]int64))
		if err := b.findIn(i, s); err != nil {
			return err
		}
	}
	return nil
}

func (f foundAttempt) compare(g foundAttempt) int {
	return cmp.Or(cmp.Compare(f.finished, g.finished), bytes.Compare(f.key[:], g.key[:]),
		cmp.Compare(f.run, g.run), bytes.Compare(f.sum[:], g.sum[:]), cmp.Compare(boolInt(f.bare), boolInt(g.bare)))
}

func (b *rebuilder) findIn(i int, s *DB) error {
	var failed error
	v := newVerifier(b.ctx, s)
	v.inspect = func(*Stored) []Problem { return nil }
	v.progress = func(done, of int) { b.progress("reading "+s.path, done, of) }
	v.found = func(p Problem) {
		if failed == nil {
			failed = b.lose(s, p)
		}
	}
	v.keep = func(c *checked) {
		run := b.known[c.run]
		if run == nil || !c.intact() {
			b.sum.Lost++
			return
		}
		if run.doubtful {
			run.began(c.finished)
		}
		f := foundAttempt{
			c.finished, c.sum, c.key, run.id, c.id, int32(i), c.settles, int32(c.round), !c.transcript,
		}
		b.found = append(b.found, f)
	}
	for _, step := range []func() error{v.begin, v.attempts, v.runCounts} {
		if err := step(); err != nil {
			return s.wrap(err)
		}
	}
	b.sum.Missing += v.missing
	return failed
}

// A copyRow is an attempt on its way to the new store.
type copyRow struct {
	record
	from    *foundAttempt
	dropped bool // the transcript was deleted on purpose
	// loses is true if another outcome settles the trial, so that this attempt counts for its cost only.
	loses bool
}

// copyAttempts copies the attempts that were found, each content once and with one outcome per trial
// and round.
func (b *rebuilder) copyAttempts() error {
	const batch = 512
	seen := make(map[sum]int64, len(b.found))
	for first := 0; first < len(b.found); first += batch {
		var rows []copyRow
		for i := range b.found[first:min(first+batch, len(b.found))] {
			r, err := b.placeAttempt(&b.found[first+i], seen)
			if err != nil {
				return err
			}
			if r != nil {
				rows = append(rows, *r)
			}
		}
		// Several goroutines load them, because transcripts have to be compressed again.
		var g errgroup.Group
		for part := range slices.Chunk(rows, batch/4) {
			g.Go(func() error { return b.load(part) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		err := b.to.do(b.ctx, 0, func(w *writer) error { return b.insertAttempts(w, rows) })
		if err != nil {
			return err
		}
		b.progress("writing", first+len(rows), len(b.found))
	}
	return nil
}

// placeAttempt gives an attempt its place in the new store. It returns nil if the attempt is
// not copied. seen maps the contents placed so far to their row IDs, which are negative if only the cost
// counts.
func (b *rebuilder) placeAttempt(f *foundAttempt, seen map[sum]int64) (*copyRow, error) {
	if id, double := seen[f.sum]; double {
		b.sum.Doubles++
		switch {
		case f.source == ofJournal:
		case id > 0:
			b.renamed[f.source][f.id] = id
		default:
			b.paid[f.source][f.id] = -id
		}
		return nil, nil
	}
	t := b.trials[f.key]
	if t == nil {
		t = new(mergedTrial)
		b.trials[f.key] = t
	}
	r := &copyRow{record: record{key: f.key}, from: f}
	for _, kept := range t.outcomes {
		if f.settles && kept.round == f.round {
			r.loses = true
			if err := b.conflict(kept, f); err != nil {
				return nil, err
			}
		}
	}
	place := f.sum
	if r.loses { // an earlier merge may have copied it
		var err error
		if place, err = b.costOf(f); err != nil {
			return nil, err
		}
	}
	if id, double := seen[place]; double && r.loses {
		seen[f.sum] = -max(id, -id)
		b.paid[f.source][f.id] = -seen[f.sum]
		return nil, nil
	}
	b.next++
	t.number++
	r.id, r.number = b.next, t.number
	seen[place] = r.id
	switch {
	case r.loses: // its scores and classifications stay behind
		seen[f.sum] = -r.id
		b.paid[f.source][f.id] = r.id
		return r, nil
	case f.settles:
		t.outcomes = append(t.outcomes, f)
		b.sum.Outcomes++
	}
	if f.source == ofJournal {
		c := *b.costs[f.id]
		c.id, c.number, c.seq = r.id, r.number, b.runs[c.run]
		return &copyRow{record: c}, nil
	}
	b.renamed[f.source][f.id] = r.id
	return r, nil
}

// lostDetail says why an attempt with an outcome counts for nothing but its cost.
const lostDetail = "stores were merged, and another one had an outcome of this trial earlier"

// costOnly returns the row of an attempt without its outcome, like that of an interrupted one. Columns
// of later versions stay as they are.
func (c *columns) costOnly(row []any) ([]any, error) {
	var a assay.Attempt
	if err := loadRow(c.fields, &a, row, newInterned()); err != nil {
		return nil, err
	}
	a.Outcome, a.FaultKind, a.FaultDetail = assay.Outcome{}, assay.Interrupted, lostDetail
	bare, err := rowOf(c.fields, &a)
	for i, f := range c.fields {
		if err == nil && f.index == nil {
			bare[i] = row[i]
		}
	}
	return bare, err
}

// costOf returns the identity of an attempt whose outcome does not settle its trial.
func (b *rebuilder) costOf(f *foundAttempt) (is sum, err error) {
	s := b.sources[f.source]
	err = s.eachAttempt(b.ctx, attemptQuery{bare: true}, "a.id = ?", []any{f.id},
		func(a *storedAttempt) (bool, error) {
			row, err := b.to.layout.attempts.costOnly(b.to.layout.attempts.convert(a.attempt, &a.layout.attempts))
			is = b.to.layout.attempts.identify(f.key, a.run, row, a.script)
			return true, err
		})
	return is, err
}

// conflict reports two outcomes of one trial.
func (b *rebuilder) conflict(kept, left *foundAttempt) error {
	b.sum.Conflicts++
	c := Conflict{Trial: kept.key.id()}
	for f, to := range map[*foundAttempt]*StoredOutcome{kept: &c.Kept, left: &c.Left} {
		s := b.sources[f.source]
		to.Store = s.path
		query := "SELECT r.id, a.level FROM attempts a JOIN runs r ON r.seq = a.run WHERE a.id = ?"
		err := s.reader.QueryRowContext(b.ctx, query, f.id).Scan(&to.Run, &to.Level)
		if err != nil {
			return s.wrap(err)
		}
	}
	b.sum.ConflictList = append(b.sum.ConflictList, c)
	return nil
}

// load reads attempts and their trials from their sources.
func (b *rebuilder) load(rows []copyRow) error {
	for i, s := range b.sources {
		mine := make(map[int64]*copyRow)
		for n := range rows {
			if r := &rows[n]; r.from != nil && int(r.from.source) == i {
				mine[r.from.id] = r
			}
		}
		ids, err := json.Marshal(slices.Collect(maps.Keys(mine)))
		if err != nil {
			return err
		}
		const chosen = " IN (SELECT value FROM json_each(?))"
		bodies, err := s.bodies(b.ctx, "attempt"+chosen, string(ids))
		if err != nil {
			return err
		}
		err = s.eachAttempt(b.ctx, attemptQuery{}, "a.id"+chosen, []any{string(ids)},
			func(a *storedAttempt) (bool, error) {
				r := mine[a.id]
				delete(mine, a.id)
				return true, b.fillRow(s, r, a, bodies)
			})
		if err == nil && len(mine) > 0 {
			err = s.wrap(ErrChanged)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *rebuilder) fillRow(
	s *DB, r *copyRow, a *storedAttempt, bodies map[int64][]byte,
) error {
	text, err := s.textOf(b.ctx, a.id, a.script, bodies)
	if b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	if a.identity() != r.from.sum {
		return fmt.Errorf("%w: the attempt with row ID %d has changed since it was verified",
			ErrDamaged, a.id)
	}
	r.identity, r.digest, r.dropped = r.from.sum, a.script, err == nil && text == nil
	if text != nil {
		if r.transcript, err = b.to.compress(b.ctx, text); err != nil {
			return err
		}
	}
	r.seq = b.runs[assay.RunID(a.run)]
	to := b.to.layout
	r.attempt = to.attempts.convert(a.attempt, &a.layout.attempts)
	r.trial = to.trials.convert(a.trial, &a.layout.trials)
	if r.loses {
		if r.attempt, err = to.attempts.costOnly(r.attempt); err != nil {
			return err
		}
		r.identity = to.attempts.identify(r.key, a.run, r.attempt, a.script)
	}
	return nil
}

func (b *rebuilder) insertAttempts(w *writer, rows []copyRow) error {
	for i := range rows {
		r := &rows[i]
		if r.number == 1 {
			if err := w.exec(w.layout.trials.insert, w.join([]any{r.key[:]}, r.trial)...); err != nil {
				return err
			}
			b.sum.Trials++
		}
		if err := w.insertRows(&r.record); err != nil {
			return err
		}
		b.sum.Attempts++
		b.counts[r.seq]++
		if r.transcript != nil {
			b.sum.Transcripts++
		} else if r.digest != nil {
			if err := b.dropTranscript(w, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropTranscript records that the transcript of an attempt is gone.
func (b *rebuilder) dropTranscript(w *writer, r *copyRow) error {
	why := `{"transcripts_only":true,"before":"this store was made of others"}`
	if !r.dropped {
		why = `{"transcripts_only":true,"lost":"in a store that this one was recovered from"}`
		b.sum.Bare++
	}
	deletion := b.drops[why]
	if deletion == 0 {
		var err error
		if deletion, err = w.add("deletions", time.Now(), "", why); err != nil {
			return err
		}
		b.drops[why] = deletion
	}
	return w.exec(insertSQL("dropped", "attempt, deletion"), r.id, deletion)
}
