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

// journal checks the journal beside the store. What is wrong with it keeps no run from writing to the
// store, which goes on with the rest.
func (v *verifier) journal() error {
	left, err := v.db.Left(v.ctx)
	if err != nil {
		return err
	}
	path := journalPath(v.db.path)
	report := func(what, do string) {
		v.found(Problem{Check: "journal", Where: path, What: what, Do: do})
	}
	if left.Missing != nil && left.Missing.Path != "" {
		report(left.Missing.String(), "copy it from where the store was copied from")
	}
	if n := left.Health.Changed; n > 0 {
		report(fmt.Sprintf("%d of its lines differ from their checksums", n),
			"the next run goes on with the replies that are intact, and asks for the others again")
	}
	for _, u := range left.Strange {
		v.found(u.strange(path))
	}
	for _, u := range left.Attempts {
		if err := u.CheckID(); err != nil {
			report(fmt.Sprintf("trial %s: %v", u.ID, err), "its attempt begins again")
		}
		v.proof.Replies += u.Replies
	}
	v.proof.Unfinished, v.proof.Torn = len(left.Attempts), left.Health.Torn
	return nil
}
