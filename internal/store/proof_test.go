//go:build !race

package store_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// A change of any column of a row that readers show is an error, or the row is left out and
// counted.
func TestReadersShowOnlyWhatIsProved(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	db := open(t, clean)
	must(t, errors.Join(db.KeepLibrary(t.Context(), "d", []byte("part")), db.Close()))
	for table, row := range map[string]string{
		"attempt_seals": "attempt = 20", "scores": "id = 1", "runs": "seq = 1", "specs": "seq = 1",
		"ends": "seq = 1", "libraries": "id = 1", "imports": "id = 1", "classifications": "id = 1",
	} {
		for column, value := range columnsIn(t, clean, table) {
			t.Run(table+"/"+column, func(t *testing.T) {
				t.Parallel()
				leavesOut(t, planted(t, clean, corruption{sql: changed(table, column, value, row)}))
			})
		}
	}
	// Each of the last attempts, whose trials have no others, has another changed column.
	found, _ := list(t, openReadOnly(t, clean), "")
	last := found[len(found)-10:]
	for _, c := range []struct{ table, row string }{
		{"attempts", "id = %d"},
		{"trials", "id = (SELECT trial FROM attempts WHERE id = %d)"},
	} {
		columns := columnsIn(t, clean, c.table)
		for part := range slices.Chunk(slices.Sorted(maps.Keys(columns)), len(last)) {
			t.Run(c.table+"/"+part[0], func(t *testing.T) {
				t.Parallel()
				sql := ""
				for i, column := range part {
					row := fmt.Sprintf(c.row, last[i].Row)
					sql += changed(c.table, column, columns[column], row) + ";"
				}
				path := planted(t, clean, corruption{sql: sql})
				leavesOut(t, path)
				db := openReadOnly(t, path)
				db.SkipDamage(func(error) {})
				all(t, db, store.Filter{})
				if db.Skipped() != len(part) {
					t.Errorf("%d attempts were left out, want one for each of %v", db.Skipped(), part)
				}
			})
		}
	}
}

// changed returns a statement that changes a column of a row. Value is of the column's type.
func changed(table, column, value, row string) string {
	suffix := " "
	if column == "sampling" { // as JSON, a space would mean the same
		suffix = "x"
	}
	return fmt.Sprintf(`UPDATE %[1]s SET %[2]s = CASE typeof(%[2]s)
		WHEN 'text' THEN %[2]s || '%[5]s' WHEN 'blob' THEN CAST(%[2]s || 'x' AS BLOB)
		WHEN 'null' THEN %[3]s ELSE %[2]s + 5000 END WHERE %[4]s`,
		table, column, value, row, suffix)
}

// A row that is missing while its seal remains is noticed and named.
func TestReadersNoticeMissingRows(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	for _, c := range []struct{ rows, want string }{
		{"scores", "row 1 of scores: damaged: it was saved and is missing"},
		{"scores WHERE id = 2", "row 2 of scores: damaged"},
		{"imports", "row 1 of imports: damaged"},
		{"classifications WHERE id = 2", "row 2 of classifications: damaged"},
		{"attempts WHERE id IN (30, 31)", "2 attempts that were saved and are missing: row IDs 30 31"},
	} {
		t.Run(c.rows, func(t *testing.T) {
			t.Parallel()
			db := openReadOnly(t, planted(t, clean, corruption{sql: "DELETE FROM " + c.rows}))
			var told []string
			db.SkipDamage(func(err error) { told = append(told, err.Error()) })
			failed := append(readEverything(t.Context(), db), db.SkipGone(t.Context()))
			if err := errors.Join(failed...); err != nil {
				t.Error(err)
			}
			if all := strings.Join(told, "\n"); !strings.Contains(all, c.want) {
				t.Errorf("told %q, want %q", all, c.want)
			}
			if db.Skipped()+db.SkippedRows() == 0 {
				t.Error("nothing counts as left out")
			}
		})
	}
}

// columnsIn returns the stored columns of a table, each with a value of its type.
func columnsIn(t testing.TB, path, table string) map[string]string {
	t.Helper()
	db := raw(t, path, "")
	defer db.Close()
	rows, err := db.Query(`SELECT name, CASE type WHEN 'TEXT' THEN '''{}''' WHEN 'BLOB' THEN 'x''00'''
		ELSE '0.5' END FROM pragma_table_info(?)`, table)
	must(t, err)
	defer rows.Close()
	columns := map[string]string{}
	for rows.Next() {
		var name, value string
		must(t, rows.Scan(&name, &value))
		columns[name] = value
	}
	if len(columns) < 2 {
		t.Fatalf("table %s has the columns %v", table, columns)
	}
	return columns
}

// leavesOut checks that a reader returns an error unless it skips damage, and that it leaves
// something out and reports it if it does.
func leavesOut(t *testing.T, path string) {
	t.Helper()
	db := openReadOnly(t, path)
	if errors.Join(readEverything(t.Context(), db)...) == nil {
		t.Error("a reader that does not skip damage returns no error")
	}
	told := 0
	db.SkipDamage(func(error) { told++ })
	for _, err := range readEverything(t.Context(), db) {
		if err != nil {
			t.Error(err)
		}
	}
	if left := db.Skipped() + db.SkippedRows(); left == 0 || told == 0 {
		t.Errorf("%d rows were left out, and %d reported", left, told)
	}
}

// readEverything calls all readers and returns their errors.
func readEverything(ctx context.Context, db *store.DB) (failed []error) {
	add := func(err error) { failed = append(failed, err) }
	f := store.Filter{All: true}
	add(last(db.Attempts(ctx, f)))
	add(last(db.Verdicts(ctx, f)))
	add(last(db.Classifications(ctx, "", "")))
	l, err := db.List(ctx, "")
	add(err)
	if err == nil {
		add(last(l.All))
	}
	_, err = db.Runs(ctx, "")
	add(err)
	_, err = db.LibraryParts(ctx, "d")
	add(err)
	_, err = db.Imports(ctx)
	add(err)
	_, err = db.Settled(ctx)
	add(err)
	return failed
}

func last[T any](all iter.Seq2[T, error]) (err error) {
	for _, err = range all {
	}
	return err
}

// An outcome that is not as it was saved is pending for readers, and the same for all of them.
func TestUnprovedOutcomesArePending(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	intact := openReadOnly(t, clean)
	n := len(all(t, intact, store.Filter{OnlySettled: true}))
	path := planted(t, clean, corruption{sql: `UPDATE attempts SET level = 'full_success',
		error_category = '' WHERE id IN (SELECT id FROM attempts WHERE level <> '' LIMIT 20)`})
	db := openReadOnly(t, path)
	db.SkipDamage(func(error) {})
	settled, err := db.Settled(t.Context())
	if err != nil || settled.Len() != n-20 || db.Skipped() != 20 {
		t.Errorf("Settled() has %d trials, %v, with %d skipped; want %d", settled.Len(), err,
			db.Skipped(), n-20)
	}
	if got := len(all(t, db, store.Filter{OnlySettled: true})); got != n-20 || db.Skipped() != 20 {
		t.Errorf("%d outcomes and %d skipped, want %d", got, db.Skipped(), n-20)
	}
}

// A transcript that another program added, changed or removed is damaged.
func TestTranscriptsAreProved(t *testing.T) {
	t.Parallel()
	clean, bare := whole(t), outcome(7777)
	db := open(t, clean)
	must(t, errors.Join(db.Save(t.Context(), bare, nil), db.Close()))
	const of = " WHERE attempt = (SELECT max(attempt) FROM transcripts)"
	for name, sql := range map[string]string{
		"changed": "UPDATE transcripts SET body = (SELECT body FROM transcripts LIMIT 1)" + of,
		"no zstd": "UPDATE transcripts SET body = x'28b52ffd0001'" + of,
		"removed": "DELETE FROM transcripts" + of,
		"added": `INSERT INTO transcripts SELECT (SELECT max(id) FROM attempts), body
			FROM transcripts LIMIT 1`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := openReadOnly(t, planted(t, clean, corruption{sql: sql}))
			var damaged []assay.Attempt
			n := 0
			for s, err := range db.Transcripts(t.Context(), store.Filter{}) {
				n++
				if errors.Is(err, store.ErrDamaged) && s.Attempt.ID != "" && s.Transcript == nil {
					damaged = append(damaged, s.Attempt)
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if len(damaged) != 1 || n != 57 {
				t.Fatalf("%d of %d transcripts are damaged, want 1 of 57", len(damaged), n)
			}
			a := damaged[0]
			if _, err := db.Transcript(t.Context(), a.ID, a.Number); !errors.Is(err,
				store.ErrDamaged) || strings.Contains(err.Error(), "not found") {
				t.Errorf("Transcript() = %v, want ErrDamaged", err)
			}
		})
	}
}
