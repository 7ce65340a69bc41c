package audit_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/audit"
	"github.com/assay-eval/assay/internal/store"
)

var (
	noon  = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	lanes = []string{"a/key-1/dep-1", "a/key-2/dep-1", "b/key-1/org/dep-2"}
)

// A bill is what the lane of a reply charges for it, as package lane computes it.
type bill struct {
	lane  string
	usage assay.Usage
}

func dollars(prices map[string]lane.Price, bills []bill) (usd float64, unpriced int) {
	for _, b := range bills {
		p, ok := prices[b.lane]
		usd = assay.RoundUSD(usd + p.Of(b.usage))
		if !ok {
			unpriced += b.usage.Total()
		}
	}
	return usd, unpriced
}

func drawPrices(t *rapid.T, names []string) map[string]lane.Price {
	dollars := rapid.Custom(func(t *rapid.T) float64 { return float64(rapid.IntRange(0, 30_000).Draw(t, "price")) / 1000 })
	prices := make(map[string]lane.Price)
	for _, name := range names {
		p := lane.Price{Input: dollars.Draw(t, "input"), Output: dollars.Draw(t, "output"), Stated: true}
		for _, part := range []**float64{&p.Cached, &p.CacheWrite} {
			if rapid.Bool().Draw(t, "has a cache") {
				*part = new(dollars.Draw(t, "cached"))
			}
		}
		prices[name] = p
	}
	return prices
}

func drawBills(t *rapid.T) (bills []bill) {
	for range rapid.IntRange(1, 4).Draw(t, "replies") {
		u := assay.Usage{
			InputTokens: rapid.IntRange(1, 100_000).Draw(t, "input"), OutputTokens: rapid.IntRange(1, 9_000).Draw(t, "output"),
		}
		u.CachedTokens = rapid.IntRange(0, u.InputTokens).Draw(t, "cached")
		u.CacheWriteTokens = rapid.IntRange(0, u.InputTokens-u.CachedTokens).Draw(t, "written")
		u.ReasoningTokens = rapid.IntRange(0, u.OutputTokens).Draw(t, "thinking")
		bills = append(bills, bill{rapid.SampledFrom(lanes).Draw(t, "lane"), u})
	}
	return bills
}

// attempt returns an attempt with these replies, and one more that failed and is not in the transcript.
func attempt(i int, prices map[string]lane.Price, bills []bill) (*assay.Attempt, *assay.Transcript) {
	trial := assay.NewTrial(assay.Cell{Model: "m", Variant: "baseline", Reliability: 1},
		assay.TaskRef{ID: assay.TaskID(fmt.Sprint("task_", i)), Digest: strings.Repeat("0", 32)}, assay.Setting{World: "own"}, 1, 0)
	a := &assay.Attempt{
		Trial: trial, Experiment: "e", Run: "r1", Program: "v1", FaultKind: assay.Network,
		StartedAt: noon, FinishedAt: noon.Add(time.Minute),
	}
	t := new(assay.Transcript)
	for i, b := range bills {
		a.Lane = b.lane
		u := b.usage
		usd, unpriced := dollars(prices, bills[i:i+1])
		u.UnpricedTokens = unpriced
		a.Spend = a.Spend.Add(assay.NewSpend(u, usd))
		if i < len(bills)-1 || len(bills) == 1 {
			t.Turns = append(t.Turns, assay.TurnRecord{Lane: b.lane, Usage: u})
		}
	}
	return a, t
}

func list(t *rapid.T, dir string, prices map[string]lane.Price) *plan.Prices {
	text, err := json.Marshal(prices) // JSON is YAML
	path := filepath.Join(dir, "prices.yaml")
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	l, failed := plan.LoadPrices(path)
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	return l
}

// TestPricesGiveTheirOwnDollars checks the law of prices: those of the run give each attempt the dollars
// that it has, others give what they would have given in the run, a second time changes nothing, and the
// prices of the run give back what was.
func TestPricesGiveTheirOwnDollars(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		db, err := store.Open(t.Context(), filepath.Join(dir, "assay.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		known := lanes[:rapid.IntRange(0, len(lanes)).Draw(t, "lanes with a price")]
		old, later := drawPrices(t, known), drawPrices(t, lanes)
		text, err := json.Marshal(map[string]any{"m": old})
		if err != nil {
			t.Fatal(err)
		}
		err = db.BeginRun(t.Context(), store.Experiment{
			Name: "e", Spec: json.RawMessage(`{"models":["m"]}`), Prices: text,
		}, store.Run{ID: "r1", Program: "v1", Host: "h", StartedAt: noon})
		if err != nil {
			t.Fatal(err)
		}
		var all [][]bill
		for i := range rapid.IntRange(1, 3).Draw(t, "attempts") {
			bills := drawBills(t)
			all = append(all, bills)
			a, transcript := attempt(i, old, bills)
			if err := db.Save(t.Context(), a, transcript); err != nil {
				t.Fatal(err)
			}
		}
		used := make(map[string]bool)
		for _, bills := range all {
			for _, b := range bills {
				used[b.lane] = true
			}
		}
		only := func(prices map[string]lane.Price) map[string]lane.Price {
			some := make(map[string]lane.Price)
			for name, p := range prices {
				if used[name] {
					some[name] = p
				}
			}
			return some
		}
		for _, step := range []struct {
			prices  map[string]lane.Price
			changes string
		}{{only(old), "none"}, {only(later), ""}, {only(later), "none"}, {only(old), ""}} {
			if len(step.prices) == 0 || step.changes == "" && len(step.prices) < len(used) {
				continue // a list that names no lane of an attempt leaves it as it is
			}
			sum, err := audit.Price(t.Context(), db, list(t, dir, step.prices), "v2", false)
			if err != nil {
				t.Fatal(err)
			}
			if step.changes == "none" && sum.Changed > 0 {
				t.Fatalf("%d costs differ: %+v", sum.Changed, sum)
			}
			by := make(map[string]lane.Price)
			for name := range used {
				if p, ok := step.prices[name]; ok {
					by[name] = p
				} else if p, ok := old[name]; ok {
					by[name] = p
				}
			}
			i := 0
			for a, err := range db.Attempts(t.Context(), store.Filter{All: true}) {
				if err != nil {
					t.Fatal(err)
				}
				usd, unpriced := dollars(by, all[i])
				if math.Abs(a.CostUSD-usd) > 1e-8 || a.UnpricedTokens != unpriced {
					t.Fatalf("$%v and %d tokens without a price, want $%v and %d", a.CostUSD, a.UnpricedTokens, usd, unpriced)
				}
				i++
			}
		}
	})
}

// TestPricesOfUsersAndConfidence checks the same law for what is stored without cached tokens: they are
// those that explain what was paid.
func TestPricesOfUsersAndConfidence(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := store.Open(t.Context(), filepath.Join(dir, "assay.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	old := lane.Price{Input: 2, Cached: new(.5), Output: 10}
	err = db.BeginRun(t.Context(), store.Experiment{
		Name: "e", Spec: json.RawMessage(`{"models":["m"],"user":"u"}`),
		Prices: json.RawMessage(`{"m":{"a/k/m":{"input":2,"cached":0.5,"output":10}},"u":{"a/k/u":{"input":2,"cached":0.5,"output":10}}}`),
	}, store.Run{ID: "r1", Program: "v1", Host: "h", StartedAt: noon})
	if err != nil {
		t.Fatal(err)
	}
	user := assay.Usage{InputTokens: 1000, CachedTokens: 700, OutputTokens: 50}
	asked := assay.Usage{InputTokens: 400, CachedTokens: 100, OutputTokens: 3}
	a, _ := attempt(0, nil, nil)
	a.Trial = assay.NewTrial(a.Cell, assay.TaskRef{ID: a.Task, Digest: a.TaskDigest},
		assay.Setting{World: "own", UserModel: "u"}, 1, 0)
	a.Lane, a.Spend = "a/k/m", assay.NewSpend(asked, old.Of(asked))
	a.ConfidenceInputTokens, a.ConfidenceOutputTokens, a.ConfidenceCostUSD = 400, 3, old.Of(asked)
	a.UserSpend = assay.UserSpend{UserRequests: 1, UserInputTokens: 1000, UserOutputTokens: 50, UserCostUSD: old.Of(user)}
	if err := db.Save(t.Context(), a, nil); err != nil {
		t.Fatal(err)
	}
	later := lane.Price{Input: 3, Cached: new(1.), Output: 20}
	for _, step := range []struct {
		text    string
		price   lane.Price
		changed int
	}{
		{"m: {input: 2, cached: 0.5, output: 10}\nu: {input: 2, cached: 0.5, output: 10}\n", old, 0},
		{"m: {input: 3, cached: 1, output: 20}\nu: {input: 3, cached: 1, output: 20}\n", later, 1},
		{"m: {input: 2, cached: 0.5, output: 10}\nu: {input: 2, cached: 0.5, output: 10}\n", old, 1},
	} {
		path := filepath.Join(dir, "prices.yaml")
		if err := os.WriteFile(path, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := plan.LoadPrices(path)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := audit.Price(t.Context(), db, list, "v2", false)
		if err != nil || sum.Changed != step.changed {
			t.Errorf("%v, %+v, want %d changes", err, sum, step.changed)
		}
		for a, err := range db.Attempts(t.Context(), store.Filter{All: true}) {
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(a.UserCostUSD-step.price.Of(user)) > 1e-8 || math.Abs(a.CostUSD-step.price.Of(asked)) > 1e-8 ||
				math.Abs(a.ConfidenceCostUSD-step.price.Of(asked)) > 1e-8 {
				t.Errorf("%+v %+v %v, want %+v", a.Spend, a.UserSpend, a.ConfidenceCostUSD, step.price)
			}
		}
	}
}
