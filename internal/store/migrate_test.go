package store_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// firstFormat makes a store as the first migration alone leaves it, with what
// two runs saved.
func firstFormat(t *testing.T) string {
	t.Helper()
	source, path := filepath.Join(t.TempDir(), "source.db"), filepath.Join(t.TempDir(), "assay.db")
	db := open(t, source, store.Options{})
	begin(t, db, "r1")
	save(t, db, fault(1), fault(2), outcome(1), fault(1))
	if err := db.Save(t.Context(), outcome(3), nil); err != nil {
		t.Fatal(err)
	}
	if err := db.EndRun(t.Context(), "r1", json.RawMessage(`{"done": 2}`)); err != nil {
		t.Fatal(err)
	}
	begin(t, db, "r2")
	late := outcome(2)
	late.Run = "r2"
	save(t, db, late)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile("migrations/001_init.sql")
	if err != nil {
		t.Fatal(err)
	}
	const trial = `id, model, variant, severity, difficulty, task_type, reliability, task, task_digest, repeat, seed,
		world, protocol, tools, turn_limit, sampling`
	// Identities with gaps, so that they are kept and not made again.
	rawClosed(t, path, string(schema)+`PRAGMA application_id = 0x41736179; PRAGMA user_version = 1; PRAGMA journal_mode = WAL;
		ATTACH '`+source+`' AS source;
		INSERT INTO runs SELECT * FROM source.runs;
		INSERT INTO trials (`+trial+`) SELECT `+trial+` FROM source.trials;
		CREATE TEMP TABLE gapped AS SELECT * FROM source.attempts;
		UPDATE gapped SET id = id * 10;
		INSERT INTO attempts SELECT * FROM gapped;
		INSERT INTO transcripts SELECT attempt * 10, body FROM source.transcripts`)
	return path
}

// content returns every row of the tables of the first format, and its version.
func content(t *testing.T, path string) (rows []string) {
	t.Helper()
	db := raw(t, path, "")
	for _, query := range []string{
		"SELECT * FROM runs ORDER BY seq",
		`SELECT rowid, id, model, variant, severity, difficulty, task_type, reliability, task, task_digest, repeat, seed,
			world, protocol, tools, turn_limit, sampling FROM trials ORDER BY rowid`,
		"SELECT * FROM attempts ORDER BY id",
		"SELECT * FROM transcripts ORDER BY attempt",
	} {
		rows = append(rows, query)
		rows = append(rows, dump(t, db, query)...)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return rows
}

func dump(t *testing.T, db *sql.DB, query string) (lines []string) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		values, to := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			to[i] = &values[i]
		}
		if err := rows.Scan(to...); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%#v", values))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

func version(t *testing.T, path string) string {
	t.Helper()
	db := raw(t, path, "")
	defer db.Close()
	return strings.Join(dump(t, db, "PRAGMA user_version"), "")
}

func TestMigrationKeepsTheRecord(t *testing.T) {
	t.Parallel()
	path := firstFormat(t)
	before := content(t, path)
	if _, err := store.OpenReadOnly(t.Context(), path); !errors.Is(err, store.ErrOlder) {
		t.Errorf("OpenReadOnly() = %v, want ErrOlder", err)
	}
	db := open(t, path, store.Options{})
	if diff := cmp.Diff(before, content(t, path)); diff != "" {
		t.Errorf("rows (-before +after):\n%s", diff)
	}
	attempts := all(t, db, store.Filter{})
	numbers := map[assay.TrialID]int{}
	for _, a := range attempts {
		numbers[a.ID]++
		want := outcome(1).Trial
		want.ID, want.Task, want.Seed = a.ID, a.Task, a.Seed
		if diff := cmp.Diff(want, a.Trial); diff != "" || a.Number != numbers[a.ID] {
			t.Errorf("attempt %d at its trial (-want +got):\n%s", a.Number, diff)
		}
	}
	if len(attempts) != 6 {
		t.Errorf("%d attempts, want 6", len(attempts))
	}
	if got, err := db.Transcript(t.Context(), outcome(1).ID, 2); err != nil || !cmp.Equal(got, *transcript(2)) {
		t.Errorf("Transcript() = %+v, %v", got, err)
	}
	begin(t, db, "r3")
	for i, end := range ends {
		a := outcome(10 + i)
		a.Run, a.Ended = "r3", end
		save(t, db, a)
	}
	last, err := db.Snapshot(t.Context())
	if err != nil || !strings.HasPrefix(last, fmt.Sprint(60+len(ends), "-")) {
		t.Errorf("Snapshot() = %s, %v: the rows after the migration do not follow those before it", last, err)
	}
	keepsTheRecord(t, db, path)
}

// TestMigrationCutOff opens what a kill in the midst of the migration leaves:
// the old store, and a log that no commit ends.
func TestMigrationCutOff(t *testing.T) {
	t.Parallel()
	path := firstFormat(t)
	before := content(t, path)
	text, err := os.ReadFile("migrations/002_limits.sql")
	if err != nil {
		t.Fatal(err)
	}
	// A cache too small for the changes puts them into the log at once.
	raw(t, path, "PRAGMA cache_size = 1; BEGIN IMMEDIATE;"+string(text))
	killed := filepath.Join(t.TempDir(), "assay.db")
	copyFiles(t, path, killed)
	if fi, err := os.Stat(killed + "-wal"); err != nil || fi.Size() < 4*4096 {
		t.Fatalf("log: %v, %v, want some pages", fi, err)
	}
	if got := version(t, killed); !strings.Contains(got, "1") {
		t.Errorf("version %s after the kill, want 1", got)
	}
	if diff := cmp.Diff(before, content(t, killed)); diff != "" {
		t.Errorf("rows (-before +after the kill):\n%s", diff)
	}
	db := open(t, killed, store.Options{})
	if diff := cmp.Diff(before, content(t, killed)); diff != "" {
		t.Errorf("rows (-before +after the migration):\n%s", diff)
	}
	keepsTheRecord(t, db, killed)
}

func TestMigrationRefusesWhatNoAssayWrote(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]string{
		"end":       "DROP TRIGGER attempts_keep; PRAGMA ignore_check_constraints = ON; UPDATE attempts SET ended = 'bored' WHERE fault <> ''",
		"reference": "INSERT INTO transcripts VALUES (999, x'00')",
	} {
		path := firstFormat(t)
		rawClosed(t, path, spoil)
		before := content(t, path)
		_, err := store.Open(t.Context(), path, store.Options{})
		if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "\nhint: nothing was changed") {
			t.Errorf("%s: Open() = %v, want ErrDamaged with a hint", name, err)
		}
		if diff := cmp.Diff(before, content(t, path)); diff != "" || !strings.Contains(version(t, path), "1") {
			t.Errorf("%s: version %s, rows (-before +after):\n%s", name, version(t, path), diff)
		}
	}
}
