package store

import (
	"bytes"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// rows compares the rows of the other tables with their seals.
func (v *verifier) rows() error {
	for _, of := range slices.Sorted(maps.Keys(sealed)) {
		if err := v.rowsOf(of); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) rowsOf(of string) error {
	t := sealed[of]
	deleted, err := deletedRows(v.ctx, v.db.reader, of)
	if err != nil {
		return v.db.readError(err)
	}
	next := int64(1)
	err = v.db.eachSealed(v.ctx, of, func(r sealedRow) (bool, error) {
		if of == wholeRow(of) {
			for _, lost := range deleted.without(next, r.id-1) {
				where := fmt.Sprintf("rows %d to %d of %s", lost.first, lost.last, t.table)
				v.report("complete", where, "are missing", doRestore)
			}
		}
		next = r.id + 1
		if r.broken != "" {
			v.report("seal", fmt.Sprintf("row %d of %s", r.id, t.table), r.broken, doRecover)
		}
		return true, nil
	})
	if err != nil {
		return err
	}

	missing, err := v.db.missingRows(v.ctx, of)
	if len(missing) > 0 && (of == wholeRow(of) || of == "run_count") {
		v.report("complete", "table "+t.table,
			fmt.Sprintf("%d rows are missing that have seals", len(missing)), doRestore)
	}
	return err
}

// ledger checks the seals of the rows that excuse others from existing, or from having a seal.
func (v *verifier) ledger() error {
	where := func(id int64) string { return fmt.Sprintf("the rows recorded for deletion %d", id) }
	sums, err := deletedSums(v.ctx, v.db.reader)
	if err != nil {
		return v.db.readError(err)
	}
	query := "SELECT id, sum FROM seals WHERE of = 'deleted'"
	err = eachRaw(v.ctx, v.db.reader, query, nil, func(row []any) (bool, error) {
		id, _ := row[0].(int64)
		want, _ := row[1].([]byte)
		if s, ok := sums[id]; !ok || !bytes.Equal(s[:], want) {
			v.report("seal", where(id), "are not as they were saved", doRestore)
		}
		delete(sums, id)
		return true, nil
	})
	for _, id := range slices.Sorted(maps.Keys(sums)) {
		v.report("seal", where(id), "have no seal: another program added them", doRestore)
	}
	return v.db.wrap(err)
}

// counts compares the outcomes of each cell, counted by attempts, with its settled trials,
// counted by the index of settled attempts.
func (v *verifier) counts() error {
	settled, err := v.settledByIndex()
	if err != nil || settled == nil {
		return err
	}
	cells := maps.Clone(settled)
	maps.Copy(cells, v.cells)
	for c := range cells {
		if n := v.cells[c]; settled[c] != n {
			what := fmt.Sprintf("%d outcomes, but %d settled trials", n, settled[c])
			if n == 0 {
				what = fmt.Sprintf("no outcome, but %d settled trials", settled[c])
			}
			v.report("counts", cellName(c), what, doRecover)
		}
	}
	return v.db.reader.QueryRowContext(v.ctx, "SELECT count(*) FROM trials").Scan(&v.proof.Trials)
}

// settledByIndex counts the settled trials of each cell. It returns nil if the index is missing,
// which the check of the schema reports.
func (v *verifier) settledByIndex() (map[assay.Cell]int, error) {
	var indexed bool
	query := "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'attempts_settled')"
	err := v.db.reader.QueryRowContext(v.ctx, query).Scan(&indexed)
	if err != nil || !indexed {
		return nil, v.db.wrap(err)
	}
	query = `SELECT model, variant, severity, difficulty, task_type, reliability,
		fault_mix, count(*)
		FROM trials WHERE id IN
			(SELECT trial FROM attempts INDEXED BY attempts_settled WHERE level <> '' AND id <= ?)
		GROUP BY 1, 2, 3, 4, 5, 6, 7`
	settled := make(map[assay.Cell]int)
	err = each(v.ctx, v.db.reader, query, []any{v.last}, func(rows *sql.Rows) (bool, error) {
		var c assay.Cell
		var n int
		err := rows.Scan(&c.Model, &c.Variant, &c.Severity, &c.Difficulty, &c.TaskType,
			&c.Reliability, &c.Faults, &n)
		settled[c] = n
		return true, err
	})
	return settled, v.db.wrap(err)
}

func cellName(c assay.Cell) string {
	reliability := assay.FormatReliability(c.Reliability)
	return strings.Join([]string{
		"cell", c.Model, c.Variant, c.Severity, c.Difficulty, c.TaskType, reliability, c.Faults,
	}, " ")
}
