package query

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay/internal/result/export"
)

// CheckExport reads the manifest of an export and reports whether the files match the manifest.
// Path names one of the files, the manifest, or a directory of logs.
func CheckExport(ctx context.Context, path string) (export.Manifest, error) {
	path, m, err := findManifest(path)
	if err != nil {
		return m, fmt.Errorf("check %s: %w", path, err)
	}
	return m, m.Verify(ctx, filepath.Dir(path))
}

// intact returns an error if a file differs from the manifest that is named after it. It may have none.
func intact(ctx context.Context, path string) error {
	m, err := readManifest(path + manifestSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	m.Files = slices.DeleteFunc(m.Files, func(f export.File) bool { return f.Name != filepath.Base(path) })
	if err := m.Verify(ctx, filepath.Dir(path)); err != nil {
		return fmt.Errorf("it is not as it was exported: %w\nhint: export it again, or move %s away if the change is on purpose",
			err, path+manifestSuffix)
	}
	return nil
}

// findManifest returns the manifest of an exported file or of a directory of logs, and its path.
// A file's manifest is next to it, or next to the first file of its export if both files are in
// one directory.
func findManifest(path string) (string, export.Manifest, error) {
	fi, err := os.Stat(path)
	if err == nil && fi.IsDir() {
		path = filepath.Join(path, logsManifest)
	} else if named := manifestNaming(path, fi); named != "" {
		path = named
	}

	m, err := readManifest(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("it is not a manifest, and no manifest in its directory lists it: %w", err)
	}
	if err != nil {
		err = fmt.Errorf("%w\nhint: name an exported file, its manifest FILE%s, or a directory of logs",
			err, manifestSuffix)
	}
	return path, m, err
}

// manifestNaming returns the path of the manifest that is named after a file. Otherwise it returns
// the latest manifest in the file's directory that lists the file, or "".
func manifestNaming(path string, file os.FileInfo) (found string) {
	if _, err := os.Stat(path + manifestSuffix); err == nil {
		return path + manifestSuffix
	}
	dir := filepath.Dir(path)
	entries, err := os.ReadDir(dir)
	if err != nil || file == nil {
		return ""
	}

	var latest time.Time
	for _, e := range entries {
		isManifest := e.Name() == logsManifest || strings.HasSuffix(e.Name(), manifestSuffix)
		if !e.Type().IsRegular() || !isManifest {
			continue
		}
		m, err := readManifest(filepath.Join(dir, e.Name()))
		if err != nil || m.CreatedAt.Before(latest) {
			continue
		}
		if slices.ContainsFunc(m.Files, func(f export.File) bool {
			fi, err := os.Stat(f.Path(dir))
			return err == nil && os.SameFile(fi, file)
		}) {
			found, latest = filepath.Join(dir, e.Name()), m.CreatedAt
		}
	}
	return found
}

func readManifest(path string) (m export.Manifest, err error) {
	file, err := os.Open(path)
	if err != nil {
		return m, err
	}
	m, err = export.ReadManifest(file)
	return m, errors.Join(err, file.Close())
}
