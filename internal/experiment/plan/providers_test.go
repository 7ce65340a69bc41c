package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/experiment/plan"
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

func TestServerWithoutKeys(t *testing.T) {
	t.Parallel()
	p, err := plan.LoadProviders(write(t, "p.yaml", "providers:\n  local:\n"+
		"    base_url: http://127.0.0.1:8000/v1\n    keys: none\n    models: {m: {}}\n"), env(nil))
	if err != nil {
		t.Fatal(err)
	}
	if lanes := p.Lanes("m"); len(lanes) != 1 || lanes[0].Name() != "local/none/m" {
		t.Errorf("lanes %+v, want local/none/m", lanes)
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
			"no address", "    base_url: https://x.example.com\n", "",
			"hint: for example base_url: https://my-resource.openai.azure.com",
		},
		{
			"version", "    api_version: 2025-04-01-preview\n", "",
			"provider azure-east needs an api_version",
		},
		{"key twice", "keys: [KEY_0, KEY_1]", "keys: [KEY_0, KEY_1, KEY_0]", "this key is listed twice"},
		{"deployment twice", "[m-1, m-2]", "[m-1, m-1]", "deployment m-1 is listed twice"},
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
		{
			"header without a variable", "keys: [AZ]", "keys: [AZ]\n    headers: {X-Team: '${TEAM}'}",
			"12:15: environment variable TEAM is not set",
		},
		{
			"key in a header", "keys: [AZ]", "keys: [AZ]\n    headers: {X-Api-Key: abc}",
			"12:15: the header X-Api-Key has its value in the file\n" +
				"  12 |     headers: {X-Api-Key: ***}\n" +
				"     |               ^\n" +
				"hint: do not write keys into files: export it as a variable and write ${NAME}",
		},
		{
			"header of HTTP", "serves: [M-0324]", "headers: {Host: x}",
			"15:19: the header Host cannot be set, because requests need it",
		},
		{"negative price", "output: 1.10", "output: -1", "price.output is -1, want 0 to 1000000"},
		{"port", "base_url: ${GATEWAY_URL}", "base_url: http://127.0.0.1:99999/v1", "3:15: there is no port 99999"},
		{"half a price", ", output: 1.10", "", "16:9: the price of m has no output"},
		{"negative cached", "output: 1.10", "output: 1, cached: -1", "price.cached is -1"},
		{
			"hedge", "serves: [M-0324]", "hedge: true",
			"15:9: the field \"hedge\" is gone\n" +
				"  15 |         hedge: true\n" +
				"     |         ^\n" +
				"hint: remove this line: no request gets a second one any more; limits: {request: 30s} in the " +
				"experiment file ends one that hangs, and it is tried again",
		},
		{"price", "output: 1.10", "output: 1, cachd: 1", "hint: did you mean cached?"},
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

const identityText = `providers:
  gateway:
    base_url: http://gw/v1
    keys: [KEY]
    models:
      qwen2.5-72b: {}
      spare: {}
`

// TestProvidersIdentities checks that no model's results can be filed under another model's name
// without a word about that in the file.
func TestProvidersIdentities(t *testing.T) {
	t.Parallel()
	another := "\n  other:\n    base_url: http://gw/v1/\n    keys: [K2]\n    models:\n      "
	for _, tc := range []struct{ name, spare, want string }{
		{"nothing wrong", "spare: {}", ""},
		{
			"size", "qwen2.5-7b: {deployments: [prod-72b]}",
			"7:7: model qwen2.5-7b contradicts its deployment prod-72b: size 7b and 72b",
		},
		{"explicit", "qwen2.5-7b: {deployments: [prod-72b], serves: [qwen2.5-7b-it]}", ""},
		{"arbitrary", "gpt-4o: {deployments: [eval-prod-eastus2]}", ""},
		{
			"one deployment", "small: {deployments: [qwen2.5-72b], serves: [x]}",
			"7:7: models qwen2.5-72b and small are the same deployment, qwen2.5-72b\n" +
				"  7 |       small: {deployments: [qwen2.5-72b], serves: [x]}\n" +
				"    |       ^\n" +
				"hint: its results would be filed under two names; correct deployments, " +
				"or write small: {alias: qwen2.5-72b} if both names are meant",
		},
		{
			"one deployment of two providers", "spare: {}" + another + "x: {deployments: [spare]}",
			"12:7: models spare and x are the same deployment, spare",
		},
		{"two keys of one deployment", "spare: {}" + another + "spare: {}", ""},
		{"alias", "small: {alias: qwen2.5-72b}", ""},
		{
			"unknown alias", "small: {alias: qwen2.5-72}",
			"7:22: this provider does not serve model qwen2.5-72\n" +
				"  7 |       small: {alias: qwen2.5-72}\n" +
				"    |                      ^\n" +
				"hint: did you mean qwen2.5-72b?",
		},
		{
			"alias of an alias", "a: {alias: qwen2.5-72b}\n      b: {alias: a}",
			"8:18: a is an alias too",
		},
		{
			"alias with limits", "small: {alias: qwen2.5-72b, limits: {rpm: 1}}",
			"limits has no effect beside alias",
		},
		{
			"half an alias", "small: {alias: qwen2.5-72b}" + another + "small: {}",
			"another provider lists model small without this alias",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(identityText, "spare: {}", tc.spare, 1)
			_, err := plan.LoadProviders(write(t, "p.yaml", text), env(nil))
			if tc.want == "" && err != nil ||
				tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("LoadProviders() error\n%v\nwant it to contain %q", err, tc.want)
			}
		})
	}
}

func TestAliasSharesLanes(t *testing.T) {
	t.Parallel()
	text := strings.Replace(identityText, "spare: {}", "small: {alias: qwen2.5-72b}", 1)
	p, err := plan.LoadProviders(write(t, "p.yaml", text), env(nil))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.Lanes("qwen2.5-72b"), p.Lanes("small")); diff != "" || p.Lanes("small") == nil {
		t.Errorf("lanes (-model +alias):\n%s", diff)
	}
	if name := p.Resolve("small"); name != "qwen2.5-72b" {
		t.Errorf("small is %s", name)
	}
}
