package store

import (
	"fmt"
	"maps"
	"slices"
)

// rows compares the rows of the other tables with their seals.
func (v *verifier) rows() error {
	for _, table := range slices.Sorted(maps.Keys(sealed)) {
		if err := v.rowsOf(table); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) rowsOf(table string) error {
	next := int64(1)
	err := v.db.eachSealed(v.ctx, table, func(r sealedRow) (bool, error) {
		if table != "ends" { // a run that was killed has none
			for _, lost := range v.deleted[table].without(next, r.id-1) {
				where := fmt.Sprintf("rows %d to %d of %s", lost.First, lost.Last, table)
				v.report("complete", where, "are missing", doRestore)
			}
		}
		next = r.id + 1
		if r.broken != "" {
			v.report("seal", fmt.Sprintf("row %d of %s", r.id, table), r.broken, doRecover)
		}
		return true, nil
	})
	if err != nil {
		return err
	}

	missing, err := v.db.missingRows(v.ctx, table)
	if len(missing) > 0 {
		v.report("complete", "table "+table,
			fmt.Sprintf("%d rows are missing that have seals", len(missing)), doRestore)
	}
	return err
}
