//go:build !race

package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/model/sim"
)

// billers are providers with separate bills. They have thinking models, and cache prompts. Only
// Anthropic charges for writes.
var billers = map[string]struct{ protocol, path, tariff string }{
	"chat":    {"openai", "/v1", "input=1.25,cached=0.125,output=10"},
	"replies": {"responses", "/v1", "input=0.05,cached=0.005,output=0.4"},
	"claude":  {"anthropic", "", "input=3,cached=0.3,cache_write=3.75,output=15"},
	"gem":     {"gemini", "/v1beta", "input=0.3,cached=0.075,output=2.5"},
}

// TestDollarsAddUpToBills runs an experiment over HTTP at four providers with caches, thinking
// models and replies that are paid for but empty. The run's total, the report's table and the
// exported attempts have to agree with the providers' own bills.
func TestDollarsAddUpToBills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var providers, prices strings.Builder
	servers := make(map[string]rehearsal)
	providers.WriteString("prices: prices.yaml\nproviders:\n")
	names := slices.Sorted(maps.Keys(billers))
	for _, name := range names {
		b := billers[name]
		server := serve(t, "--tariff", b.tariff, "--thinking", "reasoning_content", "--seed", "3",
			"--fault", "empty=10%", "--fault", "500=5%")
		servers[name] = server
		fmt.Fprintf(&providers, "  at-%s:\n    protocol: %s\n    base_url: %s%s\n    keys: [K]\n"+
			"    models: {%s: {deployments: [sim-listed], serves: [%s]}}\n",
			name, b.protocol, server.url, b.path, name, sim.Listed)
		fmt.Fprintf(&prices, "%s: {%s}\n", name, strings.ReplaceAll(b.tariff, "=", ": "))
	}
	file(t, dir, "providers.yaml", providers.String())
	file(t, dir, "prices.yaml", prices.String())
	experiment := file(t, dir, "bills.yaml", "models: ["+strings.Join(names, ", ")+"]\n"+
		"providers: providers.yaml\ntasks_per_type: 4\nvariants: [optimal]\n")
	store := filepath.Join(dir, "assay.db")
	env := map[string]string{"K": "sk-0123456789"}
	r := must(t, env, "run", experiment, "--store", store, "--display", "json")
	total, _ := lastEvent(t, r.out)["cost_usd"].(float64)

	var report struct {
		Spreads []struct {
			Model  string
			Cost   float64 `json:"cost_usd"`
			Cached float64 `json:"cached_share"`
			Think  float64 `json:"reasoning_share"`
		} `json:"distributions"`
	}
	decode(t, must(t, nil, "report", "--store", store, "--json").out, &report)
	exported := make(map[string]float64)
	for _, a := range attempts(t, store) {
		exported[a.Model] += a.CostUSD
	}
	var bills []int64
	for _, s := range report.Spreads {
		b := servers[s.Model].stats(t).Bills[sim.Listed]
		bills = append(bills, b.MicroUSD)
		agree(t, "the report of "+s.Model, s.Cost, b.MicroUSD)
		agree(t, "the attempts of "+s.Model, exported[s.Model], b.MicroUSD)
		if b.MicroUSD == 0 || b.CachedTokens == 0 || b.ReasoningTokens == 0 || s.Cached == 0 ||
			s.Think == 0 || (b.CacheWriteTokens > 0) != (s.Model == "claude") {
			t.Errorf("%s: nothing is cached, thought or paid: %+v, %+v", s.Model, b, s)
		}
	}
	if len(report.Spreads) != len(names) {
		t.Errorf("the report has %d models, want %d", len(report.Spreads), len(names))
	}
	agree(t, "the run", total, bills...)
}
