package own

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
)

// fits reports whether a call is one that a judge expects.
func fits(want *assay.Expected, call *assay.CallRecord) bool {
	for i := range want.Alternatives {
		if fits(&want.Alternatives[i], call) {
			return true
		}
	}
	if want.Tool == "" || want.Tool != call.Tool {
		return false
	}
	text := call.Arguments
	if strings.TrimSpace(text) == "" {
		text = "{}"
	}
	return len(want.Arguments) == 0 || contains(json.RawMessage(text), want.Arguments)
}

// contains reports whether a JSON value has a part. An object has each member of the part; every
// other value is equal to it. Numbers are equal if their values are: integers of any size exactly,
// and other numbers as float64.
func contains(value, part json.RawMessage) bool {
	v, okV := parse(value)
	p, okP := parse(part)
	return okV && okP && has(v, p)
}

func parse(text json.RawMessage) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil, false
	}
	_, err := d.Token()
	return v, err == io.EOF
}

func has(v, part any) bool {
	switch part := part.(type) {
	case map[string]any:
		object, ok := v.(map[string]any)
		if !ok {
			return false
		}
		for name, p := range part {
			member, there := object[name]
			if !there && p != nil || !has(member, p) {
				return false
			}
		}
		return true
	case []any:
		list, ok := v.([]any)
		if !ok || len(list) != len(part) {
			return false
		}
		for i := range part {
			if !has(list[i], part[i]) {
				return false
			}
		}
		return true
	}
	switch v := v.(type) {
	case map[string]any, []any:
		return false
	case json.Number:
		n, ok := part.(json.Number)
		return ok && sameNumber(string(v), string(n))
	}
	return v == part
}

// sameNumber compares two numbers. Identifiers may be integers that no float64 can hold.
func sameNumber(a, b string) bool {
	if a == b || !strings.ContainsAny(a+b, ".eE") {
		return a == b || strings.Trim(a+b, "-0") == ""
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y
}

// toolsOf returns the tools that an expected call can be of, without repetitions.
func toolsOf(want *assay.Expected) []string {
	var tools []string
	for i := range want.Alternatives {
		tools = append(tools, toolsOf(&want.Alternatives[i])...)
	}
	if want.Tool != "" {
		tools = append(tools, want.Tool)
	}
	return policy.Distinct(tools)
}

// isOf reports whether an expected call can be of a tool.
func isOf(want *assay.Expected, tool string) bool { return slices.Contains(toolsOf(want), tool) }
