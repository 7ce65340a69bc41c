package export

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/assay-eval/assay"
)

// A Manifest tells what an export holds and where that came from. It is
// written beside the files.
type Manifest struct {
	FormatVersion int       `json:"format_version"`
	Program       string    `json:"program"`
	CreatedAt     time.Time `json:"created_at"`
	Snapshot      string    `json:"snapshot"`
	// Store is the base name of the store.
	Store string `json:"store"`
	// Filter holds the flags that chose the attempts, by their names.
	Filter map[string]string `json:"filter"`
	Files  []File            `json:"files"`
	// Columns are those of all tables of Files.
	Columns []Column `json:"columns"`
	Counts  Counts   `json:"counts"`
}

// A File is one file of an export.
type File struct {
	// Name is without a directory.
	Name   string `json:"name"`
	Format Format `json:"format"`
	Table  Table  `json:"table"`
	Rows   int    `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// A Column describes a field of a table. Type is string, int64, double, bool,
// timestamp, json or list<string>; Nullable fields are null or empty where
// there is nothing to tell.
type Column struct {
	Table       Table  `json:"table"`
	Name        string `json:"name"`
	Type        string `json:"type"`
	Nullable    bool   `json:"nullable"`
	Description string `json:"description"`
}

// Counts counts attempts. Each is an outcome or a fault, and a trial may have
// several.
type Counts struct {
	Attempts int `json:"attempts"`
	Outcomes int `json:"outcomes"`
	Faults   int `json:"faults"`
	Trials   int `json:"trials"`
}

// Describe returns the columns of a table in their order, or nil for a table
// that there is not.
func Describe(t Table) []Column {
	switch t {
	case AttemptTable:
		return describe(&attempts)
	case CallTable:
		return describe(&calls)
	}
	return nil
}

func describe[R any](t *table[R]) []Column {
	all := make([]Column, len(t.columns))
	for i, c := range t.columns {
		all[i] = Column{t.name, c.name, c.kind, c.node.Optional(), c.doc}
	}
	return all
}

// Count returns the attempts of records and counts in c those that pass. Call
// it once for a c.
func (c *Counts) Count(records iter.Seq2[assay.Attempt, error]) iter.Seq2[assay.Attempt, error] {
	// Digests, not identities: they take less memory for a million trials.
	seen := make(map[[16]byte]struct{})
	return func(yield func(assay.Attempt, error) bool) {
		for a, err := range records {
			if err == nil {
				c.Attempts++
				if a.Settles() {
					c.Outcomes++
				} else {
					c.Faults++
				}
				sum := sha256.Sum256([]byte(a.ID))
				seen[[16]byte(sum[:])] = struct{}{}
				c.Trials = len(seen)
			}
			if !yield(a, err) {
				return
			}
		}
	}
}

// A Digest passes on what is written to a file and sums it up for a [File].
type Digest struct {
	w     io.Writer
	sum   hash.Hash
	bytes int64
}

// NewDigest returns a digest that writes to w.
func NewDigest(w io.Writer) *Digest { return &Digest{w: w, sum: sha256.New()} }

// Write writes to the underlying writer; what that took counts.
func (d *Digest) Write(p []byte) (int, error) {
	n, err := d.w.Write(p)
	d.sum.Write(p[:max(0, min(n, len(p)))])
	d.bytes += int64(n)
	return n, err
}

// File describes what was written, under the base of that name.
func (d *Digest) File(name string, format Format, t Table, rows int) File {
	return File{filepath.Base(name), format, t, rows, d.bytes, hex.EncodeToString(d.sum.Sum(nil))}
}

// Write writes the manifest as indented JSON.
func (m Manifest) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(m); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return nil
}

// ReadManifest reads what [Manifest.Write] wrote. Fields that it does not know
// are of a newer program and no error; a newer format version is.
func ReadManifest(r io.Reader) (m Manifest, err error) {
	d := json.NewDecoder(r)
	if err := d.Decode(&m); err != nil {
		return Manifest{}, fmt.Errorf("read manifest: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Manifest{}, errors.New("read manifest: there is more than one object")
	}
	if m.FormatVersion < 1 || m.FormatVersion > Version {
		return Manifest{}, fmt.Errorf("read manifest: format version is %d, and this program knows 1 to %d\nhint: is it the manifest of a newer assay?", m.FormatVersion, Version)
	}
	return m, nil
}

// Verify reads the files in a directory again and says of each which of size,
// SHA-256 and number of rows is not what the manifest says.
func (m Manifest) Verify(dir string) error {
	var errs []error
	for _, f := range m.Files {
		if err := f.verify(dir); err != nil {
			errs = append(errs, fmt.Errorf("verify %s: %w", f.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (f File) verify(dir string) (err error) {
	if f.Name != filepath.Base(f.Name) || !filepath.IsLocal(f.Name) {
		return errors.New("the name is not that of a file beside the manifest")
	}
	file, err := os.Open(filepath.Join(dir, f.Name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	lines := &lineCounter{}
	d := NewDigest(lines)
	if _, err := io.Copy(d, file); err != nil {
		return err
	}
	var errs []error
	got := d.File(f.Name, f.Format, f.Table, 0)
	if got.Bytes != f.Bytes {
		errs = append(errs, fmt.Errorf("has %d bytes, and the manifest says %d", got.Bytes, f.Bytes))
	}
	if got.SHA256 != f.SHA256 {
		errs = append(errs, fmt.Errorf("has SHA-256 %s, and the manifest says %s", got.SHA256, f.SHA256))
	}
	rows, err := countRows(f.Format, lines.n, file, got.Bytes)
	if err != nil {
		errs = append(errs, err)
	} else if rows != f.Rows {
		errs = append(errs, fmt.Errorf("has %d rows, and the manifest says %d", rows, f.Rows))
	}
	return errors.Join(errs...)
}

// countRows counts the records of a file with so many lines.
func countRows(format Format, lines int, file io.ReaderAt, size int64) (n int, err error) {
	switch format {
	case JSONL:
		return lines, nil
	case CSV:
		return max(0, lines-1), nil
	case Parquet:
		defer rescue(&err)
		if err := checkEnd(file, size); err != nil {
			return 0, err
		}
		f, err := parquet.OpenFile(file, size, parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
		if err != nil {
			return 0, err
		}
		return int(f.NumRows()), nil
	}
	return 0, unknown(string(format))
}

type lineCounter struct{ n int }

func (l *lineCounter) Write(p []byte) (int, error) {
	l.n += bytes.Count(p, []byte{'\n'})
	return len(p), nil
}
