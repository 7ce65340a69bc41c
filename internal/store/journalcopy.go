package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/durable"
)

// A LeftBehind is an unfinished attempt that a merged store does not have, because a trial has only
// one at a time.
type LeftBehind struct {
	Trial   assay.TrialID `json:"trial"`
	Store   string        `json:"store"`
	Run     assay.RunID   `json:"run"`
	Replies int           `json:"replies"`
	CostUSD float64       `json:"cost_usd"`
}

func (l LeftBehind) String() string {
	return fmt.Sprintf("the unfinished attempt of run %s at trial %s in %s, with %s that cost %s: another one "+
		"at that trial goes on", l.Run, l.Trial, l.Store, repliesText(l.Replies), assay.CostText(l.CostUSD, 4))
}

func repliesText(n int) string {
	if n == 1 {
		return "1 reply"
	}
	return fmt.Sprint(n, " replies")
}

// copyJournals writes the journal of a new store, with the unfinished attempts of others that it does
// not have. It writes none if there are none.
func copyJournals(ctx context.Context, to *DB, from []*Journal) (all []Unfinished, left []LeftBehind, err error) {
	j := &Journal{path: journalPath(to.path), open: make(map[assay.TrialID]*openAttempt), packer: newPacker()}
	sources := make(map[*openAttempt]*Journal)
	for _, source := range from {
		if _, err := to.sift(ctx, source); err != nil {
			return nil, nil, err
		}
		for id, o := range source.open {
			if !o.owes() {
				continue
			}
			loser := o
			if known := j.open[id]; known == nil || known.before(o) {
				loser, j.open[id], sources[o] = known, o, source
			}
			if winner := j.open[id]; loser != nil && !winner.same(loser) {
				u := loser.unfinished()
				of := cmp.Or(sources[loser], source)
				left = append(left, LeftBehind{
					id, of.path[:len(of.path)-len(journalSuffix)], u.Run, u.Replies,
					assay.RoundUSD(u.CostUSD + u.UserCostUSD),
				})
			}
		}
	}
	if len(j.open) == 0 {
		mark, err := to.journalMark(ctx)
		if err != nil || mark.Run == "" || !slices.ContainsFunc(from, (*Journal).Exists) {
			return nil, nil, err
		} // an empty one is not a missing one
	}
	file, err := os.OpenFile(j.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("store: %w", err)
	}
	j.file = file
	defer func() { err = errors.Join(err, file.Close()) }()
	err = j.writeOpen(func(o *openAttempt) *os.File { return sources[o].file })
	if err == nil {
		err = durable.SyncFile(file)
	}
	slices.SortFunc(left, func(a, b LeftBehind) int {
		return cmp.Or(cmp.Compare(a.Trial, b.Trial), cmp.Compare(a.Run, b.Run))
	})
	return j.Unfinished(false), left, err
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

func (b *rebuilder) copyJournals() error {
	all, left, err := copyJournals(b.ctx, b.to, b.journals)
	b.sum.LeftBehind, b.sum.Unfinished = left, len(all)
	for _, u := range all {
		b.sum.Replies += u.Replies
	}
	return err
}
