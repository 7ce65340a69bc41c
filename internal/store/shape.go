package store

import (
	"context"
	"database/sql"
	"strings"
)

// A tableShape is a table with the format of its rows on a page.
type tableShape struct {
	name      string
	columns   []shapeColumn
	keys      int    // how many columns its key has
	inserted  string // the columns that are not made of others
	insert    string // a part of a statement, as is where
	where     string
	statement *sql.Stmt
}

type shapeColumn struct {
	Name, Type string
	NotNull    bool
	Made       bool // it is made of others, so it is not inserted
}

// shapesOf returns the tables of a store.
func shapesOf(ctx context.Context, q querier) ([]tableShape, error) {
	names, err := values[string](ctx, q, `SELECT name FROM sqlite_schema WHERE type = 'table'
		ORDER BY name <> 'dictionaries'`) // transcripts look like them
	if err != nil {
		return nil, err
	}
	shapes := make([]tableShape, len(names))
	for i, name := range names {
		t := &shapes[i]
		t.name = name
		// A table without row IDs begins with its key.
		t.columns, err = collect(ctx, q, `SELECT name, type, "notnull" AND NOT (pk AND type = 'INTEGER'
				AND NOT (SELECT wr FROM pragma_table_list(?1))), hidden = 3
			FROM pragma_table_xinfo(?1) WHERE hidden <> 2
			ORDER BY iif((SELECT wr FROM pragma_table_list(?1)) AND pk > 0, pk - 100, cid)`,
			[]any{name}, func(c *shapeColumn) []any {
				return []any{&c.Name, &c.Type, &c.NotNull, &c.Made}
			})
		if err != nil {
			return nil, err
		}
		var columns []string
		for _, c := range t.columns {
			if !c.Made {
				columns = append(columns, c.Name)
			}
		}
		t.inserted = strings.Join(columns, ", ")
		t.insert = strings.TrimPrefix(insertSQL(name, t.inserted), "INSERT ")
		query := "SELECT count(*) FROM pragma_table_info(?) WHERE pk > 0"
		if err := q.QueryRowContext(ctx, query, name).Scan(&t.keys); err != nil {
			return nil, err
		}
		t.where = " FROM " + name + " WHERE (" + strings.Join(columns[:t.keys], ", ") + ") = (?" +
			strings.Repeat(", ?", t.keys-1) + ")"
	}
	return shapes, nil
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
			ok = !c.NotNull
		case int64:
			ok = c.Type == "INTEGER" || c.Type == "REAL"
		case float64:
			ok = c.Type == "REAL"
		case string:
			ok = c.Type == "TEXT"
		case []byte:
			ok = c.Type == "BLOB"
		}
		if !ok {
			return false
		}
	}
	return true
}

// stored returns the values of a row without the values that are made of others.
func (t *tableShape) stored(row []any) (values []any) {
	for i, c := range t.columns {
		if !c.Made {
			values = append(values, row[i])
		}
	}
	return values
}
