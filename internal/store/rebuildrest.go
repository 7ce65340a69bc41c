package store

import (
	"bytes"
	"cmp"
	"fmt"
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

// A datedTable is a table whose rows are copied in the order of the column named at.
type datedTable struct {
	name, columns, at string
	sealed            string // the kind of its rows in [sealed]; empty if they have no seals
	// change adapts a row of a source to the new store, or refuses it. It may be nil.
	change func(source int, row []any) bool
}

// copyDated copies the rows of a table from all sources, each content once.
func (b *rebuilder) copyDated(t datedTable) error {
	seen := make(map[sum]bool)
	var all []dated
	at := slices.Index(columnNames(t.columns), t.at)
	for i, s := range b.sources {
		err := b.eachDated(s, t, func(row []any) {
			row = slices.Clone(row)
			if t.change != nil && !t.change(i, row) {
				return
			}
			if sum := sealOf(t.name, row); !seen[sum] {
				seen[sum] = true
				text, _ := row[at].(string)
				all = append(all, dated{text, sum, row})
			}
		})
		if err != nil {
			return err
		}
	}

	slices.SortStableFunc(all, func(x, y dated) int {
		return cmp.Or(strings.Compare(x.at, y.at), bytes.Compare(x.sum[:], y.sum[:]))
	})
	return b.to.do(b.ctx, 0, func(w *writer) error { return w.insertDated(t, all) })
}

// eachDated visits the intact rows of a source.
func (b *rebuilder) eachDated(s *DB, t datedTable, visit func(row []any)) error {
	if t.sealed == "" {
		return s.wrap(eachRaw(b.ctx, s.reader, "SELECT "+t.columns+" FROM "+t.name, nil,
			func(row []any) (bool, error) { visit(row); return true, nil }))
	}
	return s.eachSealed(b.ctx, t.sealed, func(r sealedRow) (bool, error) {
		if r.broken != "" {
			where := fmt.Sprintf("row %d of %s", r.id, t.name)
			return true, b.lose(s, Problem{"seal", where, r.broken, doRestore, true})
		}
		visit(r.row)
		return true, nil
	})
}

// insertDated adds rows and their seals. If the schema allows one row only, the earliest wins.
func (w *writer) insertDated(t datedTable, all []dated) (err error) {
	for _, d := range all {
		if t.sealed != "" {
			_, err = w.add(t.sealed, d.row...)
		} else {
			err = w.exec(insertSQL(t.name, t.columns), d.row...)
		}
		if err != nil && primary(err) != sqlite3.SQLITE_CONSTRAINT {
			return err
		}
	}
	return nil
}

// copyVerdicts copies the scores and classifications of the attempts that were copied.
func (b *rebuilder) copyVerdicts() error {
	ofAttempt := func(source int, row []any) bool {
		id, _ := row[0].(int64)
		to, ok := b.renamed[source][id]
		row[0] = to
		return ok
	}
	err := b.copyDated(datedTable{"scores", scoreColumns, "scored_at", "score", ofAttempt})
	if err != nil {
		return err
	}
	return b.copyDated(datedTable{
		"classifications", classificationColumns, "classified_at", "classification", ofAttempt,
	})
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
	for _, t := range []datedTable{
		{"controls", "run, at, command", "at", "", ofRun},
		{"imports", importColumns, "imported_at", "import", nil},
		{"libraries", libraryColumns, "digest", "library", nil},
	} {
		if err := b.copyDated(t); err != nil {
			return err
		}
	}
	return nil
}
