package session

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/store"
)

// mostJournal is the size in bytes at which a journal is written anew, with open attempts only.
const mostJournal = 16 << 20

// A journal is a file next to the store with what the attempts have cost so far that are not in the
// store: those in flight, and those that could not be saved. If the run is killed, or cannot save
// them, the next run on the store saves them as interrupted ones. The file is not synced, as a kill
// takes nothing away that was written. It is safe for concurrent use.
type journal struct {
	path   string
	failed func(error) // called once

	mu    sync.Mutex // guards the fields below
	head  entry
	file  *os.File // nil before the first entry, and after a failure
	size  int
	broke bool
	open  map[assay.TrialID]*openAttempt
}

// An entry is a line of a journal.
type entry struct {
	// Run begins a journal.
	Run        assay.RunID `json:"run,omitempty"`
	Experiment string      `json:"experiment,omitempty"`
	Program    string      `json:"program,omitempty"`
	// Trial begins an attempt at that trial. The other entries name it by its ID.
	Trial *assay.Trial  `json:"trial,omitempty"`
	At    time.Time     `json:"at,omitzero"`
	ID    assay.TrialID `json:"id,omitempty"`
	// Asked is the most tokens that a turn can use that begins, or less than 0 if it has ended.
	Asked int `json:"asked,omitempty"`
	// Spent is what a request has used, and Cost what it has cost. User tells for whom.
	Spent *assay.Usage `json:"spent,omitempty"`
	Cost  float64      `json:"cost,omitempty"`
	User  bool         `json:"user,omitempty"`
	// Over says that the attempt is in the store.
	Over bool `json:"over,omitempty"`
}

// An openAttempt is an attempt that has begun and is not in the store.
type openAttempt struct {
	trial assay.Trial
	began time.Time
	bill  assay.Attempt
	asked int
}

// apply changes the open attempts by an entry.
func (j *journal) apply(e entry) {
	if e.Trial != nil {
		j.open[e.Trial.ID] = &openAttempt{trial: *e.Trial, began: e.At}
		return
	}
	o := j.open[e.ID]
	switch {
	case o == nil:
	case e.Over:
		delete(j.open, e.ID)
	case e.Spent != nil && e.User:
		o.bill.AddUser(&assay.Response{Usage: *e.Spent, Cost: e.Cost})
	case e.Spent != nil:
		o.bill.Add(&assay.Response{Usage: *e.Spent, Cost: e.Cost})
	default:
		o.asked += e.Asked
	}
}

// write adds an entry. A run goes on without its journal.
func (j *journal) write(e entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broke {
		return
	}
	j.apply(e)
	var err error
	if j.file == nil || j.size > mostJournal {
		err = j.renew()
	} else {
		err = j.append(e)
	}
	if err != nil {
		j.broke = true
		j.failed(err)
	}
}

// renew begins a file with the open attempts.
func (j *journal) renew() error {
	file, err := os.OpenFile(j.path+"-new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if j.file != nil {
		_ = j.file.Close()
	}
	j.file, j.size = file, 0
	err = j.append(j.head)
	for id, o := range j.open {
		u, user := o.bill.Usage(), assay.Usage{
			InputTokens: o.bill.UserInputTokens, OutputTokens: o.bill.UserOutputTokens,
			UnpricedTokens: o.bill.UserUnpricedTokens,
		}
		err = errors.Join(err, j.append(entry{Trial: &o.trial, At: o.began}),
			j.append(entry{ID: id, Spent: &u, Cost: o.bill.CostUSD}),
			j.append(entry{ID: id, Spent: &user, Cost: o.bill.UserCostUSD, User: true}),
			j.append(entry{ID: id, Asked: o.asked}))
	}
	return errors.Join(err, os.Rename(j.path+"-new", j.path))
}

func (j *journal) append(e entry) error {
	line, err := json.Marshal(e)
	if err == nil {
		_, err = j.file.Write(append(line, '\n'))
	}
	j.size += len(line) + 1
	return err
}

// owes reports whether attempts that have cost money, or may have, are not in the store.
func (j *journal) owes() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.owesLocked()
}

func (j *journal) owesLocked() bool {
	if j.file == nil {
		return false
	}
	for _, o := range j.open {
		if o.asked > 0 || o.bill.Paid() {
			return true
		}
	}
	return false
}

// close closes the file, and removes it unless attempts are left for the next run to save. No attempt
// is in flight.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file != nil {
		_ = j.file.Close()
		if !j.owesLocked() {
			_ = os.Remove(j.path)
		}
		j.file = nil
	}
	j.broke = true
}

// read reads the journal that an earlier run has left, up to a line that is not complete.
func (j *journal) read() error {
	file, err := os.Open(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	for d := json.NewDecoder(bufio.NewReader(file)); ; {
		var e entry
		if d.Decode(&e) != nil {
			return nil
		}
		if e.Run != "" {
			j.head = e
			continue
		}
		j.apply(e)
	}
}

// newJournal returns the journal of a run that has begun.
func (s *Session) newJournal() *journal {
	return &journal{
		path: journalPath(s.options.Store), open: make(map[assay.TrialID]*openAttempt),
		head: entry{Run: s.id, Experiment: s.Experiment.Name, Program: s.options.Program},
		failed: func(err error) {
			s.note("if this run is killed or cannot save its attempts, their cost is lost: " + err.Error())
		},
	}
}

func journalPath(store string) string { return store + ".bills" }

// recoverBills saves the attempts that an earlier run could not save, because it was killed or its
// store was locked, and that have cost money or may have. It removes that run's journal.
func (s *Session) recoverBills(ctx context.Context) error {
	left := &journal{path: journalPath(s.options.Store), open: make(map[assay.TrialID]*openAttempt)}
	if err := left.read(); err != nil {
		return fmt.Errorf("read what an earlier run has cost: %w", err)
	}
	for _, o := range left.open {
		if err := s.recoverBill(ctx, left.head, o); err != nil {
			return fmt.Errorf("save what run %s has cost: %w", left.head.Run, err)
		}
	}
	if err := os.Remove(left.path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (s *Session) recoverBill(ctx context.Context, head entry, o *openAttempt) error {
	a := &o.bill
	if a.UnpricedTokens += max(0, o.asked); !a.Paid() {
		return nil
	}
	of := store.Filter{Trial: o.trial.ID, Run: head.Run, All: true}
	for saved, err := range s.db.Attempts(ctx, of) {
		if err != nil {
			return err
		}
		if !saved.FinishedAt.Before(o.began) { // the run ended before the journal knew
			return nil
		}
	}
	a.Trial, a.Run, a.Experiment, a.Program = o.trial, head.Run, head.Experiment, head.Program
	a.Templates = episode.TemplatesHash
	a.FaultKind, a.FaultDetail = assay.Interrupted, "its run was killed, or could not save it"
	a.StartedAt, a.FinishedAt = o.began, time.Now().UTC()
	err := s.db.Save(ctx, a, new(assay.Transcript))
	if errors.Is(err, store.ErrUnknownRun) || errors.Is(err, store.ErrInvalid) {
		s.note("an attempt of an earlier run cannot be saved: " + err.Error())
		return nil
	}
	return err
}
