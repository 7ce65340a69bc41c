package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/run/plan"
)

const providersText = `providers:
  gateway:
    base_url: ${GATEWAY_URL}
    keys: [KEY_0, KEY_1]
    models:
      m: {limits: {concurrency: 5, rpm: 600, tpm: 200000}}
  azure-east:
    protocol: azure
    base_url: https://x.example.com
    api_version: 2025-04-01-preview
    keys: [AZ]
    models:
      m:
        deployments: [m-1, m-2]
        serves: [M-0324]
        price: {input: 0.27, output: 1.10}
`

func env(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

func TestProvidersLanes(t *testing.T) {
	t.Parallel()
	p, err := plan.LoadProviders(write(t, "p.yaml", providersText),
		env(map[string]string{"GATEWAY_URL": "http://gw/v1"}))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range p.Lanes("m") {
		names = append(names, l.Name())
	}
	want := []string{"azure-east/AZ/m-1", "azure-east/AZ/m-2", "gateway/KEY_0/m", "gateway/KEY_1/m"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("lanes (-want +got):\n%s", diff)
	}
	if l := p.Lanes("m")[2]; l.Endpoint.BaseURL != "http://gw/v1" || l.Serve.Limits.RPM != 600 {
		t.Errorf("lane %+v", l)
	}
	if lanes := p.Lanes("other"); lanes != nil {
		t.Errorf("lanes of an unknown model: %v", lanes)
	}
}

func TestProvidersErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, old, new, want string }{
		{
			"variable", "${GATEWAY_URL}", "${GATEWAY_URI}",
			"3:15: environment variable GATEWAY_URI is not set",
		},
		{"field", "deployments", "deployment", "14:9: unknown field \"deployment\""},
		{"protocol", "protocol: azure", "protocol: azur", "8:15: unknown protocol \"azur\""},
		{
			"pasted key", "[AZ]", "[sk-abc123]",
			"11:12: this is not the name of an environment variable",
		},
		{
			"address", "https://x.example.com", "x.example.com",
			"9:15: the address does not start with http:// or https://",
		},
		{
			"version", "    api_version: 2025-04-01-preview\n", "",
			"provider azure-east needs an api_version",
		},
		{"negative", "rpm: 600", "rpm: -1", "6:41: limits.rpm is negative"},
		{
			"negative day", "rpm: 600", "rpd: -1",
			"6:41: limits.rpd is negative\n" +
				"  6 |       m: {limits: {concurrency: 5, rpd: -1, tpm: 200000}}\n" +
				"    |                                         ^\n" +
				"hint: remove it if you do not know the limit; the lane finds it out",
		},
		{"negative input", "rpm: 600", "itpm: -1", "limits.itpm is negative"},
		{"negative output", "rpm: 600", "otpm: -1", "limits.otpm is negative"},
		{"negative width", "concurrency: 5", "concurrency: -5", "limits.concurrency is negative"},
		{"negative tokens", "tpm: 200000", "tpm: -1", "limits.tpm is negative"},
		{"negative price", "output: 1.10", "output: -1", "price.output is negative"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := strings.Replace(providersText, tc.old, tc.new, 1)
			getenv := env(map[string]string{"GATEWAY_URL": "http://gw/v1"})
			_, err := plan.LoadProviders(write(t, "p.yaml", text), getenv)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("LoadProviders() error\n%v\nwant it to contain %q", err, tc.want)
			}
		})
	}
}
