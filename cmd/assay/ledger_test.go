//go:build !race

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// tokens are the tokens that a reply really used. The parts do not overlap.
type tokens struct{ fresh, cached, written, visible, thinking int64 }

func (n tokens) in() int64    { return n.fresh + n.cached + n.written }
func (n tokens) out() int64   { return n.visible + n.thinking }
func (n tokens) total() int64 { return n.in() + n.out() }

type doc = map[string]any

// A vendor has its own way to report the tokens of a reply.
type vendor struct {
	protocol string
	// caches, writes and thinks are true for the kinds of tokens that the vendor has.
	caches, writes, thinks bool
	usage                  func(n tokens) doc
	// body wraps a usage in a reply. If it is nil, replies have the shape of the protocol.
	body func(model string, use doc, call bool) string
}

// vendors have the shapes that endpoints sent in 2025 and 2026.
var vendors = map[string]vendor{
	"openai": {"openai", true, false, true, func(n tokens) doc {
		return doc{
			"prompt_tokens": n.in(), "completion_tokens": n.out(), "total_tokens": n.total(),
			"prompt_tokens_details": doc{"cached_tokens": n.cached, "audio_tokens": 0},
			"completion_tokens_details": doc{
				"reasoning_tokens": n.thinking, "audio_tokens": 0,
				"accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
			},
		}
	}, nil},
	"azure": {"azure", true, false, true, func(n tokens) doc {
		return doc{ // without audio
			"prompt_tokens": n.in(), "completion_tokens": n.out(), "total_tokens": n.total(),
			"prompt_tokens_details":     doc{"cached_tokens": n.cached},
			"completion_tokens_details": doc{"reasoning_tokens": n.thinking},
		}
	}, nil},
	"xai":        {"openai", true, false, true, xai, nil},
	"xai-stream": {"openai", true, false, true, xai, chunks("")},
	"gemini-compatible": {"openai", false, false, true, func(n tokens) doc {
		use := doc{"prompt_tokens": n.in(), "total_tokens": n.total()}
		if n.visible > 0 {
			use["completion_tokens"] = n.visible
		}
		return use
	}, nil},
	"gemini": {"gemini", true, false, true, func(n tokens) doc {
		use := doc{"promptTokenCount": n.in(), "totalTokenCount": n.total()}
		for name, count := range map[string]int64{
			"cachedContentTokenCount": n.cached, "candidatesTokenCount": n.visible,
			"thoughtsTokenCount": n.thinking,
		} {
			if count > 0 {
				use[name] = count
			}
		}
		return use
	}, nil},
	"anthropic":        {"anthropic", true, true, true, claude, nil},
	"anthropic-stream": {"anthropic", true, true, true, claude, claudeEvents},
	"anthropic-compatible": {"openai", false, false, true, func(n tokens) doc {
		return doc{
			"prompt_tokens": n.in(), "completion_tokens": n.out(), "total_tokens": n.total(),
			"prompt_tokens_details": nil, "completion_tokens_details": nil,
		}
	}, nil},
	"moonshot":        {"openai", true, false, true, moonshot, nil},
	"moonshot-stream": {"openai", true, false, true, moonshot, chunks("choice")},
	"deepseek": {"openai", true, false, true, func(n tokens) doc {
		return doc{
			"prompt_tokens": n.in(), "completion_tokens": n.out(), "total_tokens": n.total(),
			"prompt_cache_hit_tokens": n.cached, "prompt_cache_miss_tokens": n.fresh,
			"completion_tokens_details": doc{"reasoning_tokens": n.thinking},
		}
	}, nil},
	"openrouter":        {"openai", true, true, true, openRouter, nil},
	"openrouter-stream": {"openai", true, true, true, openRouter, chunks("")},
	"litellm": {"openai", true, true, true, func(n tokens) doc {
		return doc{
			"prompt_tokens": n.in(), "completion_tokens": n.out(), "total_tokens": n.total(),
			"prompt_tokens_details": doc{
				"cached_tokens": n.cached, "cache_creation_tokens": n.written, "text_tokens": nil,
			},
			"cache_read_input_tokens": n.cached, "cache_creation_input_tokens": n.written,
			"completion_tokens_details": doc{"reasoning_tokens": n.thinking},
		}
	}, nil},
	"mistral": {"openai", false, false, false, plainUse, nil},
	"groq": {"openai", true, false, true, func(n tokens) doc {
		use := doc{"queue_time": 0.05, "completion_time": 0.4, "total_time": 0.45}
		maps.Copy(use, plainUse(n))
		use["prompt_tokens_details"] = doc{"cached_tokens": n.cached}
		use["completion_tokens_details"] = doc{"reasoning_tokens": n.thinking}
		return use
	}, nil},
	"groq-stream": {"openai", false, false, false, plainUse, chunks("x_groq")},
	"together": {"openai", true, false, true, func(n tokens) doc {
		use := plainUse(n)
		use["cached_tokens"] = n.cached
		return use
	}, nil},
	"fireworks": {"openai", true, false, true, func(n tokens) doc {
		use := plainUse(n)
		use["prompt_tokens_details"] = doc{"cached_tokens": n.cached}
		return use
	}, nil},
	"responses":        {"responses", true, true, true, responseUse, nil},
	"responses-stream": {"responses", true, true, true, responseUse, responseEvents},
}

func plainUse(n tokens) doc {
	return doc{
		"prompt_tokens": n.in(), "completion_tokens": n.out(), "total_tokens": n.total(),
	}
}

func xai(n tokens) doc {
	return doc{
		"prompt_tokens": n.in(), "completion_tokens": n.visible, "total_tokens": n.total(),
		"prompt_tokens_details": doc{
			"text_tokens": n.in(), "audio_tokens": 0, "image_tokens": 0, "cached_tokens": n.cached,
		},
		"completion_tokens_details": doc{
			"reasoning_tokens": n.thinking, "audio_tokens": 0, "accepted_prediction_tokens": 0,
			"rejected_prediction_tokens": 0,
		},
		"num_sources_used": 0,
	}
}

func moonshot(n tokens) doc {
	use := plainUse(n)
	if n.cached > 0 {
		use["cached_tokens"] = n.cached
	}
	return use
}

func openRouter(n tokens) doc {
	return doc{
		"prompt_tokens": n.in(), "completion_tokens": n.out(), "total_tokens": n.total(),
		"prompt_tokens_details": doc{
			"cached_tokens": n.cached, "cache_write_tokens": n.written, "audio_tokens": 0,
		},
		"completion_tokens_details": doc{"reasoning_tokens": n.thinking, "image_tokens": 0},
		"cost":                      0.95, "is_byok": false,
		"cost_details": doc{"upstream_inference_cost": nil},
	}
}

func claude(n tokens) doc {
	return doc{
		"input_tokens": n.fresh, "cache_creation_input_tokens": n.written,
		"cache_read_input_tokens": n.cached, "output_tokens": n.out(), "service_tier": "standard",
		"cache_creation": doc{
			"ephemeral_5m_input_tokens": n.written, "ephemeral_1h_input_tokens": 0,
		},
	}
}

func responseUse(n tokens) doc {
	return doc{
		"input_tokens": n.in(), "output_tokens": n.out(), "total_tokens": n.total(),
		"input_tokens_details": doc{
			"cached_tokens": n.cached, "cache_write_tokens": n.written,
		},
		"output_tokens_details": doc{"reasoning_tokens": n.thinking},
	}
}

// A ledger serves all vendors, each below a separate path, and remembers the costs of replies.
type ledger struct {
	mu      sync.Mutex
	random  *rand.Rand
	replies map[string]int
	// costs has the cost of each conversation of a vendor, by its first message.
	costs map[string]map[string]*big.Rat
}

func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	v := vendors[name]
	l.mu.Lock()
	n, call := l.draw(v), l.random.IntN(2) == 0
	l.replies[name]++
	if l.costs[name] == nil {
		l.costs[name] = make(map[string]*big.Rat)
	}
	key := firstMessage(b)
	l.costs[name][key] = new(big.Rat).Add(priceOf(n), cmp.Or(l.costs[name][key], new(big.Rat)))
	l.mu.Unlock()

	body := v.body
	if body == nil {
		body = bodies[v.protocol]
	}
	_, _ = io.WriteString(w, body(name, v.usage(n), call))
}

// draw returns random counts. A fifth of the counts is 0.
func (l *ledger) draw(v vendor) (n tokens) {
	count := func(has bool, most int64) int64 {
		if !has || l.random.IntN(5) == 0 {
			return 0
		}
		return 1 + l.random.Int64N(most)
	}
	return tokens{
		fresh: 1 + l.random.Int64N(20_000), visible: 1 + count(true, 1500),
		cached: count(v.caches, 90_000), written: count(v.writes, 30_000),
		thinking: count(v.thinks, 8000),
	}
}

// firstMessage returns the first message of a user in a request of any protocol.
func firstMessage(body []byte) string {
	var req struct{ Messages, Contents, Input []json.RawMessage }
	_ = json.Unmarshal(body, &req)
	for _, m := range slices.Concat(req.Messages, req.Contents, req.Input) {
		if bytes.Contains(m, []byte(`"role":"user"`)) {
			// Anthropic's mark moves with the conversation.
			return strings.ReplaceAll(string(m), `,"cache_control":{"type":"ephemeral"}`, "")
		}
	}
	return ""
}

// The prices in the test's price list, in dollars per million tokens.
const price = "input: 1.25, cached: 0.13, cache_write: 1.5625, output: 10.1"

func priceOf(n tokens) *big.Rat {
	sum := new(big.Rat)
	for _, part := range []struct {
		tokens int64
		price  string
	}{{n.fresh, "1.25"}, {n.cached, "0.13"}, {n.written, "1.5625"}, {n.out(), "10.1"}} {
		each, _ := new(big.Rat).SetString(part.price)
		sum.Add(sum, each.Mul(each, big.NewRat(part.tokens, 1_000_000)))
	}
	return sum
}

// serveVendors starts a server of all vendors. It returns the providers file for some of them.
func serveVendors(t *testing.T, names []string) (*ledger, string) {
	t.Helper()
	l := &ledger{
		random:  rand.New(rand.NewPCG(1, 2)),
		replies: make(map[string]int), costs: make(map[string]map[string]*big.Rat),
	}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	var providers strings.Builder
	providers.WriteString("providers:\n")
	for _, name := range names {
		fmt.Fprintf(&providers, "  at-%s:\n    protocol: %s\n    base_url: %s/%[1]s/api\n"+
			"    keys: [K]\n    models: {%[1]s: {limits: {concurrency: 8}}}\n",
			name, vendors[name].protocol, server.URL)
		if vendors[name].protocol == "azure" {
			providers.WriteString("    api_version: 2024-10-21\n")
		}
	}
	return l, providers.String()
}

// TestExportedCostsAreTheVendors lets vendors answer at random, each in its own shape, and compares
// the exported cost of every attempt with the exact price of the tokens really used.
func TestExportedCostsAreTheVendors(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a hundred replies of each vendor")
	}
	t.Parallel()
	dir := t.TempDir()
	names := slices.Sorted(maps.Keys(vendors))
	l, providers := serveVendors(t, names)
	file(t, dir, "providers.yaml", "prices: prices.yaml\n"+providers)
	var prices strings.Builder
	for _, name := range names {
		fmt.Fprintf(&prices, "%s: {%s}\n", name, price)
	}
	file(t, dir, "prices.yaml", prices.String())
	experiment := file(t, dir, "ledger.yaml", "models: ["+strings.Join(names, ", ")+"]\n"+
		"providers: providers.yaml\ntasks_per_type: 7\nvariants: [baseline]\n"+
		"limits: {calls: 3, turns: 4}\n")
	store := filepath.Join(dir, "assay.db")
	r := must(t, map[string]string{"K": "sk-0123456789"},
		"run", experiment, "--store", store, "--display", "json")

	printed := printedCosts(t, exportedBytes(t, store))
	l.mu.Lock()
	defer l.mu.Unlock()
	micro := big.NewRat(1, 1_000_000)
	bill := new(big.Rat)
	for _, name := range names {
		want := slices.SortedFunc(maps.Values(l.costs[name]), (*big.Rat).Cmp)
		got := printed[name]
		if l.replies[name] < 100 || len(got) != len(want) {
			t.Errorf("%s: %d replies, %d attempts, want at least 100 and %d", name,
				l.replies[name], len(got), len(want))
			continue
		}
		for i := range want {
			bill.Add(bill, want[i])
			if d := new(big.Rat).Sub(got[i], want[i]); d.Abs(d).Cmp(micro) > 0 {
				t.Errorf("%s: an attempt costs %s, want %s", name, got[i].FloatString(9),
					want[i].FloatString(9))
				break
			}
		}
	}
	total, _ := lastEvent(t, r.out)["cost_usd"].(float64)
	if sum, _ := bill.Float64(); total < sum-1e-4 || total > sum+1e-4 {
		t.Errorf("the run cost %v, want %v", total, sum)
	}
}

// printedCosts returns the costs of the attempts of each model as an export spells them, cheapest
// first. An attempt with uncertain tokens is an error.
func printedCosts(t *testing.T, exported []byte) map[string][]*big.Rat {
	t.Helper()
	costs := make(map[string][]*big.Rat)
	for line := range bytes.Lines(exported) {
		var a struct {
			Model     string
			Cost      json.Number `json:"cost_usd"`
			Uncertain int         `json:"uncertain_tokens"`
			Unpriced  int         `json:"unpriced_tokens"`
		}
		decode(t, string(line), &a)
		cost, ok := new(big.Rat).SetString(a.Cost.String())
		if !ok || a.Uncertain > 0 || a.Unpriced > 0 {
			t.Fatalf("the export has %s", line)
		}
		costs[a.Model] = append(costs[a.Model], cost)
	}
	for _, all := range costs {
		slices.SortFunc(all, (*big.Rat).Cmp)
	}
	return costs
}
