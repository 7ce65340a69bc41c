package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// A leaf is a text, number or truth value in a result. Name is that of the nearest member it is in.
type leaf struct {
	name  string
	value any
	set   func(any)
}

// leavesOf returns the leaves of a value in JSON, in the order of the members' names.
func leavesOf(v any, name string, set func(any)) (all []leaf) {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			all = append(all, leavesOf(v[k], k, func(x any) { v[k] = x })...)
		}
	case []any:
		for i := range v {
			all = append(all, leavesOf(v[i], name, func(x any) { v[i] = x })...)
		}
	case nil:
	default:
		all = append(all, leaf{name, v, set})
	}
	return all
}

// Misstate returns a result in JSON with another value of the same shape in place of one of its own, and
// records both values. The second spare word picks which of the values that have another one, and the
// first which other one. It returns false if none has.
func Misstate(rec *assay.CallRecord, output string, luck Luck) (string, bool) {
	root, err := decode(output)
	if err != nil {
		return output, false
	}
	type change struct {
		leaf
		to any
	}
	var changes []change
	all := leavesOf(root, "", func(x any) { root = x })
	for _, l := range all {
		if to := another(l, all, luck); to != nil {
			changes = append(changes, change{l, to})
		}
	}
	if len(changes) == 0 {
		return output, false
	}
	c := changes[luck.Pick(1, len(changes))]
	c.set(c.to)
	rec.Truth, rec.Wrong = encode(c.value), encode(c.to)
	return encode(root), true
}

// Tells reports whether an answer has the true value of a call with a wrong one, in a member of the same name.
func Tells(output string, call *assay.CallRecord) bool {
	told, err := decode(output)
	wrong, errWrong := decode(call.Output)
	if err != nil || errWrong != nil {
		return false
	}
	return slices.ContainsFunc(leavesOf(wrong, "", nil), func(w leaf) bool {
		return encode(w.value) == call.Wrong && slices.ContainsFunc(leavesOf(told, "", nil), func(t leaf) bool {
			return t.name == w.name && encode(t.value) == call.Truth
		})
	})
}

// another returns another value of the shape of a leaf: the opposite of a truth value, a number or text
// with another digit, a date up to nine days later, or a text that a member of the same name has. It
// returns nil if there is none.
func another(of leaf, all []leaf, luck Luck) any {
	switch v := of.value.(type) {
	case bool:
		return !v
	case json.Number:
		return json.Number(otherDigit(v.String(), placeIn(v.String()), luck))
	case string:
		if day, err := time.Parse(time.DateOnly, v); err == nil {
			return day.AddDate(0, 0, 1+luck.Pick(0, 9)).Format(time.DateOnly)
		}
		if at := strings.LastIndexAny(v, digits); at >= 0 {
			return otherDigit(v, at, luck)
		}
		var others []string
		for _, l := range all {
			text, _ := l.value.(string)
			if l.name == of.name && text != "" && v != "" && text != v && !strings.ContainsAny(text, digits) {
				others = append(others, text)
			}
		}
		if len(others) > 0 {
			return others[luck.Pick(0, len(others))]
		}
	}
	return nil
}

const digits = "0123456789"

// placeIn returns the place of a number's digit that may differ without a change of its size: the last
// one before the point or, of a number below 1, the last one before an exponent.
func placeIn(number string) int {
	mantissa, _, _ := strings.Cut(strings.ToLower(number), "e")
	whole, _, fraction := strings.Cut(mantissa, ".")
	if fraction && strings.Trim(whole, "-") == "0" {
		return len(mantissa) - 1
	}
	return len(whole) - 1
}

// otherDigit returns a text with another digit at a place.
func otherDigit(text string, at int, luck Luck) string {
	digit := (int(text[at]-'0') + 1 + luck.Pick(0, 9)) % 10
	return text[:at] + strconv.Itoa(digit) + text[at+1:]
}

// CursorName is the argument with which a call asks for the rest of a list.
const CursorName = "cursor"

// The members that a result has beside a part of its list, and the name of the list if the result is one.
const (
	nextCursor = "next_cursor"
	more       = "more"
	itemsName  = "items"
)

// Pages has the lists whose rest an attempt's tools still have. The zero value has none.
type Pages struct {
	begun map[string]map[string]page // by tool and cursor
}

// A page begins after the elements of a list that were given before.
type page struct {
	arguments string
	list      string // the name of the member
	given     int
}

// Read takes the cursor out of a call's arguments, which may be the cursor alone. It returns false, and
// the record of a mistake, if the tool has not given it, or to a call with other arguments. It leaves the
// calls of tools alone whose answers were never cut.
func (p *Pages) Read(rec *assay.CallRecord) bool {
	args, known := members(rec.Arguments), p.begun[rec.Tool]
	if known == nil || args[CursorName] == nil {
		return true
	}
	var cursor string
	_ = json.Unmarshal(args[CursorName], &cursor) // a number is no cursor
	page, given := known[cursor]
	if !given {
		return refuse(rec, "the tool has not given the cursor "+Clip(string(args[CursorName])))
	}
	delete(args, CursorName)
	if len(args) > 0 && !sameMembers(args, members(page.arguments)) {
		return refuse(rec, "the cursor belongs to a call with other arguments; leave them out")
	}
	rec.Arguments, rec.Cursor = page.arguments, cursor
	return true
}

func refuse(rec *assay.CallRecord, why string) bool {
	const code = "INVALID_INPUT"
	rec.Mistake, rec.Code, rec.Error = true, code, code+": "+why
	return false
}

func sameMembers(a, b map[string]json.RawMessage) bool {
	x, errX := decode(encode(a))
	y, errY := decode(encode(b))
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// Rest returns what a call with a cursor gets of a result: the list without the elements that were given
// before. A call without one gets all of it.
func (p *Pages) Rest(rec *assay.CallRecord, output string) string {
	if rec.Cursor == "" {
		return output
	}
	page := p.begun[rec.Tool][rec.Cursor]
	result, list := listIn(output, page.list)
	if list == nil {
		return output // it has changed
	}
	result[page.list] = list[min(page.given, len(list)):]
	return encode(result)
}

// Cut returns the first half of a list in a result, with a cursor for the rest. The second spare word
// picks one of the lists with two elements or more. It returns false if there is none, or if the tool or
// its result have the names of the cursor.
func (p *Pages) Cut(tool assay.Tool, rec *assay.CallRecord, output string, luck Luck) (string, bool) {
	begun := page{arguments: rec.Arguments}
	if rec.Cursor != "" {
		begun = p.begun[rec.Tool][rec.Cursor]
	}
	result, lists := listsIn(output, begun.list)
	if len(lists) == 0 || result[nextCursor] != nil || result[more] != nil ||
		strings.Contains(string(tool.Schema), strconv.Quote(CursorName)) {
		return output, false
	}
	begun.list = lists[luck.Pick(1, len(lists))]
	list := result[begun.list].([]any)
	half := list[:len(list)/2]
	begun.given += len(half)
	cursor := fmt.Sprintf("%08x", luck.Pick(0, 1<<32))
	if p.begun == nil {
		p.begun = make(map[string]map[string]page)
	}
	if p.begun[rec.Tool] == nil {
		p.begun[rec.Tool] = make(map[string]page)
	}
	p.begun[rec.Tool][cursor] = begun
	result[begun.list], result[nextCursor] = half, cursor
	result[more] = "Call the tool again with next_cursor as its argument cursor"
	return encode(result), true
}

// listsIn returns a result as an object, and the names of its lists with two elements or more, or only
// that of one list, if it has them.
func listsIn(output, only string) (result map[string]any, names []string) {
	result, _ = listIn(output, "")
	for _, name := range slices.Sorted(maps.Keys(result)) {
		if list, _ := result[name].([]any); len(list) > 1 && (only == "" || name == only) {
			names = append(names, name)
		}
	}
	return result, names
}

// listIn returns a result as an object, and the list of a name in it. A result that is a list is one of
// the name items.
func listIn(output, name string) (result map[string]any, list []any) {
	v, err := decode(output)
	if err != nil {
		return nil, nil
	}
	if whole, ok := v.([]any); ok {
		v = map[string]any{itemsName: whole}
	}
	result, _ = v.(map[string]any)
	list, _ = result[name].([]any)
	return result, list
}

func decode(text string) (v any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// encode returns a value that comes from JSON as JSON.
func encode(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("spec: " + err.Error())
	}
	return string(bytes.TrimSpace(b.Bytes()))
}
