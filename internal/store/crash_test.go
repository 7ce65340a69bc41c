package store_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// other returns a command that runs a role of [play] in another process.
func other(t testing.TB, role, path string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), roleVar+"="+role, pathVar+"="+path)
	return cmd
}

// killAfter runs a process that saves, and kills it after a number of acknowledged saves. It adds
// the trials that the process printed to begun and saved.
func killAfter(t *testing.T, path string, saves int, begun, saved map[assay.TrialID]bool) {
	t.Helper()
	cmd := other(t, "save", path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	// Lines still in the pipe at the kill count too.
	acks := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word, id, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "begin":
			begun[assay.TrialID(id)] = true
		case "saved":
			saved[assay.TrialID(id)] = true
			if acks++; acks == saves {
				must(t, cmd.Process.Kill())
			}
		}
	}
	if err := cmd.Wait(); err == nil || acks < saves {
		t.Fatalf("the saver ended after %d saves: %v\n%s", acks, err, &stderr)
	}
}

func TestKillLosesNoAcknowledgedSave(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "assay.db")
	begun, saved := map[assay.TrialID]bool{}, map[assay.TrialID]bool{}
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	for round := range rounds {
		killAfter(t, path, 1+rand.IntN(100), begun, saved)
		// Even rounds read the store as the kill left it, including the log.
		if round%2 == 0 {
			accounted(t, openReadOnly(t, path), begun, saved)
			continue
		}
		db := open(t, path)
		accounted(t, db, begun, saved)
		must(t, db.Close())
	}
	t.Logf("%d rounds, %d saves acknowledged, %d begun", rounds, len(saved), len(begun))
}

// accounted checks that every acknowledged attempt is stored exactly once and complete, and that
// no others are.
func accounted(t *testing.T, db *store.DB, begun, saved map[assay.TrialID]bool) {
	t.Helper()
	found := map[assay.TrialID]bool{}
	for r, err := range db.Transcripts(t.Context(), store.Filter{}) {
		must(t, err)
		a := r.Attempt
		if found[a.ID] || a.Number != 1 {
			t.Errorf("trial %s is stored more than once", a.ID)
		}
		if !begun[a.ID] {
			t.Errorf("trial %s was never saved", a.ID)
		}
		if r.Transcript == nil {
			t.Errorf("trial %s has no transcript", a.ID)
		}
		found[a.ID] = true
	}
	for id := range saved {
		if !found[id] {
			t.Errorf("trial %s was acknowledged but is lost", id)
		}
	}
	settled, err := db.Settled(t.Context())
	if err != nil || settled.Len() != len(found) {
		t.Errorf("Settled() has %d, %v, want %d", settled.Len(), err, len(found))
	}
}

func TestSecondWriterLearnsWhoHoldsTheStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "assay.db")
	cmd := other(t, "hold", path)
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "open\n" {
		t.Fatalf("the holder printed %q, %v", line, err)
	}
	_, err = store.Open(t.Context(), path)
	want := []string{
		"assay.db is in use by another run", "run run-of-holder",
		fmt.Sprint("pid ", cmd.Process.Pid), "on host ", "since ", "\nhint: ", "--store another.db",
	}
	for _, part := range want {
		if !errors.Is(err, store.ErrInUse) || !strings.Contains(err.Error(), part) {
			t.Errorf("Open() = %v, want %q in it", err, part)
		}
	}
	if runs, err := openReadOnly(t, path).Runs(t.Context(), ""); len(runs) != 1 || err != nil {
		t.Errorf("reading meanwhile: %v, %v", runs, err)
	}
	must(t, stdin.Close())
	must(t, cmd.Wait())
	db := open(t, path)
	if b, err := os.ReadFile(path + ".lock"); err != nil ||
		!bytes.Contains(b, fmt.Append(nil, os.Getpid())) {
		t.Errorf("lock file has %q, %v", b, err)
	}
	must(t, db.Close())
	if b, err := os.ReadFile(path + ".lock"); err != nil || len(b) != 0 {
		t.Errorf("lock file has %q after Close, %v", b, err)
	}
}

func TestGarbageInLockFileIsIgnored(t *testing.T) {
	t.Parallel()
	_, path := create(t)
	must(t, os.WriteFile(path+".lock", []byte("{"), 0o644))
	if _, err := store.Open(t.Context(), path); !errors.Is(err, store.ErrInUse) {
		t.Errorf("Open() = %v, want ErrInUse", err)
	}
}

func TestMovedStoreStopsTheRun(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", "-wal"} {
		db, path := create(t)
		save(t, db, outcome(1))
		must(t, os.Rename(path+suffix, path+".aside"))
		for i := range 2 {
			if err := db.Save(t.Context(), outcome(2+i), nil); !errors.Is(err, store.ErrMoved) {
				t.Errorf("Save after %q was moved = %v, want ErrMoved",
					filepath.Base(path+suffix), err)
			}
		}
		must(t, os.Rename(path+".aside", path+suffix))
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		if got := all(t, openReadOnly(t, path), store.Filter{}); !slices.ContainsFunc(got,
			func(a assay.Attempt) bool { return a.ID == outcome(1).ID }) {
			t.Errorf("%q was moved and put back: the first result is lost",
				filepath.Base(path+suffix))
		}
	}
}

func TestUserWithoutPermissionCanRead(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("root may read and write everything")
	}
	db, path := create(t)
	save(t, db, outcome(1))
	must(t, db.Close())
	must(t, os.Chmod(path, 0o444))
	if _, err := store.Open(t.Context(), path); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Open of a write-protected file = %v, want ErrReadOnly", err)
	}
	if got := len(all(t, openReadOnly(t, path), store.Filter{})); got != 1 {
		t.Errorf("%d attempts, want 1", got)
	}
	must(t, os.Chmod(path, 0))
	refused(t, path, os.ErrPermission, "permissions")
}
