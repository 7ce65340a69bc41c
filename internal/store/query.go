package store

import (
	"context"
	"database/sql"
	"iter"
	"time"
)

// A querier is a connection or a pool of them.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// An execer is one that can also write.
type execer interface {
	querier
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// each visits the rows of a query until visit returns false or an error.
func each(
	ctx context.Context, q querier, query string, args []any,
	visit func(*sql.Rows) (bool, error),
) error {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if more, err := visit(rows); err != nil || !more {
			return err
		}
	}
	return rows.Err()
}

// eachRaw visits rows as SQLite returns them, until visit returns false or an error. The slice
// is good until the next row.
func eachRaw(
	ctx context.Context, q querier, query string, args []any, visit func([]any) (bool, error),
) error {
	var row, to []any
	return each(ctx, q, query, args, func(rows *sql.Rows) (bool, error) {
		if row == nil {
			columns, err := rows.Columns()
			if err != nil {
				return false, err
			}
			row, to = make([]any, len(columns)), make([]any, len(columns))
			for i := range row {
				to[i] = &row[i]
			}
		}
		if err := rows.Scan(to...); err != nil {
			return false, err
		}
		return visit(row)
	})
}

// collect returns the rows of a query. fields returns where to scan the columns of one row.
func collect[T any](
	ctx context.Context, q querier, query string, args []any, fields func(*T) []any,
) (all []T, err error) {
	err = each(ctx, q, query, args, func(rows *sql.Rows) (bool, error) {
		var v T
		err := rows.Scan(fields(&v)...)
		all = append(all, v)
		return true, err
	})
	return all, err
}

// values returns the rows of a query with one column.
func values[T any](ctx context.Context, q querier, query string, args ...any) ([]T, error) {
	return collect(ctx, q, query, args, func(v *T) []any { return []any{v} })
}

// table returns the two columns of a query as a map.
func table[K comparable, V any](
	ctx context.Context, q querier, query string, args ...any,
) (map[K]V, error) {
	m := make(map[K]V)
	err := each(ctx, q, query, args, func(rows *sql.Rows) (bool, error) {
		var k K
		var v V
		err := rows.Scan(&k, &v)
		m[k] = v
		return true, err
	})
	return m, err
}

// stream returns a sequence of the values that run yields. An error of run ends it.
func stream[T any](run func(yield func(T, error) bool) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if err := run(yield); err != nil {
			var zero T
			yield(zero, err)
		}
	}
}

// A timeScanner scans a time. NULL leaves it as it is.
type timeScanner struct{ *time.Time }

// Scan implements [sql.Scanner].
func (m timeScanner) Scan(v any) error {
	if v == nil {
		return nil
	}
	s, err := cast[string](v)
	if err != nil {
		return err
	}
	return m.UnmarshalText([]byte(s))
}
