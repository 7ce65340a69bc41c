package wire_test

import (
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// words is a protocol without documents.
var words = &wire.Protocol{
	Name: "words", KeyHeader: "Authorization",
	URL: func(c *wire.Config) string { return c.BaseURL },
	Encode: func(*wire.Provider, *assay.Request, wire.ParamSet) (any, wire.ParamSet) {
		return map[string]any{}, 0
	},
	NewReply: func() wire.Document { return nil },
}

func caller(t *testing.T, base string) *wire.Provider {
	t.Helper()
	c, err := words.New(wire.Config{
		BaseURL: base, Deployment: "small", Key: wire.NewSecret("sk-canary/42"), KeyName: "KEY",
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestStateGoesBackToItsEndpointOnly(t *testing.T) {
	t.Parallel()
	here, there := caller(t, "https://a.example/v1"), caller(t, "https://b.example/v1")
	const data = `[{"signature":"Ab+/<>","n":1.50}]`
	m := assay.Message{Role: assay.Assistant, State: here.State([]byte(data))}
	if got := here.StateOf(&m); string(got) != data {
		t.Errorf("StateOf() = %s, want %s", got, data)
	}
	if got := there.StateOf(&m); got != nil {
		t.Errorf("another endpoint gets %s", got)
	}
	if got := here.StateOf(&assay.Message{}); got != nil {
		t.Errorf("StateOf() = %s without a state", got)
	}
}

func TestStateHoldsNoSecret(t *testing.T) {
	t.Parallel()
	c := caller(t, "https://a.example/v1")
	for name, data := range map[string]string{
		"Plain":   `{"x":"sk-canary/42"}`,
		"Slash":   `{"x":"sk-canary\/42"}`,
		"Escapes": `{"x":"\u0073k-\u0063anary/42"}`,
	} {
		if got := c.State([]byte(data)); got == nil || string(got.Data) != `{"x":"[redacted]"}` {
			t.Errorf("%s: State(%s) = %v", name, data, got)
		}
	}
	if got := c.State([]byte(`{`)); got != nil {
		t.Errorf("State of half a document = %s", got.Data)
	}
}
