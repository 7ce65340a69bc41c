//go:build unix

package store_test

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// talks are the attempts of a life with replies, which are in the journal before they are acted on.
type talks struct {
	journal *store.Journal
	failed  atomic.Bool
	left    chan store.Unfinished // that earlier lives have left
}

func (h *history) openTalks(db *store.DB, run assay.RunID) (*talks, error) {
	j, err := db.Journal(h.t.Context())
	if err != nil {
		return nil, err
	}
	left := j.Unfinished(false)
	t := &talks{journal: j, left: make(chan store.Unfinished, len(left))}
	for _, u := range left {
		t.left <- u
	}
	close(t.left)
	j.Continue(store.JournalEntry{Run: run, Experiment: "e"}, func(err error) {
		t.failed.Store(true)
		h.excuse("write the journal", err)
	})
	if t.failed.Load() {
		return t, nil
	}
	return t, db.MarkJournal(h.t.Context(), run, 0)
}

// talk is a worker, which goes on with an attempt that was left, and carries out others.
func (h *history) talk(db *store.DB, t *talks, run assay.RunID, worker int) {
	if u, ok := <-t.left; ok && !h.isDead() {
		h.note(func() { h.seen.GoneOn++ })
		h.turns(db, t, run, &u.Attempt, u.Replies, worker)
	}
	for range h.draw(4) {
		if h.isDead() || t.failed.Load() {
			return
		}
		h.mu.Lock()
		h.trials++
		a := outcome(h.trials)
		h.begun[a.ID] = true
		h.mu.Unlock()
		a.CostUSD, a.StartedAt = 0, time.Now().UTC()
		t.journal.Write(store.JournalEntry{Trial: &a.Trial, At: a.StartedAt})
		h.turns(db, t, run, a, 0, worker)
	}
}

// turns asks for replies, and saves the attempt unless it is left for the next life. Its replies so far
// are given again first.
func (h *history) turns(db *store.DB, t *talks, run assay.RunID, a *assay.Attempt, replies, worker int) {
	id := a.ID
	t.journal.Rewind(id)
	for to := range replies {
		if r, _ := t.journal.Replay(id, false, uint64(to)); r == nil {
			h.excuse("go on", fmt.Errorf("reply %d of %d of trial %s is lost", to, replies, id))
			return
		}
	}
	for to := replies; to < replies+1+h.draw(4); to++ {
		cost := float64(1+h.draw(1000)) / 1000
		t.journal.Write(store.JournalEntry{ID: id, Asked: 100})
		t.journal.Keep(store.JournalEntry{
			ID: id, Asked: -100, Spent: &assay.Usage{InputTokens: 10}, Cost: cost,
			Reply: &store.JournalReply{To: uint64(to), Response: assay.Response{Lane: fmt.Sprint("w", worker)}},
		})
		if t.failed.Load() {
			return
		}
		a.CostUSD = assay.RoundUSD(a.CostUSD + cost)
		h.promise(func(e *expected) { e.replies[id] = append(slices.Clone(e.replies[id]), cost) })
		h.note(func() { h.seen.Replies++ })
	}
	if h.draw(3) == 0 {
		return
	}
	done := outcome(1)
	done.Trial, done.Run, done.CostUSD = a.Trial, run, a.CostUSD
	done.StartedAt, done.FinishedAt = a.StartedAt, time.Now().UTC()
	if err := db.Save(h.t.Context(), done, nil); err != nil {
		h.excuse("save", err)
		return
	}
	h.promise(func(e *expected) {
		delete(e.replies, id)
		e.attempts[keyOf(done)] = done
	})
	t.journal.Write(store.JournalEntry{ID: id, Over: true})
}

// inspectJournal requires that replies which were acted on are in the journal of a store, with what
// they cost, unless the store has their attempts.
func (h *history) inspectJournal(db *store.DB, replies map[assay.TrialID][]float64) error {
	left, err := db.Left(h.t.Context())
	if err != nil {
		return err
	}
	if left.Missing != nil || left.Health.Changed > 0 || len(left.Strange) > 0 {
		return fmt.Errorf("the journal: %v, %+v, %d attempts of unknown runs", left.Missing, left.Health, len(left.Strange))
	}
	found := make(map[assay.TrialID]store.Unfinished)
	for _, u := range left.Attempts {
		found[u.ID] = u
	}
	for _, id := range slices.Sorted(maps.Keys(replies)) {
		paid := 0.0
		for _, cost := range replies[id] {
			paid = assay.RoundUSD(paid + cost)
		}
		u, ok := found[id]
		if !ok {
			for a, err := range db.Attempts(h.t.Context(), store.Filter{Trial: id}) {
				if err != nil {
					return err
				}
				u.CostUSD, u.Replies = a.CostUSD, len(replies[id])
			}
		}
		if u.Replies < len(replies[id]) || u.CostUSD < paid {
			return fmt.Errorf("trial %s had %d replies for $%v, and has %d for $%v", id, len(replies[id]), paid,
				u.Replies, u.CostUSD)
		}
	}
	return nil
}
