package store

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"
	"sync"
)

// A schemaFault is a table, index, view or trigger that differs from a new store's.
type schemaFault struct{ name, what string }

// freshSchema returns the schema of a new store.
var freshSchema = sync.OnceValues(func() (map[string]string, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	defer db.Close()
	if _, err := db.Exec(schema); err != nil {
		return nil, err
	}
	return schemaOf(context.Background(), db)
})

func schemaOf(ctx context.Context, db querier) (map[string]string, error) {
	return table[string, string](ctx, db, `SELECT type || ' ' || name, ifnull(sql, '')
		FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'`)
}

// schemaDiffers compares a store's schema with the schema of a new store.
func schemaDiffers(ctx context.Context, db querier) (wrong []schemaFault, err error) {
	want, err := freshSchema()
	if err != nil {
		return nil, err
	}
	got, err := schemaOf(ctx, db)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch text, ok := got[name]; {
		case !ok:
			wrong = append(wrong, schemaFault{name, "is missing"})
		case text != want[name]:
			wrong = append(wrong, schemaFault{name, "differs from the one that assay made"})
		}
	}
	// A user's own indexes and views do no harm, but a trigger may.
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok && strings.HasPrefix(name, "trigger ") {
			wrong = append(wrong, schemaFault{name, "was not made by assay"})
		}
	}
	return wrong, nil
}
