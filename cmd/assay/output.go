package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/gofrs/flock"
)

// toFile writes to standard output, or to a file that appears when it is whole and on
// disk.
func toFile(p *process, path string, write func(io.Writer) error) (err error) {
	d := &delivery{process: p}
	defer func() { err = errors.Join(err, d.drop()) }()
	f, err := d.open(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		return err
	}
	return d.deliver()
}

// A delivery is files that appear together when all are whole and on disk. Until then
// each lies beside its place as .NAME.part, under a lock: what a program that was
// killed left there is written anew, and no two programs write it at once.
type delivery struct {
	process *process
	parts   []*part
}

// A part is one file of a delivery.
type part struct {
	io.Writer
	name string // as the user gave it
	// place is where the file will appear, behind symbolic links. It is empty where
	// bytes go to what is there: standard output, a device, a pipe.
	place string
	file  *os.File // nil for standard output, and once it is closed
	lock  *flock.Flock
}

// appears says that the part is a file of its own.
func (f *part) appears() bool { return f.place != "" }

// open begins a part. The parts appear in the order in which they are opened.
func (d *delivery) open(name string) (*part, error) {
	f := &part{Writer: d.process.out, name: name}
	var err error
	if name != "-" {
		if f.place, err = placeOf(name); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(d.parts, func(g *part) bool { return g.place == f.place && (f.appears() || g.name == f.name) }) {
		return nil, usageError("%s is to be two files at once\nhint: name another place for one of them", name)
	}
	switch {
	case f.appears():
		err = f.begin()
	case name != "-":
		f.file, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
		f.Writer = f.file
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	d.parts = append(d.parts, f)
	return f, nil
}

// placeOf returns where a file of that name will appear, or nothing if bytes go to what
// is there.
func placeOf(name string) (string, error) {
	fi, err := os.Stat(name)
	switch {
	case err == nil && fi.IsDir():
		return "", fmt.Errorf("write %s: it is a directory\nhint: name a file in it", name)
	case err == nil && !fi.Mode().IsRegular():
		return "", nil
	}
	path := name
	for range 40 { // as many links as systems follow
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if fi, err2 := os.Stat(dir); err != nil || err2 != nil || !fi.IsDir() {
			return "", fmt.Errorf("write %s: there is no directory %s\nhint: create it, or name another place", name, filepath.Dir(path))
		}
		if dir == "/dev/fd" || strings.HasPrefix(dir, "/proc/") {
			return "", nil // a file that somebody has open
		}
		path = filepath.Join(dir, filepath.Base(path))
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return "", fmt.Errorf("write %s: too many symbolic links", name)
}

// beside is the path of a hidden file beside the part's place.
func (f *part) beside(suffix string) string {
	return filepath.Join(filepath.Dir(f.place), "."+filepath.Base(f.place)+suffix)
}

// begin opens the file beside the place, which the lock makes ours.
func (f *part) begin() (err error) {
	if f.lock, err = lockFile(f.beside(".lock")); err != nil {
		return err
	}
	if err = os.Remove(f.beside(".part")); err == nil || errors.Is(err, os.ErrNotExist) {
		f.file, err = os.OpenFile(f.beside(".part"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	}
	if err != nil {
		return errors.Join(err, unlockFile(f.lock))
	}
	f.Writer = f.file
	return nil
}

func lockFile(path string) (*flock.Flock, error) {
	for {
		l := flock.New(path, flock.SetPermissions(0o666))
		ok, err := l.TryLock()
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, errors.Join(errors.New("another program is writing it\nhint: wait for it, or name another place"), l.Close())
		}
		// Who had the lock before may have removed this file, and others lock the next.
		mine, err := l.Stat()
		now, gone := os.Stat(path)
		switch {
		case gone == nil && err == nil && os.SameFile(mine, now):
			return l, nil
		case gone != nil && !errors.Is(gone, os.ErrNotExist):
			err = errors.Join(err, gone)
		}
		if err = errors.Join(err, l.Close()); err != nil {
			return nil, err
		}
	}
}

// unlockFile removes the file while it is ours. Where a system does not remove what is
// open, it stays, and is empty.
func unlockFile(l *flock.Flock) error {
	_ = os.Remove(l.Path())
	return l.Close()
}

// finish ends the writing of a part.
func (f *part) finish() (err error) {
	if f.file == nil {
		return nil
	}
	if f.appears() {
		err = f.file.Sync()
	}
	if err = errors.Join(err, f.file.Close()); err != nil {
		err = fmt.Errorf("write %s: %w", f.name, err)
	}
	f.file = nil
	return err
}

// deliver makes the files appear. Renaming replaces a file at once on every system that
// Go has.
func (d *delivery) deliver() error {
	for _, f := range d.parts {
		if err := f.finish(); err != nil {
			return err
		}
	}
	for _, f := range d.parts {
		if !f.appears() {
			continue
		}
		if err := os.Rename(f.beside(".part"), f.place); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	return nil
}

// drop removes what was not delivered, and ends the delivery.
func (d *delivery) drop() error {
	var errs []error
	for _, f := range d.parts {
		errs = append(errs, f.finish())
		if !f.appears() {
			continue
		}
		if err := os.Remove(f.beside(".part")); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		errs = append(errs, unlockFile(f.lock))
	}
	d.parts = nil
	return errors.Join(errs...)
}

// harmless returns a text without what a terminal would obey, and on one line.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
