package own

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
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

func TestAnswers(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ord-1 has 7 parts. ", 200)
	for _, c := range []struct {
		answer, text string
		want         bool
	}{
		{"Bob has 40 euros.", "40", true},
		{"It is €40.", "40", true},
		{"Ada has 140, Bob has 40", "40", true},
		{"Bob has 140 euros.", "40", false},
		{"Bob has 40.5 euros.", "40", false},
		{"Bob has 40.00 euros.", "40", true},
		{"Bob has 1,400 euros.", "400", false},
		{`{"orders":[7,8]}`, "7", true},
		{`{"orders":[7,8]}`, "8", true},
		{"Bob has 40.005 euros.", "40", false},
		{"Bob has 40,000 euros.", "40", false},
		{"Bob has 3.40 euros.", "40", false},
		{"Bob has 40. Ada has 5.", "40", true},
		{"The order is ORD-4.", "ord-4", true},
		{"The order is ord-42.", "ord-4", false},
		{"He was refunded.", "refund", true},
		{long, "ord-1 has 7", false},
		{long, strings.Repeat("ord-1 has 7 parts. ", 50), true},
	} {
		course := &callCourse{judge: assay.Judge{Answer: []string{c.text}}}
		if got := course.answers(c.answer); got != c.want {
			t.Errorf("%.30q is an answer with %.30q: %v, want %v", c.answer, c.text, got, c.want)
		}
	}
}
