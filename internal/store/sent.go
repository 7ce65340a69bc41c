package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"
)

// Sent is what a lane used of its limits at some time.
type Sent struct {
	At                      time.Time
	Requests, Input, Output int
}

// A SentLog remembers what lanes have sent within a day, also requests of attempts that are not
// stored. It is a file beside the store, which a process writes before it sends a request. What is
// written is kept if the process is killed, so it is not flushed.
//
// The file has a block for each lane: the hash of its name, a cell for each of the last seconds, and
// one for each minute of a day. A cell is used again for a later time.
type SentLog struct {
	mu    sync.Mutex // guards the fields below
	file  *os.File   // nil once it has failed or is closed
	lanes map[[sha256.Size]byte]*sentBlock
	end   int64 // of the blocks; after a power cut, several may have lost their lanes
}

type sentBlock struct {
	place   int64 // in the file
	seconds [256]sentCell
	minutes [1536]sentCell
}

// A sentCell is what a lane sent in a second or minute, whose number since 1970 is Unit.
type sentCell struct{ Unit, Requests, Input, Output int64 }

const (
	sentCellSize  = 4 * 8
	sentBlockSize = sha256.Size + (256+1536)*sentCellSize
	// Requests of the last sentSeconds are recalled by the second.
	sentSeconds = 180
)

// OpenSentLog opens the log of the store. If the store is open for writing, so is the log, and it is
// created if it is missing.
func (db *DB) OpenSentLog() (*SentLog, error) {
	mode := os.O_RDONLY
	if db.lock != nil {
		mode = os.O_RDWR | os.O_CREATE
	}
	l := &SentLog{lanes: make(map[[sha256.Size]byte]*sentBlock)}
	f, err := os.OpenFile(db.path+".sent", mode, 0o644)
	if errors.Is(err, fs.ErrNotExist) && db.lock == nil {
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the log of sent requests: %w", err)
	}
	l.file = f
	if err := l.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", f.Name(), err), f.Close())
	}
	return l, nil
}

// read reads the file. A block at the end that is cut off has never been used.
func (l *SentLog) read() error {
	for ; ; l.end += sentBlockSize {
		var name [sha256.Size]byte
		b := &sentBlock{place: l.end}
		r := io.NewSectionReader(l.file, l.end, sentBlockSize)
		for _, part := range []any{&name, &b.seconds, &b.minutes} {
			switch err := binary.Read(r, binary.LittleEndian, part); {
			case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
				return nil
			case err != nil:
				return err
			}
		}
		l.lanes[name] = b
	}
}

// Knows reports whether something was written about a lane.
func (l *SentLog) Knows(lane string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lanes[sha256.Sum256([]byte(lane))] != nil
}

// Recall returns what a lane sent within a day before now, oldest first, each at the latest time at
// which that may have been. What was sent after now, because the clock was set back since, may have been
// just before.
func (l *SentLog) Recall(lane string, now time.Time) (all []Sent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.lanes[sha256.Sum256([]byte(lane))]
	if b == nil {
		return nil
	}
	recent := now.Add(-sentSeconds * time.Second).Truncate(time.Minute).Unix()
	future := now.Truncate(time.Minute).Add(time.Minute).Unix()
	// What is left of a recent minute without its seconds was in seconds that have been used again, because
	// the clock was set back and has been there twice.
	rest := make(map[int64]sentCell)
	for _, c := range b.minutes {
		switch oldest := recent/60 - 24*60; {
		case c.Unit >= recent/60 && c.Unit < future/60:
			rest[c.Unit] = c
		case c.Unit >= oldest:
			all = append(all, c.sent(60, now))
		}
	}
	for _, c := range b.seconds {
		if c.Unit >= recent && c.Unit < future {
			all = append(all, c.sent(1, now))
			r := rest[c.Unit/60]
			r.Requests, r.Input, r.Output = r.Requests-c.Requests, r.Input-c.Input, r.Output-c.Output
			rest[c.Unit/60] = r
		}
	}
	for _, r := range rest {
		all = append(all, r.sent(60, now))
	}
	slices.SortFunc(all, func(a, b Sent) int { return a.At.Compare(b.At) })
	return slices.DeleteFunc(all, func(s Sent) bool { return s.Requests <= 0 })
}

func (c sentCell) sent(unit int64, now time.Time) Sent {
	at := time.Unix((c.Unit+1)*unit, 0)
	if at.After(now) {
		at = now
	}
	return Sent{At: at, Requests: int(c.Requests), Input: int(c.Input), Output: int(c.Output)}
}

// Add adds to what a lane sent at a time, or corrects it if the amounts are negative. After an error
// the log ignores everything.
func (l *SentLog) Add(lane string, s Sent) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write %s: %w", l.file.Name(), err), l.file.Close())
			l.file = nil
		}
	}()
	name := sha256.Sum256([]byte(lane))
	b := l.lanes[name]
	if b == nil {
		b = &sentBlock{place: l.end}
		if err := l.file.Truncate(b.place + sentBlockSize); err != nil {
			return err
		}
		if _, err := l.file.WriteAt(name[:], b.place); err != nil {
			return err
		}
		l.lanes[name] = b
		l.end += sentBlockSize
	}
	second, minute := s.At.Unix(), s.At.Unix()/60
	place := b.place + sha256.Size
	return cmp.Or(
		l.add(b.seconds[:], place, second, s),
		l.add(b.minutes[:], place+int64(len(b.seconds))*sentCellSize, minute, s))
}

func (l *SentLog) add(cells []sentCell, place, unit int64, s Sent) error {
	i := unit % int64(len(cells))
	c := &cells[i]
	if s.Requests > 0 && c.Unit != unit {
		*c = sentCell{Unit: unit}
	}
	if c.Unit != unit {
		return nil // a correction of something long ago
	}
	c.Requests += int64(s.Requests)
	c.Input += int64(s.Input)
	c.Output += int64(s.Output)
	bytes, err := binary.Append(nil, binary.LittleEndian, c)
	if err != nil {
		return err
	}
	_, err = l.file.WriteAt(bytes, place+i*sentCellSize)
	return err
}

// Close closes the file.
func (l *SentLog) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	defer func() { l.file = nil }()
	return l.file.Close()
}
