package spec_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// TestMisstate checks that exactly one value of a result differs, and has the shape that it had.
func TestMisstate(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		`{"a":true,"b":null}`:       `{"a":false,"b":null}`,
		`{"euros":42}`:              `{"euros":4_}`,
		`{"share":0.75}`:            `{"share":0.7_}`,
		`-19.50e1`:                  `-1_.50e1`,
		`{"on":"2026-02-28"}`:       `{"on":"2026-03-0_"}`,
		`"Room 7, <b>"`:             `"Room _, <b>"`,
		`[{"n":"ann"},{"n":"bob"}]`: `[{"n":"bob"},{"n":"bob"}] or [{"n":"ann"},{"n":"ann"}]`,
		`{"n":"ann","m":"bob"}`:     "", // nobody knows another name, or where bob fits
		`{"a":{},"b":[],"c":""}`:    "",
		`null`:                      "",
		`not JSON`:                  "",
	} {
		seen := make(map[string]bool)
		for k := range 40 {
			var rec assay.CallRecord
			got, ok := spec.Misstate(&rec, output, spec.Draw(1, "tool", k))
			if ok != (want != "") || !ok && (got != output || rec.Wrong+rec.Truth != "") {
				t.Fatalf("%s becomes %s, %v", output, got, ok)
			}
			if !ok {
				continue
			}
			fits := false
			for w := range strings.SplitSeq(want, " or ") {
				before, after, open := strings.Cut(w, "_")
				fits = fits || got == w || open && len(got) == len(w) && strings.HasPrefix(got, before) && strings.HasSuffix(got, after)
			}
			if seen[got] = true; !fits || got == output || !strings.Contains(got, rec.Wrong) || !strings.Contains(output, rec.Truth) {
				t.Fatalf("%s becomes %s, want %s; %s instead of %s", output, got, want, rec.Wrong, rec.Truth)
			}
		}
		if strings.ContainsAny(want, "_") && len(seen) < 3 {
			t.Errorf("%s becomes %v only", output, seen)
		}
	}
}

// TestPagesGiveTheWholeList checks that all parts of a list that was cut again and again are the list, in
// results that are lists and in those that have some, whether or not the calls repeat the arguments.
func TestPagesGiveTheWholeList(t *testing.T) {
	t.Parallel()
	tool := assay.Tool{Name: "list", Schema: json.RawMessage(`{"type":"object"}`)}
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.IntRange(0, 9), 2, 9).Draw(t, "list")
		name, whole := "items", encoded(t, list)
		if rapid.Bool().Draw(t, "in an object") {
			name, whole = "rows", encoded(t, map[string]any{"rows": list, "one": []int{1}, "n": len(list)})
		}
		var pages spec.Pages
		const arguments = `{"day":"monday","of":{"a":1,"b":2}}`
		rec := assay.CallRecord{Tool: "list", Arguments: arguments}
		var got []any
		for k := 0; ; k++ {
			output := pages.Rest(&rec, whole)
			cut, lands := pages.Cut(tool, &rec, output, spec.Draw(3, "list", k))
			var answer map[string]any
			if err := json.Unmarshal([]byte(cut), &answer); err != nil {
				if k > 0 || lands {
					t.Fatalf("%s: %v", cut, err)
				}
			}
			got = append(got, answer[name].([]any)...)
			if cursor, _ := answer["next_cursor"].(string); lands != (cursor != "") {
				t.Fatalf("cut: %v, with the answer %s", lands, cut)
			}
			if !lands {
				break
			}
			next := map[string]any{"cursor": answer["next_cursor"]}
			if rapid.Bool().Draw(t, "repeats the arguments") {
				next["of"], next["day"] = map[string]int{"b": 2, "a": 1}, "monday"
			}
			rec = assay.CallRecord{Tool: "list", Arguments: encoded(t, next)}
			if !pages.Read(&rec) || rec.Arguments != arguments || rec.Cursor != next["cursor"] {
				t.Fatalf("%+v", rec)
			}
		}
		if want := fmt.Sprint(list); fmt.Sprint(got) != want {
			t.Fatalf("the parts are %v, want %s", got, want)
		}
	})
}

func encoded(t *rapid.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestPagesLeaveOthersAlone checks what is not cut, and which cursors are mistakes.
func TestPagesLeaveOthersAlone(t *testing.T) {
	t.Parallel()
	luck := spec.Draw(1, "list", 0)
	plain := assay.Tool{Name: "list"}
	for output, tool := range map[string]assay.Tool{
		`{"a":1}`: plain, `[1]`: plain, `"text"`: plain, `not JSON`: plain, `{"rows":[1,2],"next_cursor":"x"}`: plain,
		`[1,2]`: {Name: "list", Schema: json.RawMessage(`{"properties":{"cursor":{"type":"string"}}}`)},
	} {
		var pages spec.Pages
		if got, lands := pages.Cut(tool, &assay.CallRecord{Tool: "list"}, output, luck); lands || got != output {
			t.Errorf("%s becomes %s, %v", output, got, lands)
		}
	}

	var pages spec.Pages
	own := assay.CallRecord{Tool: "list", Arguments: `{"cursor":"mine"}`}
	if was := own; !pages.Read(&own) || !reflect.DeepEqual(own, was) {
		t.Errorf("a tool's own cursor: %+v", own)
	}
	cut, _ := pages.Cut(plain, &assay.CallRecord{Tool: "list", Arguments: `{"day":1}`}, `[1,2]`, luck)
	var answer struct {
		Cursor string `json:"next_cursor"`
	}
	if err := json.Unmarshal([]byte(cut), &answer); err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]bool{
		`{"day":2}`: true, `{}`: true, ``: true,
		`{"cursor":"` + answer.Cursor + `"}`: true, `{"cursor":"` + answer.Cursor + `","day":1}`: true,
		`{"cursor":"` + answer.Cursor + `","day":2}`: false, `{"cursor":"other"}`: false, `{"cursor":7}`: false,
	} {
		rec := assay.CallRecord{Tool: "list", Arguments: arguments}
		if got := pages.Read(&rec); got != want || rec.Mistake == want || !want && rec.Code != "INVALID_INPUT" {
			t.Errorf("%s: %+v, want it taken: %v", arguments, rec, want)
		}
	}
}
