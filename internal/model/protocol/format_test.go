package protocol_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/protocol"
)

// TestFormsAreRefused checks that a request for structured output is refused with the name of the
// setting, because the model would not get it. Models reply with text anyway.
func TestFormsAreRefused(t *testing.T) {
	t.Parallel()
	dialects := protocol.Dialects("")
	for param, tc := range map[string]struct {
		dialect    gateway.Dialect
		body       string
		text, form string
	}{
		"response_format": {
			dialects[0],
			`{"model":"m","messages":[{"role":"user","content":"go"}],"response_format":{"type":%q}}`,
			"text", "json_schema",
		},
		"text.format": {
			dialects[2], `{"model":"m","input":"go","text":{"format":{"type":%q}}}`,
			"text", "json_object",
		},
		"output_config.format": {
			dialects[3], `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"go"}],
				"output_config":{"format":{"type":%q}}}`,
			"", "json_schema",
		},
		"responseMimeType": {
			dialects[4], `{"contents":[{"role":"user","parts":[{"text":"go"}]}],
				"generationConfig":{"responseMimeType":%q}}`,
			"text/plain", "application/json",
		},
	} {
		if _, e := tc.dialect.Decode(fmt.Appendf(nil, tc.body, tc.text)); e != nil {
			t.Errorf("%s: text is refused: %s", param, e.Message)
		}
		_, e := tc.dialect.Decode(fmt.Appendf(nil, tc.body, tc.form))
		if e == nil || !strings.Contains(e.Message, "does not pass on '"+param+"' of type") {
			t.Errorf("%s: %s is answered with %+v", param, tc.form, e)
		}
	}
}
