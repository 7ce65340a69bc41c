package store

import (
	"cmp"
	"context"
	"slices"
)

// A span is a stretch of row IDs, both ends included.
type span struct{ first, last int64 }

// spans are in order and do not touch.
type spans []span

func (s spans) size() (n int64) {
	for _, r := range s {
		n += r.last - r.first + 1
	}
	return n
}

// without returns the parts of a stretch that s does not have.
func (s spans) without(first, last int64) (rest []span) {
	at, _ := slices.BinarySearchFunc(s, first, func(r span, first int64) int { return cmp.Compare(r.last, first) })
	for _, r := range s[at:] {
		if r.first > last {
			break
		}
		if r.first > first {
			rest = append(rest, span{first, r.first - 1})
		}
		first = max(first, r.last+1)
	}
	if first <= last {
		rest = append(rest, span{first, last})
	}
	return rest
}

// deletedRows returns the IDs of the rows that users had deleted.
func deletedRows(ctx context.Context, q querier, of string) (s spans, err error) {
	err = eachRaw(ctx, q, "SELECT first, last FROM deleted WHERE of = ? ORDER BY first", []any{of}, func(row []any) (bool, error) {
		first, _ := row[0].(int64)
		last, _ := row[1].(int64)
		s = append(s, span{first, last})
		return true, nil
	})
	return s, err
}
