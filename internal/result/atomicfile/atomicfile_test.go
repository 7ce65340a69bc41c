package atomicfile_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/assay-eval/assay/internal/result/atomicfile"
)

// TestFileIsAlwaysFromOneWriter lets several writers write the same file at once. The file is always
// the complete output of one.
func TestFileIsAlwaysFromOneWriter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() { writeOften(t, path, i) })
	}
	writers.Wait()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) != 3 || b[0] != b[1] || b[1] != b[2] {
		t.Errorf("the file is %q, want one digit three times", b)
	}
	if left := hidden(t, dir); len(left) > 0 {
		t.Errorf("hidden files %q are left", left)
	}
}

// writeOften writes a digit three times to a file, again and again.
func writeOften(t *testing.T, path string, digit int) {
	for range 50 {
		err := atomicfile.Write(io.Discard, path, func(w io.Writer) error {
			for range 3 {
				if _, err := fmt.Fprint(w, digit); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func hidden(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestFailedWriteKeepsOldFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	failure := errors.New("disk full")
	err := atomicfile.Write(io.Discard, path, func(w io.Writer) error {
		if _, err := io.WriteString(w, "new"); err != nil {
			return err
		}
		return failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("Write() = %v, want %v", err, failure)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "old" {
		t.Errorf("the file is %q, %v; want the old one", b, err)
	}
	if left := hidden(t, dir); len(left) > 0 {
		t.Errorf("hidden files %q are left", left)
	}
}

func TestOutputsNeedDifferentPaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	link := filepath.Join(dir, "link")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	for _, tc := range []struct{ name, first, second string }{
		{"same name", path, path},
		{"other spelling", path, filepath.Join(dir, ".", "x", "..", "f")},
		{"symbolic link", path, link},
		{"standard output", "-", "-"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := atomicfile.New(io.Discard)
			defer d.Close()
			if _, err := d.Open(tc.first); err != nil {
				t.Fatal(err)
			}
			_, err := d.Open(tc.second)
			var name *atomicfile.NameError
			if !errors.As(err, &name) {
				t.Errorf("Open(%q) after Open(%q) = %v, want a NameError", tc.second, tc.first, err)
			}
		})
	}
}
