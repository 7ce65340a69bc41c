package own

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

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
		{"It is -40", "40", false},
		{"It is −40 °C.", "40", false},
		{"It is –40", "40", false},
		{"It is $-40, or -$40.", "40", false},
		{"It is -40", "-40", true},
		{"It is −40", "-40", true},
		{"It is 40", "-40", false},
		{"It is +40", "40", true},
		{"- 40 euros", "40", true},
		{"Between 10-40 euros", "40", true},
		{"room-40", "40", true},
		{"It is -40 euros.", "40 euros", false},
		{"It is -€40.", "€40", false},
		{"It is 1,040 euros.", "40", false},
		{"It is 1,040 euros.", "1040", true},
		{"It is 1040 euros.", "1,040", true},
		{"It is 1,040.50 euros.", "1040.5", true},
		{"It is 1 040 or 1'040 euros.", "1040", true},
		{"It is 1 040 euros.", "40", false},
		{"It is 40,5", "40", true}, // or two numbers of a list
		{"[7,8,100]", "100", true},
		{"[100,200]", "200", false},
		{"It is 40.50 euros.", "40.5", true},
		{"It is 40.5 euros.", "40.50", true},
		{"It is 40.000 euros.", "40", false},
		{"It is .5", "5", false},
		{"It is .5", "0.5", true},
		{"It is 0.50", ".5", true},
		{"Version 1.2.40", "40", false},
		{"It is 40e3", "40", false},
		{"The code is 007.", "7", false},
		{"The code is 007.", "007", true},
		{"On 2027-03-02", "2", false},
		{"€40.", "40", true},
		{"40% of them", "40", true},
		{"It is 0.", "0", true},
		{"It is 10.", "0", false},
		{"1,234,567 in all", "567", false},
		{"1,234,567 in all", "1234567", true},
		{"v140", "40", false},
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

// TestNumbersOfAnswers checks for all pairs of amounts, however they are written, that an answer
// with one has the other exactly if they are equal.
func TestNumbersOfAnswers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cents := rapid.OneOf(rapid.IntRange(-300, 300), rapid.IntRange(-2_000_000, 2_000_000))
		a := cents.Draw(t, "answer")
		b := rapid.OneOf(rapid.Just(a), rapid.Just(-a), rapid.Just(100*a), rapid.Just(a/10), cents).Draw(t, "text")
		written := func(n int, what string) string {
			sign, size := "", n
			if n < 0 {
				sign, size = rapid.SampledFrom([]string{"-", "−"}).Draw(t, "minus of "+what), -n
			}
			whole, fraction := fmt.Sprint(size/100), fmt.Sprintf(".%02d", size%100)
			if rapid.Bool().Draw(t, what+" has commas") {
				for i := len(whole) - 3; i > 0; i -= 3 {
					whole = whole[:i] + "," + whole[i:]
				}
			}
			if size%100 == 0 && rapid.Bool().Draw(t, what+" is whole") {
				fraction = ""
			} else if size%10 == 0 && rapid.Bool().Draw(t, what+" is short") {
				fraction = fraction[:2]
			}
			return sign + whole + fraction
		}
		around := rapid.SampledFrom([]string{"%s", "It is %s.", "(%s)", "%s euros", "A: %s, and 7777777 more", "**%s**", "{\"sum\":%s}"})
		answer := fmt.Sprintf(around.Draw(t, "around"), written(a, "answer"))
		if text := written(b, "text"); within(answer, text) != (a == b) {
			t.Errorf("%q is in %q: %v", text, answer, a != b)
		}
	})
}
