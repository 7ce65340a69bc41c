package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/assay-eval/assay/internal/store/lockfile"
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
	there os.FileInfo // what is at name before; nil for nothing
	file  *os.File    // nil for standard output, and once it is closed
	lock  *lockfile.Lock
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
	f.there = d.stat(name)
	if slices.ContainsFunc(d.parts, f.same) {
		return nil, usageError("%s is to be two files at once\nhint: name another place for one of them", name)
	}
	if name != "-" {
		if err := f.spareStores(); err != nil {
			return nil, err
		}
	}
	switch {
	case f.appears():
		err = f.begin()
	case name != "-":
		err = f.attach()
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	d.parts = append(d.parts, f)
	return f, nil
}

// stat tells what bytes for a name would go to or replace.
func (d *delivery) stat(name string) os.FileInfo {
	stat := func() (os.FileInfo, error) { return os.Stat(name) }
	if name == "-" {
		out := d.process.out
		if h, ok := out.(*heedful); ok {
			out = h.Writer
		}
		file, ok := out.(*os.File)
		if !ok {
			return nil
		}
		stat = file.Stat
	}
	fi, err := stat()
	if err != nil {
		return nil
	}
	return fi
}

// same says that two parts would mix, or one replace the other.
func (f *part) same(g *part) bool {
	switch {
	case f.appears() && g.appears():
		return f.place == g.place
	case f.there != nil && g.there != nil:
		return os.SameFile(f.there, g.there)
	}
	return f.name == g.name
}

// spareStores refuses what would replace a store, or a file that belongs to one.
func (f *part) spareStores() error {
	paths := []string{f.name}
	if f.appears() {
		paths = []string{f.place, f.beside(".lock"), f.beside(".part")}
	}
	for _, path := range paths {
		if err := spareStore(f.name, path); err != nil {
			return err
		}
	}
	return nil
}

// spareStore refuses a path that an output of that name would take.
func spareStore(name, path string) error {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal", ".lock", ".damaged", ".ctl"} {
		of, ok := strings.CutSuffix(path, suffix)
		if !ok {
			continue
		}
		is, err := isDatabase(of)
		if err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if is {
			what := "is"
			if suffix != "" {
				what = "belongs to"
			}
			return usageError("%s %s a store or another database of SQLite, over which nothing is written\nhint: name another place", name, what)
		}
	}
	return nil
}

// isDatabase says that a file begins as those of SQLite do.
func isDatabase(path string) (bool, error) {
	const magic = "SQLite format 3\x00"
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() < int64(len(magic)) {
		return false, nil // what it hinders is told by whoever writes there
	}
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	start := make([]byte, len(magic))
	_, err = io.ReadFull(file, start)
	return string(start) == magic, errors.Join(err, file.Close())
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

// readerWait is how long a pipe may be without a reader that is started along with us. It is
// so short that signals need not end it.
const readerWait = 2 * time.Second

// attach opens what is no file of its own. The system would wait for a pipe's reader for
// ever, whatever signals come.
func (f *part) attach() (err error) {
	flags := os.O_WRONLY | os.O_APPEND
	if f.there != nil && f.there.Mode()&os.ModeNamedPipe != 0 {
		flags |= syscall.O_NONBLOCK
	}
	for began := time.Now(); ; time.Sleep(readerWait / 100) {
		f.file, err = os.OpenFile(f.name, flags, 0)
		f.Writer = f.file
		switch {
		case flags&syscall.O_NONBLOCK == 0 || !errors.Is(err, syscall.ENXIO):
			return err
		case time.Since(began) > readerWait:
			return errors.New("nobody reads this pipe\nhint: start its reader first")
		}
	}
}

// begin opens the file beside the place, which the lock makes ours. A file that it
// replaces leaves it its permissions.
func (f *part) begin() (err error) {
	f.lock, err = lockfile.Acquire(f.beside(".lock"))
	if errors.Is(err, lockfile.ErrHeld) {
		return errors.New("another program is writing it\nhint: wait for it, or name another place")
	}
	if err != nil {
		return err
	}
	if err = os.Remove(f.beside(".part")); err == nil || errors.Is(err, os.ErrNotExist) {
		mode := os.FileMode(0o666)
		if f.there != nil {
			mode = f.there.Mode().Perm()
		}
		f.file, err = os.OpenFile(f.beside(".part"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err == nil && f.there != nil {
			err = f.permit(mode)
		}
	}
	if err != nil {
		return errors.Join(err, f.lock.Release())
	}
	f.Writer = f.file
	return nil
}

// permit gives the file permissions that the system's mask perhaps took.
func (f *part) permit(mode os.FileMode) error {
	fi, err := f.file.Stat()
	if err == nil && fi.Mode().Perm() != mode {
		err = f.file.Chmod(mode)
	}
	if err != nil {
		err = errors.Join(err, f.file.Close(), os.Remove(f.beside(".part")))
	}
	return err
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
		errs = append(errs, f.lock.Release())
	}
	d.parts = nil
	return errors.Join(errs...)
}

// sweep removes the parts of files whose names end so that programs which were killed
// left in a directory. Those that another program writes now, and what cannot be removed,
// stay.
func sweep(dir, suffix string) error {
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
		f := &part{place: filepath.Join(dir, name)}
		c, err := lockfile.Acquire(f.beside(".lock"))
		if err != nil {
			continue
		}
		_ = os.Remove(f.beside(".part"))
		if err := c.Release(); err != nil {
			return err
		}
	}
	return nil
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
