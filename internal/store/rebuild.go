package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-eval/assay"
)

// ErrExists says that a new store would take an old one's place.
var ErrExists = errors.New("exists already")

// A Conflict is two outcomes of one trial in several stores. The one that was
// finished first settles the trial, and the other is left where it is.
type Conflict struct {
	Trial assay.TrialID `json:"trial"`
	Kept  Claim         `json:"kept"`
	Left  Claim         `json:"left"`
}

// A Claim is an outcome that a store has of a trial.
type Claim struct {
	Store string      `json:"store"`
	Run   assay.RunID `json:"run"`
	Level assay.Level `json:"level"`
}

// Copied says what came into a new store.
type Copied struct {
	Runs        int `json:"runs"`
	Trials      int `json:"trials"`
	Attempts    int `json:"attempts"`
	Outcomes    int `json:"outcomes"`
	Transcripts int `json:"transcripts"`
	// Doubles are attempts that several stores have, and Conflicts outcomes
	// that were left.
	Doubles   int `json:"doubles"`
	Conflicts int `json:"conflicts"`
	// Lost are attempts that are not whole and were left, and Missing those of which
	// no row is there though nobody deleted them.
	Lost    int   `json:"lost"`
	Missing int64 `json:"missing"`
	// Bare attempts came without their transcripts, which are lost.
	Bare int `json:"without_transcript"`
	// Unreadable counts tables that could not be read to their end. What they had
	// beyond is lost, and nobody knows how much that is.
	Unreadable int `json:"unreadable"`
}

// A Rebuild makes a new store of the rows of others, which it only reads.
type Rebuild struct {
	// Lost is told of each thing that is not whole, and of its store; it is
	// left out. Where Lost is nil, the first such thing is an error.
	Lost func(path string, p Problem)
	// Conflict is told of each conflict, and PlanConflict, unless it is nil, of each
	// store whose plan of an experiment is not the one that holds.
	Conflict     func(Conflict)
	PlanConflict func(PlanConflict)
	// Progress is told now and then what is done.
	Progress func(what string, done, of int)
}

// Make makes a store at path, where none may be, of the rows of the stores at
// from. It appears whole or not at all. What it holds does not depend on the order
// of the stores, or on how often one is given: rows are told apart by their
// content, sorted by their time, and numbered anew. It is as private as the most
// private of them.
//
// Where rows are deleted from one of the stores meanwhile, it begins again, and nobody
// is told of what the first try found; after some tries it is [ErrChanged].
func (r Rebuild) Make(ctx context.Context, path string, from ...string) (sum Copied, err error) {
	mode, err := strictest(from...)
	if err != nil {
		// What is not there has a better message.
		for _, name := range from {
			s, err := OpenReadOnly(ctx, name)
			if err != nil {
				return sum, err
			}
			if err := s.Close(); err != nil {
				return sum, err
			}
		}
		return sum, err
	}
	t, err := newTarget(path, mode)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	const tries = 3
	for try := 1; ; try++ {
		var heard []func()
		attempt := r
		if r.Lost != nil {
			attempt.Lost = func(path string, p Problem) { heard = append(heard, func() { r.Lost(path, p) }) }
		}
		attempt.Conflict = func(c Conflict) { heard = append(heard, func() { r.Conflict(c) }) }
		if r.PlanConflict != nil {
			attempt.PlanConflict = func(c PlanConflict) { heard = append(heard, func() { r.PlanConflict(c) }) }
		}
		sum, err = attempt.make(ctx, t.part, from)
		if errors.Is(err, ErrChanged) && try < tries {
			if err := errors.Join(t.clear(), create(t.part, mode)); err != nil {
				return sum, err
			}
			continue
		}
		for _, tell := range heard {
			tell()
		}
		if err != nil {
			return sum, err
		}
		return sum, t.place()
	}
}

// make fills a new store.
func (r Rebuild) make(ctx context.Context, part string, from []string) (sum Copied, err error) {
	b := &rebuilder{Rebuild: r, ctx: ctx, runs: make(map[assay.RunID]int64), counts: make(map[int64]int), trials: make(map[trialKey]*placed)}
	defer func() {
		for _, s := range b.sources {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, name := range from {
		s, err := OpenReadOnly(ctx, name)
		if err != nil {
			return sum, err
		}
		b.sources = append(b.sources, s)
	}
	if b.to, err = Open(ctx, part, Options{}); err != nil {
		return sum, err
	}
	for _, step := range []func() error{b.before, b.copyRuns, b.find, b.copyAttempts, b.copyCounts, b.copyVerdicts, b.copyRest, b.after} {
		if err = step(); err != nil {
			break
		}
	}
	return b.sum, errors.Join(err, b.to.Close())
}

// before looks what was deleted so far, and after whether that is all.
func (b *rebuilder) before() error {
	for _, s := range b.sources {
		n, err := s.deletions(b.ctx, true)
		if err := b.tolerate(s, "table deletions", err); err != nil {
			return err
		}
		b.deletions = append(b.deletions, n)
	}
	return nil
}

func (b *rebuilder) after() error {
	for i, s := range b.sources {
		if err := s.unchanged(b.ctx, b.deletions[i], true); err != nil && !isDamage(err) {
			return err
		}
	}
	return nil
}

type rebuilder struct {
	Rebuild
	ctx     context.Context
	sources []*DB
	to      *DB
	sum     Copied

	deletions []int64     // of the sources, when it began
	looks     []*verifier // at the sources

	runs    map[assay.RunID]int64 // in the new store
	ended   []int64               // those that have ended
	counts  map[int64]int         // how many attempts each has in the new store
	found   []foundAttempt
	trials  map[trialKey]*placed
	next    int64   // the ID of the next attempt
	renamed []moved // the sources' attempts in the new store
}

// A foundAttempt is one of a source's.
type foundAttempt struct {
	finished int64
	sum      sum
	key      trialKey
	id       int64
	source   int32
	settles  bool
	bare     bool // its transcript was dropped, or never was
}

// placed is what the new store has of a trial.
type placed struct {
	number  int
	settled *foundAttempt
}

// moved maps the IDs of a source's attempts.
type moved map[int64]int64

func (b *rebuilder) lose(s *DB, p Problem) error {
	if b.Lost == nil {
		return hinted(fmt.Errorf("store %s: %w: %s", s.path, ErrDamaged, p), "\"assay verify\" says more, \"assay recover\" copies what is whole")
	}
	b.Lost(s.path, p)
	return nil
}

// tolerate takes note of damage and gives back any other error.
func (b *rebuilder) tolerate(s *DB, what string, err error) error {
	if err == nil || b.ctx.Err() != nil || !isDamage(err) {
		return err
	}
	b.sum.Unreadable++
	return b.lose(s, Problem{"file", what, "cannot be read on: " + firstLine(err), doRestore, true})
}

const runColumns = `id, experiment, library_path, library_name, library_digest, planned, program, host, pid, started_at, spec, serves, finished_at, summary`

// A foundRun is a source's, with those of its parts that are whole.
type foundRun struct {
	id, started string
	ended       bool
	sum         sum
	row         []any // in the order of runColumns
}

// copyRuns copies runs, oldest first. Of two states of a run the one that has
// ended holds. Where its experiment's text is damaged, the copy has null.
func (b *rebuilder) copyRuns() error {
	all := make(map[string]*foundRun)
	var plans []planOf
	for _, s := range b.sources {
		for _, table := range []string{"seals", "unsealed"} {
			if !s.readable(b.ctx, "SELECT count(*) FROM "+table+" NOT INDEXED") {
				p := Problem{"file", "table " + table, "cannot be read: what it would prove is taken as it is", doRestore, true}
				if err := b.lose(s, p); err != nil {
					return err
				}
			}
		}
		runs, err := b.runsOf(s)
		if err := b.tolerate(s, "table runs", err); err != nil {
			return err
		}
		plans = append(plans, plansOf(s, runs)...)
		for _, n := range runs {
			old := all[n.id]
			if old == nil || n.ended && !old.ended || n.ended == old.ended && bytes.Compare(n.sum[:], old.sum[:]) < 0 {
				all[n.id] = n
			}
		}
	}
	sorted := slices.SortedFunc(maps.Values(all), func(x, y *foundRun) int {
		return cmp.Or(strings.Compare(x.started, y.started), strings.Compare(x.id, y.id))
	})
	b.comparePlans(plans)
	return b.to.do(b.ctx, 0, func(w *writer) error {
		for _, r := range sorted {
			res, err := w.conn.ExecContext(w.ctx, insertSQL("runs", runColumns), r.row...)
			if err := w.sealNew("run", res, err); err != nil {
				return err
			}
			seq, err := res.LastInsertId()
			if err != nil {
				return err
			}
			b.runs[assay.RunID(r.id)] = seq
			b.sum.Runs++
			if r.ended {
				b.ended = append(b.ended, seq)
				if err := w.sealRow("run_end", seq); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// copyCounts counts anew what the runs that have ended have.
func (b *rebuilder) copyCounts() error {
	return b.to.do(b.ctx, 0, func(w *writer) error {
		for _, seq := range b.ended {
			if err := w.countRun(seq, b.counts[seq]); err != nil {
				return err
			}
		}
		return nil
	})
}

// runsOf returns the runs of a source, by their rows.
func (b *rebuilder) runsOf(s *DB) (map[int64]*foundRun, error) {
	runs := make(map[int64]*foundRun)
	broken := func(r sealedRow, lost string) error {
		return b.lose(s, Problem{"seal", fmt.Sprintf("run %v", r.row[0]), r.broken + lost, doRestore, true})
	}
	err := s.eachSealed(b.ctx, "run", func(r sealedRow) (bool, error) {
		if r.broken != "" {
			return true, broken(r, "; its attempts are left")
		}
		n := &foundRun{row: append(slices.Clone(r.row), "null", "{}", nil, nil), sum: sealOf("run", r.row)}
		n.id, _ = r.row[0].(string)
		n.started, _ = r.row[9].(string)
		if n.id == "" || n.started == "" {
			r.broken = "has no name or no beginning"
			return true, broken(r, "; its attempts are left")
		}
		runs[r.id] = n
		return true, nil
	})
	if err != nil {
		return runs, err
	}
	err = s.eachSealed(b.ctx, "run_spec", func(r sealedRow) (bool, error) {
		n := runs[r.id]
		switch {
		case n == nil:
		case r.broken != "":
			return true, broken(r, "; its experiment's text is left")
		default:
			n.row[10], n.row[11] = r.row[1], r.row[2]
		}
		return true, nil
	})
	if err != nil {
		return runs, err
	}
	return runs, s.eachSealed(b.ctx, "run_end", func(r sealedRow) (bool, error) {
		n := runs[r.id]
		switch {
		case n == nil:
		case r.broken != "":
			return true, broken(r, "; its end is left")
		case r.row[1] != nil:
			n.ended, n.row[12], n.row[13] = true, r.row[1], r.row[2]
		}
		return true, nil
	})
}

func (db *DB) wrap(err error) error {
	if err == nil {
		return nil
	}
	return db.readError(err)
}

// find looks at every attempt of all sources and keeps those that are whole. Of one
// that several have, the copy with its transcript comes first.
func (b *rebuilder) find() error {
	for i, s := range b.sources {
		b.renamed = append(b.renamed, make(moved))
		b.looks = append(b.looks, nil)
		if err := b.findIn(i, s); err != nil {
			return err
		}
	}
	slices.SortFunc(b.found, func(x, y foundAttempt) int {
		return cmp.Or(cmp.Compare(x.finished, y.finished), bytes.Compare(x.sum[:], y.sum[:]), compareBool(x.bare, y.bare))
	})
	return nil
}

// compareBool puts false first.
func compareBool(x, y bool) int { return cmp.Compare(flag(x), flag(y)) }

func (b *rebuilder) findIn(i int, s *DB) error {
	var failed error
	v := &verifier{db: s, ctx: b.ctx, inspect: func(*Stored) []Problem { return nil }, trials: map[trialKey]*progressOf{}, cells: map[assay.Cell]int{}}
	b.looks[i] = v
	v.progress = func(done, of int) { b.Progress("reading "+s.path, done, of) }
	v.found = func(p Problem) {
		if failed == nil {
			failed = b.lose(s, p)
		}
	}
	v.keep = func(c *checked) {
		if _, ok := b.runs[c.run]; !ok || !c.whole() {
			b.sum.Lost++
			return
		}
		b.found = append(b.found, foundAttempt{c.finished, c.sum, c.key, c.id, int32(i), c.settles, !c.transcript})
	}
	for _, step := range []func() error{v.begin, v.attempts, v.cut, v.ledger} {
		if err := b.tolerate(s, "attempts", step()); err != nil {
			return err
		}
	}
	b.sum.Missing += v.missing
	v.trials, v.cells = nil, nil // of it there remains where trials are
	return failed
}

// copyAttempts copies what was found, each content once and one outcome a trial.
func (b *rebuilder) copyAttempts() error {
	const batch = 512
	seen := make(map[sum]int64, len(b.found))
	for first := 0; first < len(b.found); first += batch {
		var rows []copyRow
		var from []*foundAttempt
		for i := range b.found[first:min(first+batch, len(b.found))] {
			f := &b.found[first+i]
			if id, double := seen[f.sum]; double {
				b.sum.Doubles++
				if id > 0 {
					b.renamed[f.source][f.id] = id
				}
				continue
			}
			t := b.trials[f.key]
			if t == nil {
				t = new(placed)
				b.trials[f.key] = t
			}
			if f.settles && t.settled != nil {
				seen[f.sum] = 0
				if err := b.conflict(t.settled, f); err != nil {
					return err
				}
				continue
			}
			b.next++
			t.number++
			seen[f.sum], b.renamed[f.source][f.id] = b.next, b.next
			if f.settles {
				t.settled = f
				b.sum.Outcomes++
			}
			rows, from = append(rows, copyRow{key: f.key, id: b.next, number: t.number}), append(from, f)
		}
		if err := b.loadAll(rows, from); err != nil {
			return err
		}
		if err := b.to.do(b.ctx, 0, func(w *writer) error { return b.insert(w, rows) }); err != nil {
			return err
		}
		b.Progress("writing", first+len(rows), len(b.found))
	}
	return nil
}

func (b *rebuilder) conflict(kept, left *foundAttempt) error {
	b.sum.Conflicts++
	c := Conflict{Trial: kept.key.id()}
	for _, x := range []struct {
		f  *foundAttempt
		to *Claim
	}{{kept, &c.Kept}, {left, &c.Left}} {
		s := b.sources[x.f.source]
		x.to.Store = s.path
		err := s.reader.QueryRowContext(b.ctx, "SELECT r.id, a.level FROM attempts a JOIN runs r ON r.seq = a.run WHERE a.id = ?", x.f.id).
			Scan(&x.to.Run, &x.to.Level)
		if err != nil {
			return s.readError(err)
		}
	}
	b.Conflict(c)
	return nil
}

// A copyRow is an attempt on its way.
type copyRow struct {
	key        trialKey
	trial      []any // nil for a trial that is there
	attempt    []any
	seal       sum
	transcript []byte
	script     []byte // the digest of the transcript
	dropped    bool   // it was, on purpose
	number     int
	id         int64
	run        int64 // in the new store
}

// loadAll loads rows by several goroutines, for transcripts have to be compressed
// anew.
func (b *rebuilder) loadAll(rows []copyRow, from []*foundAttempt) error {
	var all sync.WaitGroup
	var failed atomic.Pointer[error]
	var next atomic.Int64
	for range min(runtime.GOMAXPROCS(0), 4) {
		all.Go(func() {
			for failed.Load() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(rows) {
					return
				}
				if err := b.load(&rows[i], from[i]); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// load reads an attempt from its source, with its trial if it is the first.
func (b *rebuilder) load(r *copyRow, f *foundAttempt) error {
	s := b.sources[f.source]
	r.seal = sealAttempt(f.sum, r.id, int64(r.number))
	if r.number == 1 {
		trial := func(where string, arg any) error {
			return eachRaw(b.ctx, s.reader, "SELECT "+trialColumns+" FROM trials WHERE "+where, []any{arg}, func(row []any) (bool, error) {
				r.trial = slices.Clone(row)
				return true, nil
			})
		}
		err := trial("id = ?", f.key[:])
		if r.trial == nil && (err == nil || isDamage(err)) {
			err = trial("rowid = ?", b.looks[f.source].byTable.of(b.ctx, s, f.key))
		}
		if err != nil {
			return s.readError(err)
		}
	}
	row, err := s.piecemeal(b.ctx, f.id)
	if err != nil {
		return s.readError(err)
	}
	if row == nil || r.number == 1 && r.trial == nil {
		return s.readError(ErrChanged)
	}
	run, _ := row[2].(string)
	r.run = b.runs[assay.RunID(run)]
	script, text, err := s.script(b.ctx, row)
	if b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	if identify(f.key, run, row[8:], script) != f.sum {
		return s.readError(fmt.Errorf("%w: the attempt with row ID %d is not what it was a moment ago", ErrDamaged, f.id))
	}
	r.script, r.dropped = script, err == nil && text == nil
	if text != nil {
		if r.transcript, err = b.to.compress(b.ctx, text); err != nil {
			return err
		}
	}
	r.attempt = append([]any{r.id, r.number, r.run, f.key[:]}, row[8:]...)
	return nil
}

// attemptNames are the columns of an attempt that its seal covers.
func attemptNames() []string { return columnNames(attemptColumns)[4:] }

func (b *rebuilder) insert(w *writer, rows []copyRow) error {
	for _, r := range rows {
		if r.trial != nil {
			if err := w.exec(w.stmt.trial, r.trial...); err != nil {
				return err
			}
			b.sum.Trials++
		}
		if err := w.exec(w.stmt.attempt, r.attempt...); err != nil {
			return err
		}
		if err := w.exec(w.stmt.seal, r.id, r.seal[:], r.script); err != nil {
			return err
		}
		b.sum.Attempts++
		b.counts[r.run]++
		w.last = r.id
		gone := json.RawMessage(`{"transcripts_only":true,"before":"this store was made of others"}`)
		switch {
		case r.transcript != nil:
			if err := w.exec(w.stmt.transcript, r.id, r.transcript); err != nil {
				return err
			}
			b.sum.Transcripts++
			continue
		case r.script == nil: // there never was one
			continue
		case !r.dropped:
			gone = json.RawMessage(`{"transcripts_only":true,"lost":"in a store that this one was recovered from"}`)
			b.sum.Bare++
		}
		deletion, err := w.deletion(gone, "", true)
		if err != nil {
			return err
		}
		if _, err := w.conn.ExecContext(w.ctx, "INSERT INTO dropped (attempt, deletion, digest) VALUES (?, ?, ?)", r.id, deletion, r.script); err != nil {
			return err
		}
	}
	return nil
}

// A dated row waits to be copied in the order of its time.
type dated struct {
	at  string
	row []any
}

// copyDated copies rows of a table from all sources, each once, in the order of
// the column named at. The rows have seals, unless of is empty. change may alter a
// row's first column to fit the new store, or refuse the row.
func (b *rebuilder) copyDated(of, table, columns, at string, change func(source int, row []any) bool) error {
	seen := make(map[sum]bool)
	var all []dated
	when := slices.Index(columnNames(columns), at)
	for i, s := range b.sources {
		take := func(row []any) {
			row = slices.Clone(row)
			if change != nil && !change(i, row) {
				return
			}
			if sum := sealOf(table, row); !seen[sum] {
				seen[sum] = true
				text, _ := row[when].(string)
				all = append(all, dated{text, row})
			}
		}
		var err error
		if of == "" {
			err = s.wrap(eachRaw(b.ctx, s.reader, "SELECT "+columns+" FROM "+table, nil, func(row []any) (bool, error) {
				take(row)
				return true, nil
			}))
		} else {
			err = s.eachSealed(b.ctx, of, func(r sealedRow) (bool, error) {
				if r.broken != "" {
					return true, b.lose(s, Problem{"seal", fmt.Sprintf("row %d of %s", r.id, table), r.broken, doRestore, true})
				}
				take(r.row)
				return true, nil
			})
		}
		if err := b.tolerate(s, "table "+table, err); err != nil {
			return err
		}
	}
	slices.SortStableFunc(all, func(x, y dated) int {
		if c := strings.Compare(x.at, y.at); c != 0 {
			return c
		}
		p, q := sealOf(table, x.row), sealOf(table, y.row)
		return bytes.Compare(p[:], q[:])
	})
	insert := strings.Replace(insertSQL(table, columns), "INSERT", "INSERT OR IGNORE", 1)
	return b.to.do(b.ctx, 0, func(w *writer) error {
		for _, d := range all {
			res, err := w.conn.ExecContext(w.ctx, insert, d.row...)
			if err != nil {
				return err
			}
			if n, err := res.RowsAffected(); err != nil || n == 0 || of == "" {
				if err != nil {
					return err
				}
				continue // one that was made earlier holds
			}
			if err := w.sealNew(of, res, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// copyVerdicts copies what was said later of attempts that were copied.
func (b *rebuilder) copyVerdicts() error {
	ofAttempt := func(source int, row []any) bool {
		id, _ := row[0].(int64)
		to, ok := b.renamed[source][id]
		row[0] = to
		return ok
	}
	if err := b.copyDated("score", "scores", scoreColumns, "scored_at", ofAttempt); err != nil {
		return err
	}
	return b.copyDated("classification", "classifications", classificationColumns, "classified_at", ofAttempt)
}

// copyRest copies what belongs to runs, and imports.
func (b *rebuilder) copyRest() error {
	for _, t := range []struct{ table, columns, at string }{
		{"lane_limits", "run, lane, bucket, value, learned_at", "learned_at"},
		{"controls", "run, at, command", "at"},
	} {
		seqs := make([]map[int64]int64, len(b.sources))
		for i, s := range b.sources {
			seqs[i] = make(map[int64]int64)
			err := eachRaw(b.ctx, s.reader, "SELECT seq, id FROM runs", nil, func(row []any) (bool, error) {
				seq, _ := row[0].(int64)
				id, _ := row[1].(string)
				if to, ok := b.runs[assay.RunID(id)]; ok {
					seqs[i][seq] = to
				}
				return true, nil
			})
			if err := b.tolerate(s, "table runs", s.wrap(err)); err != nil {
				return err
			}
		}
		err := b.copyDated("", t.table, t.columns, t.at, func(source int, row []any) bool {
			seq, _ := row[0].(int64)
			to, ok := seqs[source][seq]
			row[0] = to
			return ok
		})
		if err != nil {
			return err
		}
	}
	return b.copyDated("import", "imports", importColumns, "imported_at", nil)
}

// deletion records that rows went on purpose, and returns its row. With once it is
// made only if there is none of these words.
func (w *writer) deletion(what json.RawMessage, program string, once bool) (id int64, err error) {
	if once {
		err := w.conn.QueryRowContext(w.ctx, "SELECT ifnull(max(id), 0) FROM deletions WHERE what = ?", string(what)).Scan(&id)
		if err != nil || id > 0 {
			return id, err
		}
	}
	now, err := formatTime(time.Now())
	if err != nil {
		return 0, err
	}
	res, err := w.conn.ExecContext(w.ctx, "INSERT INTO deletions (at, program, what) VALUES (?, ?, ?)", now, program, string(what))
	if err := w.sealNew("deletion", res, err); err != nil {
		return 0, err
	}
	return res.LastInsertId()
}
