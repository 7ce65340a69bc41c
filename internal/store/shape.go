package store

import (
	"context"
	"database/sql"
	"strings"
)

// A tableShape is a table with the format of its rows on a page. No two tables have the same.
type tableShape struct {
	name      string
	columns   []shapeColumn
	names     string // of the columns
	keys      int    // how many columns its key has; they come first
	insert    string // a part of a statement, as is where
	where     string
	statement *sql.Stmt
}

type shapeColumn struct {
	name, kind string
	notNull    bool
}

// shapesOf returns the tables of a store, without the columns that are made of others.
func shapesOf(ctx context.Context, q querier) (shapes []*tableShape, err error) {
	err = each(ctx, q, `SELECT t.name, c.name, c.type, c."notnull", c.pk > 0
		FROM sqlite_schema t JOIN pragma_table_info(t.name) c
		WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' ORDER BY t.name, c.cid`, nil,
		func(rows *sql.Rows) (bool, error) {
			var table string
			var c shapeColumn
			var key bool
			err := rows.Scan(&table, &c.name, &c.kind, &c.notNull, &key)
			if n := len(shapes); n == 0 || shapes[n-1].name != table {
				shapes = append(shapes, &tableShape{name: table})
			}
			t := shapes[len(shapes)-1]
			t.columns = append(t.columns, c)
			if key {
				t.keys++
			}
			return true, err
		})
	for _, t := range shapes {
		var names []string
		for _, c := range t.columns {
			names = append(names, c.name)
		}
		t.names = strings.Join(names, ", ")
		t.insert = strings.TrimPrefix(insertSQL(t.name, t.names), "INSERT ")
		t.where = " FROM " + t.name + " WHERE (" + strings.Join(names[:t.keys], ", ") + ") = (?" +
			strings.Repeat(", ?", t.keys-1) + ")"
	}
	return shapes, err
}

// fits reports whether a row has the columns of the table.
func (t *tableShape) fits(row []any) bool {
	if len(row) != len(t.columns) {
		return false
	}
	for i, c := range t.columns {
		ok := false
		switch row[i].(type) {
		case nil:
			ok = !c.notNull
		case int64:
			ok = c.kind == "INTEGER" || c.kind == "REAL"
		case float64:
			ok = c.kind == "REAL"
		case string:
			ok = c.kind == "TEXT"
		case []byte:
			ok = c.kind == "BLOB"
		}
		if !ok {
			return false
		}
	}
	return true
}
