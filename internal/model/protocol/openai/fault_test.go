package openai_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

// chatFault sends a request and returns its fault. The test fails without a fault.
func chatFault(t testing.TB, ctx context.Context, p *wire.Provider) (*assay.Response, *assay.Fault) {
	t.Helper()
	resp, err := p.Chat(ctx, new(wiretest.Hi()))
	var f *assay.Fault
	if !errors.As(err, &f) {
		t.Fatalf("Chat() = %+v, %v; want a fault", resp, err)
	}
	if resp.Message.Role != "" || resp.Message.Content != "" || resp.Message.Calls != nil {
		t.Errorf("the fault has the message %+v", resp.Message)
	}
	if len(f.Detail) > 300 || strings.ContainsAny(f.Detail, "\n\r") {
		t.Errorf("detail is not one short line: %q", f.Detail)
	}
	return resp, f
}

// openaiError returns the body of an error of OpenAI.
func openaiError(message, kind, param, code string) string {
	return fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":%q,"code":%q}}`,
		message, kind, param, code)
}

func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for name, client := range map[string]*http.Client{"Ours": nil, "Theirs": {}} {
			t.Run(fmt.Sprint(status, name), func(t *testing.T) {
				handler := http.RedirectHandler(elsewhere.URL+"/v1", status)
				p := serve(t, handler, wire.Config{Client: client})
				_, f := chatFault(t, t.Context(), p)
				if f.Kind != assay.Network || f.Status != status ||
					!strings.Contains(f.Detail, "base_url") {
					t.Errorf("fault = %+v, want network with a hint", f)
				}
			})
		}
	}
}
