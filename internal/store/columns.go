package store

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// A column has the name of a field in JSON. These are the columns that every store has. The lists are
// complete: what a field added later needs, its type says (see [layout]).
const (
	// trialColumns are the columns of the table trials after its ID.
	trialColumns = `model, variant, severity, difficulty, task_type, reliability, task, task_digest,
		repeat, seed, world, protocol, tools, turn_limit, sampling, token_limit, cost_limit,
		several_calls, persistence, burst, loops, call_limit, fault_mix, agent_model, agent_timeout,
		user_model`
	// attemptColumns are the columns of the table attempts after the columns that place the row in
	// its store. An attempt's seal covers them in this order: see [identify].
	attemptColumns = `round, program, templates, lane, served_model, level, ended, stop, cause,
		error_category, turns, tool_calls, required_tools, executed_tools, coverage, order_correct,
		assisted, adherence, given_adherence, mistakes, failures, recovered, wasted_calls,
		efficiency, extra_calls, loop, loop_turn, best_possible, pilot, score_version, fault,
		fault_detail, parked, requests, retried, input_tokens, output_tokens, cost_usd, queued_ms,
		working_ms, started_at, finished_at, cached_tokens, cache_write_tokens, reasoning_tokens,
		truncated, finish, deviations, reported, precision, unwanted_effects, broken_lineage,
		faults_scheduled, faults_met, unmetered, worker, uncertain_tokens, unpriced_tokens, security,
		user_requests, user_input_tokens, user_output_tokens, user_unpriced_tokens, user_cost_usd`
)

var (
	trialFields   = fieldsOf[assay.Attempt](trialColumns)
	attemptFields = fieldsOf[assay.Attempt](attemptColumns)
)

var (
	insertSeal       = insertSQL("attempt_seals", "attempt, sum, script")
	insertTranscript = insertSQL("transcripts", "attempt, body")
)

func columnNames(list string) []string {
	return strings.Split(strings.Join(strings.Fields(list), " "), ", ")
}

// columnsOf returns a list of columns of a table.
func columnsOf(table, list string) string {
	return table + "." + strings.Join(columnNames(list), ", "+table+".")
}

// A field is a field of a struct, and the column that stores it.
type field struct {
	name  string
	index []int
	// unset is the text of a list, map or object that is empty.
	unset string
	// zero is what is stored for a zero, and declaration what SQL says of the column. Only later
	// columns need them. index is nil in a column of a later version.
	zero        any
	declaration string
}

// fieldsOf returns the fields of T for a list of columns.
func fieldsOf[T any](columns string) (fields []field) {
	named := namedFields(reflect.TypeFor[T]())
	for _, name := range columnNames(columns) {
		f, ok := named[name]
		if !ok {
			panic("store: no field is named " + name)
		}
		fields = append(fields, f)
	}
	return fields
}

// addFields adds the fields of a struct and of the structs that are embedded in it.
func addFields(named map[string]field, t reflect.Type, index []int) {
	for f := range t.Fields() {
		at := slices.Concat(index, f.Index)
		if f.Anonymous {
			addFields(named, f.Type, at)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		named[name] = newField(name, at, f.Type)
	}
}

// rowOf returns the fields of *from as they are stored.
func rowOf(fields []field, from any) ([]any, error) {
	v := reflect.ValueOf(from).Elem()
	row := make([]any, len(fields))
	for i, f := range fields {
		if f.index == nil {
			row[i] = f.zero
			continue
		}
		var err error
		if row[i], err = f.save(v.FieldByIndex(f.index)); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return row, nil
}

// loadRow sets the fields of *to from a row as SQLite returns it.
func loadRow(fields []field, to any, row []any, in *interned) error {
	v := reflect.ValueOf(to).Elem()
	for i, f := range fields {
		if f.index == nil {
			continue
		}
		if err := f.load(v.FieldByIndex(f.index), row[i], in); err != nil {
			return fmt.Errorf("column %s: %w", f.name, err)
		}
	}
	return nil
}

func (f field) save(v reflect.Value) (any, error) {
	switch v.Kind() {
	case reflect.String:
		return v.String(), nil
	case reflect.Int, reflect.Int64:
		return v.Int(), nil
	case reflect.Uint64:
		return int64(v.Uint()), nil
	case reflect.Float64:
		return v.Float(), nil
	case reflect.Bool:
		return int64(boolInt(v.Bool())), nil
	}
	switch v := v.Interface().(type) {
	case *float64:
		if v == nil {
			return nil, nil
		}
		return *v, nil
	case time.Time:
		return formatTime(v)
	case json.RawMessage:
		return string(v), nil
	}
	if v.IsZero() || v.Kind() != reflect.Struct && v.Kind() != reflect.Pointer && v.Len() == 0 {
		return f.unset, nil
	}
	b, err := json.Marshal(v.Interface())
	return string(b), err
}

func (f field) load(v reflect.Value, stored any, in *interned) error {
	switch s := stored.(type) {
	case nil:
		if v.Kind() == reflect.Pointer {
			return nil
		}
	case int64:
		switch {
		case v.CanInt():
			v.SetInt(s)
			return nil
		case v.CanUint():
			v.SetUint(uint64(s))
			return nil
		case v.Kind() == reflect.Bool:
			v.SetBool(s != 0)
			return nil
		}
	case float64:
		switch to := v.Addr().Interface().(type) {
		case *float64:
			*to = s
			return nil
		case **float64:
			*to = &s
			return nil
		}
	case string:
		if v.Kind() == reflect.String {
			v.SetString(in.text(s))
			return nil
		}
		return f.loadText(v.Addr().Interface(), s, in)
	}
	return fmt.Errorf("unexpected value %v", stored)
}

// loadText sets a field that is stored as a text and is not one.
func (f field) loadText(to any, text string, in *interned) (err error) {
	switch to := to.(type) {
	case *time.Time:
		return to.UnmarshalText([]byte(text))
	case *json.RawMessage:
		*to = json.RawMessage(text)
		return nil
	case *[]string:
		*to, err = in.list(text)
		return err
	}
	if text == f.unset {
		return nil
	}
	return json.Unmarshal([]byte(text), to)
}

// cast returns v as a T, which is one of the types that SQLite returns.
func cast[T any](v any) (T, error) {
	t, ok := v.(T)
	if !ok {
		return t, fmt.Errorf("unexpected value %v", v)
	}
	return t, nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// interned keeps one copy of each text and list that rows repeat. Attempts share the lists.
type interned struct {
	texts map[string]string
	lists map[string][]string
}

func newInterned() *interned {
	return &interned{make(map[string]string), make(map[string][]string)}
}

func (in *interned) text(s string) string {
	same, ok := in.texts[s]
	if !ok {
		same = s
		in.texts[s] = s
	}
	return same
}

func (in *interned) list(text string) ([]string, error) {
	if text == "[]" {
		return nil, nil
	}
	list, ok := in.lists[text]
	if !ok {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, err
		}
		list = slices.Clip(list)
		in.lists[text] = list
	}
	return list, nil
}
