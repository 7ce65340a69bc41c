package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

// A table describes one kind of record and its columns.
type table[R any] struct {
	name    Table
	columns []column[R]
	// absences are the columns that some records have no values for.
	absences []absence[R]
	// required lists the columns that a file must have.
	required []string
	// label identifies a record in errors.
	label func(*R) string
	// canonical prepares a record for writing, and plain undoes this after
	// reading.
	canonical, plain func(R) R
	check            func(*R) error
}

func names[R any](columns []column[R]) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return names
}

// A column is one field of a record R. It can convert the field to text for CSV
// and to values for Parquet.
type column[R any] struct {
	name, doc string
	kind      string // the type as named in the manifest
	node      parquet.Node
	get       func(*R) (string, error)
	set       func(*R, string) error
	// put appends the field's values: one value, the elements of a list, or one
	// null.
	put func(*cells, *R) error
	// take sets the field from at least one value. The values are null or of
	// the node's physical kind.
	take func(*R, []parquet.Value) error
}

// words adds a dictionary, because words and most numbers repeat in
// experiments. Columns with mostly different values are marked as distinct
// instead.
func words(n parquet.Node) parquet.Node { return parquet.Encoded(n, &parquet.RLEDictionary) }

func wholes() parquet.Node { return parquet.Encoded(parquet.Int(64), &parquet.DeltaBinaryPacked) }
func reals() parquet.Node  { return words(parquet.Leaf(parquet.DoubleType)) }

func text[R any, T ~string](name, doc string, at func(*R) *T) column[R] {
	return column[R]{
		name, doc, "string", words(parquet.String()),
		func(r *R) (string, error) { return escape(string(*at(r))), nil },
		func(r *R, s string) error {
			s, err := unescape(s)
			*at(r) = T(s)
			return err
		},
		func(c *cells, r *R) error {
			c.text(string(*at(r)))
			return nil
		},
		func(r *R, values []parquet.Value) error {
			v, err := single(values)
			*at(r) = T(v.ByteArray())
			return err
		},
	}
}

// distinct marks a text column with mostly different values, for which a
// dictionary would be useless.
func distinct[R any](c column[R]) column[R] {
	c.node = parquet.String()
	return c
}

func whole[R any, T int | int64](name, doc string, at func(*R) *T) column[R] {
	return column[R]{
		name, doc, "int64", wholes(),
		func(r *R) (string, error) { return strconv.FormatInt(int64(*at(r)), 10), nil },
		func(r *R, s string) error {
			n, err := strconv.ParseInt(s, 10, 64)
			if err == nil && int64(T(n)) != n {
				err = strconv.ErrRange
			}
			*at(r) = T(n)
			return err
		},
		func(c *cells, r *R) error {
			c.add(parquet.Int64Value(int64(*at(r))))
			return nil
		},
		func(r *R, values []parquet.Value) error {
			v, err := single(values)
			n := v.Int64()
			if err == nil && int64(T(n)) != n {
				err = strconv.ErrRange
			}
			*at(r) = T(n)
			return err
		},
	}
}

// seed returns a column of non-negative whole numbers. Parquet's INT64 cannot
// hold values from 2^63 on.
func seed[R any](name, doc string, at func(*R) *uint64) column[R] {
	return column[R]{
		name, doc, "int64", parquet.Int(64),
		func(r *R) (string, error) { return strconv.FormatUint(*at(r), 10), nil },
		func(r *R, s string) (err error) {
			*at(r), err = strconv.ParseUint(s, 10, 64)
			return err
		},
		func(c *cells, r *R) error {
			if *at(r) > math.MaxInt64 {
				return fmt.Errorf("%d is above 2^63-1", *at(r))
			}
			c.add(parquet.Int64Value(int64(*at(r))))
			return nil
		},
		func(r *R, values []parquet.Value) error {
			v, err := single(values)
			if err == nil && v.Int64() < 0 {
				err = fmt.Errorf("%d is negative", v.Int64())
			}
			*at(r) = uint64(v.Int64())
			return err
		},
	}
}

func real[R any](name, doc string, at func(*R) *float64) column[R] {
	return column[R]{
		name, doc, "double", reals(),
		func(r *R) (string, error) {
			return strconv.FormatFloat(*at(r), 'f', -1, 64), finite(*at(r))
		},
		func(r *R, s string) error {
			v, err := strconv.ParseFloat(s, 64)
			*at(r) = v
			return errors.Join(err, finite(v))
		},
		func(c *cells, r *R) error {
			c.add(parquet.DoubleValue(*at(r)))
			return finite(*at(r))
		},
		func(r *R, values []parquet.Value) error {
			v, err := single(values)
			*at(r) = v.Double()
			return errors.Join(err, finite(v.Double()))
		},
	}
}

// optional makes a column null as long as the pointer that leads to its field
// is nil. Reading a value that is not empty sets the pointer.
func optional[R, T any](c column[R], at func(*R) **T) column[R] {
	return column[R]{
		c.name, c.doc, c.kind, parquet.Optional(c.node),
		func(r *R) (string, error) {
			if *at(r) == nil {
				return "", nil
			}
			return c.get(r)
		},
		func(r *R, s string) error {
			if *at(r) == nil {
				if s == "" {
					return nil
				}
				*at(r) = new(T)
			}
			return c.set(r, s)
		},
		func(cells *cells, r *R) error {
			if *at(r) == nil {
				cells.null()
				return nil
			}
			return c.put(cells, r)
		},
		func(r *R, values []parquet.Value) error {
			if *at(r) == nil {
				if isNull(values) {
					return nil
				}
				*at(r) = new(T)
			}
			return c.take(r, values)
		},
	}
}

func finite(v float64) error {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%v is not a finite number", v)
	}
	return nil
}

func flag[R any](name, doc string, at func(*R) *bool) column[R] {
	return column[R]{
		name, doc, "bool", parquet.Leaf(parquet.BooleanType),
		func(r *R) (string, error) { return strconv.FormatBool(*at(r)), nil },
		func(r *R, s string) (err error) {
			*at(r), err = strconv.ParseBool(s)
			return err
		},
		func(c *cells, r *R) error {
			c.add(parquet.BooleanValue(*at(r)))
			return nil
		},
		func(r *R, values []parquet.Value) error {
			v, err := single(values)
			*at(r) = v.Boolean()
			return err
		},
	}
}

// earliest and latest are the limits of 64-bit nanoseconds since 1970.
var earliest, latest = time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)

// moment returns a column of times. Parquet's nanoseconds cannot represent the
// zero time, so it is null.
func moment[R any](name, doc string, at func(*R) *time.Time) column[R] {
	return column[R]{
		name, doc, "timestamp", parquet.Optional(parquet.Timestamp(parquet.Nanosecond)),
		func(r *R) (string, error) { return formatTime(*at(r)) },
		func(r *R, s string) error { return at(r).UnmarshalText([]byte(s)) },
		func(c *cells, r *R) error {
			t := *at(r)
			switch {
			case t.IsZero():
				c.null()
				return nil
			case t.Before(earliest) || t.After(latest):
				return fmt.Errorf("%v is not between the years 1678 and 2262", t)
			}
			c.add(parquet.Int64Value(t.UnixNano()))
			return nil
		},
		func(r *R, values []parquet.Value) error {
			if !isNull(values) {
				*at(r) = time.Unix(0, values[0].Int64()).UTC()
			}
			return nil
		},
	}
}

func formatTime(t time.Time) (string, error) {
	b, err := t.MarshalText()
	return string(b), err
}

// object returns a column of JSON. JSON contains no line breaks to escape.
func object[R, T any](name, doc string, at func(*R) *T) column[R] {
	return column[R]{
		name, doc, "json", words(parquet.JSON()),
		func(r *R) (string, error) {
			b, err := json.Marshal(at(r))
			return string(b), err
		},
		func(r *R, s string) error { return unmarshal([]byte(s), at(r)) },
		func(c *cells, r *R) error {
			b, err := json.Marshal(at(r))
			c.text(string(b))
			return err
		},
		func(r *R, values []parquet.Value) error {
			v, err := single(values)
			if err != nil {
				return err
			}
			return unmarshal(v.ByteArray(), at(r))
		},
	}
}

// unmarshal decodes JSON strictly: it refuses unknown fields and trailing
// values.
func unmarshal(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one JSON value")
	}
	return nil
}

// list returns a column of strings in order, which is JSON in CSV and a list in
// Parquet.
func list[R any](name, doc string, at func(*R) *[]string) column[R] {
	c := object(name, doc, at)
	c.kind, c.node = "list<string>", parquet.List(words(parquet.String()))
	c.put = func(c *cells, r *R) error {
		if len(*at(r)) == 0 {
			c.empty()
		}
		for i, s := range *at(r) {
			c.repeated = i > 0
			c.text(s)
		}
		c.repeated = false
		return nil
	}
	c.take = func(r *R, values []parquet.Value) error {
		if isNull(values) {
			return nil
		}
		texts := make([]string, len(values))
		for i, v := range values {
			if v.IsNull() {
				return errors.New("null in a list")
			}
			texts[i] = string(v.ByteArray())
		}
		*at(r) = texts
		return nil
	}
	return c
}

// cells collects the values of one column for Parquet.
type cells struct {
	values []parquet.Value
	bytes  []byte // the text that values point into
	index  int    // index of the column in the file
	// level is the definition level of a value that is not null.
	level    int
	repeated bool // the value continues the list of the previous one
}

// reset prepares c for another column.
func (c *cells) reset(index, level int) {
	c.values, c.bytes = c.values[:0], c.bytes[:0]
	c.index, c.level = index, level
}

// add appends a value. Most columns have no levels, and their writer ignores
// levels. Leaving them out saves a quarter of the time that writing a file
// takes.
func (c *cells) add(v parquet.Value) {
	if c.level == 0 {
		c.values = append(c.values, v)
		return
	}
	repetition := 0
	if c.repeated {
		repetition = 1
	}
	c.values = append(c.values, v.Level(repetition, c.level, c.index))
}

func (c *cells) null() {
	c.values = append(c.values, parquet.NullValue().Level(0, 0, c.index))
}

// empty adds an empty list.
func (c *cells) empty() {
	c.values = append(c.values, parquet.NullValue().Level(0, c.level-1, c.index))
}

// text adds s as valid UTF-8, like encoding/json, because readers refuse files
// with invalid UTF-8.
func (c *cells) text(s string) {
	start := len(c.bytes)
	if utf8.ValidString(s) {
		c.bytes = append(c.bytes, s...)
	} else {
		for _, r := range s {
			c.bytes = utf8.AppendRune(c.bytes, r)
		}
	}
	c.add(parquet.ByteArrayValue(c.bytes[start:]))
}

func single(values []parquet.Value) (parquet.Value, error) {
	if len(values) != 1 || values[0].IsNull() {
		return parquet.Value{}, errors.New("missing value")
	}
	return values[0], nil
}

func isNull(values []parquet.Value) bool { return len(values) == 1 && values[0].IsNull() }

var escaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)

func escape(s string) string { return escaper.Replace(s) }

func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, `\`)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		if after == "" {
			return "", errors.New(`backslash at the end; write \\ for a backslash`)
		}
		switch after[0] {
		case '\\':
			b.WriteByte('\\')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		default:
			return "", fmt.Errorf(`unknown escape \%c; write \\ for a backslash`, after[0])
		}
		s = after[1:]
	}
}
