//go:build unix

package store_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/store/storetest"
)

// fromEnv returns the number in a variable, or another if there is none.
func fromEnv(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	must(t, err)
	return n
}

// A power cut at any write, sync or deletion takes nothing away that was acknowledged, and leaves
// nothing half. ASSAY_POWER_CUTS is how many there are, and ASSAY_POWER_SEED the first seed.
func TestPowerCuts(t *testing.T) {
	n := 300
	if testing.Short() {
		n = 120
	}
	n = fromEnv(t, "ASSAY_POWER_CUTS", n)
	p := &power{cuts: n, whole: make(map[uint64]int)}
	var seed atomic.Uint64
	seed.Store(uint64(fromEnv(t, "ASSAY_POWER_SEED", 1)))
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for p.cut() < n && len(p.violations()) == 0 {
				p.history(t, seed.Add(1)-1, nil)
			}
		})
	}
	all.Wait()
	for _, v := range p.violations() {
		t.Error(v)
	}
	t.Logf("%d power cuts, %+v", p.cut(), p.seen)
}

// The test of power cuts finds what it is for.
func TestPowerCutsAreFound(t *testing.T) {
	for name, spoil := range map[string]func(*storetest.Faults){
		"the disk ignores syncs":                func(f *storetest.Faults) { f.Lies = true },
		"the disk ignores directories":          func(f *storetest.Faults) { f.DirLies = true },
		"copies get names that are not synced":  func(f *storetest.Faults) { f.Forgetful = true },
		"the log's checksums are not looked at": func(f *storetest.Faults) { f.NoChecksums = true },
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && strings.Contains(name, "checksums") {
				t.Skip("it takes a hundred power cuts")
			}
			found(t, &spoiled{faults: spoil})
		})
	}
	for _, setting := range []string{"synchronous = NORMAL", "synchronous = OFF"} {
		t.Run(setting, func(t *testing.T) { found(t, &spoiled{pragma: setting}) })
	}
}

// found requires that something is lost within some power cuts.
func found(t *testing.T, s *spoiled) {
	t.Helper()
	p := &power{cuts: 2000, whole: make(map[uint64]int)}
	for seed := uint64(1); len(p.violations()) == 0; seed++ {
		if p.cut() >= p.cuts {
			t.Fatalf("%d power cuts have destroyed nothing", p.cut())
		}
		p.history(t, seed, s)
	}
	t.Logf("after %d power cuts: %s", p.cut(), p.violations()[0])
}

// After a sync has failed, what is read from the log may not be on the disk, and later syncs do not
// write it. What the next run adds behind it must not depend on it.
func TestPowerCutAfterFailedSync(t *testing.T) {
	dir := fast(t)
	d, err := storetest.NewDisk(dir)
	must(t, err)
	defer d.Forget()
	path := filepath.Join(d.Dir(), "assay.db")
	db := open(t, path)
	begin(t, db, "r1")
	save(t, db, outcome(1))
	d.Set(func(f *storetest.Faults) { f.FailedSyncs = true })
	if err := db.Save(t.Context(), outcome(2), nil); !errors.Is(err, store.ErrDisk) {
		t.Fatalf("Save on a broken disk = %v, want ErrDisk", err)
	}
	must(t, db.Close())
	d.Set(func(f *storetest.Faults) { f.FailedSyncs = false })
	db = open(t, path)
	begin(t, db, "r2")
	a := outcome(3)
	a.Run = "r2"
	save(t, db, a)
	h := &history{power: &power{}, t: t}
	r := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		image, err := d.Cut(r)
		must(t, err)
		must(t, h.inspect(image, []promise{func(e *expected) {
			e.begun = []assay.RunID{"r1", "r2"}
			e.attempts[store.Key{Trial: outcome(1).ID, Number: 1}] = outcome(1)
			e.attempts[keyOf(a)] = a
		}}, 3, false))
	}
}

// spoiled is what is wrong with a disk or a store.
type spoiled struct {
	faults func(*storetest.Faults)
	pragma string
}

// power cuts the power of machines, whose histories begin with an empty disk.
type power struct {
	cuts int

	mu    sync.Mutex // guards the fields below
	done  int
	found []string
	seen  struct {
		Lives, Kills, Reboots, Saved, Refused, Backups, Merges, Deletions, FullDisks, FailedSyncs int
		Replies, GoneOn                                                                           int
	}
	// whole counts the attempts of copies that were found whole, by the hashes of their content.
	whole map[uint64]int
}

func (p *power) cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

func (p *power) violations() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.found
}

func (p *power) violate(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found = append(p.found, fmt.Sprintf(format, args...))
}

func (p *power) note(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// A promise adds to what a power cut has to leave, because it was acknowledged.
type promise func(*expected)

// A history is what a machine does from an empty disk on.
type history struct {
	*power
	t       *testing.T
	name    string // of its seed
	life    int
	wrong   *spoiled
	pending sync.WaitGroup // cuts that are looked at
	looks   chan struct{}  // limits how many

	mu       sync.Mutex // guards the fields below
	r        *rand.Rand
	disk     *storetest.Disk
	promises []promise
	begun    map[assay.TrialID]bool // trials that were tried
	open     []int                  // trials to be tried again
	trials   int
	files    int // backups and merged stores
	dead     bool
	next     *storetest.Disk // of the dead
	kept     int             // promises that were given before the death
	left     int             // events until the death, or less than 0
	every    int             // events for each cut
	crippled int             // events until the disk fails
	broken   bool
}

// fast returns a directory on a disk in memory, if there is one.
func fast(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "assay-power-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

func (p *power) history(t *testing.T, seed uint64, wrong *spoiled) {
	root := fast(t)
	defer os.RemoveAll(root)
	h := &history{
		power: p, t: t, name: fmt.Sprint("seed ", seed), r: rand.New(rand.NewPCG(seed, 1)),
		begun: make(map[assay.TrialID]bool), wrong: wrong, looks: make(chan struct{}, 4),
	}
	defer h.pending.Wait()
	h.every = 4 + h.r.IntN(30)
	dir := filepath.Join(root, "0")
	must(t, os.Mkdir(dir, 0o755))
	var err error
	h.disk, err = storetest.NewDisk(dir)
	must(t, err)
	var db *store.DB
	for life := 1; life <= 6 && p.cut() < p.cuts && len(p.violations()) == 0; life++ {
		p.note(func() { p.seen.Lives++ })
		h.life = life
		h.arm()
		db = h.live(life, db)
		if h.next == nil {
			continue
		}
		if db != nil {
			_ = db.Close()
			db = nil
		}
		h.reboot()
	}
	h.disk.Watch(nil)
	if db != nil {
		_ = db.Close()
	}
	h.disk.Forget()
}

// arm decides how the next life ends.
func (h *history) arm() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left, h.crippled, h.broken = -1, -1, false
	if h.r.IntN(3) > 0 {
		h.left = h.r.IntN(150)
	}
	if h.r.IntN(6) == 0 {
		h.crippled = 30 + h.r.IntN(100)
	}
	h.disk.Set(func(f *storetest.Faults) {
		f.Full, f.FailedSyncs = false, false
		if h.wrong != nil && h.wrong.faults != nil {
			h.wrong.faults(f)
		}
	})
	h.disk.Watch(h.event)
}

// event is called before each operation of the disk.
func (h *history) event() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead {
		return
	}
	if h.crippled--; h.crippled == 0 {
		h.broken = true
		full := h.r.IntN(2) == 0
		h.disk.Set(func(f *storetest.Faults) { f.Full, f.FailedSyncs = full, !full })
		h.note(func() {
			if full {
				h.seen.FullDisks++
			} else {
				h.seen.FailedSyncs++
			}
		})
	}
	if h.left--; h.left == 0 {
		h.dead, h.kept = true, len(h.promises)
		h.die()
		return
	}
	if h.r.IntN(h.every) == 0 {
		h.look()
	}
}

// look cuts the power and looks at what is left, while life goes on.
func (h *history) look() {
	h.power.mu.Lock()
	over := h.done == h.cuts || len(h.found) > 0
	if !over {
		h.done++
	}
	number := h.done
	h.power.mu.Unlock()
	if over {
		return
	}
	image, err := h.disk.Cut(h.r)
	if err != nil {
		h.violate("%s: %v", h.name, err)
		return
	}
	where := fmt.Sprintf("%s, life %d, broken: %v", h.name, h.life, h.broken)
	promises, begun := h.promises[:len(h.promises):len(h.promises)], h.trials
	more := h.r.IntN(10) == 0
	h.looks <- struct{}{}
	h.pending.Go(func() {
		defer func() { <-h.looks }()
		if err := h.inspect(image, promises, begun, more); err != nil {
			h.violate("%s, power cut %d, %d promises, %d trials: %v", where, number, len(promises), begun, err)
		}
	})
}

// die ends the process by a kill or a power cut. What it does from now on counts for nothing.
func (h *history) die() {
	dir := h.disk.Dir() + "-next"
	err := os.Mkdir(dir, 0o755)
	kills := h.r.IntN(2) == 0
	switch {
	case err != nil:
	case kills:
		h.next, err = h.disk.Kill(dir)
		h.note(func() { h.seen.Kills++ })
	default:
		var image *storetest.Image
		if image, err = h.disk.Cut(h.r); err == nil {
			err = image.Write(dir)
		}
		if err == nil {
			h.next, err = storetest.NewDisk(dir)
		}
		h.note(func() { h.seen.Reboots++ })
	}
	if err != nil {
		h.violate("%s: %v", h.name, err)
	}
}

// reboot goes on with the disk of the dead.
func (h *history) reboot() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.disk.Watch(nil)
	h.disk.Forget()
	h.disk, h.next, h.dead, h.promises = h.next, nil, false, h.promises[:h.kept:h.kept]
}

// promise notes what was acknowledged, unless the process is dead by now.
func (h *history) promise(f promise) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.dead {
		h.promises = append(h.promises, f)
	}
}

func (h *history) isDead() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dead
}

// draw returns a random number less than n.
func (h *history) draw(n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.r.IntN(n)
}

func (h *history) path() string { return filepath.Join(h.disk.Dir(), "assay.db") }

// live is the life of a process: it opens the store, unless it has waited for that during the
// previous one, and carries out a run. It returns the store if the next process waits for it.
func (h *history) live(life int, db *store.DB) *store.DB {
	ctx := h.t.Context()
	path := h.path()
	if db == nil {
		var err error
		if db, err = store.Open(ctx, path); err != nil {
			h.excuse("open", err)
			return nil
		}
	}
	if h.wrong != nil && h.wrong.pragma != "" {
		db.Pragma(h.t, h.wrong.pragma)
	}
	if h.draw(2) == 0 {
		db.Pragma(h.t, fmt.Sprint("wal_autocheckpoint = ", 4+h.draw(60)))
	}
	run := assay.RunID(fmt.Sprint(h.name, " life ", life))
	ended := false
	err := db.BeginRun(ctx, experiment("e"), store.Run{ID: run, StartedAt: epoch})
	if err == nil {
		h.promise(func(e *expected) { e.begun = append(e.begun, run) })
		talks, err := h.openTalks(db, run)
		if err == nil {
			h.work(db, run, talks)
			defer func() { talks.journal.Close(ended) }()
			if n := len(talks.journal.Unfinished(false)); n > 0 {
				err = db.MarkJournal(ctx, run, n)
			}
		}
		if err != nil {
			h.excuse("journal", err)
		}
	} else {
		h.excuse("begin", err)
	}
	waiting := make(chan *store.DB, 1)
	waits := h.draw(3) == 0
	if waits {
		go func() { waiting <- h.wait(path) }()
	}
	err = db.EndRun(ctx, run, json.RawMessage(`{"done": true}`))
	if ended = err == nil; ended {
		h.promise(func(e *expected) { e.ended = append(e.ended, run) })
	} else {
		h.excuse("end", err)
	}
	if err := db.Close(); err != nil {
		h.excuse("close", err)
	}
	if waits {
		return <-waiting
	}
	h.merge()
	return nil
}

// excuse accepts an error that a broken disk or a death explains.
func (h *history) excuse(what string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.dead && !h.broken {
		h.violate("%s: %s: %v", h.name, what, err)
	}
}

// wait opens the store once the run that uses it has ended.
func (h *history) wait(path string) *store.DB {
	for {
		db, err := store.Open(context.WithoutCancel(h.t.Context()), path)
		if err == nil {
			return db
		}
		if !errors.Is(err, store.ErrInUse) || h.isDead() {
			h.excuse("wait for the store", err)
			return nil
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// work does what runs do, all at once.
func (h *history) work(db *store.DB, run assay.RunID, talks *talks) {
	var all sync.WaitGroup
	sent, err := db.OpenSentLog()
	if err != nil {
		h.excuse("open the log of requests", err)
		return
	}
	savers, each := 1+h.draw(12), 1+h.draw(12)
	for s := range savers {
		all.Go(func() {
			for i := 0; i < each && !h.isDead(); i++ {
				if !h.save(db, run, sent, s) {
					return
				}
			}
		})
	}
	for worker := range h.draw(4) {
		all.Go(func() { h.talk(db, talks, run, worker) })
	}
	some := func(share int, do func()) {
		if h.draw(share) == 0 {
			all.Go(do)
		}
	}
	some(2, func() { h.backup(db) })
	some(2, func() { h.backup(db) })
	some(2, func() { h.command(db, run) })
	some(2, func() { h.keepLibrary(db) })
	some(3, func() { h.lockFile() })
	some(3, func() { h.secondRun() })
	some(3, func() {
		for range 5 {
			if _, err := db.Settled(h.t.Context()); err != nil {
				h.excuse("read", err)
			}
		}
	})
	all.Wait()
	if h.draw(4) == 0 {
		h.delete(db)
	}
	must(h.t, sent.Close())
}

// save carries out a trial, and reports whether the store goes on.
func (h *history) save(db *store.DB, run assay.RunID, sent *store.SentLog, saver int) bool {
	i, a, again := h.trial()
	a.Run, a.Worker = run, fmt.Sprint("w", saver%3)
	if err := sent.Add(a.Lane, store.Sent{At: epoch, Requests: 1}); err != nil {
		h.excuse("note a request", err)
	}
	text := transcript(i)
	if saver%2 == 0 {
		text.Messages[1].Content = strings.Repeat(string(a.ID), saver*20)
	}
	err := db.Save(h.t.Context(), a, text)
	switch {
	case err == nil:
		h.promise(func(e *expected) { e.attempts[keyOf(a)] = a })
		h.note(func() { h.seen.Saved++ })
		if !a.Settles() {
			h.retry(i)
		}
	case errors.Is(err, store.ErrSettled) && again: // an earlier life had saved it, and did not learn it
		h.note(func() { h.seen.Refused++ })
	default:
		h.retry(i)
		h.excuse("save", err)
		return false
	}
	return true
}

func keyOf(a *assay.Attempt) store.Key { return store.Key{Trial: a.ID, Number: a.Number} }

// trial returns an attempt at a new trial, or at one whose last attempt was a fault or was not
// acknowledged.
func (h *history) trial() (i int, a *assay.Attempt, again bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.open); n > 0 && h.r.IntN(3) == 0 {
		i, h.open, again = h.open[n-1], h.open[:n-1], true
	} else {
		h.trials++
		i = h.trials
	}
	a = outcome(i)
	h.begun[a.ID] = true
	if h.r.IntN(5) == 0 {
		a.Withdraw()
		a.Loop, a.LoopTurn = "", 0
		a.FaultKind, a.FaultDetail = assay.Timeout, "no reply"
	}
	a.CostUSD = float64(h.r.IntN(1000)) / 1000
	return i, a, again
}

func (h *history) retry(i int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = append(h.open, i)
}

// expect applies what was promised so far.
func (h *history) expect() *expected {
	h.mu.Lock()
	defer h.mu.Unlock()
	return expect(h.promises)
}

// file returns the name of a new file.
func (h *history) file(kind string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files++
	return fmt.Sprint(kind, "-", h.files, ".db")
}

func (h *history) backup(db *store.DB) {
	all := h.expect()
	name, least := h.file("backup"), len(all.attempts)
	if _, err := db.Backup(h.t.Context(), filepath.Join(h.disk.Dir(), name)); err != nil {
		h.excuse("backup", err)
		return
	}
	h.promise(func(e *expected) { e.copies[name], e.copied[name] = least, all.replies })
	h.note(func() { h.seen.Backups++ })
}

// merge makes a store of the closed one and a copy of it.
func (h *history) merge() {
	all := h.expect()
	if h.draw(3) > 0 || h.isDead() || len(all.begun) == 0 {
		return
	}
	from := []string{h.path()}
	for name := range all.copies {
		from = append(from, filepath.Join(h.disk.Dir(), name))
	}
	name := h.file("merged")
	_, err := store.Merge(h.t.Context(), filepath.Join(h.disk.Dir(), name), from, quiet)
	if err != nil {
		h.excuse("merge", err)
		return
	}
	h.promise(func(e *expected) { e.copies[name], e.copied[name] = len(all.attempts), all.replies })
	h.note(func() { h.seen.Merges++ })
}

func (h *history) command(db *store.DB, run assay.RunID) {
	for i := range 3 {
		c := store.Control{Run: run, At: epoch, Command: json.RawMessage(fmt.Sprintf(`{"set": %d}`, i))}
		if err := db.Log(h.t.Context(), c); err != nil {
			h.excuse("log", err)
			return
		}
		h.promise(func(e *expected) { e.commands++ })
	}
}

func (h *history) keepLibrary(db *store.DB) {
	digest := fmt.Sprint("library ", h.draw(1e9))
	if err := db.KeepLibrary(h.t.Context(), digest, []byte(strings.Repeat(digest, 400))); err != nil {
		h.excuse("keep a library", err)
		return
	}
	h.promise(func(e *expected) { e.libraries = append(e.libraries, digest) })
}

// delete deletes some outcomes. During the deletion it is uncertain whether they are there.
func (h *history) delete(db *store.DB) {
	var keys []store.Key
	for key, a := range h.expect().attempts {
		if a.Settles() && len(keys) < 5 {
			keys = append(keys, key)
		}
	}
	h.promise(func(e *expected) {
		for _, key := range keys {
			delete(e.attempts, key)
		}
	})
	choice := store.Choice{Where: []string{"some"}, Only: keys}
	if _, err := db.Delete(h.t.Context(), choice, "v1"); err != nil {
		h.excuse("delete", err)
		return
	}
	h.promise(func(e *expected) {
		for _, key := range keys {
			e.gone[key] = true
		}
	})
	h.note(func() { h.seen.Deletions++ })
}

// lockFile is another program that locks the file for a while, unless SQLite refuses it.
func (h *history) lockFile() {
	other, err := sql.Open("sqlite", "file:"+h.path()+"?_pragma=busy_timeout(10000)&_txlock=immediate")
	if err == nil {
		var tx *sql.Tx
		if tx, err = other.BeginTx(h.t.Context(), nil); err == nil {
			time.Sleep(3 * time.Millisecond)
			err = tx.Rollback()
		}
		err = errors.Join(err, other.Close())
	}
	if err != nil && !strings.Contains(err.Error(), "SQLITE_BUSY") {
		h.excuse("lock the file", err)
	}
}

// secondRun must not begin while the first one works.
func (h *history) secondRun() {
	db, err := store.Open(h.t.Context(), h.path())
	if errors.Is(err, store.ErrInUse) {
		return
	}
	h.excuse("second run", fmt.Errorf("was not refused as it should be: %w", err))
	if err == nil {
		_ = db.Close()
	}
}

// expected is what a power cut has to leave.
type expected struct {
	attempts     map[store.Key]*assay.Attempt
	gone         map[store.Key]bool // deleted
	begun, ended []assay.RunID
	copies       map[string]int // the least attempts of each
	// replies are the costs of the replies that attempts without an end were given, and copied those that
	// the journals of copies have.
	replies   map[assay.TrialID][]float64
	copied    map[string]map[assay.TrialID][]float64
	commands  int
	libraries []string
}

func expect(promises []promise) *expected {
	e := &expected{
		attempts: make(map[store.Key]*assay.Attempt), gone: make(map[store.Key]bool),
		copies: make(map[string]int), replies: make(map[assay.TrialID][]float64),
		copied: make(map[string]map[assay.TrialID][]float64),
	}
	for _, p := range promises {
		p(e)
	}
	return e
}

// inspect does what the next process does after a power cut, and says what is lost. Trials up to one
// may have been saved.
func (h *history) inspect(image *storetest.Image, promises []promise, trials int, more bool) (err error) {
	dir := fast(h.t)
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := image.Write(dir); err != nil {
		return err
	}
	e := expect(promises)
	counts, err := h.inspectCopies(image, dir, more)
	if err != nil {
		return err
	}
	for name, replies := range e.copied {
		if more {
			db, err := store.OpenReadOnly(h.t.Context(), filepath.Join(dir, name))
			if err == nil {
				err = errors.Join(h.inspectJournal(db, replies), db.Close())
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for name, least := range e.copies {
		if n, ok := counts[name]; !ok || n < least {
			return fmt.Errorf("%s is there: %v, with %d attempts, want %d", name, ok, n, least)
		}
	}
	db, err := store.Open(h.t.Context(), filepath.Join(dir, "assay.db"))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	err = e.compare(h.t.Context(), db, trials)
	if err == nil {
		err = h.inspectJournal(db, e.replies)
	}
	if err == nil && more {
		err = h.goOn(db, dir, trials)
	}
	return errors.Join(err, db.Close())
}

// inspectCopies counts the attempts of backups and merged stores. Each is whole, also if its making
// was not acknowledged.
func (h *history) inspectCopies(image *storetest.Image, dir string, more bool) (map[string]int, error) {
	counts := make(map[string]int)
	for name, content := range image.Files() {
		if !strings.HasPrefix(name, "backup-") && !strings.HasPrefix(name, "merged-") ||
			!strings.HasSuffix(name, ".db") {
			continue
		}
		n, err := h.count(filepath.Join(dir, name), content)
		if err == nil && more {
			var db *store.DB
			if db, err = store.Open(h.t.Context(), filepath.Join(dir, name)); err == nil {
				err = db.Close()
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		counts[name] = n
	}
	return counts, nil
}

var hashSeed = maphash.MakeSeed()

// count returns the number of attempts of a store that is whole.
func (p *power) count(path string, content []byte) (int, error) {
	sum := maphash.Bytes(hashSeed, content)
	p.mu.Lock()
	n, ok := p.whole[sum]
	p.mu.Unlock()
	if ok {
		return n, nil
	}
	db, err := store.OpenReadOnly(context.Background(), path)
	if err != nil {
		return 0, err
	}
	attempts, err := verified(context.Background(), db)
	if err = errors.Join(err, db.Close()); err != nil {
		return 0, err
	}
	p.note(func() { p.whole[sum] = len(attempts) })
	return len(attempts), nil
}

// verified returns the attempts of a store that has no damage.
func verified(ctx context.Context, db *store.DB) (map[store.Key]*assay.Attempt, error) {
	var mu sync.Mutex
	attempts := make(map[store.Key]*assay.Attempt)
	var damage error
	_, err := db.Verify(ctx, func(s *store.Stored) []store.Problem {
		mu.Lock()
		defer mu.Unlock()
		attempts[keyOf(&s.Attempt)] = &s.Attempt
		return nil
	}, func(p store.Problem) { damage = errors.Join(damage, errors.New(p.String())) }, func(int, int) {})
	return attempts, errors.Join(err, damage)
}

func (e *expected) compare(ctx context.Context, db *store.DB, trials int) error {
	attempts, err := verified(ctx, db)
	if err != nil {
		return err
	}
	settled, err := db.Settled(ctx)
	if err != nil {
		return err
	}
	for key, want := range e.attempts {
		got := attempts[key]
		if got == nil || got.Level != want.Level || got.CostUSD != want.CostUSD || got.Run != want.Run ||
			want.Settles() && !settled.Has(key.Trial) {
			return fmt.Errorf("attempt %v of run %s is lost or has changed: %v", key, want.Run, got != nil)
		}
	}
	begun := make(map[assay.TrialID]bool)
	for i := range trials {
		begun[outcome(i+1).ID] = true
	}
	for key, got := range attempts {
		if e.gone[key] || !begun[key.Trial] {
			return fmt.Errorf("attempt %v of run %s was deleted, or never made", key, got.Run)
		}
	}
	return e.compareRest(ctx, db)
}

func (e *expected) compareRest(ctx context.Context, db *store.DB) error {
	runs, err := db.Runs(ctx, "")
	if err != nil {
		return err
	}
	begun, ended := make(map[assay.RunID]bool), make(map[assay.RunID]bool)
	for _, r := range runs {
		begun[r.ID], ended[r.ID] = true, !r.FinishedAt.IsZero()
	}
	for _, id := range e.begun {
		if !begun[id] {
			return fmt.Errorf("run %s is lost", id)
		}
	}
	for _, id := range e.ended {
		if !ended[id] {
			return fmt.Errorf("the end of run %s is lost", id)
		}
	}
	if all, err := db.Controls(ctx, ""); err != nil || len(all) < e.commands {
		return fmt.Errorf("%d of %d commands, %w", len(all), e.commands, err)
	}
	for _, digest := range e.libraries {
		if parts, err := db.LibraryParts(ctx, digest); err != nil || len(parts) != 1 {
			return fmt.Errorf("library %s has %d parts, %w", digest, len(parts), err)
		}
	}
	return nil
}

// goOn works on after a power cut.
func (h *history) goOn(db *store.DB, dir string, trials int) error {
	ctx := h.t.Context()
	sent, err := db.OpenSentLog()
	if err != nil {
		return err
	}
	sent.Recall("lane", epoch)
	err = errors.Join(sent.Add("lane", store.Sent{At: epoch, Requests: 1}), sent.Close(),
		db.BeginRun(ctx, experiment("e"), store.Run{ID: "after", StartedAt: epoch}))
	a := outcome(trials + 1)
	a.Run = "after"
	if err == nil {
		err = db.Save(ctx, a, transcript(1))
	}
	if err == nil {
		_, err = db.Backup(ctx, filepath.Join(dir, "after.db"))
	}
	if err == nil {
		_, err = verified(ctx, db)
	}
	if err != nil {
		return fmt.Errorf("work on: %w", err)
	}
	return nil
}

// TestOpenOnDiskThatFails checks that the error says what to do when a log that an earlier process has
// left cannot be synced (tools/simulate --seed 7).
func TestOpenOnDiskThatFails(t *testing.T) {
	t.Parallel()
	disk, err := storetest.NewDisk(t.TempDir())
	must(t, err)
	t.Cleanup(disk.Forget)
	path := filepath.Join(disk.Dir(), "assay.db")
	db := open(t, path)
	begin(t, db, "r1")
	killed := filepath.Join(t.TempDir(), "killed")
	must(t, os.Mkdir(killed, 0o755))
	next, err := disk.Kill(killed)
	must(t, err)
	t.Cleanup(next.Forget)
	next.Set(func(f *storetest.Faults) { f.FailedSyncs = true })
	_, err = store.Open(t.Context(), filepath.Join(next.Dir(), "assay.db"))
	if !errors.Is(err, store.ErrDisk) || !strings.Contains(err.Error(), "check the system log") {
		t.Errorf("Open() = %v, want ErrDisk with a hint", err)
	}
}
