package delivery

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/assay-eval/assay/internal/store"
)

// placeOf returns the path at which an output will appear. It returns "" if the output is not a
// regular file, in which case its bytes go straight to the device or pipe.
func placeOf(name string) (string, error) {
	fi, err := os.Stat(name)
	switch {
	case err == nil && fi.IsDir():
		return "", fmt.Errorf("write %s: it is a directory\nhint: name a file in it", name)
	case err == nil && !fi.Mode().IsRegular():
		return "", nil
	}

	path := name
	for range 40 { // as many links as operating systems follow
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if fi, err2 := os.Stat(dir); err != nil || err2 != nil || !fi.IsDir() {
			return "", fmt.Errorf("write %s: there is no directory %s\n"+
				"hint: create it, or choose another path", name, filepath.Dir(path))
		}
		if dir == "/dev/fd" || strings.HasPrefix(dir, "/proc/") {
			return "", nil // an open file of some process
		}

		path = filepath.Join(dir, filepath.Base(path))
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		path = target
	}
	return "", fmt.Errorf("write %s: too many symbolic links", name)
}

// refuseStore returns an error if the part would replace a store or a file that belongs to one.
func (p *Part) refuseStore() error {
	paths := []string{p.name}
	if p.IsFile() {
		paths = []string{p.place, p.hidden(".lock"), p.hidden(".part")}
	}
	for _, path := range paths {
		if err := RefuseStore(p.name, path); err != nil {
			return err
		}
	}
	return nil
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
