package own

import (
	"encoding/json"
	"testing"
)

func TestContains(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value, part string
		want        bool
	}{
		{`{"id": 7, "note": "x"}`, `{"id": 7}`, true},
		{`{"id": 7}`, `{"id": 7, "note": "x"}`, false},
		{`{"id": 7}`, `{"id": 7, "note": null}`, true},
		{`{"id": 7.0}`, `{"id": 7}`, true},
		{`{"id": 70e-1}`, `{"id": 7}`, true},
		{`{"id": "7"}`, `{"id": 7}`, false},
		{`-0`, `0`, true},
		{`10`, `-10`, false},
		// Both round to the same float64.
		{`9007199254740993`, `9007199254740992`, false},
		{`123456789012345678901`, `123456789012345678901`, true},
		{`1e999999999`, `1e999999999`, true},
		{`1e999999999`, `2e999999999`, false},
		{`[1, {"a": 2, "b": 3}]`, `[1, {"a": 2}]`, true},
		{`[1, 2]`, `[1]`, false},
		{`{}`, `null`, false},
		{`7 8`, `7`, false},
		{`{"id": 7`, `{}`, false},
	} {
		if got := contains(json.RawMessage(c.value), json.RawMessage(c.part)); got != c.want {
			t.Errorf("contains(%s, %s) = %v, want %v", c.value, c.part, got, c.want)
		}
	}
}
