package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
)

// A codec converts the fields of a Go type to text for CSV, and to values for Parquet.
type codec struct {
	kind string // the type as named in the manifest
	node parquet.Node
}

// codecOf returns the codec of a type.
func codecOf(t reflect.Type) codec {
	switch t {
	case reflect.TypeFor[time.Time](): // Parquet's nanoseconds cannot represent the zero time
		return codec{timestamp, parquet.Optional(parquet.Timestamp(parquet.Nanosecond))}
	case reflect.TypeFor[[]string]():
		return codec{listOfStrings, parquet.List(words(parquet.String()))}
	}
	switch t.Kind() {
	case reflect.String:
		return codec{"string", words(parquet.String())}
	case reflect.Int, reflect.Int64:
		return codec{"int64", parquet.Encoded(parquet.Int(64), &parquet.DeltaBinaryPacked)}
	case reflect.Uint64: // a seed
		return codec{"int64", parquet.Int(64)}
	case reflect.Float64:
		return codec{"double", words(parquet.Leaf(parquet.DoubleType))}
	case reflect.Bool:
		return codec{"bool", parquet.Leaf(parquet.BooleanType)}
	}
	return codec{"json", words(parquet.JSON())}
}

// The kinds of columns in which a null is a value: the zero time, or an empty list.
const (
	timestamp     = "timestamp"
	listOfStrings = "list<string>"
)

// words adds a dictionary, because words and most numbers repeat in
// experiments.
func words(n parquet.Node) parquet.Node { return parquet.Encoded(n, &parquet.RLEDictionary) }

// format returns a field as CSV has it. JSON contains no line breaks to escape.
func (c codec) format(v reflect.Value) (string, error) {
	switch v.Kind() {
	case reflect.String:
		return escaper.Replace(v.String()), nil
	case reflect.Int, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), nil
	case reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10), nil
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64), finite(v.Float())
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), nil
	}
	if c.kind == timestamp {
		text, err := at[time.Time](v).MarshalText()
		return string(text), err
	}
	text, err := json.Marshal(v.Addr().Interface())
	return string(text), err
}

// parse sets a field from text as [codec.format] writes it.
func (c codec) parse(v reflect.Value, s string) (err error) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(unescaper.Replace(s))
	case reflect.Int, reflect.Int64:
		var n int64
		n, err = strconv.ParseInt(s, 10, v.Type().Bits())
		v.SetInt(n)
	case reflect.Uint64:
		var n uint64
		n, err = strconv.ParseUint(s, 10, 64)
		v.SetUint(n)
	case reflect.Float64:
		var x float64
		x, err = strconv.ParseFloat(s, 64)
		v.SetFloat(x)
		err = errors.Join(err, finite(x))
	case reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(s)
		v.SetBool(b)
	default:
		if c.kind == timestamp {
			return at[time.Time](v).UnmarshalText([]byte(s))
		}
		return unmarshal([]byte(s), v.Addr().Interface())
	}
	return err
}

// put appends the values of a field: one value, or the elements of a list.
func (c codec) put(to *cells, v reflect.Value) (err error) {
	switch v.Kind() {
	case reflect.String:
		to.text(v.String())
	case reflect.Int, reflect.Int64:
		to.add(parquet.Int64Value(v.Int()))
	case reflect.Uint64:
		if v.Uint() > math.MaxInt64 {
			return fmt.Errorf("%d is above 2^63-1", v.Uint())
		}
		to.add(parquet.Int64Value(int64(v.Uint())))
	case reflect.Float64:
		to.add(parquet.DoubleValue(v.Float()))
		return finite(v.Float())
	case reflect.Bool:
		to.add(parquet.BooleanValue(v.Bool()))
	default:
		switch c.kind {
		case timestamp:
			return to.time(*at[time.Time](v))
		case listOfStrings:
			to.list(*at[[]string](v))
		default:
			var text string
			text, err = c.format(v)
			to.text(text)
		}
	}
	return err
}

// at returns a pointer to a field, which it does not copy.
func at[T any](v reflect.Value) *T { return v.Addr().Interface().(*T) }

func finite(v float64) error {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%v is not a finite number", v)
	}
	return nil
}

// unmarshal decodes JSON strictly: it refuses unknown fields and trailing values.
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

// escaper and unescaper keep a text in one line. Other escapes stand for themselves.
var (
	escaper   = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)
	unescaper = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r")
)
