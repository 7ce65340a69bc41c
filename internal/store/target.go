package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/assay-eval/assay/internal/durable"
)

// A target is a new store in the making. It has another name until it is complete. A lock keeps
// other programs from making a store of the same name meanwhile.
type target struct {
	path string
	part string // the file to write to; empty at first
	lock *Reservation
}

// suffixes are appended to the path of a store to name the files that belong to it.
var suffixes = []string{
	"", "-wal", "-shm", "-journal", ".lock", ".damaged", ".ctl", journalSuffix, ".sent",
}

// Belonging returns the suffix with which a path belongs to a store or another SQLite database,
// if it does. The database itself has an empty suffix.
func Belonging(path string) (suffix string, belongs bool, err error) {
	for _, suffix := range suffixes {
		if database, ok := strings.CutSuffix(path, suffix); ok {
			if found, err := IsDatabase(database); found || err != nil {
				return suffix, found, err
			}
		}
	}
	return "", false, nil
}

// IsDatabase reports whether a file starts like an SQLite database.
func IsDatabase(path string) (bool, error) {
	const magic = "SQLite format 3\x00"
	fi, err := os.Stat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() < int64(len(magic)) {
		return false, nil // if the path cannot be read or written, its user finds the reason
	}
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	start := make([]byte, len(magic))
	_, err = io.ReadFull(file, start)
	return string(start) == magic, errors.Join(err, file.Close())
}

// newTarget begins a store at path, which must not exist, with these permissions.
func newTarget(path string, mode fs.FileMode) (*target, error) {
	if path == "" {
		return nil, hinted(errors.New("the new store has no name"),
			"name a file that does not exist, such as copy.db")
	}
	if err := refuseOccupied(path); err != nil {
		return nil, err
	}
	dir, name := filepath.Dir(path), filepath.Base(path)
	if fi, err := os.Stat(dir); err != nil || !fi.IsDir() {
		return nil, hinted(fmt.Errorf("%s: directory %s not found", path, dir),
			"nothing was written; create it, or name another file")
	}

	t := &target{path: path, part: partOf(path)}
	var err error
	t.lock, err = Reserve(filepath.Join(dir, "."+name+"-lock"))
	if errors.Is(err, ErrReserved) {
		err := fmt.Errorf("%s: %w: a backup, merge or recovery is making it", path, ErrBusy)
		return nil, hinted(err,
			"nothing was written; wait for it, or name another file")
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	err = t.clear() // a killed program may have left files
	if err == nil {
		err = create(t.part, mode)
	}
	if err != nil {
		return nil, errors.Join(explain(path, err), t.close())
	}
	return t, nil
}

// partOf returns the name of a store while it is made.
func partOf(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-part")
}

// refuseOccupied refuses a name that exists, or whose neighbouring files would be taken for the
// new store's own.
func refuseOccupied(path string) error {
	if _, err := os.Lstat(path); err == nil {
		return hinted(fmt.Errorf("%s %w", path, ErrExists),
			"choose another file")
	}
	for _, suffix := range []string{"-wal", "-journal", ".damaged", journalSuffix} {
		switch fi, err := os.Lstat(path + suffix); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return fmt.Errorf("store: %w", err)
		case strings.HasPrefix(suffix, ".") || fi.IsDir() || fi.Size() > 0: // an empty log is harmless
			err := fmt.Errorf("%s%s %w, and belongs to a missing store", path, suffix, ErrExists)
			return hinted(err,
				"nothing was written; move it next to its store, or name another file")
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

// clear removes the unfinished files.
func (t *target) clear() (err error) {
	for _, suffix := range suffixes {
		failed := os.Remove(t.part + suffix)
		if failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return errors.Join(err, os.RemoveAll(salvageDir(t.part)))
}

// salvageDir is the directory for rows that are collected from damaged stores.
func salvageDir(part string) string { return part + "-pages" }

// place gives a complete store its name, after its journal.
func (t *target) place() error {
	if err := refuseOccupied(t.path); err != nil {
		return err
	}
	journal := journalPath(t.path)
	err := nameFile(journalPath(t.part), journal)
	placed := err == nil
	if placed || errors.Is(err, fs.ErrNotExist) {
		err = nameFile(t.part, t.path)
	}
	if err != nil && placed {
		err = errors.Join(err, os.Remove(journal))
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// nameFile gives a file its name. It uses a link, because a rename would replace a file that appeared
// meanwhile. It renames the file only if the file system has no links.
func nameFile(part, path string) error {
	err := os.Link(part, path)
	if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
		err = os.Rename(part, path)
	}
	if err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

// close removes all files except a store that has its name.
func (t *target) close() error { return errors.Join(t.clear(), t.lock.Release()) }

// strictest returns the permissions that all of these files grant, plus those that writing
// needs.
func strictest(paths ...string) (fs.FileMode, error) {
	mode := fs.FileMode(0o777)
	for _, path := range paths {
		fi, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return 0, missing(path)
		}
		if err != nil {
			return 0, fmt.Errorf("store: %w", err)
		}
		mode &= fi.Mode().Perm()
	}
	return mode | 0o600, nil
}
