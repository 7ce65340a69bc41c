package export

import (
	"context"
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

	"github.com/assay-eval/assay"
)

// A Manifest describes the content and origin of an export. It is written
// beside the files.
type Manifest struct {
	FormatVersion int       `json:"format_version"`
	Program       string    `json:"program"`
	CreatedAt     time.Time `json:"created_at"`
	Snapshot      string    `json:"snapshot"`
	// Store is the base name of the store's file.
	Store  string `json:"store"`
	Filter Filter `json:"filter"`
	Files  []File `json:"files"`
	// Columns describes the columns of all tables in Files that this package
	// writes.
	Columns []Column `json:"columns"`
	Counts  Counts   `json:"counts"`
	Missing Missing  `json:"missing"`
}

// Missing counts records that were selected but are not in the files.
type Missing struct {
	// Attempts counts attempts that could not be read or proved. With a [Filter], it is
	// unknown whether they would have been selected. Transcripts counts
	// transcripts that could not be read although their attempts could.
	Attempts    int `json:"attempts"`
	Transcripts int `json:"transcripts"`
	// Rows counts other rows of the store that could not be read or proved, such as runs.
	Rows int `json:"rows,omitempty"`
	// NotKept counts attempts whose transcripts are not in the store, usually
	// because they were deleted on purpose. It is counted only if transcripts
	// are exported.
	NotKept int `json:"transcripts_not_kept"`
}

// Damage reports whether something could not be read.
func (m Missing) Damage() bool { return m.Attempts > 0 || m.Transcripts > 0 || m.Rows > 0 }

// A Filter holds the conditions that selected the attempts. See the flags of
// "assay export".
type Filter struct {
	Experiment string      `json:"experiment,omitempty"`
	Run        assay.RunID `json:"run,omitempty"`
	Since      string      `json:"since,omitempty"`
	Where      []string    `json:"where,omitempty"`
}

// A File is one file of an export.
type File struct {
	// Name is the path relative to the manifest's directory, with slashes.
	Name   string `json:"name"`
	Format Format `json:"format"`
	Table  Table  `json:"table"`
	// Rows is the number of records of Table.
	Rows   int    `json:"rows"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// A Column describes a field of a table. Type is string, int64, double, bool,
// timestamp, json or list<string>. Nullable fields are null or empty if there
// is no value.
type Column struct {
	Table       Table  `json:"table"`
	Name        string `json:"name"`
	Type        string `json:"type"`
	Nullable    bool   `json:"nullable"`
	Description string `json:"description"`
}

// Counts counts attempts. An attempt is an outcome or a fault, or counts for nothing but its cost
// because it was superseded or interrupted. A trial may have several.
type Counts struct {
	Attempts    int `json:"attempts"`
	Outcomes    int `json:"outcomes"`
	Faults      int `json:"faults"`
	Superseded  int `json:"superseded"`
	Interrupted int `json:"interrupted"`
	Trials      int `json:"trials"`
}

// Describe returns the columns of a table in order, or nil for an unknown
// table.
func Describe(t Table) []Column {
	switch t {
	case AttemptTable:
		return describe(attempts())
	case CallTable:
		return describe(calls())
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

// Count passes on records and counts the attempts among them in c. Use a new c
// for each call.
func (c *Counts) Count(records iter.Seq2[assay.Attempt, error]) iter.Seq2[assay.Attempt, error] {
	// Digests of the identities take less memory for a million trials.
	seen := make(map[[16]byte]struct{})
	return func(yield func(assay.Attempt, error) bool) {
		for a, err := range records {
			if err == nil {
				c.Attempts++
				switch {
				case a.Superseded:
					c.Superseded++
				case a.OnlyCosts():
					c.Interrupted++
				case a.Settles():
					c.Outcomes++
				default:
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

// A Digest computes the size and SHA-256 of a file while it is written.
type Digest struct {
	w     io.Writer
	sum   hash.Hash
	bytes int64
}

// NewDigest returns a digest that writes to w.
func NewDigest(w io.Writer) *Digest { return &Digest{w: w, sum: sha256.New()} }

// Write writes to the underlying writer and counts the bytes that it accepted.
func (d *Digest) Write(p []byte) (int, error) {
	n, err := d.w.Write(p)
	d.sum.Write(p[:max(0, min(n, len(p)))])
	d.bytes += int64(n)
	return n, err
}

// File describes the file at path. Its name is relative to manifest, the path
// of the manifest.
func (d *Digest) File(manifest, path string, format Format, t Table, rows int) File {
	return File{nameFrom(manifest, path), format, t, rows, d.bytes, d.hex()}
}

func (d *Digest) hex() string { return hex.EncodeToString(d.sum.Sum(nil)) }

// nameFrom returns the path from a manifest to a file, or path if no such path exists. It resolves
// symbolic links to directories, so that ".." leads where the file system would go.
func nameFrom(manifest, path string) string {
	from, err := filepath.Abs(filepath.Dir(manifest))
	to, err2 := filepath.Abs(filepath.Dir(path))
	if err := errors.Join(err, err2); err != nil {
		return filepath.ToSlash(path)
	}
	realFrom, err := filepath.EvalSymlinks(from)
	realTo, err2 := filepath.EvalSymlinks(to)
	if errors.Join(err, err2) == nil {
		from, to = realFrom, realTo
	}
	if name, err := filepath.Rel(from, filepath.Join(to, filepath.Base(path))); err == nil {
		path = name
	}
	return filepath.ToSlash(path)
}

// Path returns the path of the file if the manifest is in dir.
func (f File) Path(dir string) string {
	path := filepath.FromSlash(f.Name)
	if filepath.IsAbs(path) {
		return path
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return filepath.Join(dir, path)
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

// ReadManifest reads a manifest that [Manifest.Write] wrote. It ignores unknown
// fields, which come from newer programs, but refuses a newer format version.
func ReadManifest(r io.Reader) (m Manifest, err error) {
	d := json.NewDecoder(r)
	if err := d.Decode(&m); err != nil {
		return Manifest{}, fmt.Errorf("read manifest: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return Manifest{}, errors.New("read manifest: more than one JSON object")
	}
	if m.FormatVersion < 1 || m.FormatVersion > Version {
		return Manifest{}, fmt.Errorf("read manifest: unsupported format version %d, "+
			"want 1 to %d\nhint: a newer assay may have written it", m.FormatVersion, Version)
	}
	return m, nil
}

// Verify compares the size and SHA-256 of each file with the manifest, given the manifest's
// directory. Its error lists all differences. It returns early when ctx ends.
func (m Manifest) Verify(ctx context.Context, dir string) error {
	var errs []error
	for _, f := range m.Files {
		err := f.verify(ctx, f.Path(dir))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("verify %s: %w", f.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (f File) verify(ctx context.Context, path string) (err error) {
	if fi, err := os.Stat(path); err == nil && !fi.Mode().IsRegular() {
		return errors.New("not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	// Closing the file ends any read from it.
	stop := context.AfterFunc(ctx, func() { _ = file.Close() })
	defer func() {
		if stop() {
			err = errors.Join(err, file.Close())
		}
	}()
	d := NewDigest(io.Discard)
	if _, err := io.Copy(d, file); err != nil {
		return err
	}
	var errs []error
	if d.bytes != f.Bytes {
		errs = append(errs, fmt.Errorf("has %d bytes, want %d", d.bytes, f.Bytes))
	}
	if got := d.hex(); got != f.SHA256 {
		errs = append(errs, fmt.Errorf("has SHA-256 %s, want %s", got, f.SHA256))
	}
	return errors.Join(errs...)
}
