package store_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// formats are all formats before the latest.
var formats = []int{1, 2, 3}

// schema returns the text of the migrations from one format to another.
func schema(t *testing.T, after, upTo int) string {
	t.Helper()
	entries, err := os.ReadDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, e := range entries[after:upTo] {
		text, err := os.ReadFile(filepath.Join("migrations", e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// columns returns the columns of each table of a format.
func columns(t *testing.T, format int) map[string]string {
	t.Helper()
	db := raw(t, ":memory:", schema(t, 0, format))
	defer db.Close()
	rows, err := db.Query(`SELECT m.name, group_concat(c.name, ', ')
		FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table' GROUP BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := make(map[string]string)
	for rows.Next() {
		var table, columns string
		if err := rows.Scan(&table, &columns); err != nil {
			t.Fatal(err)
		}
		if table != "lane_limits" { // stores have no such table any more
			all[table] = columns
		}
	}
	return all
}

// downgrade makes a store of an earlier format with the rows of a closed store. It leaves gaps
// between the IDs of attempts, so that a migration that numbers them anew would show.
func downgrade(t *testing.T, source string, format int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "assay.db")
	text := schema(t, 0, format) + fmt.Sprintf(`PRAGMA application_id = 0x41736179;
		PRAGMA user_version = %d; PRAGMA journal_mode = WAL;
		ATTACH '%s' AS source;`, format, source)
	all := columns(t, format)
	for _, table := range slices.Sorted(maps.Keys(all)) {
		chosen := all[table]
		switch table {
		case "attempts":
			chosen = strings.Replace(chosen, "id", "10 * id", 1)
		case "transcripts":
			chosen = strings.Replace(chosen, "attempt", "10 * attempt", 1)
		}
		text += fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM source.%s;", table, all[table],
			chosen, table)
	}
	rawClosed(t, path, text)
	return path
}

// former makes a store of an earlier format with the attempts of two runs.
func former(t *testing.T, format int) string {
	t.Helper()
	source := filepath.Join(t.TempDir(), "source.db")
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
	return downgrade(t, source, format)
}

// unmeasured returns an attempt as earlier formats hold it.
func unmeasured(a assay.Attempt) assay.Attempt {
	o := &a.Outcome
	o.Adherence, o.GivenAdherence, o.Efficiency = 0, nil, 0
	o.Mistakes, o.Failures, o.Recovered, o.Wasted, o.Extra = 0, 0, 0, 0, 0
	o.Loop, o.LoopTurn, o.Best, o.Pilot = "", 0, 0, nil
	return a
}

// content returns every row of the tables of a format.
func content(t *testing.T, path string, format int) (rows []string) {
	t.Helper()
	db := raw(t, path, "")
	all := columns(t, format)
	for _, table := range slices.Sorted(maps.Keys(all)) {
		rows = append(rows, table)
		rows = append(rows, dump(t, db,
			fmt.Sprintf("SELECT rowid, %s FROM %s ORDER BY rowid", all[table], table))...)
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
	for _, format := range formats {
		t.Run(fmt.Sprint("from ", format), func(t *testing.T) {
			t.Parallel()
			migrationKeepsTheRecord(t, format)
		})
	}
}

func migrationKeepsTheRecord(t *testing.T, format int) {
	path := former(t, format)
	before := content(t, path, format)
	if _, err := store.OpenReadOnly(t.Context(), path); !errors.Is(err, store.ErrOlder) {
		t.Errorf("OpenReadOnly() = %v, want ErrOlder", err)
	}
	db := open(t, path, store.Options{})
	if diff := cmp.Diff(before, content(t, path, format)); diff != "" || len(before) < 17 {
		t.Errorf("rows (-before +after):\n%s", diff)
	}
	var want []assay.Attempt
	for i, a := range []*assay.Attempt{
		fault(1), fault(2), outcome(1), fault(1), outcome(3),
		outcome(2),
	} {
		a.Number = []int{1, 1, 2, 3, 1, 2}[i]
		want = append(want, unmeasured(*a))
	}
	want[5].Run = "r2"
	if diff := cmp.Diff(want, all(t, db, store.Filter{})); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if got, err := db.Transcript(t.Context(), outcome(1).ID, 2); err != nil ||
		!cmp.Equal(got, *transcript(2)) {
		t.Errorf("Transcript() = %+v, %v", got, err)
	}
	begin(t, db, "r3")
	for i, end := range ends {
		a := outcome(10 + i)
		a.Run, a.Ended = "r3", end
		think(a)
		save(t, db, a)
		if diff := cmp.Diff([]assay.Attempt{*a},
			all(t, db, store.Filter{Trial: a.ID})); diff != "" {
			t.Errorf("after the migration (-want +got):\n%s", diff)
		}
	}
	last, err := db.Snapshot(t.Context())
	if err != nil || !strings.HasPrefix(last, fmt.Sprint(60+len(ends), "-")) {
		t.Errorf("Snapshot() = %s, %v: later rows do not follow those from before the migration",
			last, err)
	}
	keepsTheRecord(t, db, path)
}

// The program itself never tries these changes.
func TestMigratedSchemaRefusesBadValues(t *testing.T) {
	t.Parallel()
	path := former(t, 3)
	if err := open(t, path, store.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	shell := raw(t, path, "DROP TRIGGER attempts_keep; DROP TRIGGER trials_keep")
	for _, change := range []string{
		"attempts SET adherence = 1.5", "attempts SET adherence = NULL",
		"attempts SET given_adherence = -0.5",
		"attempts SET mistakes = -1", "attempts SET failures = -1", "attempts SET recovered = -1",
		"attempts SET wasted_calls = -1",
		"attempts SET efficiency = 'high'", "attempts SET efficiency = 2",
		"attempts SET extra_calls = -1",
		"attempts SET loop = 'repeat'", "attempts SET loop_turn = 1",
		"attempts SET loop_turn = -1, loop = 'repeat'",
		"attempts SET loop_turn = 1, loop = hex(zeroblob(21))", "attempts SET best_possible = 1.5",
		"attempts SET pilot = '{'",
		"attempts SET cached_tokens = -1", "attempts SET cache_write_tokens = -1",
		"attempts SET reasoning_tokens = -1", "attempts SET truncated = -1",
		"attempts SET uncertain_tokens = -1", "attempts SET unpriced_tokens = -1",
		"attempts SET finish = NULL", "attempts SET deviations = NULL",
		"attempts SET reported = NULL",
		"attempts SET precision = 1.5", "attempts SET unwanted_effects = -1",
		"attempts SET broken_lineage = NULL", "trials SET call_limit = -1",
		"trials SET fault_mix = NULL", "attempts SET faults_scheduled = -1",
		"attempts SET faults_met = -1",
		"trials SET persistence = 1", "trials SET persistence = -0.5", "trials SET burst = 1",
		"trials SET burst = -0.5",
		"trials SET several_calls = NULL", "trials SET loops = NULL",
	} {
		if _, err := shell.Exec("UPDATE " + change); primary(err) != sqlite3.SQLITE_CONSTRAINT {
			t.Errorf("%v, want a constraint that refuses: %s", err, change)
		}
	}
	if got := dump(t, shell, "PRAGMA integrity_check"); len(got) != 1 ||
		!strings.Contains(got[0], "ok") {
		t.Errorf("integrity: %v", got)
	}
}

// A kill during a migration leaves the old store and a log without a commit.
func TestKilledMigrationLeavesTheOldStore(t *testing.T) {
	t.Parallel()
	for _, format := range formats {
		path := former(t, format)
		before := content(t, path, format)
		// With a cache this small, SQLite writes the changes to the log at once.
		raw(t, path, "PRAGMA cache_size = 1; BEGIN IMMEDIATE;"+schema(t, format,
			formats[len(formats)-1]+1))
		killed := filepath.Join(t.TempDir(), "assay.db")
		copyFiles(t, path, killed)
		if fi, err := os.Stat(killed + "-wal"); err != nil || fi.Size() < 2*4096 {
			t.Errorf("log: %v, %v, want some pages", fi, err)
		}
		if got := version(t, killed); !strings.Contains(got, fmt.Sprint(format)) {
			t.Errorf("version %s after the kill, want %d", got, format)
		}
		if diff := cmp.Diff(before, content(t, killed, format)); diff != "" {
			t.Errorf("rows (-before +after the kill):\n%s", diff)
		}
		db := open(t, killed, store.Options{})
		if diff := cmp.Diff(before, content(t, killed, format)); diff != "" {
			t.Errorf("rows (-before +after the migration):\n%s", diff)
		}
		keepsTheRecord(t, db, killed)
	}
}

func TestMigrationRefusesForeignRows(t *testing.T) {
	t.Parallel()
	const (
		end = `DROP TRIGGER attempts_keep; PRAGMA ignore_check_constraints = ON;
			UPDATE attempts SET ended = 'bored' WHERE fault <> ''`
		reference = "INSERT INTO transcripts VALUES (999, x'00')"
		// The columns of the next format would be mistaken for these.
		column  = "ALTER TABLE attempts ADD COLUMN mood TEXT NOT NULL DEFAULT 'good'"
		another = "ALTER TABLE trials ADD COLUMN mood TEXT NOT NULL DEFAULT 'good'"
	)
	for _, tc := range []struct {
		format int
		spoil  string
	}{{1, end}, {1, reference}, {2, reference}, {3, reference}, {3, column}, {3, another}} {
		path := former(t, tc.format)
		rawClosed(t, path, tc.spoil)
		before := content(t, path, tc.format)
		_, err := store.Open(t.Context(), path, store.Options{})
		if !errors.Is(err, store.ErrDamaged) ||
			!strings.Contains(err.Error(), "\nhint: nothing was changed") {
			t.Errorf("from %d: Open() = %v, want ErrDamaged with a hint", tc.format, err)
		}
		if diff := cmp.Diff(before, content(t, path, tc.format)); diff != "" ||
			!strings.Contains(version(t, path), fmt.Sprint(tc.format)) {
			t.Errorf("from %d: version %s, rows (-before +after):\n%s",
				tc.format, version(t, path), diff)
		}
	}
}

func TestSealedStoreOfEarlierFormatKeepsItsRows(t *testing.T) {
	t.Parallel()
	for _, format := range []int{5, 6} {
		t.Run(fmt.Sprint("from ", format), func(t *testing.T) {
			t.Parallel()
			sealedStoreKeepsItsRows(t, format)
		})
	}
}

func sealedStoreKeepsItsRows(t *testing.T, format int) {
	source := wholeWith(t, func(*assay.Attempt) {})
	path := filepath.Join(t.TempDir(), "assay.db")
	text := schema(t, 0, format) + fmt.Sprintf(`PRAGMA application_id = 0x41736179;
		PRAGMA user_version = %d; PRAGMA journal_mode = WAL;
		ATTACH '%s' AS source;`, format, source)
	for table, columns := range columns(t, format) {
		switch {
		case table == "unsealed": // the migration has filled it
			text += "DELETE FROM unsealed; INSERT INTO unsealed SELECT * FROM source.unsealed"
			if format == 5 {
				text += " WHERE of <> 'run_count'"
			}
			text += ";"
			continue
		case table == "seals" && format == 5:
			text += `INSERT INTO seals SELECT * FROM source.seals WHERE of IN
				('run', 'run_spec', 'run_end', 'score', 'classification', 'dictionary', 'import');`
			continue
		case table == "scores": // some columns are generated
			columns = "id, attempt, scored_at, program, body"
		}
		text += fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM source.%s;", table, columns,
			columns, table)
	}
	rawClosed(t, path, text)
	if _, err := store.OpenReadOnly(t.Context(), path); !errors.Is(err, store.ErrOlder) {
		t.Errorf("OpenReadOnly() = %v, want ErrOlder", err)
	}
	db := open(t, path, store.Options{})
	want := all(t, openReadOnly(t, source), store.Filter{})
	if diff := cmp.Diff(want, all(t, db, store.Filter{})); diff != "" {
		t.Errorf("attempts (-before +after):\n%s", diff)
	}
	if snapshot(t, db) != snapshot(t, openReadOnly(t, source)) {
		t.Error("the snapshot has a different name")
	}
	begin(t, db, "r6")
	a := outcome(500)
	a.Run = "r6"
	think(a)
	save(t, db, a)
	if err := errors.Join(db.EndRun(t.Context(), "r6", nil), db.Close()); err != nil {
		t.Fatal(err)
	}
	if problems, _ := verify(t, path); len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
	meddle(t, path, "INSERT INTO deleted SELECT 1, 'attempt', 30, 30")
	if problems, _ := verify(t, path); len(problems) == 0 {
		t.Error("a forged record in an old deletion is not noticed")
	}
}
