package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// The transcripts of an experiment share most of their text, such as prompts, tools and
// corrections. So a session takes a sample of the first transcripts that it saves, and then
// compresses with a dictionary, which is on disk before it is used.
//
// The sizes were measured. 64 KB of text compress better than 32 KB, and the beginnings of five
// transcripts better than two whole ones. SpeedFastest with a dictionary takes less time than
// SpeedDefault without one, and its output is about a third as large.
const (
	dictionaryBytes = 64 << 10
	excerptBytes    = 16 << 10
	// judges is how many transcripts choose between dictionaries.
	judges = 4
)

// A dictionary is text that transcripts probably share. The zero value means no dictionary.
type dictionary struct {
	id   uint32 // the ID in the zstd frames that need it
	text []byte
}

// encoder returns an encoder whose EncodeAll is safe for concurrent use. It has no goroutines, so
// it need not be closed.
func (d dictionary) encoder() *zstd.Encoder {
	options := []zstd.EOption{
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(zstdWindow),
	}
	if d.id != 0 {
		options = append(options, zstd.WithEncoderDictRaw(d.id, d.text))
	}
	enc, err := zstd.NewWriter(nil, options...)
	if err != nil {
		panic("store: zstd: " + err.Error())
	}
	return enc
}

// newDecoder returns a decoder whose DecodeAll is safe for concurrent use. It need not be closed.
func newDecoder(dictionaries ...dictionary) *zstd.Decoder {
	options := []zstd.DOption{
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(maxTranscript),
	}
	for _, d := range dictionaries {
		options = append(options, zstd.WithDecoderDictRaw(d.id, d.text))
	}
	dec, err := zstd.NewReader(nil, options...)
	if err != nil {
		panic("store: zstd: " + err.Error())
	}
	return dec
}

// A sample is taken from a session's first transcripts. It has text for a dictionary, and then a
// few transcripts that choose between dictionaries.
type sample struct {
	stored []dictionary // when the session began
	mu     sync.Mutex
	text   []byte   // guarded by mu until the sample is full
	judges [][]byte // guarded by mu until the sample is full
}

// add adds an excerpt of a transcript and reports whether the sample has just become full.
func (s *sample) add(transcript []byte) (full bool) {
	excerpt := transcript[:min(len(transcript), excerptBytes)]
	s.mu.Lock()
	defer s.mu.Unlock()
	if room := dictionaryBytes - len(s.text); room > 0 {
		s.text = append(s.text, excerpt[:min(len(excerpt), room)]...)
		return false
	}
	if len(s.judges) == judges {
		return false
	}
	s.judges = append(s.judges, bytes.Clone(excerpt))
	return len(s.judges) == judges
}

// size returns the compressed size of the judges of a full sample.
func (s *sample) size(enc *zstd.Encoder) (n int) {
	for _, t := range s.judges {
		n += len(enc.EncodeAll(t, nil))
	}
	return n
}

// beginSample begins the session with the newest dictionary and an empty sample.
func (db *DB) beginSample(ctx context.Context) error {
	stored, err := dictionaries(ctx, db.reader)
	if err != nil {
		return db.wrap(err)
	}
	if n := len(stored); n > 0 {
		db.enc.Store(stored[n-1].encoder())
	}
	db.sample.Store(&sample{stored: stored})
	return nil
}

// compress returns a transcript's JSON as it is stored. The caller whose transcript fills the
// sample waits for the dictionary. Other callers do not.
func (db *DB) compress(ctx context.Context, text []byte) ([]byte, error) {
	if s := db.sample.Load(); s != nil && s.add(text) {
		db.sample.Store(nil)
		if err := db.choose(ctx, s); err != nil {
			return nil, fmt.Errorf("dictionary: %w", err)
		}
	}
	return db.enc.Load().EncodeAll(text, make([]byte, 0, len(text)/4)), nil
}

// decompress returns the JSON of a stored transcript. If it needs an unknown dictionary, a later
// session may have added that, so decompress reads the dictionaries again.
func (db *DB) decompress(ctx context.Context, body []byte) ([]byte, error) {
	text, err := db.dec.Load().DecodeAll(body, nil)
	if errors.Is(err, zstd.ErrUnknownDictionary) {
		stored, failed := dictionaries(ctx, db.reader)
		if failed != nil {
			return nil, db.wrap(failed)
		}
		dec := newDecoder(stored...)
		db.dec.Store(dec)
		text, err = dec.DecodeAll(body, nil)
	}
	if err != nil {
		return nil, damagedBody(err)
	}
	return text, nil
}

func damagedBody(err error) error {
	return hinted(fmt.Errorf("%w: %w", ErrDamaged, err),
		"nothing was changed, and other results are not affected; go back to a backup for this one")
}

// choose decides how this session compresses: without a dictionary, with the best stored one, or
// with a new one if that saves another quarter. So a store gets one dictionary for each kind of
// text.
func (db *DB) choose(ctx context.Context, s *sample) error {
	best := dictionary{}.encoder()
	least := s.size(best)
	for _, d := range s.stored {
		enc := d.encoder()
		if n := s.size(enc); n < least {
			best, least = enc, n
		}
	}
	fresh := dictionary{id: 1, text: s.text}
	if 4*s.size(fresh.encoder()) < 3*least {
		var err error
		if fresh.id, err = db.saveDictionary(ctx, s.text); err != nil {
			return err
		}
		best = fresh.encoder()
	}
	db.enc.Store(best)
	return nil
}

// saveDictionary stores a dictionary and returns its ID once it is on disk.
func (db *DB) saveDictionary(ctx context.Context, text []byte) (uint32, error) {
	body := dictionary{}.encoder().EncodeAll(text, nil)
	var id int64
	err := db.do(ctx, len(body), func(w *writer) (err error) {
		id, err = w.add("dictionaries", len(text), body)
		return err
	})
	if err != nil {
		return 0, err // if ctx ended, the writer may still be setting id
	}
	return uint32(id), nil
}

// dictionaries returns the stored dictionaries, oldest first. It leaves out damaged ones, because
// the transcripts that need them are reported as damaged.
func dictionaries(ctx context.Context, q querier) (intact []dictionary, err error) {
	all, err := collect(ctx, q, "SELECT id, body FROM dictionaries ORDER BY id", nil,
		func(d *dictionary) []any { return []any{&d.id, &d.text} })
	dec := newDecoder()
	for _, d := range all {
		if text, err := dec.DecodeAll(d.text, nil); err == nil {
			intact = append(intact, dictionary{d.id, text})
		}
	}
	return intact, err
}
