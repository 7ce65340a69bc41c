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

	"github.com/klauspost/compress/zstd"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// mostJournal is the size in bytes at which a journal is written anew, with open attempts only. It is
// larger if these take much.
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
	// renewed is the size with which the file began.
	renewed int64
	open    map[assay.TrialID]*openAttempt
	// group has the replies that wait for the next flush, and latest is how many the one before had.
	group    *replyGroup
	latest   int
	flushing bool
	progress sync.Cond // of groups
	packer   *zstd.Encoder
}

// A replyGroup has replies that are flushed together.
type replyGroup struct {
	entries []entry
	lines   []byte // the entries as JSON
	onDisk  bool
}

// A group of replies waits for more if there are several at a time: for a part of the time that its
// first reply took, at most mostLull. A flush writes whole pages, however few replies it has. No slot
// of a lane is held meanwhile.
const (
	lullPart = 8
	mostLull = 500 * time.Millisecond
)

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
	// Packed has entries, one a line, compressed together.
	Packed []byte `json:"packed,omitempty"`
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
	at   int64 // of the line
	size int
	nth  int // of the entries that are packed in it
	to   uint64
	user bool
	used bool // in this pass through the attempt
}

func newJournal(path string, head entry, failed func(error)) *journal {
	j := &journal{
		path: path, head: head, failed: failed, open: make(map[assay.TrialID]*openAttempt),
		packer: newPacker(),
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
	switch {
	case o == nil:
		return
	case e.Over:
		delete(j.open, e.ID)
		return
	}
	o.asked += e.Asked
	if e.Reply != nil {
		at.to, at.user = e.Reply.To, e.User
		o.replies = append(o.replies, at)
		if e.User {
			o.bill.UserRequests += e.Reply.Response.Waits.Requests
		}
	}
	switch {
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
	if at, ok := j.addLocked(line, err); ok {
		j.apply(e, at)
	}
}

// addLocked adds a line to the file, unless it cannot be encoded. After an error there is no journal.
func (j *journal) addLocked(line []byte, err error) (at place, ok bool) {
	if j.broke {
		return at, false
	}
	if err == nil && (j.file == nil || j.size > mostJournal+2*j.renewed) {
		err = j.renew()
	}
	if err == nil {
		at, err = j.append(line)
	}
	if err != nil {
		j.fail(err)
	}
	return at, err == nil
}

func (j *journal) fail(err error) {
	if !j.broke {
		j.broke = true
		j.failed(err)
	}
}

// keep adds an entry with a reply, and returns when it is on disk. One caller flushes for all that
// wait.
func (j *journal) keep(e entry) {
	line, err := json.Marshal(e)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.fail(err)
	}
	if j.broke {
		return
	}
	if j.group == nil {
		j.group = new(replyGroup)
	}
	g := j.group
	g.entries = append(g.entries, e)
	g.lines = append(append(g.lines, line...), '\n')
	for !g.onDisk && !j.broke {
		if j.flushing {
			j.progress.Wait()
			continue
		}
		j.flushing = true
		j.flushLocked()
		j.flushing = false
		j.progress.Broadcast()
	}
}

// flushLocked puts the group on disk. It lets the lock go meanwhile.
func (j *journal) flushLocked() {
	if first := j.group.entries[0].Reply; len(j.group.entries) > 1 || j.latest > 1 {
		j.mu.Unlock()
		time.Sleep(min(first.Ended.Sub(first.Began)/lullPart, mostLull))
		j.mu.Lock()
	}
	g := j.group
	j.group, j.latest = nil, len(g.entries)
	at, ok := j.addLocked(encodeLine(entry{Packed: j.packer.EncodeAll(g.lines, nil)}))
	if !ok {
		return
	}
	for i, e := range g.entries {
		at.nth = i
		j.apply(e, at)
		if o := j.open[e.ID]; o != nil {
			o.replies[len(o.replies)-1].used = true
		}
	}
	file := j.file
	j.mu.Unlock()
	err := store.SyncFile(file)
	j.mu.Lock()
	if err != nil && j.file == file { // a new file is on disk
		j.fail(err)
	}
	g.onDisk = true
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
	err = errors.Join(err, store.SyncFile(file))
	if err == nil {
		err = os.Rename(j.path+"-new", j.path)
	}
	if err == nil {
		err = store.SyncDir(filepath.Dir(j.path))
	}
	j.renewed = j.size
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
	if len(o.replies) == 0 {
		return nil
	}
	var lines []byte
	for _, p := range o.replies {
		e, err := readEntry(old, p)
		if err != nil {
			return err
		}
		// Their sums are above.
		line, err := json.Marshal(entry{ID: id, User: e.User, Reply: e.Reply})
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	line, err := encodeLine(entry{Packed: j.packer.EncodeAll(lines, nil)})
	if err != nil {
		return err
	}
	at, err := j.append(line)
	for i := range o.replies {
		p := &o.replies[i]
		p.at, p.size, p.nth = at.at, at.size, i
	}
	return err
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

// readEntry reads an entry that is packed in a line.
func readEntry(file io.ReaderAt, p place) (e entry, err error) {
	line := make([]byte, p.size)
	if _, err = file.ReadAt(line, p.at); err != nil {
		return e, err
	}
	if e, err = decodeLine(line); err != nil {
		return e, err
	}
	all, err := e.unpack()
	if err != nil || p.nth >= len(all) || all[p.nth].Reply == nil {
		return e, errors.Join(errors.New("the journal has changed"), err)
	}
	return all[p.nth], nil
}

// unpack returns the entries that are packed in e, or else e.
func (e entry) unpack() (all []entry, err error) {
	if e.Packed == nil {
		return []entry{e}, nil
	}
	unpacker, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer unpacker.Close()
	lines, err := unpacker.DecodeAll(e.Packed, nil)
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(lines)); d.More(); {
		var one entry
		if err := d.Decode(&one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func newPacker() *zstd.Encoder {
	w, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(128<<10)) // a larger one costs memory
	return w
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
		if err != nil {
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
		all, failed := e.unpack()
		if err != nil || failed != nil {
			return nil
		}
		for i, e := range all {
			j.apply(e, place{at: at, size: len(line), nth: i})
		}
		at += int64(len(line))
		j.size = at
	}
}

func journalPath(store string) string { return store + ".bills" }
