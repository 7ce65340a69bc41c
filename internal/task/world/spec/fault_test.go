package spec_test

import (
	"encoding/json"
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
