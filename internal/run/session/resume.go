package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc64"
	"math/bits"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/store"
)

// An episode is a function of its trial, its task and the replies of its models. So an attempt goes
// on where a killed run or a lost worker left it by beginning again with the replies that are in the
// journal. A reply is given again only to the very request that it answered; from the first turn
// on whose request differs, because another version of Assay or of a tool says something else, the
// models are asked anew.

// Resumed counts the attempts with which a run went on where an earlier one left them.
type Resumed struct {
	Attempts int `json:"attempts"`
	// Replies counts the replies of models that they had.
	Replies int `json:"replies"`
	// Differed counts the attempts that did not go on exactly, because a prompt or a tool says
	// something else now, and AskedAgain the replies that were of no use to them, or to attempts of
	// lost workers.
	Differed   int `json:"differed,omitempty"`
	AskedAgain int `json:"asked_again,omitempty"`
}

type resumed struct {
	mu sync.Mutex
	Resumed
}

func (r *resumed) attempt(replies int) {
	if replies <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Attempts++
	r.Replies += replies
}

func (r *resumed) differs(lost int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Differed++
	r.AskedAgain += lost
}

// A question identifies the requests of a conversation in which each adds messages to the one
// before. It is the same on every machine.
type question struct {
	messages  int
	sum       uint64
	functions []assay.Function // the latest, whose sum is offered
	offered   uint64
}

var polynomial = crc64.MakeTable(crc64.ECMA)

// next returns what identifies a request.
func (q *question) next(req *assay.Request) uint64 {
	if len(req.Messages) <= q.messages { // another pass through the attempt
		q.messages, q.sum = 0, 0
	}
	for i := range req.Messages[q.messages:] {
		text, _ := json.Marshal(&req.Messages[q.messages+i]) // texts alone
		q.sum = crc64.Update(q.sum, polynomial, text)
	}
	q.messages = len(req.Messages)
	if !slices.EqualFunc(q.functions, req.Functions, sameFunction) {
		q.functions, q.offered = req.Functions, 0
		for i := range req.Functions {
			text, _ := json.Marshal(&req.Functions[i])
			q.offered = crc64.Update(q.offered, polynomial, text)
		}
	}
	return q.sum ^ bits.RotateLeft64(q.offered, 1)
}

// sameFunction reports whether two functions have the same texts, in the same memory if possible.
func sameFunction(a, b assay.Function) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Parameters, b.Parameters)
}

// readLeft reads the attempts that earlier runs have left in the journal. It returns them without
// those that the store has, or whose runs it does not know.
func (s *Session) readLeft(ctx context.Context) (*journal, error) {
	left := newJournal(journalPath(s.options.Store), entry{}, func(error) {})
	if err := left.read(); err != nil {
		return nil, fmt.Errorf("read what earlier runs have left: %w", err)
	}
	if len(left.open) == 0 {
		return left, nil
	}
	runs, err := s.db.Runs(ctx, "")
	if err != nil {
		return nil, err
	}
	known := make(map[assay.RunID]bool)
	for _, r := range runs {
		known[r.ID] = true
	}
	for id, o := range left.open {
		saved, err := s.isSaved(ctx, o)
		if err != nil {
			return nil, err
		}
		if saved || !known[o.of.Run] {
			delete(left.open, id)
		}
	}
	return left, nil
}

// isSaved reports whether the store has an attempt that a journal did not live to see saved.
func (s *Session) isSaved(ctx context.Context, o *openAttempt) (bool, error) {
	for saved, err := range s.db.Attempts(ctx, store.Filter{Trial: o.trial.ID, All: true}) {
		if err != nil {
			return false, err
		}
		if !saved.FinishedAt.Before(o.began) {
			return true, nil
		}
	}
	return false, nil
}

// resume decides about the attempts that earlier runs have left: those that this run can go on with
// stay in its journal, and those of other experiments with replies, for their next run. What the
// others have cost is saved.
func (s *Session) resume(ctx context.Context, left *journal, r *job.Recount) error {
	for id, o := range left.open {
		planned, pending := r.Stands(id)
		resumes := pending && s.keeps(o.trial.Model) && o.round == s.options.Retry[id]
		if resumes || len(o.replies) > 0 && o.of.Experiment != s.Experiment.Name {
			continue
		}
		a, err := s.saveBill(ctx, o)
		if err != nil {
			return fmt.Errorf("save what run %s has cost: %w", o.of.Run, err)
		}
		if a != nil && planned {
			s.tally.Save(a)
		}
		delete(left.open, id)
	}
	if len(left.open) == 0 {
		return left.discard()
	}
	return nil
}

// keeps reports whether the replies of a model are in the journal: of all bare models but the
// built-in ones, which are as quick as the disk.
func (s *Session) keeps(model string) bool {
	_, foreign := s.pools.Agents[model]
	return s.Experiment.Save != plan.SaveAttempts && !foreign && !s.pools.Builtin(model)
}

// saveBill saves an attempt that will not be continued, if it has cost money or may have.
func (s *Session) saveBill(ctx context.Context, o *openAttempt) (*assay.Attempt, error) {
	a := o.bill
	if a.UnpricedTokens += max(0, o.asked); !a.Paid() {
		return nil, nil
	}
	a.Trial, a.Run, a.Experiment, a.Program = o.trial, o.of.Run, o.of.Experiment, o.of.Program
	a.Round, a.Templates = o.round, episode.TemplatesHash
	a.FaultKind, a.FaultDetail = assay.Interrupted, "its run was killed, or could not save it"
	a.StartedAt, a.FinishedAt = o.began, time.Now().UTC()
	err := s.db.Save(ctx, &a, new(assay.Transcript))
	if errors.Is(err, store.ErrUnknownRun) || errors.Is(err, store.ErrInvalid) {
		s.note("an attempt of an earlier run cannot be saved: " + err.Error())
		return nil, nil
	}
	return &a, err
}

// leftText describes the attempts that this run goes on with, or returns "".
func (s *Session) leftText(left *journal) string {
	attempts, replies := 0, 0
	for _, o := range left.open {
		if len(o.replies) > 0 && o.of.Experiment == s.Experiment.Name {
			attempts, replies = attempts+1, replies+len(o.replies)
		}
	}
	if attempts == 0 {
		return ""
	}
	return assay.Counted(attempts, "attempt") + " of an earlier run will go on at the next turn; " +
		"replies of models so far: " + strconv.Itoa(replies)
}

// openJournal begins the journal of a run with the attempts that are left.
func (s *Session) openJournal(left *journal) *journal {
	j := newJournal(left.path,
		entry{Run: s.id, Experiment: s.Experiment.Name, Program: s.options.Program},
		func(err error) {
			s.note("if this run is killed or cannot save its attempts, their replies and their cost are " +
				"lost: " + err.Error())
		})
	j.file, j.open = left.file, left.open
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file != nil {
		if err := j.renew(); err != nil {
			j.fail(err)
		}
	}
	return j
}
