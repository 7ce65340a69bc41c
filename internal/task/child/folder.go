package child

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// folderPrefix begins the names of scratch directories, which only this package makes.
const folderPrefix = "assay-program-"

// scratchName is the name of the scratch directory in its folder.
const scratchName = "scratch"

// A Folder is a scratch directory that programs can share. It is locked until it is removed or
// Assay ends, in whatever way, so that other processes can tell which folders are in use.
type Folder struct {
	Path string
	// outer has Path in it, and nobody but the user can look into it, whatever a program does to its own.
	outer string
	lock  *os.File // of outer; nil if the system has no such locks
}

var sweepOnce sync.Once

// NewFolder makes a scratch directory. The first one of a process removes those of processes that
// were killed.
func NewFolder() (*Folder, error) {
	sweepOnce.Do(func() { sweep(os.TempDir()) })
	for {
		path, err := os.MkdirTemp("", folderPrefix)
		if err != nil {
			return nil, err
		}
		switch lock, err := lockFolder(path); {
		case err == nil, errors.Is(err, errors.ErrUnsupported):
			inner := filepath.Join(path, scratchName)
			return &Folder{inner, path, lock}, os.Mkdir(inner, 0o700)
		case !errors.Is(err, errInUse) && !errors.Is(err, os.ErrNotExist):
			return nil, errors.Join(err, os.RemoveAll(path))
		}
		// Another process removes it, because it was not locked yet.
	}
}

// Remove removes the folder with everything in it.
func (f *Folder) Remove() error {
	err := os.RemoveAll(f.outer)
	if err != nil { // a program has locked itself out
		_ = filepath.WalkDir(f.outer, func(path string, e fs.DirEntry, _ error) error {
			if e != nil && e.IsDir() {
				_ = os.Chmod(path, 0o700) // RemoveAll says what is wrong
			}
			return nil
		})
		err = os.RemoveAll(f.outer)
	}
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
	}
	return err
}

// errInUse means that somebody holds the lock of a folder.
var errInUse = errors.New("the folder is in use")

// sweep removes the scratch directories in dir that nobody uses any more. What cannot be removed
// stays for the next time.
func sweep(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), folderPrefix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if lock, err := lockFolder(path); err == nil {
			evict(filepath.Join(path, scratchName))
			_ = (&Folder{outer: path, lock: lock}).Remove()
		}
	}
}
