package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/durable"
)

// A LeftBehind is an unfinished attempt that does not go on in a merged store, because another one at
// its trial does or has an outcome. What it has cost is saved as that of an interrupted attempt.
type LeftBehind struct {
	Trial   assay.TrialID `json:"trial"`
	Store   string        `json:"store"`
	Run     assay.RunID   `json:"run"`
	Replies int           `json:"replies"`
	assay.Bill
}

func (l LeftBehind) String() string {
	return fmt.Sprintf("the unfinished attempt of run %s at trial %s in %s, with %s that are counted (cost: %s): "+
		"another one at that trial goes on or has ended", l.Run, l.Trial, l.Store, repliesText(l.Replies),
		assay.DollarsText(l.USD, 4, l.AtLeast()))
}

func repliesText(n int) string {
	if n == 1 {
		return "1 reply"
	}
	return fmt.Sprint(n, " replies")
}

// A journalCopy is the journal of a new store. The attempts in it are read from the journals of others.
type journalCopy struct {
	open map[assay.TrialID]*openAttempt
	in   map[*openAttempt]*Journal
}

// copyJournal writes the journal of a copy of a store.
func copyJournal(ctx context.Context, to *DB, from *Journal) error {
	if _, err := to.sift(ctx, from); err != nil {
		return err
	}
	c := journalCopy{make(map[assay.TrialID]*openAttempt), make(map[*openAttempt]*Journal)}
	for id, o := range from.open {
		if o.owes() {
			c.open[id], c.in[o] = o, from
		}
	}
	_, err := c.write(ctx, to, from.Exists())
	return err
}

// write writes the journal beside a store, and returns the attempts in it. If there are none, it writes
// one only if the sources have some: an empty one is not a missing one.
func (c journalCopy) write(ctx context.Context, to *DB, some bool) (all []Unfinished, err error) {
	if len(c.open) == 0 {
		mark, err := to.journalMark(ctx)
		if err != nil || mark.Run == "" || !some {
			return nil, err
		}
	}
	j := &Journal{path: journalPath(to.path), open: c.open, packer: newPacker()}
	j.file, err = os.OpenFile(j.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer func(file *os.File) { err = errors.Join(err, file.Close()) }(j.file)
	for id, o := range c.open {
		var wrong error
		o.number, wrong = to.nextNumber(ctx, id)
		err = errors.Join(err, wrong)
	}
	err = errors.Join(err, j.writeOpen(func(o *openAttempt) *os.File { return c.in[o].file }))
	if err == nil {
		err = durable.SyncFile(j.file)
	}
	return j.Unfinished(false), err
}

// same reports whether two journals have got an attempt from the same run.
func (o *openAttempt) same(p *openAttempt) bool {
	return o.of.Run == p.of.Run && o.began.Equal(p.began)
}

// before reports whether another attempt at the same trial is the one to go on with: it has got
// further. The order of the stores makes no difference.
func (o *openAttempt) before(p *openAttempt) bool {
	return cmp.Or(cmp.Compare(len(o.replies), len(p.replies)), cmp.Compare(o.bill.CostUSD, p.bill.CostUSD),
		p.began.Compare(o.began), cmp.Compare(p.of.Run, o.of.Run)) < 0
}

// readJournals reads the journals of the sources, and notes those that are missing.
func (b *rebuilder) readJournals(from []string) error {
	for _, name := range from {
		path, err := resolve(name)
		if err != nil {
			return err
		}
		j, err := ReadJournal(journalPath(path))
		if err != nil {
			return err
		}
		b.journals = append(b.journals, j)
		if j.Exists() {
			continue
		}
		db, err := OpenReadOnly(b.ctx, path)
		if err != nil {
			if b.salvages {
				continue // nobody knows
			}
			return err
		}
		mark, err := db.journalMark(b.ctx)
		if err = errors.Join(err, db.Close()); err != nil && !b.salvages {
			return err
		}
		if mark.Run != "" {
			mark.Path = journalPath(path)
			b.sum.MissingJournals = append(b.sum.MissingJournals, mark)
		}
	}
	return nil
}

// sortJournals decides which unfinished attempts go on in the new store. The others are attempts that
// count for nothing but their cost there, like interrupted ones.
func (b *rebuilder) sortJournals() error {
	b.unfinished = journalCopy{make(map[assay.TrialID]*openAttempt), make(map[*openAttempt]*Journal)}
	for i, from := range b.journals {
		strange, err := b.sources[i].sift(b.ctx, from)
		if err != nil {
			return err
		}
		for _, u := range strange {
			b.sum.Lost++
			if err := b.lose(b.sources[i], u.strange(from.path)); err != nil {
				return err
			}
		}
		for _, o := range from.open {
			if err := b.sortUnfinished(o, from, b.sources[i]); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(b.sum.LeftBehind, func(x, y LeftBehind) int {
		return cmp.Or(cmp.Compare(x.Trial, y.Trial), cmp.Compare(x.Run, y.Run))
	})
	slices.SortFunc(b.found, foundAttempt.compare)
	return nil
}

func (b *rebuilder) sortUnfinished(o *openAttempt, from *Journal, own *DB) error {
	if !o.owes() {
		return nil
	}
	ended := false
	for _, s := range b.sources {
		if s.path == own.path {
			continue // it does not have the attempt
		}
		since, err := s.hasSince(b.ctx, o)
		if err != nil {
			return err
		}
		if !since {
			continue
		}
		ended = true
		// A store that knows the run is a later copy of this one, and has what became of the attempt.
		if known, err := s.knows(b.ctx, o.of.Run); known || err != nil {
			return err
		}
	}
	c := b.unfinished
	c.in[o] = from
	loser, known := o, c.open[o.trial.ID]
	if !ended && (known == nil || known.before(o)) {
		loser, c.open[o.trial.ID] = known, o
	}
	if winner := c.open[o.trial.ID]; loser == nil || winner != nil && winner.same(loser) {
		return nil
	}
	return b.leaveBehind(loser)
}

func (b *rebuilder) leaveBehind(o *openAttempt) error {
	u := o.unfinished()
	u.FaultDetail = lostDetail
	r, err := b.to.layout.encode(&u.Attempt, nil)
	if err != nil {
		return err
	}
	known := slices.ContainsFunc(b.costs, func(c *record) bool { return c.identity == r.identity })
	if u.Replies > 0 && !known {
		b.sum.LeftBehind = append(b.sum.LeftBehind, LeftBehind{
			u.ID, strings.TrimSuffix(b.unfinished.in[o].path, journalSuffix), u.Run, u.Replies,
			u.Bill(),
		})
	}
	if u.Paid() && !known {
		b.found = append(b.found, foundAttempt{
			finished: u.FinishedAt.UnixNano(), sum: r.identity, key: r.key, run: string(u.Run),
			id: int64(len(b.costs)), source: ofJournal,
		})
		b.costs = append(b.costs, r)
	}
	return nil
}

func (b *rebuilder) copyJournals() error {
	all, err := b.unfinished.write(b.ctx, b.to, slices.ContainsFunc(b.journals, (*Journal).Exists))
	b.sum.Unfinished = len(all)
	for _, u := range all {
		b.sum.Replies += u.Replies
	}
	return err
}

// noteLost notes in a recovered store how many attempts are lost with their costs.
func (b *rebuilder) noteLost() error {
	n := b.sum.Lost + int(b.sum.Missing)
	if n == 0 {
		return nil
	}
	latest, err := values[assay.RunID](b.ctx, b.to.reader, "SELECT id FROM runs ORDER BY seq DESC LIMIT 1")
	if err != nil || len(latest) == 0 {
		return b.to.wrap(err)
	}
	return b.to.markJournal(b.ctx, latest[0], journalMark{"lost", n, false})
}
