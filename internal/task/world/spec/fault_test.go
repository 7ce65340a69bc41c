package spec_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

func TestWrongShape(t *testing.T) {
	t.Parallel()
	luck := spec.Draw(1, "tool", 0)
	for output, want := range map[string]string{
		`{"a":1}`:      `{}`,
		`[1,2,3]`:      `[1]`,
		`"grüße & so"`: `"grüße"`,
		`7`:            `null`,
		`{}`:           `null`,
		`null`:         `null`,
	} {
		if got := spec.WrongShape(output, luck); got != want {
			t.Errorf("%s becomes %s, want %s", output, got, want)
		}
	}
	whole := `{"a":1.50,"b":{"ref":"x"},"c":"<&>"}`
	lost := make(map[string]bool)
	for k := range 50 {
		var left map[string]json.RawMessage
		got := spec.WrongShape(whole, spec.Draw(1, "tool", k))
		if err := json.Unmarshal([]byte(got), &left); err != nil || len(left) != 2 {
			t.Fatalf("%s, %v", got, err)
		}
		lost[got] = true
	}
	if len(lost) != 3 || !lost[`{"a":1.50,"c":"<&>"}`] {
		t.Errorf("the results are %v", lost)
	}
}

func TestTimeoutIsTheToolsOwn(t *testing.T) {
	t.Parallel()
	own := assay.ToolError{Code: "TIMEOUT", Description: "the post is late"}
	if got := spec.Timeout(assay.Tool{Errors: []assay.ToolError{{Code: "A"}, own}}); got != own {
		t.Errorf("%+v", got)
	}
	if got := spec.Timeout(assay.Tool{}); got.Code != "TIMEOUT" || got.Description == "" {
		t.Errorf("%+v", got)
	}
}

// TestScheduledGoesOnWithAnotherTool checks the faults of an agent that follows a plan, whose steps stay as
// they are, and that it needs one tool of those that do the same.
func TestScheduledGoesOnWithAnotherTool(t *testing.T) {
	t.Parallel()
	catalog := assay.NewCatalog([]assay.Tool{{Name: "a"}, {Name: "b"}, {Name: "b2", StandsFor: "b"}, {Name: "c"}})
	for down, want := range map[string]struct {
		calls int
		done  bool
		met   string
	}{
		"":     {3, true, ""},
		"b":    {4, true, "b"},
		"b,":   {3, false, "b"}, // too few calls
		"b,b2": {9, false, "b b2"},
		"a":    {9, false, "a"},
	} {
		steps := []string{"a", "b", "c"}
		faults, done := spec.Scheduled(catalog, want.calls, steps, func(tool string) assay.ToolFault {
			if slices.Contains(strings.Split(down, ","), tool) {
				return assay.FaultDown
			}
			return ""
		})
		var met []string
		for place := range faults {
			met = append(met, place.Tool)
		}
		slices.Sort(met)
		if done != want.done || strings.Join(met, " ") != want.met || !slices.Equal(steps, []string{"a", "b", "c"}) {
			t.Errorf("%q is down: done %v, met %v, steps %q", down, done, met, steps)
		}
	}
}
