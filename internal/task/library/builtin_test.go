package library_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/assay-eval/assay/internal/task/library"
)

// cacheHome makes dir the parent of the user's cache directory.
func cacheHome(t *testing.T, dir string) {
	t.Helper()
	switch runtime.GOOS {
	case "windows":
		t.Setenv("LocalAppData", dir)
	case "darwin":
		t.Setenv("HOME", dir)
	default:
		t.Setenv("XDG_CACHE_HOME", dir)
	}
}

// TestBuiltinIsGeneratedOnce also pins the content of the built-in library.
func TestBuiltinIsGeneratedOnce(t *testing.T) {
	cacheHome(t, t.TempDir())
	var first os.FileInfo
	for range 2 {
		l, err := library.Builtin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m := l.Meta()
		if m.Name != "builtin" || m.Tasks != 5040 || m.Tools != 30 {
			t.Errorf("Meta() = %+v", m)
		}
		if m.Digest != library.BuiltinDigest {
			t.Errorf("the built-in library has the digest %s, but %s is pinned for GeneratorVersion %s\n"+
				"If you meant to change tools or tasks, pin the new digest and raise GeneratorVersion.",
				m.Digest, library.BuiltinDigest, library.GeneratorVersion)
		}
		st, err := os.Stat(l.Path())
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !os.SameFile(first, st) {
			t.Error("the second call generated the library again")
		}
		first = st
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestBuiltinWithoutCacheIsTemporary(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cacheHome(t, blocked)
	t.Setenv("TMPDIR", t.TempDir())
	l, err := library.Builtin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Task(t.Context(), "multi-126", "easy"); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Dir(l.Path())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Close left the temporary library behind: %v", err)
	}
}

// TestBuiltinCache checks that several callers may generate the library at once, and that a damaged
// file is noticed and made again.
func TestBuiltinCache(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "assay")
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			l, err := library.CachedBuiltin(t.Context(), dir)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := l.Task(t.Context(), "api-042", "easy"); err != nil {
				t.Error(err)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the cache contains %v, %v", entries, err)
	}

	l, err := library.CachedBuiltin(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	path := l.Path()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := slices.Clone(good)
	flipped[len(flipped)/2] ^= 0x20
	foreign, err := os.ReadFile(create(t, numbered(3)))
	if err != nil {
		t.Fatal(err)
	}

	for name, content := range map[string][]byte{
		"empty":   nil,
		"text":    []byte("x"),
		"cut":     good[:len(good)/3],
		"flipped": flipped,
		"foreign": foreign,
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if l, err := library.FindBuiltin(t.Context(), dir); err == nil {
				t.Error("the damaged library was accepted")
				l.Close()
			}
		})
	}

	if err := os.WriteFile(path, flipped, 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err = library.CachedBuiltin(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if got := l.Meta().Digest; got != library.BuiltinDigest {
		t.Errorf("digest = %s, want %s", got, library.BuiltinDigest)
	}
	again, err := os.ReadFile(l.Path())
	if err != nil || !bytes.Equal(again, good) {
		t.Errorf("the new library's bytes differ, %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
