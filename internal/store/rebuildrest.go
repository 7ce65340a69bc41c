package store

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/assay-eval/assay"
)

// A dated row waits to be copied in the order of its time.
type dated struct {
	at  string
	sum sum
	row []any
}

// copyDated copies the rows of a table from all sources, each content once and in the order of the
// column named at. change adapts a row of a source to the new store, or refuses it. It may be nil.
func (b *rebuilder) copyDated(table, at string, change func(source int, row []any) bool) error {
	seen := make(map[sum]bool)
	var all []dated
	column := slices.Index(columnNames(sealed[table]), at)
	for i, s := range b.sources {
		err := s.eachSealed(b.ctx, table, func(r sealedRow) (bool, error) {
			if r.broken != "" {
				return true, b.loseRow(s, table, r, r.broken)
			}
			row := slices.Clone(r.row)
			if change != nil && !change(i, row) {
				return true, nil
			}
			if sum := sealOf(table, row); !seen[sum] {
				seen[sum] = true
				text, _ := row[column].(string)
				all = append(all, dated{text, sum, row})
			}
			return true, nil
		})
		if err != nil {
			return err
		}
	}

	slices.SortStableFunc(all, func(x, y dated) int {
		return cmp.Or(strings.Compare(x.at, y.at), bytes.Compare(x.sum[:], y.sum[:]))
	})
	return b.to.do(b.ctx, 0, func(w *writer) error {
		for _, d := range all {
			_, err := w.add(table, d.row...)
			// If the schema allows one row only, the earliest wins.
			if err != nil && primary(err) != sqlite3.SQLITE_CONSTRAINT {
				return err
			}
		}
		return nil
	})
}

// copyVerdicts copies the scores and classifications of the attempts that were copied, and the costs
// also of those that count for their cost only.
func (b *rebuilder) copyVerdicts() error {
	ofAttempt := func(source int, row []any) bool {
		id, _ := row[0].(int64)
		to, ok := b.renamed[source][id]
		row[0] = to
		return ok
	}
	if err := b.copyDated("scores", "scored_at", ofAttempt); err != nil {
		return err
	}
	if err := b.copyDated("costs", "priced_at", func(source int, row []any) bool {
		id, _ := row[0].(int64)
		to, ok := b.paid[source][id]
		row[0] = cmp.Or(to, id)
		return ok || ofAttempt(source, row)
	}); err != nil {
		return err
	}
	return b.copyDated("classifications", "classified_at", ofAttempt)
}

// copyRest copies the rows that belong to runs, and imports.
func (b *rebuilder) copyRest() error {
	runs := make([]map[int64]assay.RunID, len(b.sources))
	for i, s := range b.sources {
		var err error
		query := "SELECT seq, id FROM runs"
		runs[i], err = table[int64, assay.RunID](b.ctx, s.reader, query)
		if err != nil {
			return s.wrap(err)
		}
	}
	ofRun := func(source int, row []any) bool {
		seq, _ := row[0].(int64)
		to, ok := b.runs[runs[source][seq]]
		row[0] = to
		return ok
	}
	if err := b.copyDated("controls", "at", ofRun); err != nil {
		return err
	}
	if err := b.copyDated("imports", "imported_at", nil); err != nil {
		return err
	}
	return b.copyDated("libraries", "digest", nil)
}
