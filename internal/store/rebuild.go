package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/assay-eval/assay"
)

// ErrExists means that a new store would replace an existing file.
var ErrExists = errors.New("already exists")

// A Conflict is a pair of outcomes of one trial in different stores. The outcome that finished
// first settles the trial, and of the other attempt only what it has cost counts.
type Conflict struct {
	Trial assay.TrialID `json:"trial"`
	Kept  StoredOutcome `json:"kept"`
	Left  StoredOutcome `json:"left"`
}

// A StoredOutcome is an outcome of a trial and the store that holds it.
type StoredOutcome struct {
	Store string      `json:"store"`
	Run   assay.RunID `json:"run"`
	Level assay.Level `json:"level"`
}

// Copied counts the rows that were copied to a new store, and lists what was not.
type Copied struct {
	Runs        int `json:"runs"`
	Trials      int `json:"trials"`
	Attempts    int `json:"attempts"`
	Outcomes    int `json:"outcomes"`
	Transcripts int `json:"transcripts"`
	// Doubles counts attempts that were found in several stores, and Conflicts attempts that were copied
	// without their outcomes because another outcome came first.
	Doubles   int `json:"doubles"`
	Conflicts int `json:"conflicts"`
	// Lost counts attempts that were not copied because they cannot be trusted. Missing counts
	// attempts that cannot be read or have no row, though no user deleted them.
	Lost    int   `json:"lost"`
	Missing int64 `json:"missing"`
	// Bare counts attempts that were copied without their transcripts, which are lost.
	Bare int `json:"without_transcript"`
	// Unfinished counts the attempts that the journal of the new store has, and Replies their replies.
	// LeftBehind has those that do not go on there, and whose replies are dropped.
	Unfinished int          `json:"unfinished,omitempty"`
	Replies    int          `json:"unfinished_replies,omitempty"`
	LeftBehind []LeftBehind `json:"unfinished_left,omitempty"`
	// Missing journals should be beside the stores.
	MissingJournals []MissingJournal `json:"missing_journals,omitempty"`
	// The lists have all conflicts, and everything that was left out because it is damaged.
	ConflictList  []Conflict     `json:"conflict_list"`
	PlanConflicts []PlanConflict `json:"plan_conflict_list"`
	LostList      []Problem      `json:"lost_list"`
}

// Merge makes a store at path, which must not exist, from the rows of the stores at from. The
// new store appears complete or not at all. Its content does not depend on the order of the
// stores, or on how often one is given, because rows are identified by their content, sorted
// by their time, and numbered anew. It is as private as the most private of the stores. Damage is
// an error.
//
// If rows are deleted from one of the stores meanwhile, Merge starts over. After a few tries it
// returns [ErrChanged]. It calls progress periodically.
func Merge(
	ctx context.Context, path string, from []string, progress func(what string, done, of int),
) (Copied, error) {
	return rebuild(ctx, path, from, false, progress)
}

// Recover is [Merge] of a single store, which may be damaged. It leaves out the damaged rows.
func Recover(
	ctx context.Context, path, from string, progress func(what string, done, of int),
) (Copied, error) {
	return rebuild(ctx, path, []string{from}, true, progress)
}

func rebuild(
	ctx context.Context, path string, from []string, salvages bool,
	progress func(what string, done, of int),
) (sum Copied, err error) {
	mode, err := strictest(from...)
	if err != nil {
		return sum, err
	}
	t, err := newTarget(path, mode)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, t.close()) }()

	const tries = 3
	for try := 1; ; try++ {
		b := &rebuilder{
			ctx: ctx, salvages: salvages, progress: progress,
			sum: Copied{
				ConflictList: []Conflict{}, PlanConflicts: []PlanConflict{}, LostList: []Problem{},
			},
			runs:   make(map[assay.RunID]int64),
			known:  make(map[assay.RunID]*foundRun),
			counts: make(map[int64]int),
			trials: make(map[trialKey]*mergedTrial),
			drops:  make(map[string]int64),
		}
		err := b.copy(t.part, from)
		switch {
		case err == nil:
			return b.sum, t.place()
		case !errors.Is(err, ErrChanged) || try == tries:
			return b.sum, err
		}
		if err := errors.Join(t.clear(), create(t.part, mode)); err != nil {
			return b.sum, err
		}
	}
}

// A rebuilder is one try to make a store.
type rebuilder struct {
	ctx      context.Context
	salvages bool // damage is no error
	progress func(what string, done, of int)
	sources  []*DB
	to       *DB
	sum      Copied

	deletions []int64 // the latest of each source when the try began
	journals  []*Journal

	runs map[assay.RunID]int64 // their rows in the new store
	// known are the runs of the sources. The doubtful ones are there for the attempts whose seals
	// prove their IDs.
	known  map[assay.RunID]*foundRun
	counts map[int64]int // attempts of each run in the new store

	found []foundAttempt
	// unfinished has the attempts that go on, and costs the others, which are found in no source.
	unfinished journalCopy
	costs      []*record

	trials  map[trialKey]*mergedTrial
	next    int64             // the row ID of the next attempt
	drops   map[string]int64  // the records of transcripts that are gone, by their text
	renamed []map[int64]int64 // for each source, its attempts' row IDs in the new store
	paid    []map[int64]int64 // the same of those that count for their cost only
}

// copy fills the new store.
func (b *rebuilder) copy(part string, from []string) (err error) {
	defer func() {
		for _, s := range b.sources {
			err = errors.Join(err, s.Close())
		}
		for _, j := range b.journals {
			j.Close(false)
		}
	}()
	if err := b.readJournals(from); err != nil { // before the rows, so that each attempt is in one of both
		return err
	}
	for _, name := range from {
		s, err := b.open(name, part)
		if err != nil {
			return err
		}
		b.sources = append(b.sources, s)
	}
	if b.to, err = Open(b.ctx, part); err != nil {
		return err
	}
	for _, s := range b.sources {
		if err := b.to.widen(b.ctx, s.layout); err != nil {
			return errors.Join(err, b.to.Close())
		}
	}
	for _, step := range []func() error{
		b.noteDeletions, b.findRuns, b.find, b.sortJournals, b.copyRuns, b.copyAttempts, b.copyEnds,
		b.copyVerdicts, b.copyRest, b.copyJournals, b.noteLost, b.refuseDeletions,
	} {
		if err = step(); err != nil {
			break
		}
	}
	return errors.Join(err, b.to.Close())
}

// open opens a source. Unless damage is an error, it opens a copy of the rows that SQLite can read.
func (b *rebuilder) open(path, part string) (*DB, error) {
	if !b.salvages {
		return OpenReadOnly(b.ctx, path)
	}
	dir, err := filepath.Abs(salvageDir(part)) // addresses of SQLite need it
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return b.salvage(path, dir)
}

// noteDeletions notes the latest deletion of each source.
func (b *rebuilder) noteDeletions() error {
	for _, s := range b.sources {
		n, err := s.deletions(b.ctx)
		if err != nil {
			return err
		}
		b.deletions = append(b.deletions, n)
	}
	return nil
}

// refuseDeletions returns an error if there was a deletion since noteDeletions.
func (b *rebuilder) refuseDeletions() error {
	for i, s := range b.sources {
		if err := s.unchanged(b.ctx, b.deletions[i]); err != nil {
			return err
		}
	}
	return nil
}

// lose notes something that is not copied.
func (b *rebuilder) lose(s *DB, p Problem) error {
	if !b.salvages {
		return coded(fmt.Errorf("store %s: %w: %s", s.path, ErrDamaged, p), assay.HintLoss, s.path)
	}
	b.sum.LostList = append(b.sum.LostList, p)
	return nil
}

// loseRow notes a row that is not copied.
func (b *rebuilder) loseRow(s *DB, table string, r sealedRow, what string) error {
	return b.lose(s, Problem{"seal", nameRow(table, r.id, r.row), what, doRestore, true})
}
