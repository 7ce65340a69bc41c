package plan_test

import (
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/experiment/plan"
)

// The canaries are keys as providers spell them. The last one has no known form, so it is only
// known by its place.
const (
	canaryKey    = "sk-canary-" + "0123456789abcdef"
	canaryBase64 = "Q2FuYXJ5" + "MDEyMzQ1Njc4OWFiY2RlZkNhbmFyeQ=="
	canaryAWS    = "AKIA" + "CANARY0123456789"
	canaryWord   = "canary" + "word"
)

// TestLiteralKeysAreRefusedUnseen plants a key in every place of a file where people write one. The
// file is refused, and no error shows the key, also not if another mistake is found first.
func TestLiteralKeysAreRefusedUnseen(t *testing.T) {
	t.Parallel()
	provider := func(lines string) string {
		return "providers:\n  p:\n    base_url: http://gw/v1\n    models: {m: {}}\n" + lines
	}
	address := func(url string) string {
		return "providers:\n  p:\n    base_url: " + url + "\n    keys: [KEY]\n    models: {m: {}}\n"
	}
	experiment := func(lines string) string { return "models: [m]\nproviders: p.yaml\n" + lines }
	for _, key := range []string{canaryKey, canaryBase64, canaryAWS, canaryWord} {
		for name, text := range map[string]string{
			"keys":                provider("    keys: [" + key + "]\n"),
			"quoted":              provider("    keys: [KEY, \"" + key + "\"]\n"),
			"block":               provider("    keys:\n      - KEY\n      - " + key + "\n"),
			"one":                 provider("    keys: " + key + "\n"),
			"mapping":             provider("    keys: {KEY: " + key + "}\n"),
			"block mapping":       provider("    keys:\n      KEY: " + key + "\n"),
			"unknown field":       provider("    api_key: " + key + "\n"),
			"other unknown field": provider("    token: '" + key + "'\n"),
			"other mistake": "providers:\n  p: {base_url: http://gw/v1, keys: [" + key +
				"], modles: {m: {}}}\n",
			"key, other mistake": "providers:\n  p: {base_url: http://gw/v1, api-key: " + key +
				", modles: {m: {}}}\n",
			"syntax":        provider("    keys: [" + key + "\n    headers: {\n"),
			"header":        provider("    keys: none\n    headers: {Authorization: Bearer " + key + "}\n"),
			"block header":  provider("    keys: none\n    headers:\n      X-Api-Key: " + key + "\n"),
			"quoted header": provider("    keys: none\n    headers: {\"api-key\": \"" + key + "\"}\n"),
			"model's header": provider("    keys: none\n") +
				"  q:\n    base_url: http://q/v1\n    keys: none\n" +
				"    models: {m: {headers: {Cookie: s=" + key + "}}}\n",
			"user":            address("https://" + key + "@gw/v1"),
			"password":        address("https://user:" + key + "@gw/v1"),
			"no scheme":       address("user:" + key + "@gw/v1"),
			"query":           address("https://gw/v1?api_key=" + key),
			"quoted query":    address("'https://gw/v1?a=b&sig=" + key + "'"),
			"unknown version": address("https://gw/v1?k=" + key + "\n    protocol: azur"),
		} {
			t.Run(name+" "+key[:4], func(t *testing.T) {
				_, err := plan.LoadProviders(write(t, "p.yaml", text), env(nil))
				unseen(t, err, key)
			})
		}
		for name, text := range map[string]string{
			"unknown field": experiment("api_key: " + key + "\n"),
			"header":        experiment("sampling: {headers: {Authorization: Bearer " + key + "}}\n"),
			"level's header": "providers: p.yaml\nmodels: [{name: m, label: x, headers: " +
				"{X-Api-Key: " + key +
				"}}]\n",
		} {
			t.Run("experiment: "+name+" "+key[:4], func(t *testing.T) {
				_, err := plan.Load(write(t, "e.yaml", text))
				unseen(t, err, key)
			})
		}
	}
	for name, text := range map[string]string{
		"extra":    experiment("sampling: {extra: {api_key: " + canaryBase64 + "}}\n"),
		"anywhere": experiment("sampling: {extra: {user: " + canaryKey + "}}\n"),
		"revision": experiment("sampling: {revision: " + canaryKey + "}\n"),
		"comment":  experiment("sampling: {temprature: 1} # " + canaryKey + "\n"),
	} {
		t.Run("experiment: "+name, func(t *testing.T) {
			_, err := plan.Load(write(t, "e.yaml", text))
			unseen(t, err, canaryKey, canaryBase64)
		})
	}
}

// unseen checks that there is an error without the keys.
func unseen(t *testing.T, err error, keys ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("the file is accepted")
	}
	for _, key := range keys {
		if strings.Contains(err.Error(), key[2:]) {
			t.Errorf("the error shows the key:\n%v", err)
		}
	}
}

// TestNamesAreNoKeys loads files with long names, which only look a little like keys.
func TestNamesAreNoKeys(t *testing.T) {
	t.Parallel()
	_, err := plan.LoadProviders(write(t, "p.yaml", `providers:
  azure-eastus2-2025:
    base_url: https://my-resource-0123456789.openai.azure.com/openai/deployments
    keys: [AZURE_OPENAI_KEY_EASTUS2_2025, DEEPSEEKKEY01]
    headers: {X-Trace: 4be1a2f6c7d8e9f0a1b2c3d4e5f60718, X-Team: "sk-team"}
    models:
      accounts/fireworks/models/llama4-maverick-instruct-basic: {}
      Meta-Llama-3.1-405B-Instruct-Turbo-FP8-2025-04-01: {limits: {tpm: 100000}}
`), env(nil))
	if err != nil {
		t.Error(err)
	}
	_, err = plan.Load(write(t, "e.yaml", `models: [m]
sampling:
  revision: 4be1a2f6c7d8e9f0a1b2c3d4e5f607184be1a2f6
  max_tokens: 4096
  extra: {prompt_cache_key: team-7, user: 4be1a2f6c7d8e9f0a1b2c3d4e5f60718}
  label: x
`))
	if err != nil && !strings.Contains(err.Error(), "label") {
		t.Error(err)
	}
}
