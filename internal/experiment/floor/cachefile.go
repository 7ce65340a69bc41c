package floor

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// maxFiles limits the number of files of a kind. Each has a few kilobytes.
const maxFiles = 100

// CachePath returns the path of a file of a kind in the user's cache directory, or "" if there is
// none. Such files keep what takes long to find out, and can be found out again, so mistakes with
// them are no errors.
func CachePath(kind, name string) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "assay", kind, name)
}

// WriteCache replaces the file at a path, and removes the oldest files beside it if there are many.
func WriteCache(path string, b []byte) {
	dir := filepath.Dir(path)
	if path == "" || os.MkdirAll(dir, 0o755) != nil {
		return
	}
	tmp, err := os.CreateTemp(dir, "*.tmp")
	if err != nil {
		return
	}
	_, err = tmp.Write(b)
	if err = cmp.Or(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	forget(dir)
}

// forget removes the oldest files of a directory beyond maxFiles.
func forget(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	var files []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, f := range files[min(len(files), maxFiles):] {
		_ = os.Remove(filepath.Join(dir, f.Name())) // another process may have removed it
	}
}
