//go:build !race

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
)

// noDollars matches a cost of zero.
var noDollars = regexp.MustCompile(`\$0\.0+\b`)

// TestUnknownPricesAreNeverZero runs a model with a price beside one without.
func TestUnknownPricesAreNeverZero(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, providers := serveVendors(t, []string{"mistral", "openai"})
	file(t, dir, "providers.yaml", strings.Replace(providers, "{openai: {",
		"{openai: {price: {"+price+"}, ", 1))
	const text = "models: [mistral, openai]\nproviders: providers.yaml\ntasks_per_type: 2\n" +
		"variants: [baseline]\nlimits: {calls: 3, turns: 4}\n"
	experiment := file(t, dir, "prices.yaml", text)
	store := filepath.Join(dir, "assay.db")
	env := map[string]string{"K": "sk-0123456789"}

	limited := file(t, dir, "limited.yaml", text+"budget: {usd: 5}\n")
	r := call(t, env, "run", limited, "--store", filepath.Join(dir, "none.db"))
	l.mu.Lock()
	asked := len(l.replies)
	l.mu.Unlock()
	if r.code != exitUsage || !strings.Contains(r.err, "model mistral has no price") ||
		!strings.Contains(r.err, "hint: write price:") || asked > 0 {
		t.Errorf("a budget without a price: exit code %d, requests: %d\n%s", r.code, asked, r.err)
	}

	says := func(what, text string, want ...string) {
		t.Helper()
		text = strings.Join(strings.Fields(text), " ")
		for _, want := range want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: want %q in\n%s", what, want, text)
			}
		}
		if noDollars.MatchString(text) {
			t.Errorf("%s: an unknown cost is shown as nothing\n%s", what, text)
		}
	}
	says("plan", must(t, env, "plan", experiment, "--store", store).out,
		"unknown", ", at least $", "; not all costs of mistral are known.")
	says("check", call(t, env, "check", experiment).out,
		", at least $", "; not all costs of mistral are known.")

	r = must(t, env, "run", experiment, "--store", store, "--display", "json")
	says("run", r.out, `"unpriced":["mistral"]`)
	says("report", must(t, nil, "report", "--store", store).out,
		"Some costs are unknown", "mistral: ")
	says("export", must(t, nil, "export", "--store", store).out, `"cost_usd":null`)
	csv := must(t, nil, "export", "--store", store, "--format", "csv", "--where", "model=mistral").out
	if strings.Contains(csv, ",0,0,0.") || strings.Count(csv, "\n") < 2 {
		t.Errorf("CSV has %s", csv)
	}
	for _, a := range attempts(t, store) {
		known := a.Model == "openai"
		if (a.CostUSD > 0) != known || (a.UnpricedTokens == 0) != known {
			t.Errorf("%s: $%v, %d tokens without a price", a.Model, a.CostUSD, a.UnpricedTokens)
		}
	}
}

// TestBudgetCountsThinkingBesideReplies checks that a budget stops by the billed amount.
func TestBudgetCountsThinkingBesideReplies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, providers := serveVendors(t, []string{"xai"})
	file(t, dir, "providers.yaml", strings.Replace(providers, "{xai: {",
		"{xai: {price: {"+price+"}, ", 1))
	experiment := file(t, dir, "budget.yaml", "models: [xai]\nproviders: providers.yaml\n"+
		"tasks_per_type: 10\nvariants: [baseline]\nlimits: {calls: 3, turns: 4}\nbudget: {usd: 3}\n")
	r := call(t, map[string]string{"K": "sk-0123456789"}, "run", experiment,
		"--store", filepath.Join(dir, "assay.db"))
	l.mu.Lock()
	defer l.mu.Unlock()
	spent := 0.0
	for _, cost := range l.costs["xai"] {
		usd, _ := cost.Float64()
		spent += usd
	}
	// Eight replies may be in flight, each of which costs at most 14 cents.
	if r.code != exitIncomplete || spent < 2 || spent > 3+8*.14 {
		t.Errorf("exit code %d after $%.2f of $3\n%s", r.code, spent, r.err)
	}
}

// TestUncertainUsageIsReported has an endpoint whose totals have 40 tokens too many.
func TestUncertainUsageIsReported(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, completion("odd", doc{
			"prompt_tokens": 100, "completion_tokens": 60, "total_tokens": 200,
			"completion_tokens_details": doc{"reasoning_tokens": 10},
		}, false))
	}))
	t.Cleanup(server.Close)
	file(t, dir, "providers.yaml", "providers:\n  p:\n    base_url: "+server.URL+"\n    keys: none\n"+
		"    models: {odd: {price: {input: 1, output: 10}}}\n")
	experiment := file(t, dir, "odd.yaml", "models: [odd]\nproviders: providers.yaml\n"+
		"tasks_per_type: 1\nvariants: [baseline]\nlimits: {calls: 1, turns: 2}\n")
	store := filepath.Join(dir, "assay.db")
	must(t, nil, "run", experiment, "--store", store)
	all := attempts(t, store)
	for _, a := range all {
		want := assay.Usage{
			InputTokens: 200, OutputTokens: 200, ReasoningTokens: 20, UncertainTokens: 80,
		}
		if a.Usage() != want || a.CostUSD != .0022 {
			t.Errorf("usage %+v, $%v; want %+v", a.Usage(), a.CostUSD, want)
		}
	}
	report := must(t, nil, "report", "--store", store).out
	for _, want := range []string{
		"Counts of tokens do not add up", "odd: 5 of 5 attempts, 400 tokens, at most $0.0044 too much",
	} {
		if !strings.Contains(strings.Join(strings.Fields(report), " "), want) || len(all) != 5 {
			t.Errorf("%d attempts, want 5 and %q in\n%s", len(all), want, report)
		}
	}
}
