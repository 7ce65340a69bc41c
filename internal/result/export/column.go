package export

import (
	_ "embed"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/parquet-go/parquet-go"

	"github.com/assay-eval/assay"
)

// A table describes one kind of record R. Each field of its JSON is a column.
type table[R any] struct {
	name Table
	// distinct lists the columns of texts that mostly differ, for which a dictionary would be
	// useless.
	distinct []string
	// absences are the columns that some records have no values for.
	absences []absence[R]
	// label identifies a record in errors.
	label func(*R) string
	// canonical prepares a record for writing.
	canonical func(R) R

	columns []fieldColumn[R] // in the order of the JSON fields
}

//go:embed columns.txt
var columnTexts string

// describeColumn returns the description of a column, which is below the heading of its table or,
// unless it is there, below a later one.
func describeColumn(t Table, name string) string {
	_, texts, _ := strings.Cut(strings.ReplaceAll(columnTexts, "\n  ", " "), "# "+string(t)+"\n")
	for line := range strings.Lines(texts) {
		if text, found := strings.CutPrefix(line, name+": "); found {
			text = strings.Replace(text, "$KINDS", assay.Enumerate(assay.ToolFaults, "or"), 1)
			return strings.TrimSpace(text)
		}
	}
	return ""
}

// A fieldColumn is one field of a record R. It can convert the field to text for CSV
// and to values for Parquet.
type fieldColumn[R any] struct {
	jsonField
	doc  string
	node parquet.Node
	has  func(*R) bool // nil if every record has a value
	codec
}

// complete returns a function that fills in the columns of a table when it is first called,
// because most commands need no table.
func complete[R any](t table[R]) func() *table[R] {
	return sync.OnceValue(func() *table[R] { t.addColumns(); return &t })
}

func (t *table[R]) addColumns() {
	for _, f := range fieldsOf(reflect.TypeFor[R]()) {
		c := fieldColumn[R]{
			jsonField: f, codec: codecOf(f.typ), doc: describeColumn(t.name, f.name),
		}
		if c.node = c.codec.node; slices.Contains(t.distinct, f.name) {
			c.node = parquet.String()
		}
		for _, a := range t.absences {
			if slices.Contains(a.columns, f.name) {
				c.has = a.has
				c.doc = strings.TrimSuffix(c.doc, ".") + "; " + a.when + "."
			}
		}
		if f.pointed {
			c.has = nil // a separate stricter rule holds
		}
		if (f.pointed || c.has != nil) && !c.node.Optional() {
			c.node = parquet.Optional(c.node)
		}
		t.columns = append(t.columns, c)
	}
}

// column returns the column of a name, or nil.
func (t *table[R]) column(name string) *fieldColumn[R] {
	for i := range t.columns {
		if t.columns[i].name == name {
			return &t.columns[i]
		}
	}
	return nil
}

func names[R any](columns []fieldColumn[R]) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return names
}

// A jsonField is one of the fields of a struct, or of the structs in it, by its JSON name. The
// names of fields in structs behind pointers, such as pilot, begin with the name of the pointer.
type jsonField struct {
	name    string
	index   []int
	typ     reflect.Type
	pointed bool // a pointer leads to the field, and may be nil
}

// fieldsOf returns the fields in the order of JSON.
func fieldsOf(t reflect.Type) (all []jsonField) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		one := jsonField{name, f.Index, f.Type, f.Type.Kind() == reflect.Pointer}
		if one.pointed {
			one.typ, name = f.Type.Elem(), name+"_"
		}
		switch {
		case one.name == "-":
		case f.Anonymous, one.typ == reflect.TypeFor[assay.PilotScores]():
			for _, inner := range fieldsOf(one.typ) {
				inner.name = name + inner.name
				inner.index = slices.Concat(f.Index, inner.index)
				inner.pointed = inner.pointed || one.pointed
				all = append(all, inner)
			}
		default:
			all = append(all, one)
		}
	}
	return all
}

// in returns the field of a struct. If a pointer to it is nil, in sets the pointer if asked to, and
// otherwise returns the zero Value.
func (f *jsonField) in(v reflect.Value, set bool) reflect.Value {
	for _, i := range f.index {
		if v = v.Field(i); v.Kind() != reflect.Pointer {
			continue
		}
		switch {
		case !v.IsNil():
		case !set:
			return reflect.Value{}
		default:
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	return v
}

// of returns the field of a record, or the zero Value if it has no value.
func (c *fieldColumn[R]) of(r *R) reflect.Value {
	if c.has != nil && !c.has(r) {
		return reflect.Value{}
	}
	return c.in(reflect.ValueOf(r).Elem(), false)
}

// absent reports whether null leaves the field of a record alone.
func (c *fieldColumn[R]) absent(r *R) bool {
	return c.has != nil || !c.in(reflect.ValueOf(r).Elem(), false).IsValid()
}

// get returns the field as CSV has it.
func (c *fieldColumn[R]) get(r *R) (string, error) {
	v := c.of(r)
	if !v.IsValid() {
		return "", nil
	}
	return c.format(v)
}

// Field returns a field of an attempt as CSV has it, by the name of a column. It returns "" if the
// attempt has no value for it.
func Field(a *assay.Attempt, name string) string {
	text, err := attempts().column(name).get(a)
	if err != nil {
		return err.Error() // a number that is not finite
	}
	return text
}

// set sets the field from text as CSV has it.
func (c *fieldColumn[R]) set(r *R, s string) error {
	if s == "" && c.absent(r) {
		return nil
	}
	return c.parse(c.in(reflect.ValueOf(r).Elem(), true), s)
}

// put appends the field's values for Parquet: one value, the elements of a list, or one null.
func (c *fieldColumn[R]) put(cells *cells, r *R) error {
	v := c.of(r)
	if !v.IsValid() {
		cells.null()
		return nil
	}
	return c.codec.put(cells, v)
}
