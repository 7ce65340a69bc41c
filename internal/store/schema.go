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

// extends reports whether a table is as want says, perhaps with more columns. SQLite writes them after
// the last column, before the constraints.
func extends(text, want string) bool {
	same := 0
	for same < min(len(text), len(want)) && text[same] == want[same] {
		same++
	}
	return len(text) >= len(want) && strings.HasSuffix(text[same:], want[same:])
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
	var older bool
	err = db.QueryRowContext(ctx, "SELECT user_version BETWEEN ? AND 17 FROM pragma_user_version", oldest).Scan(&older)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch text, ok := got[name]; {
		case !ok && older && slices.Contains(since18, name):
		case !ok:
			wrong = append(wrong, schemaFault{name, "is missing"})
		case strings.HasPrefix(name, "view "): // they are made anew whenever columns are added
		case !extends(text, want[name]) && !extends(strings.Replace(text, faultsOf16, faultsOf17, 1), want[name]):
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
