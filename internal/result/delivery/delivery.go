// Package delivery writes files that appear together or not at all.
//
// It owns the places of output files: temporary names, locks, symbolic links, devices and
// pipes, and the rule that no output replaces a store. It doesn't know the content of the files;
// see the packages export, evallog and document.
//
// Each file is first written to .NAME.part next to its place, under the lock .NAME.lock. So two
// programs never write the same file at once, and the next program overwrites the files that a
// killed one left behind.
package delivery

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-eval/assay/internal/store"
)

// A Delivery is a set of files that appear together once all of them are complete and on disk.
type Delivery struct {
	stdout io.Writer
	parts  []*Part
}

// New returns an empty delivery. The output named - is stdout. If stdout has a Stat method, as
// *os.File does, the delivery can detect another output to the same file.
func New(stdout io.Writer) *Delivery { return &Delivery{stdout: stdout} }

// A NameError reports an output that the user has to name differently.
type NameError struct{ message string }

func (e *NameError) Error() string { return e.message }

// Write delivers a single file, or writes to stdout if the name is -.
func Write(stdout io.Writer, name string, write func(io.Writer) error) (err error) {
	d := New(stdout)
	defer func() { err = errors.Join(err, d.Close()) }()

	p, err := d.Open(name)
	if err != nil {
		return err
	}
	if err := write(p); err != nil {
		return err
	}
	return d.Deliver()
}

// Open begins a part. Parts appear in the order in which they were opened.
func (d *Delivery) Open(name string) (*Part, error) {
	p := &Part{Writer: d.stdout, name: name}
	var err error
	if name != "-" {
		if p.place, err = placeOf(name); err != nil {
			return nil, err
		}
	}

	p.existing = d.stat(name)
	if slices.ContainsFunc(d.parts, p.same) {
		return nil, &NameError{fmt.Sprintf(
			"two outputs have the same path: %s\nhint: choose another path for one of them", name)}
	}
	if name != "-" {
		if err := p.refuseStore(); err != nil {
			return nil, err
		}
	}

	switch {
	case p.IsFile():
		err = p.create()
	case name != "-":
		err = p.attach()
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	d.parts = append(d.parts, p)
	return p, nil
}

// stat describes the file that the output would write to or replace. It returns nil if there is no
// such file.
func (d *Delivery) stat(name string) os.FileInfo {
	stat := func() (os.FileInfo, error) { return os.Stat(name) }
	if name == "-" {
		out, ok := d.stdout.(interface{ Stat() (os.FileInfo, error) })
		if !ok {
			return nil
		}
		stat = out.Stat
	}
	if fi, err := stat(); err == nil {
		return fi
	}
	return nil
}

// Deliver makes the files appear. Renaming replaces a file atomically on every system that Go
// supports.
func (d *Delivery) Deliver() error {
	for _, p := range d.parts {
		if err := p.Finish(); err != nil {
			return err
		}
	}
	for _, p := range d.parts {
		if !p.IsFile() {
			continue
		}
		err := os.Rename(p.hidden(".part"), p.place)
		if err == nil {
			err = store.SyncDir(filepath.Dir(p.place))
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", p.name, err)
		}
	}
	return nil
}

// Close ends the delivery and removes the files that were not delivered.
func (d *Delivery) Close() error {
	var errs []error
	for _, p := range d.parts {
		errs = append(errs, p.Finish())
		if !p.IsFile() {
			continue
		}
		if err := os.Remove(p.hidden(".part")); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		errs = append(errs, p.lock.Release())
	}
	d.parts = nil
	return errors.Join(errs...)
}

// Sweep removes the files that killed programs left in a directory of outputs whose names have the
// given suffix. It skips files that another program is writing and files that cannot be removed.
func Sweep(dir, suffix string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		hidden, ours := strings.CutPrefix(e.Name(), ".")
		name, left := strings.CutSuffix(hidden, ".part")
		if !left {
			name, left = strings.CutSuffix(hidden, ".lock")
		}
		if !ours || !left || !strings.HasSuffix(name, suffix) {
			continue
		}

		p := &Part{place: filepath.Join(dir, name)}
		lock, err := store.Reserve(p.hidden(".lock"))
		if err != nil {
			continue
		}
		_ = os.Remove(p.hidden(".part"))
		if err := lock.Release(); err != nil {
			return err
		}
	}
	return nil
}
