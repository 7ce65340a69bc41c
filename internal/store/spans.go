package store

import (
	"cmp"
	"context"
	"slices"
)

// A span is a range of row IDs, including both ends.
type span struct{ first, last int64 }

// spans are sorted and do not touch each other.
type spans []span

func (s spans) size() (n int64) {
	for _, r := range s {
		n += r.last - r.first + 1
	}
	return n
}

// without returns the parts of a range that are not in s.
func (s spans) without(first, last int64) (rest []span) {
	at, _ := slices.BinarySearchFunc(s, first, func(r span, first int64) int {
		return cmp.Compare(r.last, first)
	})
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

// deletedRows returns the IDs of the rows of a kind that users deleted.
func deletedRows(ctx context.Context, q querier, of string) (spans, error) {
	query := "SELECT first, last FROM deleted WHERE of = ? ORDER BY first"
	return collect(ctx, q, query, []any{of}, func(s *span) []any {
		return []any{&s.first, &s.last}
	})
}
