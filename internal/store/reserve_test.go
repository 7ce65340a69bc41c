package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/assay-eval/assay/internal/store"
)

// TestReserveHasOneHolder: of eight goroutines that keep acquiring the lock, one
// holds it at a time, although each removes the file. In the end no file is left.
func TestReserveHasOneHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	var holders, had atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 3000 {
				c, err := store.Reserve(path)
				if errors.Is(err, store.ErrReserved) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				had.Add(1)
				runtime.Gosched() // gives the others a chance to acquire it too
				holders.Add(-1)
				if err := c.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if had.Load() == 0 {
		t.Error("the lock was never acquired")
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
}

// TestReserveReportsWhatIsInTheWay distinguishes a held lock from a missing directory.
func TestReserveReportsWhatIsInTheWay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := store.Reserve(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Reserve(filepath.Join(dir, "a")); !errors.Is(err, store.ErrReserved) {
		t.Errorf("a lock that is held: %v", err)
	}
	if _, err := store.Reserve(filepath.Join(dir, "none", "a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
	// A file that a killed program left behind does not block the next one.
	if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = store.Reserve(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
}
