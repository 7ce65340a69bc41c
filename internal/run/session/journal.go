package session

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// mostJournal is the size in bytes at which a journal is written anew, with open attempts only.
// Replies of open attempts permit more.
const mostJournal = 16 << 20

// A journal is a file next to the store about the attempts that are not in the store: those in
// flight, and those that could not be saved. It has what they have cost so far, and the replies of
// bare models. The next run on the store goes on with these attempts, or saves their cost.
//
// A kill takes nothing away that was written, so only replies are synced, which have to survive a
// power cut, too. It is safe for concurrent use.
type journal struct {
	path   string
	failed func(error) // called once

	mu    sync.Mutex // guards the fields below
	head  entry
	file  *os.File // nil before the first entry, and after a failure
	size  int64    // of the file
	broke bool
	open  map[assay.TrialID]*openAttempt
	// written counts the bytes of all files so far, and synced those that are on disk for sure.
	written, synced int64
	syncing         bool
	progress        sync.Cond // of synced
}

// An entry is a line of a journal.
type entry struct {
	// Run is the run of the attempts that begin after this entry.
	Run        assay.RunID `json:"run,omitempty"`
	Experiment string      `json:"experiment,omitempty"`
	Program    string      `json:"program,omitempty"`
	// Trial begins an attempt at that trial, for an outcome of this Round. The other entries name it
	// by its ID.
	Trial *assay.Trial  `json:"trial,omitempty"`
	Round int           `json:"round,omitempty"`
	At    time.Time     `json:"at,omitzero"`
	ID    assay.TrialID `json:"id,omitempty"`
	// Asked is the most tokens that a turn can use that begins, or less than 0 if it has ended.
	Asked int `json:"asked,omitempty"`
	// Spent is what a request has used, and Cost what it has cost. User tells for whom.
	Spent *assay.Usage `json:"spent,omitempty"`
	Cost  float64      `json:"cost,omitempty"`
	User  bool         `json:"user,omitempty"`
	Reply *reply       `json:"reply,omitempty"`
	// Over says that the attempt is in the store.
	Over bool `json:"over,omitempty"`
}

// A reply is a turn whose reply has arrived.
type reply struct {
	// To identifies the request: see [question].
	To       uint64
	Began    time.Time
	Ended    time.Time
	Response assay.Response
}

// An openAttempt is an attempt that has begun and is not in the store.
type openAttempt struct {
	of      entry // of its run
	trial   assay.Trial
	round   int
	began   time.Time
	bill    assay.Attempt
	asked   int
	replies []place
}

// A place is where a journal has an entry with a reply.
type place struct {
	at   int64
	size int
	to   uint64
	user bool
	used bool // in this pass through the attempt
}

func newJournal(path string, head entry, failed func(error)) *journal {
	j := &journal{
		path: path, head: head, failed: failed, open: make(map[assay.TrialID]*openAttempt),
	}
	j.progress.L = &j.mu
	return j
}

// apply changes the open attempts by an entry at a place of the file.
func (j *journal) apply(e entry, at place) {
	switch {
	case e.Run != "":
		j.head = e
		return
	case e.Trial != nil:
		j.open[e.Trial.ID] = &openAttempt{of: j.head, trial: *e.Trial, round: e.Round, began: e.At}
		return
	}
	o := j.open[e.ID]
	if o == nil {
		return
	}
	o.asked += e.Asked
	switch {
	case e.Over:
		delete(j.open, e.ID)
	case e.Reply != nil:
		at.to, at.user = e.Reply.To, e.User
		o.replies = append(o.replies, at)
		if e.User {
			o.bill.UserRequests += e.Reply.Response.Waits.Requests
		}
	case e.Spent != nil && e.User:
		o.bill.AddUser(&assay.Response{Usage: *e.Spent, Cost: e.Cost})
	case e.Spent != nil:
		o.bill.Add(&assay.Response{Usage: *e.Spent, Cost: e.Cost})
	}
}

// write adds an entry. A run goes on without its journal.
func (j *journal) write(e entry) {
	line, err := encodeLine(e)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writeLocked(e, line, err)
}

func (j *journal) writeLocked(e entry, line []byte, err error) {
	if j.broke {
		return
	}
	if err == nil && (j.file == nil || j.size > mostJournal+2*j.keptLocked()) {
		err = j.renew()
	}
	var at place
	if err == nil {
		at, err = j.append(line)
	}
	if err != nil {
		j.fail(err)
		return
	}
	j.apply(e, at)
}

// keptLocked returns how many bytes the replies of open attempts take.
func (j *journal) keptLocked() (n int64) {
	if j.size <= mostJournal {
		return 0 // it does not matter
	}
	for _, o := range j.open {
		for _, p := range o.replies {
			n += int64(p.size)
		}
	}
	return n
}

func (j *journal) fail(err error) {
	if !j.broke {
		j.broke = true
		j.failed(err)
		j.progress.Broadcast()
	}
}

// keep adds the reply of a turn that could use so many tokens, and returns when it is on disk.
func (j *journal) keep(id assay.TrialID, user bool, asked int, r *reply) {
	e := entry{ID: id, User: user, Asked: -asked, Reply: r}
	line, err := encodeLine(e)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writeLocked(e, line, err)
	if o := j.open[id]; o != nil && len(o.replies) > 0 {
		o.replies[len(o.replies)-1].used = true
	}
	j.syncLocked(j.written)
}

// syncLocked waits until so many bytes are on disk. One caller flushes for all that wait.
func (j *journal) syncLocked(upTo int64) {
	for j.synced < upTo && !j.broke {
		if j.syncing {
			j.progress.Wait()
			continue
		}
		j.syncing = true
		file, end := j.file, j.written
		j.mu.Unlock()
		err := file.Sync()
		j.mu.Lock()
		j.syncing = false
		switch {
		case j.synced >= end: // in a newer file
		case err != nil:
			j.fail(err)
		default:
			j.synced = end
		}
		j.progress.Broadcast()
	}
}

// renew begins a file with the open attempts, and puts it on disk.
func (j *journal) renew() (err error) {
	file, err := os.OpenFile(j.path+"-new", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	old := j.file
	j.file, j.size = file, 0
	if old != nil {
		defer old.Close()
	}
	last := entry{}
	byRun := func(a, b assay.TrialID) int {
		return cmp.Or(cmp.Compare(j.open[a].of.Run, j.open[b].of.Run), cmp.Compare(a, b))
	}
	for _, id := range slices.SortedFunc(maps.Keys(j.open), byRun) {
		o := j.open[id]
		if o.of.Run != last.Run {
			last = o.of
			err = j.appendEntry(last)
		}
		if err = errors.Join(err, j.copy(id, o, old)); err != nil {
			return err
		}
	}
	if last.Run != j.head.Run {
		err = j.appendEntry(j.head)
	}
	err = errors.Join(err, file.Sync())
	if err == nil {
		err = os.Rename(j.path+"-new", j.path)
	}
	if err == nil {
		err = store.SyncDir(filepath.Dir(j.path))
	}
	if err == nil {
		j.synced = j.written
	}
	return err
}

// copy adds an open attempt to a new file. Its replies are in the old one.
func (j *journal) copy(id assay.TrialID, o *openAttempt, old io.ReaderAt) error {
	u, user := o.bill.Usage(), assay.Usage{
		InputTokens: o.bill.UserInputTokens, OutputTokens: o.bill.UserOutputTokens,
		UnpricedTokens: o.bill.UserUnpricedTokens,
	}
	for _, e := range []entry{
		{Trial: &o.trial, Round: o.round, At: o.began},
		{ID: id, Spent: &u, Cost: o.bill.CostUSD},
		{ID: id, Spent: &user, Cost: o.bill.UserCostUSD, User: true},
		{ID: id, Asked: o.asked},
	} {
		if err := j.appendEntry(e); err != nil {
			return err
		}
	}
	for i, p := range o.replies {
		e, err := readEntry(old, p)
		if err != nil {
			return err
		}
		e.Asked = 0 // the sum is above
		line, err := encodeLine(e)
		if err == nil {
			p, err = j.append(line)
		}
		if err != nil {
			return err
		}
		o.replies[i].at, o.replies[i].size = p.at, p.size
	}
	return nil
}

// appendEntry adds an entry to the file without applying it.
func (j *journal) appendEntry(e entry) error {
	line, err := encodeLine(e)
	if err == nil {
		_, err = j.append(line)
	}
	return err
}

func (j *journal) append(line []byte) (place, error) {
	_, err := j.file.Write(line)
	at := place{at: j.size, size: len(line)}
	j.size += int64(len(line))
	j.written += int64(len(line))
	return at, err
}

// A line is JSON, a tab and the checksum of the JSON. Earlier versions wrote only the JSON.

var checksum = crc32.MakeTable(crc32.Castagnoli)

func encodeLine(e entry) ([]byte, error) {
	line, err := json.Marshal(e)
	return fmt.Appendf(line, "\t%08x\n", crc32.Checksum(line, checksum)), err
}

func decodeLine(line []byte) (e entry, err error) {
	text, sum, sealed := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte("\t"))
	if sealed && string(sum) != fmt.Sprintf("%08x", crc32.Checksum(text, checksum)) {
		return e, errors.New("the line differs from its checksum")
	}
	return e, json.Unmarshal(text, &e)
}

func readEntry(file io.ReaderAt, p place) (e entry, err error) {
	line := make([]byte, p.size)
	if _, err = file.ReadAt(line, p.at); err == nil {
		e, err = decodeLine(line)
	}
	return e, err
}

// rewind begins another pass through an attempt, in which its replies are given again. It returns
// their number, and what the attempt has cost, or -1 if it has not begun.
func (j *journal) rewind(id assay.TrialID) (replies int, bill assay.Attempt) {
	j.mu.Lock()
	defer j.mu.Unlock()
	o := j.open[id]
	if o == nil {
		return -1, assay.Attempt{}
	}
	for i := range o.replies {
		o.replies[i].used = false
	}
	bill = o.bill
	bill.UnpricedTokens += max(0, o.asked)
	return len(o.replies), bill
}

// replay returns the reply to a request, or nil if the attempt has none that was not given in this
// pass. After a request of the agent without a reply there are none for later ones: lost is how many.
func (j *journal) replay(id assay.TrialID, user bool, to uint64) (r *reply, lost int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	o := j.open[id]
	if o == nil || j.file == nil {
		return nil, 0
	}
	for i := range o.replies {
		p := &o.replies[i]
		if p.used || p.user != user || p.to != to {
			continue
		}
		e, err := readEntry(j.file, *p)
		if err != nil || e.Reply == nil {
			break
		}
		p.used = true
		return e.Reply, 0
	}
	if !user {
		for _, p := range o.replies {
			if !p.used && !p.user {
				lost++
			}
		}
		o.replies = slices.DeleteFunc(o.replies, func(p place) bool { return !p.used && !p.user })
	}
	return nil, lost
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
		if o.asked > 0 || o.bill.Paid() || len(o.replies) > 0 {
			return true
		}
	}
	return false
}

// close closes the file, and removes it unless attempts are left for the next run. No attempt is in
// flight.
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

// discard closes and removes the file of earlier runs.
func (j *journal) discard() error {
	if j.file == nil {
		return nil
	}
	err := errors.Join(j.file.Close(), os.Remove(j.path))
	j.file, j.size = nil, 0
	return err
}

// read reads the journal that an earlier run has left, up to a line that is not complete. The file
// stays open.
func (j *journal) read() error {
	file, err := os.Open(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	j.file = file
	lines := bufio.NewReaderSize(file, 1<<16)
	for at := int64(0); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", j.path, err)
		}
		e, err := decodeLine(line)
		if err != nil {
			return nil
		}
		j.apply(e, place{at: at, size: len(line)})
		at += int64(len(line))
		j.size = at
	}
}

func journalPath(store string) string { return store + ".bills" }
