package store_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// A backup has every attempt saved before it began, and saves continue meanwhile.
func TestBackupDuringSaves(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	save(t, db, outcome(0), fault(1))
	stop, saved := make(chan struct{}), make(chan int)
	go func() {
		n := 2
		for i := 10; ; i++ {
			select {
			case <-stop:
				saved <- n
				return
			default:
			}
			if err := db.Save(t.Context(), outcome(i), transcript(i)); err != nil {
				t.Error(err)
			}
			n++
		}
	}()
	reader := openReadOnly(t, path)
	for i := range 3 {
		to := filepath.Join(t.TempDir(), "backup.db")
		before := len(all(t, reader, store.Filter{}))
		snapshot, err := reader.Backup(t.Context(), to)
		must(t, err)
		if problems, proof := verify(t, to); len(problems) > 0 || proof.Attempts < before {
			t.Errorf("backup %d: %d attempts, want at least %d; problems %v",
				i, proof.Attempts, before, problems)
		}
		// The snapshot stands for the same attempts in both.
		if diff := cmp.Diff(all(t, reader, store.Filter{Snapshot: snapshot}),
			all(t, openReadOnly(t, to), store.Filter{})); diff != "" {
			t.Errorf("backup (-store +backup):\n%s", diff)
		}
		if _, err := reader.Backup(t.Context(), to); !errors.Is(err, store.ErrExists) {
			t.Errorf("a second backup to that file: %v, want ErrExists", err)
		}
	}
	close(stop)
	if n := <-saved; len(all(t, db, store.Filter{})) != n {
		t.Errorf("fewer than %d attempts are stored", n)
	}
}

func copyOf(t testing.TB, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o644)
	}
	must(t, err)
}

// Files of a missing store would be mistaken for the new store's.
func TestNewStoreRefusesOccupiedName(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	for _, suffix := range []string{"-wal", "-journal", ".damaged"} {
		to := filepath.Join(t.TempDir(), "new.db")
		must(t, os.WriteFile(to+suffix, []byte("old"), 0o644))
		_, backed := openReadOnly(t, clean).Backup(t.Context(), to)
		_, merged := store.Merge(t.Context(), to, []string{clean}, quiet)
		for what, err := range map[string]error{"Backup": backed, "Merge": merged} {
			if !errors.Is(err, store.ErrExists) ||
				!strings.Contains(err.Error(), "new.db"+suffix) ||
				!strings.Contains(err.Error(), "\nhint: ") {
				t.Errorf("%s() next to %s = %v, want ErrExists with a hint", what, suffix, err)
			}
		}
		if left, err := os.ReadDir(filepath.Dir(to)); len(left) != 1 || err != nil {
			t.Errorf("the directory has %v, %v", left, err)
		}
	}
	for _, to := range []string{"", filepath.Join(t.TempDir(), "none", "new.db")} {
		if _, err := openReadOnly(t, clean).Backup(t.Context(), to); err == nil ||
			!strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("Backup(%q) = %v, want a hint", to, err)
		}
	}
}

// Two programs cannot make the same store at a time. Files that a killed one left are removed.
func TestNewStoreHasOneMaker(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	dir := t.TempDir()
	to := filepath.Join(dir, "new.db")
	for _, suffix := range []string{"-part", "-part-wal", "-part.lock", "-lock"} {
		must(t, os.WriteFile(filepath.Join(dir, ".new.db"+suffix), []byte("left"),
			0o644))
	}
	var once sync.Once
	meanwhile := func(string, int, int) {
		once.Do(func() {
			if _, err := openReadOnly(t, clean).Backup(t.Context(),
				to); !errors.Is(err, store.ErrBusy) || !strings.Contains(err.Error(), "\nhint: ") {
				t.Errorf("backup to the target of a merge: %v, want ErrBusy with a hint", err)
			}
		})
	}
	if _, err := store.Merge(t.Context(), to, []string{clean}, meanwhile); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if len(left) != 1 || err != nil {
		t.Errorf("the directory has %v, %v, want only the new store", left, err)
	}
	intact(t, to)
}

func TestCopiesAreAsPrivateAsTheirSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open, private := filepath.Join(dir, "open.db"), filepath.Join(dir, "private.db")
	copyOf(t, whole(t), open)
	copyOf(t, open, private)
	for path, mode := range map[string]fs.FileMode{open: 0o644, private: 0o600} {
		must(t, os.Chmod(path, mode))
	}
	for name, c := range map[string]struct {
		make func(to string) error
		want fs.FileMode
	}{
		"backup": {func(to string) error {
			_, err := openReadOnly(t, private).Backup(t.Context(), to)
			return err
		}, 0o600},
		"open backup": {func(to string) error {
			_, err := openReadOnly(t, open).Backup(t.Context(), to)
			return err
		}, 0o644},
		"merge": {func(to string) error {
			_, err := store.Merge(t.Context(), to, []string{open, private}, quiet)
			return err
		}, 0o600},
		"merge of open": {func(to string) error {
			_, err := store.Merge(t.Context(), to, []string{open}, quiet)
			return err
		}, 0o644},
		"other way round": {func(to string) error {
			_, err := store.Merge(t.Context(), to, []string{private, open}, quiet)
			return err
		}, 0o600},
	} {
		to := filepath.Join(t.TempDir(), "new.db")
		must(t, c.make(to))
		if fi, err := os.Stat(to); err != nil || fi.Mode().Perm() != c.want {
			t.Errorf("%s: %v, %v, want %v", name, fi.Mode(), err, c.want)
		}
	}
}

// A run could write to a copy that is damaged.
func TestBackupRefusesDamage(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"marked": func(path string) error {
			return openReadOnly(t, path).MarkDamaged([]store.Problem{{Check: "seal", Damage: true}})
		},
		"cut off": func(path string) error {
			fi, err := os.Stat(path)
			return errors.Join(err, os.Truncate(path, fi.Size()-4096))
		},
		"without a table": func(path string) error {
			rawClosed(t, path,
				"DROP TABLE controls")
			return nil
		},
	} {
		path := whole(t)
		must(t, spoil(path))
		to := filepath.Join(t.TempDir(), "copy.db")
		if _, err := openReadOnly(t, path).Backup(t.Context(), to); !errors.Is(err,
			store.ErrDamaged) || !strings.Contains(said(err), "hint: rescue["+path) {
			t.Errorf("%s: Backup() = %v, want ErrDamaged with a hint", name, err)
		}
		if left, err := os.ReadDir(filepath.Dir(to)); len(left) > 0 || err != nil {
			t.Errorf("%s: the directory has %v, %v", name, left, err)
		}
	}
}

func TestMergeReportsPlanConflicts(t *testing.T) {
	t.Parallel()
	var paths []string
	for i, spec := range []string{
		`{"name":"e","models":["a"],"seed":1}`,
		`{"name":"e","models":["b"],"world":"pilot","seed":1}`,
		`{"name":"e","models":["b"],"world":"pilot","seed":1}`,
	} {
		path := filepath.Join(t.TempDir(), fmt.Sprint(i, ".db"))
		db := open(t, path)
		e := experiment("e")
		e.Spec = []byte(spec)
		must(t, db.BeginRun(t.Context(), e,
			store.Run{
				ID:        assay.RunID(fmt.Sprint("run", i)),
				StartedAt: epoch.Add(time.Duration(i) * time.Hour),
			}))
		a := outcome(i)
		a.Run = assay.RunID(fmt.Sprint("run", i))
		save(t, db, a)
		must(t, db.Close())
		paths = append(paths, path)
	}
	to := filepath.Join(t.TempDir(), "all.db")
	got := merge(t, to, paths...).PlanConflicts
	want := []store.PlanConflict{{
		Experiment: "e", Kept: store.StoredPlan{Store: paths[2], Run: "run2"},
		Left:   store.StoredPlan{Store: paths[0], Run: "run0"},
		Fields: []string{"models", "world"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan conflicts (-want +got):\n%s", diff)
	}
	if same := merge(t, to+"-2", paths[1], paths[2]).PlanConflicts; len(same) > 0 {
		t.Errorf("two stores with the same plan: %v", same)
	}
	db := openReadOnly(t, to)
	experiments, err := db.Experiments(t.Context())
	if err != nil || len(experiments) != 1 || experiments[0].Plans != 2 {
		t.Errorf("Experiments() = %+v, %v, want one with two plans", experiments, err)
	}
}
