package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/assay-eval/assay/internal/store/lockfile"
)

// A target is a new store in the making. Until it is whole it has another name, and
// nobody else makes one of that name meanwhile.
type target struct {
	path string
	part string // what to write to; an empty file at first
	lock *lockfile.Lock
}

// besides are the files beside a store that belong to it.
var besides = []string{"", "-wal", "-shm", "-journal", ".lock"}

// newTarget begins a store at path, where none may be, with these permissions.
func newTarget(path string, mode fs.FileMode) (*target, error) {
	if path == "" {
		return nil, hinted(errors.New("the new store has no name"), "name a file that is not there, such as copy.db")
	}
	if err := refuseOccupied(path); err != nil {
		return nil, err
	}
	dir, name := filepath.Dir(path), filepath.Base(path)
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return nil, hinted(fmt.Errorf("%s: there is no directory %s", path, dir), "nothing was written; create it, or name another file")
	}
	t := &target{path: path, part: filepath.Join(dir, "."+name+"-part")}
	var err error
	t.lock, err = lockfile.Acquire(filepath.Join(dir, "."+name+"-claim"))
	if errors.Is(err, lockfile.ErrHeld) {
		return nil, hinted(fmt.Errorf("%s: %w: a backup, merge or recovery makes it now", path, ErrBusy), "nothing was written; wait for it, or name another file")
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	// What one that was killed left.
	err = t.clear()
	if err == nil {
		err = create(t.part, mode)
	}
	if err != nil {
		return nil, errors.Join(explain(path, err), t.close())
	}
	return t, nil
}

// refuseOccupied refuses a name that is taken, or beside which files lie that would be
// taken for the new store's own.
func refuseOccupied(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return hinted(fmt.Errorf("%s %w", path, ErrExists), "nothing was written; name a file that is not there")
	}
	for _, suffix := range []string{"-wal", "-journal", ".damaged"} {
		switch fi, err := os.Lstat(path + suffix); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("store: %w", err)
		case suffix == ".damaged" || fi.IsDir() || fi.Size() > 0: // an empty log says nothing
			return hinted(fmt.Errorf("%s%s %w, and belongs to a store that is not there", path, suffix, ErrExists),
				"nothing was written; move it to the store that it belongs to, or name another file")
		}
	}
	return nil
}

func create(path string, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(mode), f.Close())
}

func (t *target) clear() (err error) {
	for _, suffix := range besides {
		if gone := os.Remove(t.part + suffix); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return err
}

// place gives a store that is whole its name. Unlike a rename, a link never takes the
// place of a file that came up meanwhile; not every file system has links.
func (t *target) place() error {
	if err := refuseOccupied(t.path); err != nil {
		return err
	}
	err := os.Link(t.part, t.path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = os.Rename(t.part, t.path)
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// close leaves nothing but what has its name.
func (t *target) close() error { return errors.Join(t.clear(), t.lock.Release()) }

// strictest returns the permissions that all of these files give, and those that it
// takes to write.
func strictest(paths ...string) (fs.FileMode, error) {
	mode := fs.FileMode(0o777)
	for _, path := range paths {
		fi, err := os.Stat(path)
		if err != nil {
			return 0, fmt.Errorf("store: %w", err)
		}
		mode &= fi.Mode().Perm()
	}
	return mode | 0o600, nil
}
