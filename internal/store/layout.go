package store

import (
	"context"
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/assay-eval/assay"
)

// A layout lists the columns of a store's trials and attempts.
//
// Every later version of the program opens the store. A field that [assay.Attempt] gains becomes a
// column when a store is opened for writing, and has its zero in rows that were saved before and in
// stores that are only read. A column of a later version is copied to other stores, and stays under
// its seal.
type layout struct{ trials, attempts columns }

// columns are those of a table that hold fields: first the ones that every store has, in the order
// of their list, and then later ones by name.
type columns struct {
	table  string
	insert string // the statement that adds a row with all of them
	fields []field
	first  int // how many every store has
}

// placed are the fields of an attempt that its place in the store says, or that are not stored.
var placed = []string{
	"-", "trial", "attempt", "superseded", "experiment", "run", "price_list", "saved_cost_usd",
	"saved_user_cost_usd",
}

// programLayout is the layout of the stores that this program creates.
var programLayout = sync.OnceValue(func() *layout { return layoutWithout(placed) })

// layoutWithout returns the layout for all fields but the named ones.
func layoutWithout(names []string) *layout {
	named := namedFields(reflect.TypeFor[assay.Attempt]())
	later := func(of reflect.Type, without ...[]field) (fields []field) {
		for name := range namedFields(of) {
			known := func(f field) bool { return f.name == name }
			if !slices.Contains(names, name) && !slices.ContainsFunc(slices.Concat(without...), known) {
				fields = append(fields, named[name])
			}
		}
		return fields
	}
	trials := later(reflect.TypeFor[assay.Trial](), trialFields)
	attempts := later(reflect.TypeFor[assay.Attempt](), trialFields, attemptFields, trials)
	return newLayout(trials, attempts)
}

func newLayout(trials, attempts []field) *layout {
	l := &layout{
		newColumns("trials", "id", trialFields, trials),
		newColumns("attempts", "id, number, run, trial", attemptFields, attempts),
	}
	l.trials.insert += " ON CONFLICT (id) DO NOTHING"
	return l
}

func newColumns(table, place string, first, later []field) columns {
	slices.SortFunc(later, func(x, y field) int { return strings.Compare(x.name, y.name) })
	c := columns{table: table, fields: slices.Concat(first, later), first: len(first)}
	c.insert = insertSQL(table, place+", "+strings.Join(c.names(), ", "))
	return c
}

func (c *columns) names() (names []string) {
	for _, f := range c.fields {
		names = append(names, f.quoted())
	}
	return names
}

// quoted returns the name of a column for SQL, because a file that is opened may call one anything.
func (f field) quoted() string { return `"` + strings.ReplaceAll(f.name, `"`, `""`) + `"` }

// isZero reports whether a value that is stored is the field's zero.
func (f field) isZero(v any) bool { return reflect.DeepEqual(v, f.zero) }

// of returns the columns with the name of a table, as a query selects them.
func (c *columns) of(name string) string {
	return name + "." + strings.Join(c.names(), ", "+name+".")
}

// later returns the fields that not every store has.
func (c *columns) later() []field { return c.fields[c.first:] }

// lacks returns the later fields of c that other does not have.
func (c *columns) lacks(other *columns) (missing []field) {
	for _, f := range c.later() {
		if other.index(f.name) < 0 {
			missing = append(missing, f)
		}
	}
	return missing
}

func (c *columns) index(name string) int {
	return slices.IndexFunc(c.fields, func(f field) bool { return f.name == name })
}

// convert returns a row of c with the values of a row that has other columns.
func (c *columns) convert(row []any, from *columns) []any {
	to := slices.Clone(row[:c.first])
	for _, f := range c.later() {
		if i := from.index(f.name); i >= 0 {
			to = append(to, row[i])
		} else {
			to = append(to, f.zero)
		}
	}
	return to
}

// unknown returns the name of a column that has a value of a later version, or "".
func (c *columns) unknown(row []any) string {
	for i, f := range c.later() {
		if f.index == nil && !f.isZero(row[c.first+i]) {
			return f.name
		}
	}
	return ""
}

// readLayout returns the layout of a store. known is the program's.
func readLayout(ctx context.Context, db querier, known *layout) (*layout, error) {
	trials, err := readLater(ctx, db, &known.trials)
	if err != nil {
		return nil, err
	}
	attempts, err := readLater(ctx, db, &known.attempts)
	if err != nil {
		return nil, err
	}
	return newLayout(trials, attempts), nil
}

func readLater(ctx context.Context, db querier, known *columns) (later []field, err error) {
	place := []string{"id", "number", "run", "trial"}
	query := `SELECT name, type || iif("notnull", ' NOT NULL', '') || ifnull(' DEFAULT ' || dflt_value, ''),
		ifnull(dflt_value, 'NULL') FROM pragma_table_info(?)`
	var unset []string
	err = each(ctx, db, query, []any{known.table}, func(rows *sql.Rows) (bool, error) {
		var f field
		var zero string
		err := rows.Scan(&f.name, &f.declaration, &zero)
		i := known.index(f.name)
		switch {
		case err != nil || slices.Contains(place, f.name) || i >= 0 && i < known.first:
		case i >= 0:
			later, unset = append(later, known.fields[i]), append(unset, "NULL")
		default:
			later, unset = append(later, f), append(unset, zero)
		}
		return true, err
	})
	for i := range later {
		if err == nil && later[i].index == nil {
			err = db.QueryRowContext(ctx, "SELECT "+unset[i]).Scan(&later[i].zero)
		}
	}
	return later, err
}

// widen adds the columns that a store lacks, and returns its layout then.
func widen(ctx context.Context, w execer, has, wants *layout) (*layout, error) {
	var later [2][]field
	for i, c := range []struct{ has, wants *columns }{
		{&has.trials, &wants.trials}, {&has.attempts, &wants.attempts},
	} {
		missing := c.wants.lacks(c.has)
		for _, f := range missing {
			add := fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s", c.has.table, f.quoted(), f.declaration)
			if _, err := w.ExecContext(ctx, add); err != nil {
				return nil, err
			}
		}
		later[i] = slices.Concat(c.has.later(), missing)
	}
	wide := newLayout(later[0], later[1])
	return wide, renewViews(ctx, w, wide)
}

// widen adds the columns that a store lacks. Nobody else uses db meanwhile.
func (db *DB) widen(ctx context.Context, wants *layout) error {
	if len(wants.trials.lacks(&db.layout.trials))+len(wants.attempts.lacks(&db.layout.attempts)) == 0 {
		return nil
	}
	return db.do(ctx, 0, func(w *writer) (err error) {
		if w.layout, err = widen(ctx, w.conn, w.layout, wants); err == nil {
			db.layout = w.layout
		}
		return err
	})
}

// resultsView returns the text of the view results, which shows all columns.
func (l *layout) resultsView() string {
	text := schemaText[strings.Index(schemaText, "CREATE VIEW results"):]
	var later strings.Builder
	for _, f := range l.trials.later() {
		later.WriteString(", t." + f.quoted())
	}
	for _, f := range l.attempts.later() {
		later.WriteString(", a." + f.quoted())
	}
	text = strings.Replace(text, "\nFROM attempts a", later.String()+"\nFROM attempts a", 1)
	return strings.TrimRight(text, ";\n")
}

// outcomesView returns the text of the view outcomes: each trial that is settled, by its latest
// outcome, with every column by the latest verdict and the latest prices.
func (l *layout) outcomesView() string {
	judged := namedFields(reflect.TypeFor[assay.Outcome]())
	var b strings.Builder
	b.WriteString("CREATE VIEW outcomes AS\nSELECT lower(hex(a.trial)) AS trial")
	for _, f := range l.trials.fields {
		b.WriteString(", t." + f.quoted())
	}
	b.WriteString(", a.number AS attempt, r.experiment, r.id AS run")
	for _, f := range l.attempts.fields {
		name := f.quoted()
		value := "a." + name
		if _, ok := judged[f.name]; ok {
			value = fmt.Sprintf("iif(s.id IS NULL, %s, s.body ->> '%s')", value, f.name)
		} else if slices.Contains(columnNames(costColumns), f.name) {
			value = fmt.Sprintf("iif(k.id IS NULL, %s, k.%s)", value, name)
		}
		if f.name == "cost_usd" {
			value = fmt.Sprintf("CASE WHEN %[1]s > 0 OR NOT (a.unmetered OR "+
				"iif(k.id IS NULL, a.unpriced_tokens, k.unpriced_tokens) > 0) THEN %[1]s END", value)
		}
		b.WriteString(", " + value + " AS " + name)
	}
	b.WriteString(`, iif(k.id IS NULL, NULL, a.cost_usd) AS saved_cost_usd
FROM attempts a CROSS JOIN trials t ON t.id = a.trial CROSS JOIN runs r ON r.seq = a.run
	LEFT JOIN scores s ON s.id = (SELECT max(id) FROM scores WHERE scores.attempt = a.id)
	LEFT JOIN costs k ON k.id = (SELECT max(id) FROM costs WHERE costs.attempt = a.id)
WHERE a.level <> '' AND NOT EXISTS (SELECT 1 FROM attempts o
	WHERE o.trial = a.trial AND o.level <> '' AND o.round > a.round)`)
	return b.String()
}

// renewViews makes the views show all columns, unless they are lost, which is damage.
func renewViews(ctx context.Context, w execer, l *layout) error {
	for name, text := range map[string]string{"results": l.resultsView(), "outcomes": l.outcomesView()} {
		var has string
		query := "SELECT ifnull(max(sql), '') FROM sqlite_schema WHERE type = 'view' AND name = ?"
		err := w.QueryRowContext(ctx, query, name).Scan(&has)
		if err == nil && has != "" && has != text {
			_, err = w.ExecContext(ctx, "DROP VIEW "+name+"; "+text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// namedFields returns the fields of a struct and of the structs that are embedded in it, by the names
// that they have in JSON.
func namedFields(t reflect.Type) map[string]field {
	named := make(map[string]field)
	addFields(named, t, nil)
	return named
}

// newField returns the field of a column. Its declaration holds for every value of its type.
func newField(name string, index []int, t reflect.Type) field {
	unset := map[reflect.Kind]string{reflect.Slice: "[]", reflect.Map: "{}", reflect.Struct: "{}"}
	f := field{name: name, index: index, unset: unset[t.Kind()]}
	zero, err := f.save(reflect.Zero(t))
	if err != nil {
		panic("store: field " + name + ": " + err.Error())
	}
	f.zero = zero
	switch zero := zero.(type) {
	case nil:
		f.declaration = "REAL"
	case int64:
		f.declaration = "INTEGER NOT NULL DEFAULT 0"
	case float64:
		f.declaration = "REAL NOT NULL DEFAULT 0"
	case string:
		f.declaration = "TEXT NOT NULL DEFAULT '" + zero + "'"
	}
	return f
}
