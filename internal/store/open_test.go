package store_test

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/store"
)

// neighbours lists the directory of path.
func neighbours(t testing.TB, path string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// digests maps the files beside path to their digests. It leaves out the shared index of the log,
// because every reader writes to it.
func digests(t testing.TB, path string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	for _, name := range neighbours(t, path) {
		if strings.HasSuffix(name, "-shm") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(filepath.Dir(path), name))
		must(t, err)
		sums[name] = fmt.Sprintf("%d bytes, %x", len(b), sha256.Sum256(b))
	}
	return sums
}

func raw(t testing.TB, path, text string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	must(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	if _, err := db.Exec(text); err != nil {
		t.Fatal(err)
	}
	return db
}

func rawClosed(t testing.TB, path, text string) {
	t.Helper()
	must(t, raw(t, path, text).Close())
}

// copyFiles copies a store with its log, as a crash would leave them.
func copyFiles(t testing.TB, from, to string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(from + suffix)
		if err == nil {
			err = os.WriteFile(to+suffix, b, 0o644)
		}
		must(t, err)
	}
}

func TestOpenRefusesAndTouchesNothing(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		make func(t *testing.T, path string)
		want error
		hint string
	}{
		"text": {func(t *testing.T, path string) {
			must(t, os.WriteFile(path, []byte(strings.Repeat("dear diary\n", 500)),
				0o644))
		}, store.ErrNotStore, "another.db"},
		"one byte": {func(t *testing.T, path string) {
			must(t, os.WriteFile(path, []byte("x"), 0o644))
		}, store.ErrNotStore, "another.db"},
		"other program's database": {func(t *testing.T, path string) {
			rawClosed(t, path, "CREATE TABLE attempts (x); INSERT INTO attempts VALUES (1)")
		}, store.ErrNotStore, "another.db"},
		"other program's database with a log": {func(t *testing.T, path string) {
			rawClosed(t, path, `PRAGMA journal_mode = WAL; PRAGMA application_id = 77;
				CREATE TABLE t (x)`)
		}, store.ErrNotStore, "another.db"},
		"newer": {func(t *testing.T, path string) {
			newStore(t, path)
			rawClosed(t, path, "PRAGMA user_version = 99")
		}, store.ErrNewer, "upgrade"},
		"newer in its log": {func(t *testing.T, path string) {
			source := filepath.Join(t.TempDir(), "source.db")
			newStore(t, source)
			raw(t, source, "PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = 99")
			copyFiles(t, source, path)
		}, store.ErrNewer, "upgrade"},
		"directory": {func(t *testing.T, path string) {
			must(t, os.Mkdir(path, 0o755))
		}, store.ErrNotStore, "name a file"},
		"log without its main file": {func(t *testing.T, path string) {
			must(t, os.WriteFile(path+"-wal", []byte("results"), 0o644))
		}, store.ErrNotStore, "put back"},
		"log of an emptied main file": {func(t *testing.T, path string) {
			must(t, os.WriteFile(path, nil, 0o644))
			must(t, os.WriteFile(path+"-wal", []byte("results"), 0o644))
		}, store.ErrNotStore, "put back"},
		"link to nothing": {func(t *testing.T, path string) {
			must(t, os.Symlink("gone.db", path))
		}, nil, "remove the link"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "assay.db")
			tc.make(t, path)
			if name == "directory" || name == "link to nothing" {
				refused(t, path, tc.want, tc.hint)
				return
			}
			before := digests(t, path)
			refused(t, path, tc.want, tc.hint)
			if diff := cmp.Diff(before, digests(t, path)); diff != "" {
				t.Errorf("files changed (-before +after):\n%s", diff)
			}
		})
	}
}

func newStore(t testing.TB, path string) {
	t.Helper()
	must(t, open(t, path).Close())
	must(t, os.Remove(path+".lock"))
}

func refused(t testing.TB, path string, want error, hint string) {
	t.Helper()
	_, writing := store.Open(t.Context(), path)
	_, reading := store.OpenReadOnly(t.Context(), path)
	for name, err := range map[string]error{"Open": writing, "OpenReadOnly": reading} {
		if err == nil || want != nil && !errors.Is(err, want) ||
			!strings.Contains(err.Error(), "\nhint: ") || !strings.Contains(err.Error(), hint) {
			t.Errorf("%s() = %v, want %v with a hint on %q", name, err, want, hint)
		}
	}
}

func TestOpenMissingDirectory(t *testing.T) {
	t.Parallel()
	refused(t, filepath.Join(t.TempDir(), "no", "assay.db"), fs.ErrNotExist, "create it")
	refused(t, "", nil, "--store")
}

func TestOpenReadOnlyWithoutStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "assay.db")
	check := func() {
		t.Helper()
		if _, err := store.OpenReadOnly(t.Context(), path); !errors.Is(err, store.ErrNoStore) {
			t.Errorf("OpenReadOnly() = %v, want ErrNoStore", err)
		}
	}
	check()
	if left := neighbours(t, path); len(left) != 0 {
		t.Errorf("reading a missing store left %v", left)
	}
	must(t, os.WriteFile(path, nil, 0o644))
	check()
	db := open(t, path) // an empty file is a new store
	begin(t, db, "r1")
	save(t, db, outcome(1))
	if got := len(all(t, openReadOnly(t, path), store.Filter{})); got != 1 {
		t.Errorf("%d attempts, want 1", got)
	}
}

// A kill during the first commit leaves the first pages of the file, and the journal that undoes
// them. After a power cut, the very first page may be missing.
func TestKilledCreationIsRolledBack(t *testing.T) {
	t.Parallel()
	for _, missing := range []int{0, 4096} {
		testKilledCreation(t, missing)
	}
}

func testKilledCreation(t *testing.T, missing int) {
	t.Helper()
	whole, source, path := filepath.Join(t.TempDir(), "whole.db"),
		filepath.Join(t.TempDir(), "source.db"), filepath.Join(t.TempDir(), "assay.db")
	newStore(t, whole)
	head, err := os.ReadFile(whole)
	must(t, err)
	clear(head[:missing])
	// The journal of a transaction that is larger than its cache is on disk.
	raw(t, source, `PRAGMA cache_size = 1; BEGIN; CREATE TABLE t (x);
		INSERT INTO t WITH RECURSIVE c(i) AS
			(SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < 500) SELECT zeroblob(999) FROM c`)
	journal, err := os.ReadFile(source + "-journal")
	if err != nil || len(journal) == 0 {
		t.Fatalf("journal of %d bytes, %v", len(journal), err)
	}
	for name, content := range map[string][]byte{path: head[:2*4096], path + "-journal": journal} {
		must(t, os.WriteFile(name, content, 0o644))
	}
	if _, err := store.OpenReadOnly(t.Context(), path); err == nil {
		t.Error("OpenReadOnly() of half a store = nil error")
	}
	db := open(t, path)
	begin(t, db, "r1")
	save(t, db, outcome(1))
	if got := len(all(t, openReadOnly(t, path), store.Filter{})); got != 1 {
		t.Errorf("%d attempts, want 1", got)
	}
}

// A store of an older format is refused in one sentence with advice, and is never called damaged.
func TestOlderFormatIsNotDamage(t *testing.T) {
	t.Parallel()
	path := createClosed(t)
	rawClosed(t, path, "DROP TABLE libraries; PRAGMA user_version = 3")
	before, err := os.ReadFile(path)
	must(t, err)
	_, write := store.Open(t.Context(), path)
	_, read := store.OpenReadOnly(t.Context(), path)
	for _, err := range []error{write, read} {
		if !errors.Is(err, store.ErrOlder) || errors.Is(err, store.ErrDamaged) ||
			!strings.Contains(said(err), "assay v1, which wrote it]") {
			t.Errorf("%v, want ErrOlder with the program that wrote the store", err)
		}
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file has changed: %v", err)
	}
}

func TestOpenOddNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"a b.db", "100%.db", "what?.db", "#1&x=y;.db", "file:x",
		"größe+.db", "'q\".db", ":memory:",
	} {
		path := filepath.Join(t.TempDir(), name)
		db := open(t, path)
		begin(t, db, "r1")
		save(t, db, outcome(1))
		must(t, db.Close())
		if diff := cmp.Diff([]string{name, name + ".lock"}, neighbours(t, path)); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
		if got := len(all(t, openReadOnly(t, path), store.Filter{})); got != 1 {
			t.Errorf("%s: %d attempts, want 1", name, got)
		}
	}
}

func TestOpenThroughLink(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	save(t, db, outcome(1))
	link := filepath.Join(t.TempDir(), "link.db")
	must(t, os.Symlink(path, link))
	if _, err := store.Open(t.Context(), link); !errors.Is(err, store.ErrInUse) {
		t.Errorf("Open of the same file by another name = %v, want ErrInUse", err)
	}
	if got := len(all(t, openReadOnly(t, link), store.Filter{})); got != 1 {
		t.Errorf("%d attempts, want 1", got)
	}
}

// Runs through two hard links of one file would have two locks and two logs.
func TestOpenRefusesHardLinks(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	save(t, db, outcome(1))
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Link(path, link); err != nil {
		t.Skipf("this file system has no hard links: %v", err)
	}
	_, err := store.Open(t.Context(), link)
	if err == nil || !strings.Contains(err.Error(), "2 names (hard links)") {
		t.Errorf("Open() = %v, want an error about hard links", err)
	}
	save(t, db, outcome(2))
	must(t, errors.Join(db.Close(), os.Remove(link)))
	if got := len(all(t, open(t, path), store.Filter{})); got != 2 {
		t.Errorf("%d attempts, want 2", got)
	}
}

// A kill or a power cut may leave the name that a backup had while it was made.
func TestOpenRemovesTheNameOfTheMaking(t *testing.T) {
	t.Parallel()
	path := createClosed(t)
	part := filepath.Join(filepath.Dir(path), ".assay.db-part")
	if err := os.Link(path, part); err != nil {
		t.Skipf("this file system has no hard links: %v", err)
	}
	open(t, path)
	if _, err := os.Stat(part); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", part, err)
	}
}

// A user who may only read the file and its directory reads the store.
func TestReadWithoutWritePermission(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	save(t, db, outcome(1))
	must(t, db.Close())
	cmd := other(t, "read", path)
	if os.Geteuid() == 0 {
		cmd = asNobody(t, cmd.Path, path)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(path), 0o755) })
	must(t, os.Chmod(filepath.Dir(path), 0o555))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), string(outcome(1).ID)) {
		t.Errorf("%v: %s", err, out)
	}
}

// asNobody returns a command with the role read that runs as another user than root, or skips the
// test.
func asNobody(t *testing.T, exe, path string) *exec.Cmd {
	t.Helper()
	const nobody = 65534
	program := filepath.Join(t.TempDir(), "program")
	b, err := os.ReadFile(exe)
	if err == nil {
		err = os.WriteFile(program, b, 0o755)
	}
	for dir := filepath.Dir(program); err == nil && dir != os.TempDir(); dir = filepath.Dir(dir) {
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		err = os.Chmod(filepath.Dir(filepath.Dir(path)), 0o755)
	}
	must(t, err)
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = []string{roleVar + "=read", pathVar + "=" + path}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	try := exec.CommandContext(t.Context(), program, "-test.list", "none")
	try.Dir, try.SysProcAttr = "/", cmd.SysProcAttr
	if err := try.Run(); err != nil {
		t.Skipf("root can write everywhere, and no process without its rights can be started: %v", err)
	}
	cmd.Dir = "/"
	return cmd
}
