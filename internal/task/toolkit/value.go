package toolkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// maxDepth is the number of levels to which values may be nested.
const maxDepth = 100

// maxJSONBits is the size of the largest whole number that every reader of JSON can hold.
const maxJSONBits = 1023

// decode returns a JSON value as a Starlark value. Members of objects are in alphabetical order, so
// a script sees the same order whoever wrote the text. No text at all is an empty object.
func decode(text json.RawMessage) (starlark.Value, error) { return decodeAt(text, 0) }

// decodeAt is like decode for a value that is nested in others.
func decodeAt(text json.RawMessage, depth int) (starlark.Value, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return starlark.NewDict(0), nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	return toStarlark(v, depth)
}

func toStarlark(v any, depth int) (starlark.Value, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("values are nested more than %d levels deep", maxDepth)
	}
	switch v := v.(type) {
	case nil:
		return starlark.None, nil
	case bool:
		return starlark.Bool(v), nil
	case string:
		return starlark.String(v), nil
	case json.Number:
		return number(v)
	case []any:
		list := make([]starlark.Value, len(v))
		for i := range v {
			var err error
			if list[i], err = toStarlark(v[i], depth+1); err != nil {
				return nil, err
			}
		}
		return starlark.NewList(list), nil
	case map[string]any:
		return dict(v, depth)
	}
	return nil, fmt.Errorf("unexpected value %v", v)
}

func dict(v map[string]any, depth int) (starlark.Value, error) {
	d := starlark.NewDict(len(v))
	keys := make([]string, 0, len(v))
	for k := range v {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		value, err := toStarlark(v[k], depth+1)
		if err != nil {
			return nil, err
		}
		if err := d.SetKey(starlark.String(k), value); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// viewOf returns the constructor of the views of values like v, or nil if calls cannot change one. All
// types of the values of states are in this file: those that decode makes and encode takes.
func viewOf(v starlark.Value) func(viewNode) view {
	switch v.(type) {
	case *starlark.Dict:
		return func(n viewNode) view { return &dictView{viewNode: n} }
	case *starlark.List:
		return func(n viewNode) view { return &listView{viewNode: n} }
	}
	return nil
}

// number returns a whole number as an int, however it is written, if it is exact.
func number(n json.Number) (starlark.Value, error) {
	const most = 400 // digits; float64 ends before
	if len(n) > most {
		return nil, fmt.Errorf("a number has more than %d characters", most)
	}
	if i, ok := new(big.Int).SetString(n.String(), 10); ok {
		return starlark.MakeBigInt(i), nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, fmt.Errorf("the number %s is too large", n)
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return starlark.MakeInt64(int64(f)), nil
	}
	return starlark.Float(f), nil
}

// encode returns a Starlark value as compact JSON with sorted keys.
func encode(v starlark.Value) (json.RawMessage, error) { return encodeWithin(MaxSize, v) }

// encodeWithin is like encode with another limit of the size.
func encodeWithin(most int, v starlark.Value) (json.RawMessage, error) {
	v, err := flat(v)
	if err != nil {
		return nil, err
	}
	e := jsonEncoder{most: most}
	if err := e.value(v, 0); err != nil {
		return nil, err
	}
	if e.text.Len() > most {
		return nil, e.tooLarge()
	}
	return json.RawMessage(e.text.String()), nil
}

type jsonEncoder struct {
	text strings.Builder
	most int
}

func (e *jsonEncoder) tooLarge() error {
	return fmt.Errorf("the value has more than %d bytes as JSON", e.most)
}

func (e *jsonEncoder) value(v starlark.Value, depth int) error {
	switch {
	case depth > maxDepth:
		return fmt.Errorf("values are nested more than %d levels deep, or contain themselves",
			maxDepth)
	case e.text.Len() > e.most:
		return e.tooLarge()
	}
	switch v := v.(type) {
	case starlark.NoneType:
		e.text.WriteString("null")
	case starlark.Bool:
		fmt.Fprint(&e.text, bool(v))
	case starlark.Int:
		if v.BigInt().BitLen() > maxJSONBits {
			return fmt.Errorf("a whole number has more than %d bits", maxJSONBits)
		}
		e.text.WriteString(v.String())
	case starlark.Float:
		return e.float(float64(v))
	case starlark.String:
		return e.string(string(v))
	case *starlark.Dict:
		return e.object(v, depth)
	case starlark.Iterable:
		return e.list(v, depth)
	default:
		return fmt.Errorf("a value of type %s cannot be written as JSON; "+
			"use None, numbers, strings, lists and dicts", v.Type())
	}
	return nil
}

func (e *jsonEncoder) float(f float64) error {
	b, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("the number %v cannot be written as JSON", f)
	}
	e.text.Write(b)
	return nil
}

func (e *jsonEncoder) string(s string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return err
	}
	e.text.Write(bytes.TrimRight(b.Bytes(), "\n"))
	return nil
}

func (e *jsonEncoder) list(v starlark.Iterable, depth int) error {
	e.text.WriteByte('[')
	items := v.Iterate()
	defer items.Done()
	var item starlark.Value
	for i := 0; items.Next(&item); i++ {
		if i > 0 {
			e.text.WriteByte(',')
		}
		if err := e.value(item, depth+1); err != nil {
			return err
		}
	}
	e.text.WriteByte(']')
	return nil
}

func notText(key starlark.Value) error {
	return fmt.Errorf("the key %s is of type %s; JSON has only strings as keys, so write str(…)",
		key, key.Type())
}

func compareNames(a, b starlark.Value) int {
	return strings.Compare(string(a.(starlark.String)), string(b.(starlark.String)))
}

func (e *jsonEncoder) object(v *starlark.Dict, depth int) error {
	items := v.Items()
	for _, item := range items {
		if _, ok := item[0].(starlark.String); !ok {
			return notText(item[0])
		}
	}
	slices.SortFunc(items, func(a, b starlark.Tuple) int { return compareNames(a[0], b[0]) })
	e.text.WriteByte('{')
	for i, item := range items {
		if i > 0 {
			e.text.WriteByte(',')
		}
		if err := e.string(string(item[0].(starlark.String))); err != nil {
			return err
		}
		e.text.WriteByte(':')
		if err := e.value(item[1], depth+1); err != nil {
			return err
		}
	}
	e.text.WriteByte('}')
	return nil
}
