package wire_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// behind returns a caller whose requests go through a proxy.
func behind(t *testing.T, proxy http.HandlerFunc, base string) *wire.Provider {
	t.Helper()
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := wire.NewClient(wire.ClientOptions{})
	wire.UseProxy(client, address)
	t.Cleanup(client.CloseIdleConnections)
	c, err := words.New(wire.Config{
		BaseURL: base, Deployment: "small", Key: wire.NewSecret("sk-canary/42"), KeyName: "KEY",
		Client: client,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRefusalOfProxyIsNotBlamedOnTheKey checks refusals of a proxy to connect, and its refusals of
// requests without TLS.
func TestRefusalOfProxyIsNotBlamedOnTheKey(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		base   string
		status int
		header string
	}{
		"Forbidden":        {"https://endpoint.example/v1", 403, ""},
		"Login":            {"https://endpoint.example/v1", 407, ""},
		"LoginWithoutTLS":  {"http://endpoint.example/v1", 407, ""},
		"ForbiddenBySquid": {"http://endpoint.example/v1", 403, "X-Squid-Error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := behind(t, func(w http.ResponseWriter, _ *http.Request) {
				if test.header != "" {
					w.Header().Set(test.header, "ERR_ACCESS_DENIED 0")
				}
				w.WriteHeader(test.status)
			}, test.base)
			_, err := c.Chat(t.Context(), new(assay.Request))
			f := assay.AsFault(err)
			if f.Kind != assay.Network || !strings.Contains(f.Detail, "HTTPS_PROXY") ||
				strings.Contains(f.Detail, "KEY;") || strings.Contains(f.Detail, "variable KEY") {
				t.Errorf("fault %v, want network with a hint about the proxy", f)
			}
		})
	}
}
