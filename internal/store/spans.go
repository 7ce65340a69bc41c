package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
)

// A span is a range of row IDs, including both ends.
type span struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// spans are sorted and do not touch each other.
type spans []span

func (s spans) size() (n int64) {
	for _, r := range s {
		n += r.Last - r.First + 1
	}
	return n
}

// without returns the parts of a range that are not in s.
func (s spans) without(first, last int64) (rest []span) {
	at, _ := slices.BinarySearchFunc(s, first, func(r span, first int64) int {
		return cmp.Compare(r.Last, first)
	})
	for _, r := range s[at:] {
		if r.First > last {
			break
		}
		if r.First > first {
			rest = append(rest, span{first, r.First - 1})
		}
		first = max(first, r.Last+1)
	}
	if first <= last {
		rest = append(rest, span{first, last})
	}
	return rest
}

// deletedRows returns the IDs of the rows that users deleted, by table. Records that are not proved
// excuse no missing row.
func (db *DB) deletedRows(ctx context.Context) (map[string]spans, error) {
	all := make(map[string]spans)
	err := db.eachSealed(ctx, "deletions", func(r sealedRow) (bool, error) {
		if r.broken != "" {
			return true, nil
		}
		var record struct {
			Rows map[string]spans `json:"rows"`
		}
		what, _ := r.row[2].(string)
		err := json.Unmarshal([]byte(what), &record)
		for table, rows := range record.Rows {
			all[table] = append(all[table], rows...)
		}
		return err == nil, err
	})
	for _, rows := range all {
		slices.SortFunc(rows, func(a, b span) int { return cmp.Compare(a.First, b.First) })
	}
	return all, err
}
