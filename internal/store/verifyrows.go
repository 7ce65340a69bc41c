package store

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
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
		return v.db.wrap(err)
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
		return v.db.wrap(err)
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
