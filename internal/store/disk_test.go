package store_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// fillUp saves attempts until a save fails, and returns the trials of the earlier ones.
func fillUp(t *testing.T, db *store.DB) (saved []assay.TrialID, err error) {
	t.Helper()
	random := rand.NewChaCha8([32]byte{1})
	for i := range 100_000 {
		script := transcript(i)
		noise := make([]byte, 2000)
		if _, err := random.Read(noise); err != nil {
			t.Fatal(err)
		}
		script.Messages[0].Content = fmt.Sprintf("%x", noise)
		a := outcome(i)
		if err := db.Save(t.Context(), a, script); err != nil {
			return saved, err
		}
		saved = append(saved, a.ID)
	}
	return saved, nil
}

func checkDiskFull(t *testing.T, db *store.DB, path string) {
	t.Helper()
	saved, err := fillUp(t, db)
	if !errors.Is(err, store.ErrDiskFull) ||
		!strings.Contains(err.Error(), "free space and run again") {
		t.Fatalf("after %d saves: %v, want ErrDiskFull with a hint", len(saved), err)
	}
	if err := db.Save(t.Context(), outcome(1_000_000), nil); !errors.Is(err, store.ErrDiskFull) {
		t.Errorf("Save after the failure = %v, want ErrDiskFull", err)
	}
	holds := func(db *store.DB) {
		t.Helper()
		var got []assay.TrialID
		for _, a := range all(t, db, store.Filter{}) {
			got = append(got, a.ID)
		}
		if diff := cmp.Diff(saved, got); diff != "" {
			t.Errorf("stored (-acknowledged +found):\n%s", diff)
		}
	}
	holds(db)
	if err := db.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	holds(openReadOnly(t, path))
	t.Logf("%d attempts fitted", len(saved))
}

func TestFullDiskStopsTheRun(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	db.LimitSize(t, 1<<20)
	checkDiskFull(t, db, path)
	again := open(t, path)
	begin(t, again, "r2")
	a := outcome(1_000_000)
	a.Run = "r2"
	save(t, again, a)
}

// mount mounts a file system in memory. That needs root.
func mount(t *testing.T, options string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a file system takes root")
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", options, "tmpfs", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("mount: %v: %s", err, out)
	}
	t.Cleanup(func() {
		var out []byte
		var err error
		for range 100 { // a process that another test begins has our files until it is its own
			if out, err = exec.Command("umount", dir).CombinedOutput(); err == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Errorf("umount: %v: %s", err, out)
	})
	return dir
}

func TestFullFileSystemStopsTheRun(t *testing.T) {
	t.Parallel()
	for _, size := range []string{"512k", "1m", "3m", "6m"} {
		path := filepath.Join(mount(t, "size="+size), "assay.db")
		db := open(t, path)
		begin(t, db, "r1")
		checkDiskFull(t, db, path)
	}
}

func TestOpenOnFullFileSystem(t *testing.T) {
	t.Parallel()
	dir := mount(t, "size=64k")
	path := filepath.Join(dir, "assay.db")
	filler := filepath.Join(dir, "filler")
	must(t, os.WriteFile(filler, make([]byte, 40<<10), 0o644))
	if _, err := store.Open(t.Context(), path); !errors.Is(err, store.ErrDiskFull) {
		t.Errorf("Open() = %v, want ErrDiskFull", err)
	}
	must(t, os.Remove(filler))
	cmd := exec.CommandContext(t.Context(), "mount", "-o", "remount,size=8m", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("remount: %v: %s", err, out)
	}
	db := open(t, path)
	begin(t, db, "r1")
	save(t, db, outcome(1))
}

func TestReadOnlyDirectoryCanBeRead(t *testing.T) {
	t.Parallel()
	closed := func(t *testing.T, path string) {
		db := open(t, path)
		begin(t, db, "r1")
		save(t, db, outcome(1), outcome(2), outcome(3))
		must(t, db.Close())
	}
	killed := func(t *testing.T, path string) {
		source := filepath.Join(t.TempDir(), "assay.db")
		db := open(t, source)
		begin(t, db, "r1")
		save(t, db, outcome(1), outcome(2), outcome(3))
		copyFiles(t, source, path)
	}
	for name, tc := range map[string]struct {
		make  func(*testing.T, string)
		index bool // keep the log's shared index
		fails bool
	}{
		"closed store":          {make: closed},
		"killed store":          {make: killed, index: true},
		"log without its index": {make: killed, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := mount(t, "size=8m")
			path := filepath.Join(dir, "assay.db")
			tc.make(t, path)
			if tc.index {
				// A reader leaves the index, as a kill does.
				db := openReadOnly(t, path)
				if got := len(all(t, db, store.Filter{})); got != 3 {
					t.Fatalf("%d attempts, want 3", got)
				}
				must(t, db.Close())
			}
			cmd := exec.CommandContext(t.Context(), "mount", "-o", "remount,ro", dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Skipf("remount: %v: %s", err, out)
			}
			if _, err := store.Open(t.Context(), path); !errors.Is(err,
				store.ErrReadOnly) || !strings.Contains(err.Error(), "hint: ") {
				t.Errorf("Open() = %v, want ErrReadOnly with a hint", err)
			}
			if tc.fails {
				if _, err := store.OpenReadOnly(t.Context(), path); err == nil ||
					!strings.Contains(err.Error(), "hint: copy both files") {
					t.Errorf("OpenReadOnly() = %v, want the hint to copy", err)
				}
				return
			}
			db := openReadOnly(t, path)
			if got := len(all(t, db, store.Filter{})); got != 3 {
				t.Errorf("%d attempts, want 3", got)
			}
			if _, err := db.Transcript(t.Context(), outcome(2).ID, 1); err != nil {
				t.Error(err)
			}
		})
	}
}
