package own

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/task/world/spec"
)

// anyState draws a small JSON value.
func anyState(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		kind := rapid.IntRange(0, 4).Draw(t, "kind")
		if depth == 0 {
			kind %= 3
		}
		switch kind {
		case 0:
			return nil
		case 1:
			return rapid.SampledFrom([]string{"", "a", "<b>"}).Draw(t, "text")
		case 2:
			return rapid.IntRange(0, 2).Draw(t, "number")
		case 3:
			return rapid.SliceOfN(anyState(depth-1), 0, 3).Draw(t, "list")
		}
		return rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c.d"}), anyState(depth-1), 0, 3).
			Draw(t, "object")
	})
}

// TestStatesCompared checks that states differ if and only if a change is shown, and that a state
// contains the values of a judge if and only if all of them are right.
func TestStatesCompared(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyState(3).Draw(t, "a"), anyState(3).Draw(t, "b")
		before, after := text(a), text(b)
		if found := changes(before, after); (len(found) == 0) != (string(before) == string(after)) {
			t.Fatalf("%s and %s: %s", before, after, text(found))
		}
		all := compare(after, before)
		wrong := slices.ContainsFunc(all, func(v spec.Wanted) bool { return !v.Right })
		if contains(after, before) == wrong {
			t.Fatalf("%s of %s: %s", before, after, text(all))
		}
	})
}

// TestChanges checks the paths of changes.
func TestChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ before, after, want string }{
		{`{"a":{"b":1}}`, `{"a":{"b":2}}`, "a.b: 1 → 2; "},
		{`{"a":1}`, `{"b.c":1}`, `a: 1 → ; "b.c":  → 1; `},
		{`{"m":[1,2]}`, `{"m":[0,1,2]}`, "m[0]:  → 0; "},
		{`{"m":[1,2,3]}`, `{"m":[1,3]}`, "m[1]: 2 → ; "},
		{`{"m":[{"x":1},2]}`, `{"m":[{"x":2},2]}`, "m[0].x: 1 → 2; "},
		{`{"a":7.0}`, `{"a":7}`, ""},
		{`1`, `[]`, "the state: 1 → []; "},
	} {
		got := ""
		for _, d := range changes(json.RawMessage(c.before), json.RawMessage(c.after)) {
			got += fmt.Sprintf("%s: %s → %s; ", d.Path, d.Before, d.After)
		}
		if got != c.want {
			t.Errorf("%s and %s: %s, want %s", c.before, c.after, got, c.want)
		}
	}
}
