package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-eval/assay"
)

// An Unfinished is an attempt that has begun and is not in the store. It counts for nothing but its
// cost, like an interrupted one. StartedAt is when it began, and FinishedAt when its latest reply came.
type Unfinished struct {
	assay.Attempt
	// Replies counts the replies of models in the journal.
	Replies int
}

// Unfinished returns the attempts that have cost something, or may have, or that have replies, in the
// order in which they began. If a run works on them, requests in flight have cost nothing yet.
func (j *Journal) Unfinished(works bool) (all []Unfinished) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, o := range j.open {
		if !o.owes() {
			continue
		}
		u := o.unfinished()
		if works {
			u.UnpricedTokens = o.bill.UnpricedTokens
		}
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b Unfinished) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), cmp.Compare(a.ID, b.ID))
	})
	return all
}

func (o *openAttempt) unfinished() Unfinished {
	a := o.bill
	a.UnpricedTokens += max(0, o.asked)
	a.Trial, a.Run, a.Experiment, a.Program = o.trial, o.of.Run, o.of.Experiment, o.of.Program
	a.Round, a.FaultKind = o.round, assay.Interrupted
	a.FaultDetail = "its run was killed, or could not save it"
	a.StartedAt, a.FinishedAt = o.began, o.began
	if o.latest.After(o.began) {
		a.FinishedAt = o.latest.UTC()
	}
	return Unfinished{Attempt: a, Replies: len(o.replies)}
}

// Forget drops an attempt, for example because what it has cost is in the store.
func (j *Journal) Forget(id assay.TrialID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.open, id)
}

// Replies returns how many replies the next run has of an attempt at a trial that has not ended.
func (j *Journal) Replies(id assay.TrialID) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	if o := j.open[id]; o != nil && j.writes {
		return len(o.replies)
	}
	return 0
}

// Journal reads what earlier runs on the store have left, without the attempts that the store has. It is an
// error if it has attempts of runs that the store does not know.
func (db *DB) Journal(ctx context.Context) (*Journal, error) {
	j, err := ReadJournal(journalPath(db.path))
	if err != nil {
		return nil, err
	}
	strange, err := db.sift(ctx, j)
	if err == nil && len(strange) > 0 {
		p := strange[0].strange(j.path)
		err = hinted(fmt.Errorf("store %s: %s: %s", db.path, p.Where, p.What), p.Do)
	}
	if err != nil {
		j.Close(false)
	}
	j.number = func(id assay.TrialID) int { return db.numbers.next(db, id) }
	return j, err
}

// A numbering knows the numbers of the latest attempts at all trials. A run asks it for each attempt that
// begins, which would cost it a quarter of its time if each were a query.
type numbering struct {
	mu     sync.Mutex
	latest map[trialKey]int // nil before the first question
}

// next returns the number that the next attempt at a trial will have, or 0 if the store cannot tell.
func (n *numbering) next(db *DB, id assay.TrialID) int {
	key, err := parseTrialID(id)
	if err != nil {
		return 1 // no attempt can have it
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.latest == nil {
		n.latest, err = table[trialKey, int](context.Background(), db.reader,
			"SELECT trial, max(number) FROM attempts GROUP BY trial")
		if err != nil {
			n.latest = nil
			return 0
		}
	}
	return n.latest[key] + 1
}

// saved counts an attempt that is in the store now.
func (n *numbering) saved(key trialKey, number int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.latest != nil {
		n.latest[key] = max(number, n.latest[key])
	}
}

// strange describes an attempt in a journal beside a store that does not know its run.
func (u *Unfinished) strange(journal string) Problem {
	return Problem{
		Check: "journal", Where: journal,
		What: fmt.Sprintf("the attempt at trial %s is of run %s, which the store does not have", u.ID, u.Run),
		Do: fmt.Sprintf("if the store was copied without %s-wal after a kill, copy that, too; "+
			"if the journal belongs to another store, put it beside that one", strings.TrimSuffix(filepath.Base(journal), journalSuffix)),
	}
}

// sift drops the attempts of the store's own journal that the store has, and those of runs that it does
// not know, which it returns. It numbers the others.
func (db *DB) sift(ctx context.Context, j *Journal) (strange []Unfinished, err error) {
	if len(j.open) == 0 {
		return nil, nil
	}
	runs := make(map[assay.RunID]bool)
	for id, o := range j.open {
		saved, err := db.has(ctx, o)
		if err != nil {
			return nil, err
		}
		known, asked := runs[o.of.Run]
		if !asked {
			if known, err = db.knows(ctx, o.of.Run); err != nil {
				return nil, err
			}
			runs[o.of.Run] = known
		}
		if !known && o.owes() {
			strange = append(strange, o.unfinished())
		}
		if saved || !known {
			delete(j.open, id)
		}
	}
	return strange, nil
}

func (db *DB) knows(ctx context.Context, run assay.RunID) (bool, error) {
	n, err := values[int](ctx, db.reader, "SELECT count(*) FROM runs WHERE id = ?", run)
	return err == nil && n[0] > 0, db.wrap(err)
}

// nextNumber returns the number that the next attempt at a trial will have.
func (db *DB) nextNumber(ctx context.Context, id assay.TrialID) (int, error) {
	key, err := parseTrialID(id)
	if err != nil {
		return 1, nil // no attempt can have it
	}
	latest, err := values[int](ctx, db.reader, "SELECT coalesce(max(number), 0) FROM attempts WHERE trial = ?", key[:])
	if err != nil {
		return 0, db.wrap(err)
	}
	return latest[0] + 1, nil
}

// has reports whether the store has an attempt of its own journal, which may not have lived to see that
// the attempt was saved. Otherwise it gives the attempt the number that it would have now, because
// earlier ones may have been deleted.
func (db *DB) has(ctx context.Context, o *openAttempt) (saved bool, err error) {
	next, err := db.nextNumber(ctx, o.trial.ID)
	if err != nil {
		return false, err
	}
	if saved = o.number > 0 && o.number < next; o.number == 0 {
		saved, err = db.hasSince(ctx, o)
	}
	o.number = next
	return saved, err
}

// hasSince reports whether the store has an attempt at the same trial that ended after one began, which
// may be in the journal of another store, or in one without numbers. That depends on clocks. The attempt
// before may have ended in the same tick of the clock. Of the attempts whose cost alone a merge kept, only that very one counts.
func (db *DB) hasSince(ctx context.Context, o *openAttempt) (bool, error) {
	key, err := parseTrialID(o.trial.ID)
	if err != nil {
		return false, nil // no attempt can have it
	}
	const query = `SELECT a.fault_detail = ?, ifnull(r.id, ''), a.started_at, a.finished_at
		FROM attempts a LEFT JOIN runs r ON r.seq = a.run WHERE a.trial = ?`
	found := false
	err = each(ctx, db.reader, query, []any{lostDetail, key[:]}, func(rows *sql.Rows) (bool, error) {
		var lost bool
		var run assay.RunID
		var began, ended time.Time
		err := rows.Scan(&lost, &run, timeScanner{&began}, timeScanner{&ended})
		found = ended.After(o.began)
		if lost {
			found = run == o.of.Run && began.Equal(o.began)
		}
		return !found, err
	})
	return found, db.wrap(err)
}

// Left is what the runs of a store have left unfinished.
type Left struct {
	Attempts []Unfinished
	// Working is true if a run works on the store, so that some of the attempts are in flight.
	Working bool
	// Health says what is wrong with the journal, and Strange has the attempts in it whose runs the
	// store does not know.
	Health  Health
	Strange []Unfinished
	// Missing is nil unless attempts are lost with their costs.
	Missing *MissingJournal
}

// A MissingJournal should be beside a store, because a run left attempts in it. Without a path, the
// store was recovered from another one, whose attempts could not all be read.
type MissingJournal struct {
	Path string      `json:"path,omitempty"`
	Run  assay.RunID `json:"run"`
	// Attempts is how many attempts the run left, or 0 if it was killed, so that nobody knows.
	Attempts int `json:"attempts,omitempty"`
}

func (m *MissingJournal) String() string {
	if m.Path == "" {
		return fmt.Sprintf("this store was recovered from a damaged one without %s: "+
			"what they have cost is unknown", assay.Counted(m.Attempts, "attempt"))
	}
	what := "the attempts that it had begun"
	if m.Attempts > 0 {
		what = assay.Counted(m.Attempts, "attempt")
	}
	return fmt.Sprintf("%s is missing, where run %s left %s with their replies and what they have cost; "+
		"copy it beside the store, or they begin again, and their costs stay unknown", filepath.Base(m.Path), m.Run, what)
}

// Left returns what the runs of the store have left unfinished. While a run works, its requests in
// flight do not count.
func (db *DB) Left(ctx context.Context) (l Left, err error) {
	worker, err := db.Worker() // first, because a run that ends removes its journal
	if err != nil {
		return l, err
	}
	mark, err := db.journalMark(ctx)
	if err != nil {
		return l, err
	}
	j, err := ReadJournal(journalPath(db.path))
	if errors.Is(err, fs.ErrPermission) {
		return l, hinted(err, "the journal beside a store is as private as its run; ask its owner for both")
	}
	if err != nil {
		return l, err
	}
	defer j.Close(false)
	if l.Working, err = db.works(ctx, worker); err != nil {
		return l, err
	}
	if l.Missing, err = db.lost(ctx); err != nil {
		return l, err
	}
	if l.Missing == nil && mark.Run != "" && mark.Run != worker && !j.Exists() {
		mark.Path = journalPath(db.path)
		l.Missing = &mark
	}
	l.Health = j.health
	l.Strange, err = db.sift(ctx, j)
	l.Attempts = j.Unfinished(l.Working)
	return l, err
}

// works reports whether a run that holds the lock has not ended.
func (db *DB) works(ctx context.Context, run assay.RunID) (bool, error) {
	ended, err := values[int](ctx, db.reader,
		"SELECT count(*) FROM runs r JOIN ends e ON e.seq = r.seq WHERE r.id = ?", run)
	return run != "" && err == nil && ended[0] == 0, db.wrap(db.forgive("the end of a run", err))
}

// A journalMark notes that a run has a journal, at its end how many attempts it leaves there, and later
// that nothing of that is left. With do "lost" it notes how many attempts a recovery lost.
type journalMark struct {
	Do       string `json:"do"`
	Attempts int    `json:"attempts,omitempty"`
	Over     bool   `json:"over,omitempty"`
}

// MarkJournal notes in the store that a run has a journal, so that it is known if the journal gets
// lost, or how many attempts it leaves there at its end.
func (db *DB) MarkJournal(ctx context.Context, run assay.RunID, attempts int) error {
	return db.markJournal(ctx, run, journalMark{"journal", attempts, false})
}

func (db *DB) markJournal(ctx context.Context, run assay.RunID, m journalMark) error {
	mark, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return db.Log(ctx, Control{Run: run, At: time.Now().UTC(), Command: mark})
}

// DropJournal removes a journal in which nothing is left.
func (db *DB) DropJournal(ctx context.Context, j *Journal) error {
	if !j.Exists() || j.Owes() {
		return nil
	}
	mark, err := db.journalMark(ctx)
	if err == nil && mark.Run != "" {
		err = db.markJournal(ctx, mark.Run, journalMark{"journal", 0, true})
	}
	j.Close(err == nil)
	return err
}

// journalMark returns the run whose journal should be there, if there is one.
func (db *DB) journalMark(ctx context.Context) (m MissingJournal, err error) {
	const query = `SELECT r.id, ifnull(c.command ->> 'attempts', 0)
		FROM controls c CROSS JOIN runs r ON r.seq = c.run
		WHERE c.id = (SELECT max(id) FROM controls WHERE command ->> 'do' = 'journal')
			AND c.command ->> 'over' IS NULL AND (c.command ->> 'attempts' > 0 OR r.seq NOT IN (SELECT seq FROM ends))`
	all, err := collect(ctx, db.reader, query, nil, func(m *MissingJournal) []any {
		return []any{&m.Run, &m.Attempts}
	})
	if err = db.forgive("the commands to runs", err); err != nil || len(all) == 0 {
		return m, db.wrap(err)
	}
	return all[0], nil
}

// lost returns how many attempts were lost when the store, or one that it was copied from, was recovered.
func (db *DB) lost(ctx context.Context) (*MissingJournal, error) {
	const query = `SELECT ifnull(max(r.id), ''), ifnull(sum(c.command ->> 'attempts'), 0)
		FROM controls c CROSS JOIN runs r ON r.seq = c.run WHERE c.command ->> 'do' = 'lost'`
	all, err := collect(ctx, db.reader, query, nil, func(m *MissingJournal) []any {
		return []any{&m.Run, &m.Attempts}
	})
	if err = db.forgive("the commands to runs", err); err != nil || len(all) == 0 || all[0].Attempts == 0 {
		return nil, db.wrap(err)
	}
	return &all[0], nil
}

// JournalAt returns when the journal changed last, or zero without one.
func (db *DB) JournalAt() time.Time {
	fi, err := os.Stat(journalPath(db.path))
	if err != nil {
		return time.Time{}
	}
	return fi.ModTime()
}
