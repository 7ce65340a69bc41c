// Package atomicfile writes files that appear together or not at all.
//
// It owns the places of output files, and the rule that no output replaces a store. It doesn't know
// the content of the files; see the packages export, evallog and document.
//
// Each file is first written to a hidden file next to its place. A program that is killed leaves that
// file behind, and nothing else.
package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/assay-eval/assay/internal/durable"
	"github.com/assay-eval/assay/internal/store"
)

// A Set is a group of files that appear together once all of them are complete and on disk.
type Set struct {
	stdout io.Writer
	parts  []*Part
}

// A Part is one output of a [Set].
type Part struct {
	io.Writer
	name  string                // as the user wrote it
	place string                // its path without symbolic links
	file  *renameio.PendingFile // nil for standard output, a device or a pipe
	open  io.Closer             // the device or pipe
}

// IsFile reports whether the part appears as a separate file.
func (p *Part) IsFile() bool { return p.file != nil }

// Name returns the path that the user gave.
func (p *Part) Name() string { return p.name }

// New returns an empty set. The output named - is stdout.
func New(stdout io.Writer) *Set { return &Set{stdout: stdout} }

// A NameError reports an output that the user has to name differently.
type NameError struct{ message string }

func (e *NameError) Error() string { return e.message }

// Write makes a single file appear, or writes to stdout if the name is -.
func Write(stdout io.Writer, name string, write func(io.Writer) error) (err error) {
	s := New(stdout)
	defer func() { err = errors.Join(err, s.Close()) }()

	p, err := s.Open(name)
	if err != nil {
		return err
	}
	if err := write(p); err != nil {
		return err
	}
	return s.Commit()
}

// Check returns the error that outputs with these names would meet. Before long work, it spares the user
// an output that cannot be written. Devices and pipes are left alone.
func Check(names ...string) (err error) {
	s := New(nil)
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, name := range names {
		if fi, err := os.Stat(name); name == "-" || err == nil && !fi.Mode().IsRegular() && !fi.IsDir() {
			continue
		}
		if _, err := s.Open(name); err != nil {
			return err
		}
	}
	return nil
}

// Open begins a part. Parts appear in the order in which they were opened. A file that replaces
// another one gets its permissions.
func (s *Set) Open(name string) (*Part, error) {
	p := &Part{Writer: s.stdout, name: name, place: name}
	if name != "-" {
		if err := p.find(); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(s.parts, func(q *Part) bool { return q.place == p.place }) {
		return nil, &NameError{fmt.Sprintf(
			"two outputs have the same path: %s\nhint: choose another path for one of them", name)}
	}
	if name != "-" {
		if err := RefuseStore(name, p.place); err != nil {
			return nil, err
		}
		if err := p.create(); err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
	}
	s.parts = append(s.parts, p)
	return p, nil
}

// find sets the place of a part.
func (p *Part) find() (err error) {
	dir := filepath.Dir(p.name)
	if fi, err := os.Stat(p.name); err == nil && fi.IsDir() {
		return fmt.Errorf("write %s: it is a directory\nhint: name a file in it", p.name)
	}
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return fmt.Errorf("write %s: there is no directory %s\n"+
			"hint: create it, or choose another path", p.name, dir)
	}
	if p.place, err = filepath.EvalSymlinks(p.name); errors.Is(err, os.ErrNotExist) {
		p.place, err = filepath.EvalSymlinks(dir)
		p.place = filepath.Join(p.place, filepath.Base(p.name))
	}
	if err == nil {
		p.place, err = filepath.Abs(p.place)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", p.name, err)
	}
	return nil
}

// create opens a device or pipe, and otherwise a hidden file. Names below /dev are those of open
// files.
func (p *Part) create() (err error) {
	name, err := filepath.Abs(p.name)
	if err != nil {
		return err
	}
	fi, err := os.Stat(name)
	if err == nil && !fi.Mode().IsRegular() || strings.HasPrefix(name, "/dev/") {
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		p.Writer, p.open = file, file
		return err
	}
	p.file, err = renameio.NewPendingFile(p.place, renameio.WithTempDir(filepath.Dir(p.place)),
		renameio.WithPermissions(0o666), renameio.WithExistingPermissions())
	p.Writer = p.file
	return err
}

// Commit makes the files appear, once all of them are on disk.
func (s *Set) Commit() error {
	for _, p := range s.parts {
		if p.IsFile() {
			if err := durable.SyncFile(p.file.File); err != nil {
				return fmt.Errorf("write %s: %w", p.name, err)
			}
		}
	}
	for _, p := range s.parts {
		if !p.IsFile() {
			continue
		}
		err := p.file.CloseAtomicallyReplace()
		if err == nil {
			err = durable.SyncDir(filepath.Dir(p.place))
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", p.name, err)
		}
	}
	return nil
}

// Close removes the files that were not committed.
func (s *Set) Close() error {
	var errs []error
	for _, p := range s.parts {
		switch {
		case p.IsFile():
			errs = append(errs, p.file.Cleanup())
		case p.open != nil:
			errs = append(errs, p.open.Close())
		}
	}
	s.parts = nil
	return errors.Join(errs...)
}

// RefuseStore returns an error if an output of the given name, which would take the given path,
// would replace a store or a file that belongs to one.
func RefuseStore(name, path string) error {
	suffix, belongs, err := store.Belonging(path)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if !belongs {
		return nil
	}
	verb := "is"
	if suffix != "" {
		verb = "belongs to"
	}
	return &NameError{fmt.Sprintf(
		"%s %s a store or another SQLite database, which an output never replaces\n"+
			"hint: choose another path", name, verb)}
}
