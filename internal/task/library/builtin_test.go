package library_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/assay-eval/assay/internal/task/library"
)

// cacheHome makes dir the place of the user's cache directory.
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

func TestBuiltin(t *testing.T) {
	cacheHome(t, t.TempDir())
	var made os.FileInfo
	for range 2 {
		l, err := library.Builtin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Meta(); got.Name != "builtin" || got.Tasks != 5040 || got.Tools != 30 || got.Digest != library.BuiltinDigest {
			t.Errorf("Meta() = %+v", got)
		}
		st, err := os.Stat(l.Path())
		if err != nil {
			t.Fatal(err)
		}
		if made != nil && !os.SameFile(made, st) {
			t.Error("the second call made the library anew")
		}
		made = st
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestBuiltinWithoutACache(t *testing.T) {
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
		t.Errorf("the temporary library is still there: %v", err)
	}
}

func TestBuiltinIsMadeAnewWhenDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
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
	flipped := append([]byte{}, good...)
	flipped[len(flipped)/2] ^= 0x20
	foreign, err := os.ReadFile(create(t, numbered(3)))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"empty": nil, "text": []byte("x"), "cut": good[:len(good)/3], "flipped": flipped, "foreign": foreign,
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if l, err := library.FindBuiltin(t.Context(), dir); err == nil {
			t.Errorf("%s: it is taken for whole", name)
			l.Close()
		}
	}
	if err := os.WriteFile(path, flipped, 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err = library.CachedBuiltin(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if got := l.Meta().Digest; got != library.BuiltinDigest {
		t.Errorf("digest = %s", got)
	}
	again, err := os.ReadFile(l.Path())
	if err != nil || !bytes.Equal(again, good) {
		t.Errorf("made anew it is another, %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestBuiltinByManyAtOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "assay")
	var wg sync.WaitGroup
	for range 3 {
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
		t.Errorf("the cache holds %v, %v", entries, err)
	}
}
