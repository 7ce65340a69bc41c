package claim_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/assay-eval/assay/internal/claim"
)

// TestOneHasIt: of many that want a claim again and again one has it at a time, although
// each removes the file; nothing is left in the end.
func TestOneHasIt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "claim")
	var holders, had atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 3000 {
				c, err := claim.Take(path)
				if errors.Is(err, claim.ErrTaken) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d have the claim", n)
				}
				had.Add(1)
				runtime.Gosched() // what others do meanwhile has time
				holders.Add(-1)
				if err := c.Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if had.Load() == 0 {
		t.Error("nobody ever had it")
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is left: %v", err)
	}
}

// TestTake tells what is in the way.
func TestTake(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, err := claim.Take(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := claim.Take(filepath.Join(dir, "a")); !errors.Is(err, claim.ErrTaken) {
		t.Errorf("a claim that somebody has: %v", err)
	}
	if _, err := claim.Take(filepath.Join(dir, "none", "a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is not there: %v", err)
	}
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
	// What a killed program left hinders nobody.
	if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = claim.Take(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	if err := c.Release(); err != nil {
		t.Fatal(err)
	}
}
