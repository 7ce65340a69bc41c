package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/assay-eval/assay/internal/store"
)

// Verify takes a gap in the row IDs for a lost attempt, so a refused save must not leave one.
func TestRefusedSaveLeavesNoGap(t *testing.T) {
	t.Parallel()
	for _, table := range []struct{ name, columns, values string }{
		{"attempt_seals", "attempt, sum, script", "%d, zeroblob(16), zeroblob(32)"},
		{"transcripts", "attempt, body", "%d, x'00'"},
	} {
		t.Run(table.name, func(t *testing.T) {
			t.Parallel()
			db, path := create(t)
			save(t, db, outcome(1))

			// A stray row is in the way of the next attempt's, so its save is refused.
			stray := fmt.Sprintf("PRAGMA foreign_keys = off; INSERT INTO %s (%s) VALUES (%s)",
				table.name, table.columns, fmt.Sprintf(table.values, 2))
			rawClosed(t, path, stray)
			if err := db.Save(t.Context(), outcome(2), transcript(2)); !errors.Is(err, store.ErrInvalid) {
				t.Fatalf("Save() = %v, want ErrInvalid", err)
			}
			rawClosed(t, path, "DROP TRIGGER "+table.name+
				"_stay; DELETE FROM "+table.name+" WHERE attempt = 2")

			save(t, db, outcome(2), outcome(3))
			must(t, db.Close())
			check := raw(t, path, "")
			var rows, last int
			query := "SELECT count(*), max(id) FROM attempts"
			must(t, check.QueryRow(query).Scan(&rows, &last))
			if rows != 3 || last != 3 {
				t.Errorf("%d attempts, the last with row ID %d, want 3 and 3", rows, last)
			}
		})
	}
}
