package store

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
	"github.com/assay-eval/assay/internal/durable"
)

// maxJournal is the size in bytes at which a journal is written anew, with open attempts only. The
// limit grows with the space that these need.
const maxJournal = 16 << 20

// A Journal is a file next to the store about the attempts that have begun and are not in the store:
// those in flight, those that a run left when it was killed or stopped, and those that could not be
// saved. It has what they have cost so far, and the replies of bare models. The next run on the store
// goes on with these attempts, or saves their cost.
//
// A kill takes nothing away that was written, so only replies are synced, which have to survive a
// power cut, too. The zero value ignores everything. It is safe for concurrent use.
type Journal struct {
	path   string
	failed func(error) // called once
	// number returns the number that the next attempt at a trial will have in the store, or 0 if that is
	// unknown. It is nil without a store.
	number func(assay.TrialID) int

	mu   sync.Mutex // guards the fields below
	head JournalEntry
	file *os.File // nil without a file
	size int64    // of the file
	// writes is true from [Journal.Continue] until [Journal.Close] or a failure.
	writes bool
	health Health
	// renewed is the size with which the file began.
	renewed int64
	open    map[assay.TrialID]*openAttempt
	// group has the replies that wait for the next flush, and came is when the latest reply did.
	group    *replyGroup
	came     time.Time
	flushing bool
	progress sync.Cond // of groups
	packer   *zstd.Encoder
}

// A replyGroup has replies that are flushed together.
type replyGroup struct {
	entries []JournalEntry
	lines   []byte        // the entries as JSON
	after   time.Duration // between its first reply and the one before
	onDisk  bool
}

// A group of replies waits for more: for a part of the time that its first reply took, at most
// maxFlushWait. It does not if the reply before came longer ago than that, because then the next one
// will probably take as long. A flush costs CPU and writes whole pages, however few replies it has. No
// slot of a lane is held meanwhile.
const (
	flushWaitPart = 4
	maxFlushWait  = 500 * time.Millisecond
)

// A JournalEntry is a line of a journal.
type JournalEntry struct {
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
	// Number is the number that the attempt will have in the store. A journal of a store sets it; earlier
	// versions did not.
	Number int `json:"number,omitempty"`
	// Asked is the most tokens that a turn can use that begins, or less than 0 if it has ended.
	Asked int `json:"asked,omitempty"`
	// Spent is what a request has used, and Cost what it has cost. User and Judge tell for whom, if not for
	// the agent.
	Spent *assay.Usage  `json:"spent,omitempty"`
	Cost  float64       `json:"cost,omitempty"`
	User  bool          `json:"user,omitempty"`
	Judge bool          `json:"judge,omitempty"`
	Reply *JournalReply `json:"reply,omitempty"`
	// Packed has entries, one a line, compressed together.
	Packed []byte `json:"packed,omitempty"`
	// Over says that the attempt is in the store.
	Over bool `json:"over,omitempty"`
}

// A JournalReply is a turn whose reply has arrived.
type JournalReply struct {
	// To identifies the request: see [question].
	To       uint64
	Began    time.Time
	Ended    time.Time
	Response assay.Response
}

// An openAttempt is an attempt that has begun and is not in the store.
type openAttempt struct {
	of      JournalEntry // of its run
	trial   assay.Trial
	round   int
	number  int // or 0
	began   time.Time
	latest  time.Time // when the latest reply came
	bill    assay.Attempt
	asked   int
	replies []place
}

// A place is where a journal has an entry with a reply.
type place struct {
	at    int64 // of the line
	size  int
	nth   int // of the entries that are packed in it
	to    uint64
	aside bool // not to the agent
	used  bool // in this pass through the attempt
}

// Health says what is wrong with the lines of a journal.
type Health struct {
	// Torn counts the bytes at the end that no sync has covered, as a power cut leaves them. Nothing
	// was acted on that they say.
	Torn int64
	// Changed counts the lines that differ from their checksums though they were on disk.
	Changed int
}

// ReadJournal reads what runs have left in the journal at a path, which may be missing. Lines that
// are torn or changed are left out.
func ReadJournal(path string) (*Journal, error) {
	j := &Journal{path: path, open: make(map[assay.TrialID]*openAttempt)}
	j.progress.L = &j.mu
	if err := j.read(); err != nil {
		return nil, fmt.Errorf("read what earlier runs have left: %w", err)
	}
	return j, nil
}

// Exists reports whether the journal has a file.
func (j *Journal) Exists() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.file != nil
}

// Health returns what was wrong with the file when it was read.
func (j *Journal) Health() Health { return j.health }

// Continue begins to write about the attempts of a run, and those that are left. Failed is called once
// if the journal cannot be written; then it ignores everything.
func (j *Journal) Continue(head JournalEntry, failed func(error)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.head, j.failed, j.packer, j.writes = head, failed, newPacker(), true
	for _, o := range j.open { // their requests have ended with their run
		o.bill.UnpricedTokens += max(0, o.asked)
		o.asked = 0
	}
	if err := j.renew(); err != nil {
		j.fail(err)
	}
}

// apply changes the open attempts by an entry at a place of the file.
func (j *Journal) apply(e JournalEntry, at place) {
	switch {
	case e.Run != "":
		j.head = e
		return
	case e.Trial != nil:
		j.open[e.Trial.ID] = &openAttempt{of: j.head, trial: *e.Trial, round: e.Round, number: e.Number, began: e.At}
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
		o.latest = e.Reply.Ended
		at.to, at.aside = e.Reply.To, e.User || e.Judge
		o.replies = append(o.replies, at)
		switch n := e.Reply.Response.Waits.Requests; {
		case e.User:
			o.bill.UserRequests += n
		case e.Judge:
			o.bill.JudgeRequests += n
		}
	}
	switch {
	case e.Spent != nil && e.Judge:
		o.bill.AddJudge(&assay.Response{Usage: *e.Spent, Cost: e.Cost})
	case e.Spent != nil && e.User:
		o.bill.AddUser(&assay.Response{Usage: *e.Spent, Cost: e.Cost})
	case e.Spent != nil:
		o.bill.Add(&assay.Response{Usage: *e.Spent, Cost: e.Cost})
	}
}

// Write adds an entry. A run goes on without its journal.
func (j *Journal) Write(e JournalEntry) {
	if e.Trial != nil && j.number != nil {
		e.Number = j.number(e.Trial.ID)
	}
	line, err := encodeLine(e)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writeLocked(e, line, err)
}

func (j *Journal) writeLocked(e JournalEntry, line []byte, err error) {
	// Also without a journal, the next attempt at a trial does not go on with one that is over.
	if at, ok := j.addLocked(line, err); ok || e.Over {
		j.apply(e, at)
	}
}

// addLocked adds a line to the file, unless it cannot be encoded. After an error there is no journal.
func (j *Journal) addLocked(line []byte, err error) (at place, ok bool) {
	if !j.writes {
		return at, false
	}
	if err == nil && j.size > maxJournal+2*j.renewed {
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

func (j *Journal) fail(err error) {
	if j.writes {
		j.writes = false
		j.failed(err)
	}
}

// Keep adds an entry with a reply, and returns when it is on disk. One caller flushes for all that
// wait.
func (j *Journal) Keep(e JournalEntry) {
	line, err := json.Marshal(e)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.fail(err)
	}
	if !j.writes {
		return
	}
	now := time.Now()
	if j.group == nil {
		j.group = &replyGroup{after: now.Sub(j.came)}
	}
	g := j.group
	j.came = now
	g.entries = append(g.entries, e)
	g.lines = append(append(g.lines, line...), '\n')
	for !g.onDisk && j.writes {
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
func (j *Journal) flushLocked() {
	g := j.group
	first := g.entries[0].Reply
	wait := min(first.Ended.Sub(first.Began)/flushWaitPart, maxFlushWait)
	if len(g.entries) > 1 || g.after < wait {
		j.mu.Unlock()
		time.Sleep(wait)
		j.mu.Lock()
	}
	j.group = nil
	at, ok := j.addLocked(encodeLine(JournalEntry{Packed: j.packer.EncodeAll(g.lines, nil)}))
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
	err := durable.SyncFile(file)
	j.mu.Lock()
	if err != nil && j.file == file { // a new file is on disk
		j.fail(err)
	}
	g.onDisk = true
}

// renew begins a file with the open attempts, and puts it on disk.
func (j *Journal) renew() (err error) {
	file, err := os.OpenFile(j.path+"-new", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	old := j.file
	j.file, j.size = file, 0
	if old != nil {
		defer old.Close()
	}
	err = j.writeOpen(func(*openAttempt) *os.File { return old })
	if j.head.Run != "" {
		err = errors.Join(err, j.appendEntry(j.head))
	}
	err = errors.Join(err, durable.SyncFile(file))
	if err == nil {
		err = os.Rename(j.path+"-new", j.path)
	}
	if err == nil {
		err = durable.SyncDir(filepath.Dir(j.path))
	}
	if err == nil { // a file knows the name with which it was opened, and syncs are watched by name
		j.file, err = os.OpenFile(j.path, os.O_APPEND|os.O_RDWR, 0o600)
		err = errors.Join(err, file.Close())
	}
	j.renewed = j.size
	return err
}

// writeOpen adds the open attempts to a new file. Their replies are in others.
func (j *Journal) writeOpen(old func(*openAttempt) *os.File) (err error) {
	last := JournalEntry{}
	byRun := func(a, b assay.TrialID) int {
		return cmp.Or(cmp.Compare(j.open[a].of.Run, j.open[b].of.Run), cmp.Compare(a, b))
	}
	for _, id := range slices.SortedFunc(maps.Keys(j.open), byRun) {
		o := j.open[id]
		if o.of.Run != last.Run {
			last = o.of
			err = j.appendEntry(last)
		}
		if err = errors.Join(err, j.copy(id, o)); err != nil {
			return err
		}
	}
	return j.copyReplies(old)
}

// copy adds an open attempt without its replies.
func (j *Journal) copy(id assay.TrialID, o *openAttempt) (err error) {
	u, user, judge := o.bill.Usage(), o.bill.OfUser().Usage(), o.bill.OfJudge().Usage()
	for _, e := range []JournalEntry{
		{Trial: &o.trial, Round: o.round, Number: o.number, At: o.began},
		{ID: id, Spent: &u, Cost: o.bill.CostUSD},
		{ID: id, Spent: &user, Cost: o.bill.UserCostUSD, User: true},
		{ID: id, Spent: &judge, Cost: o.bill.JudgeCostUSD, Judge: true},
		{ID: id, Asked: o.asked},
	} {
		err = errors.Join(err, j.appendEntry(e))
	}
	return err
}

// copyReplies adds the replies of the open attempts, which are in other files, in the order of those. A
// line has replies of many attempts, so each is read once, and one line has what is left of it.
func (j *Journal) copyReplies(old func(*openAttempt) *os.File) error {
	type kept struct {
		file *os.File
		*place
	}
	var all []kept
	for _, o := range j.open {
		for i := range o.replies {
			all = append(all, kept{old(o), &o.replies[i]})
		}
	}
	order := func(a, b kept) int {
		return cmp.Or(cmp.Compare(a.file.Name(), b.file.Name()), cmp.Compare(a.at, b.at), cmp.Compare(a.nth, b.nth))
	}
	slices.SortFunc(all, order)
	for len(all) > 0 {
		first := all[0]
		n := slices.IndexFunc(all, func(k kept) bool { return k.file != first.file || k.at != first.at })
		if n < 0 {
			n = len(all)
		}
		entries, err := readEntries(first.file, *first.place)
		if err != nil {
			return err
		}
		var lines []byte
		for _, k := range all[:n] {
			e, err := replyOf(entries, k.nth)
			if err != nil {
				return err
			}
			// What it cost is in the sums.
			line, err := json.Marshal(JournalEntry{ID: e.ID, User: e.User, Judge: e.Judge, Reply: e.Reply})
			if err != nil {
				return err
			}
			lines = append(append(lines, line...), '\n')
		}
		line, err := encodeLine(JournalEntry{Packed: j.packer.EncodeAll(lines, nil)})
		if err != nil {
			return err
		}
		at, err := j.append(line)
		if err != nil {
			return err
		}
		for i, k := range all[:n] {
			k.at, k.size, k.nth = at.at, at.size, i
		}
		all = all[n:]
	}
	return nil
}

// appendEntry adds an entry to the file without applying it.
func (j *Journal) appendEntry(e JournalEntry) error {
	line, err := encodeLine(e)
	if err == nil {
		_, err = j.append(line)
	}
	return err
}

func (j *Journal) append(line []byte) (place, error) {
	_, err := j.file.Write(line)
	at := place{at: j.size, size: len(line)}
	j.size += int64(len(line))
	return at, err
}

// A line is JSON, a tab and the checksum of the JSON. Earlier versions wrote only the JSON.

var checksum = crc32.MakeTable(crc32.Castagnoli)

func encodeLine(e JournalEntry) ([]byte, error) {
	line, err := json.Marshal(e)
	return fmt.Appendf(line, "\t%08x\n", crc32.Checksum(line, checksum)), err
}

func decodeLine(line []byte) (e JournalEntry, err error) {
	line, whole := bytes.CutSuffix(line, []byte("\n"))
	if !whole {
		return e, errors.New("the line is cut off")
	}
	text, sum, sealed := bytes.Cut(line, []byte("\t"))
	if sealed && string(sum) != fmt.Sprintf("%08x", crc32.Checksum(text, checksum)) {
		return e, errors.New("the line differs from its checksum")
	}
	return e, json.Unmarshal(text, &e)
}

// readReply reads an entry with a reply.
func readReply(file io.ReaderAt, p place) (JournalEntry, error) {
	all, err := readEntries(file, p)
	if err != nil {
		return JournalEntry{}, err
	}
	return replyOf(all, p.nth)
}

// readEntries reads the entries that are packed in a line.
func readEntries(file io.ReaderAt, p place) ([]JournalEntry, error) {
	line := make([]byte, p.size)
	if _, err := file.ReadAt(line, p.at); err != nil {
		return nil, err
	}
	e, err := decodeLine(line)
	if err != nil {
		return nil, err
	}
	return e.unpack()
}

func replyOf(all []JournalEntry, nth int) (e JournalEntry, err error) {
	if nth >= len(all) || all[nth].Reply == nil {
		return e, errors.New("the journal has changed")
	}
	return all[nth], nil
}

// unpack returns the entries that are packed in e, or else e.
func (e JournalEntry) unpack() (all []JournalEntry, err error) {
	if e.Packed == nil {
		return []JournalEntry{e}, nil
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
		var one JournalEntry
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

// Rewind begins another pass through an attempt, in which its replies are given again. It returns
// their number, and what the attempt has cost, or -1 if it has not begun.
func (j *Journal) Rewind(id assay.TrialID) (replies int, bill assay.Attempt) {
	j.mu.Lock()
	defer j.mu.Unlock()
	o := j.open[id]
	if o == nil {
		return -1, assay.Attempt{}
	}
	for i := range o.replies {
		o.replies[i].used = false
	}
	return len(o.replies), o.bill
}

// Replay returns the reply to a request, or nil if the attempt has none that was not given in this
// pass. After a request of the agent, which none aside is, without a reply there are none for later ones:
// lost is how many.
func (j *Journal) Replay(id assay.TrialID, aside bool, to uint64) (r *JournalReply, lost int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	o := j.open[id]
	if o == nil || j.file == nil {
		return nil, 0
	}
	for i := range o.replies {
		p := &o.replies[i]
		if p.used || p.aside != aside || p.to != to {
			continue
		}
		e, err := readReply(j.file, *p)
		if err != nil {
			break
		}
		p.used = true
		return e.Reply, 0
	}
	if !aside {
		for _, p := range o.replies {
			if !p.used && !p.aside {
				lost++
			}
		}
		o.replies = slices.DeleteFunc(o.replies, func(p place) bool { return !p.used && !p.aside })
	}
	return nil, lost
}

// Owes reports whether attempts that have cost money, or may have, are not in the store.
func (j *Journal) Owes() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.owesLocked()
}

func (j *Journal) owesLocked() bool {
	if j.file == nil {
		return false
	}
	for _, o := range j.open {
		if o.owes() {
			return true
		}
	}
	return false
}

func (o *openAttempt) owes() bool { return o.asked > 0 || o.bill.Paid() || len(o.replies) > 0 }

// Close closes the file. If the run that wrote it has ended, it removes the file, unless attempts are
// left for the next run. No attempt is in flight.
func (j *Journal) Close(ended bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file != nil {
		_ = j.file.Close()
		if ended && !j.owesLocked() {
			_ = os.Remove(j.path)
		}
		j.file = nil
	}
	j.writes = false
}

// read reads the journal that an earlier run has left. The file stays open.
func (j *Journal) read() error {
	file, err := os.Open(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	j.file = file
	lines := bufio.NewReaderSize(file, 1<<16)
	// Of two lines with replies, the first one was synced before the second one was written, with
	// everything before it. recent has the bad lines before the latest such line and after the one before
	// it, and last those after it.
	var recent, last Health
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return errors.Join(fmt.Errorf("%s: %w", j.path, err), file.Close())
		}
		if len(line) == 0 {
			j.health.Torn = recent.Torn + last.Torn
			return nil
		}
		all, replies, failed := decodeEntries(line)
		at := place{at: j.size, size: len(line)}
		j.size += int64(len(line))
		switch {
		case failed != nil:
			last.Changed++
			last.Torn += int64(len(line))
			continue
		case replies:
			j.health.Changed += recent.Changed
			recent, last = last, Health{}
		}
		for i, e := range all {
			at.nth = i
			j.apply(e, at)
		}
	}
}

// decodeEntries returns the entries in a line, and whether they have replies.
func decodeEntries(line []byte) (all []JournalEntry, replies bool, err error) {
	e, err := decodeLine(line)
	if err == nil {
		all, err = e.unpack()
	}
	return all, e.Packed != nil, err
}

const journalSuffix = ".bills"

func journalPath(store string) string { return store + journalSuffix }
