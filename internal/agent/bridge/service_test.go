package bridge_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
)

// hangUp closes the connection of a request without a reply.
func hangUp(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = c.Close()
	}
}

// replies are the ways in which a service fails, and the fault if it has called no tool.
var replies = map[string]struct {
	reply func(w http.ResponseWriter)
	fault assay.FaultKind
}{
	"429":      {func(w http.ResponseWriter) { http.Error(w, "slow down", http.StatusTooManyRequests) }, assay.RateLimited},
	"502":      {func(w http.ResponseWriter) { w.WriteHeader(502) }, assay.Server},
	"503":      {func(w http.ResponseWriter) { w.WriteHeader(503) }, assay.Overloaded},
	"504":      {func(w http.ResponseWriter) { w.WriteHeader(504) }, assay.Server},
	"hangs up": {hangUp, assay.Network},
	"breaks off": {func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", "99")
		fmt.Fprint(w, `{"te`)
	}, assay.Network},
	"500": {func(w http.ResponseWriter) { w.WriteHeader(500) }, ""},
}

// A service that cannot be reached is a fault until it has called a tool, although it has asked its
// model. Afterwards it is the agent's failure.
func TestServicesThatAreUnavailable(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, tc := range replies {
		for _, calls := range []bool{false, true} {
			t.Run(fmt.Sprint(name, calls), func(t *testing.T) {
				t.Parallel()
				url := serve(t, func(w http.ResponseWriter, r *http.Request) {
					body := bodyOf(r)
					_, _ = ask(r, body["model_url"]+"/v1/responses", body["token"],
						map[string]any{"model": "m", "input": "hi"})
					if calls {
						_, _ = ask(r, body["mcp_url"], body["token"], map[string]any{
							"jsonrpc": "2.0", "id": 1, "method": "tools/call",
							"params": map[string]any{"name": "f", "arguments": map[string]any{}},
						})
					}
					tc.reply(w)
				})
				a := s.serviceEnd(t, url)
				want := tc.fault
				if calls {
					want = ""
				}
				if a.FaultKind != want || (want == "") != (a.Ended == assay.AgentError) {
					t.Errorf("fault %q %s, ended %q; want %q", a.FaultKind, a.FaultDetail, a.Ended, want)
				}
			})
		}
	}
	t.Run("TLS", func(t *testing.T) {
		t.Parallel()
		server := httptest.NewTLSServer(http.NotFoundHandler()) // of an unknown authority
		t.Cleanup(server.Close)
		a := s.serviceEnd(t, server.URL)
		if a.FaultKind != assay.Network || !strings.Contains(a.FaultDetail, "certificate") {
			t.Errorf("fault %q %s, ended %q", a.FaultKind, a.FaultDetail, a.Ended)
		}
	})
}

// serviceEnd runs an attempt of a service.
func (s *stand) serviceEnd(t *testing.T, url string) *assay.Attempt {
	t.Helper()
	trial, task := s.trial(0, assay.Discover)
	a, _ := s.Runner(s.episodes, bridge.Agent{
		Name: "agent", URL: url, Model: "m", Timeout: time.Minute,
	}).Run(t.Context(), new(speaker), trial, task)
	return a
}
