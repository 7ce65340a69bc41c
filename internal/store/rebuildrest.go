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

// copyDated copies the rows of a kind in [sealed], or of the table controls, from all sources, each
// content once and in the order of the column named at. change adapts a row of a source to the new
// store, or refuses it. It may be nil.
func (b *rebuilder) copyDated(of, at string, change func(source int, row []any) bool) error {
	seen := make(map[sum]bool)
	var all []dated
	column := slices.Index(columnNames(columnsFor(of)), at)
	for i, s := range b.sources {
		err := b.eachDated(s, of, func(row []any) {
			row = slices.Clone(row)
			if change != nil && !change(i, row) {
				return
			}
			if sum := sealOf(of, row); !seen[sum] {
				seen[sum] = true
				text, _ := row[column].(string)
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
	return b.to.do(b.ctx, 0, func(w *writer) error { return w.insertDated(of, all) })
}

const controlColumns = "run, at, command"

func columnsFor(of string) string { return cmp.Or(sealed[of].columns, controlColumns) }

// eachDated visits the intact rows of a source.
func (b *rebuilder) eachDated(s *DB, of string, visit func(row []any)) error {
	if of == "control" { // they have no seals
		return s.wrap(eachRaw(b.ctx, s.reader, "SELECT "+controlColumns+" FROM controls", nil,
			func(row []any) (bool, error) { visit(row); return true, nil }))
	}
	return s.eachSealed(b.ctx, of, func(r sealedRow) (bool, error) {
		if r.broken != "" {
			where := fmt.Sprintf("row %d of %s", r.id, sealed[of].table)
			return true, b.lose(s, Problem{"seal", where, r.broken, doRestore, true})
		}
		visit(r.row)
		return true, nil
	})
}

// insertDated adds rows and their seals. If the schema allows one row only, the earliest wins.
func (w *writer) insertDated(of string, all []dated) (err error) {
	for _, d := range all {
		if of == "control" {
			err = w.exec(insertSQL("controls", controlColumns), d.row...)
		} else {
			_, err = w.add(of, d.row...)
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
	if err := b.copyDated("score", "scored_at", ofAttempt); err != nil {
		return err
	}
	return b.copyDated("classification", "classified_at", ofAttempt)
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
	if err := b.copyDated("control", "at", ofRun); err != nil {
		return err
	}
	if err := b.copyDated("import", "imported_at", nil); err != nil {
		return err
	}
	return b.copyDated("library", "digest", nil)
}
