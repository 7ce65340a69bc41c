//go:build !race

package library_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
)

// Tools as OpenAI has them are taken as they are, in both forms.
func TestToolListOfOpenAI(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"city":{"type":"string","enum":["Rome","Oslo"]},` +
		`"days":{"type":"array","items":{"type":"integer"}},"unit":{"type":["string","null"]}},` +
		`"required":["city"]}`
	for _, list := range []string{
		`[{"type": "function", "function": {"name": "x_a", "description": "Weather.",
			"parameters": ` + schema + `, "strict": true}, "vendor": 1}]`,
		` [{"type": "function", "name": "x_a", "description": "Weather.",
			"parameters": ` + schema + `}]`,
	} {
		l, err := withRegistry(t, list)
		if err != nil {
			t.Fatal(err)
		}
		want := []assay.Tool{{
			Name: "x_a", Category: "x", Operation: "a", Description: "Weather.",
			Schema: json.RawMessage(schema),
			Parameters: []assay.Parameter{
				{Name: "city", Type: "string", Required: true},
				{Name: "days", Type: "array"},
				{Name: "unit"},
			},
			Returns: []assay.Return{}, Errors: []assay.ToolError{}, Dependencies: []string{},
		}}
		if diff := cmp.Diff(want, l.Catalog().All()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", list, diff)
		}
	}
}
