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

// resume decides about the attempts that earlier runs have left: those that this run can go on with
// stay in its journal, and those with replies that a later run can go on with: of other experiments, at
// trials that this run does not plan, and at done ones that are to be done again. What the others have
// cost is saved.
func (s *Session) resume(ctx context.Context, left *store.Journal, r *job.Recount) error {
	s.elsewhere = make(map[assay.TrialID]bool)
	var going, ended job.Begun
	for _, u := range left.Unfinished(false) {
		planned, pending := r.Stands(u.ID)
		resumes := pending && s.keeps(u.Model) && u.Round == s.options.Retry[u.ID]
		waits := u.Experiment != s.Experiment.Name || !planned || !pending && u.Round > 0
		if resumes || waits && u.Replies > 0 {
			s.elsewhere[u.ID] = !planned
			if resumes && u.Replies > 0 {
				going.Add(job.BegunBy(u))
			}
			continue
		}
		a, err := s.saveBill(ctx, &u)
		if err != nil {
			return fmt.Errorf("save what run %s has cost: %w", u.Run, err)
		}
		if a != nil && planned {
			s.tally.Save(a)
		}
		if u.Replies > 0 {
			ended.Add(job.BegunBy(u))
		}
		left.Forget(u.ID)
	}
	if going.Attempts > 0 {
		s.goes = assay.Counted(going.Attempts, "attempt") + " of an earlier run will go on at the next turn; " +
			"replies of models so far: " + strconv.Itoa(going.Replies)
	}
	if ended.Attempts > 0 {
		s.note(fmt.Sprintf("%s of earlier runs cannot go on, because of other settings or because their "+
			"trials are done: their %d replies are dropped, and what they have cost is stored",
			assay.Counted(ended.Attempts, "attempt"), ended.Replies))
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
func (s *Session) saveBill(ctx context.Context, u *store.Unfinished) (*assay.Attempt, error) {
	if !u.Paid() {
		return nil, nil
	}
	a := u.Attempt
	a.Templates, a.FinishedAt = episode.TemplatesHash, time.Now().UTC()
	err := s.db.Save(ctx, &a, new(assay.Transcript))
	if errors.Is(err, store.ErrUnknownRun) || errors.Is(err, store.ErrInvalid) {
		s.note("an attempt of an earlier run cannot be saved: " + err.Error())
		return nil, nil
	}
	return &a, err
}

// openJournal begins the journal of the run with the attempts that are left. A run with nothing to
// write into one has none.
func (s *Session) openJournal(ctx context.Context, left *store.Journal) error {
	if !left.Exists() && !slices.ContainsFunc(s.Experiment.Asked(), func(model string) bool {
		return s.keeps(model) || s.mayCost(model)
	}) {
		return nil
	}
	failed := false
	left.Continue(
		store.JournalEntry{Run: s.id, Experiment: s.Experiment.Name, Program: s.options.Program},
		func(err error) {
			failed = true
			s.note("if this run is killed or cannot save its attempts, their replies and their cost are " +
				"lost: " + err.Error())
		})
	if failed {
		return nil
	}
	return s.db.MarkJournal(ctx, s.id, 0)
}

// leaves reports whether an attempt that was interrupted stays in the journal, so that it goes on when
// its trial runs again.
func (s *Session) leaves(id assay.TrialID) bool { return s.journal.Replies(id) > 0 }

// begun returns the attempts at trials of the experiment that have begun and are not in the store.
func (s *Session) begun(works bool) []store.Unfinished {
	return slices.DeleteFunc(s.journal.Unfinished(works), func(u store.Unfinished) bool {
		return s.elsewhere[u.ID]
	})
}
