package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/lane"
)

const pricesText = `# dollars per million tokens
gpt-5: {input: 1.25, cached: 0.125, output: 10}
claude-4.5:
  input: 3
  cached: 0.3
  cache_write: 3.75
  output: 15
org/local: {input: 0, output: 0}
`

func TestPrices(t *testing.T) {
	t.Parallel()
	p, err := plan.LoadPrices(write(t, "prices.yaml", pricesText))
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		model, deployment string
		want              lane.Price
	}{
		{"gpt-5", "org/local", lane.Price{Input: 1.25, Cached: new(0.125), Output: 10, Stated: true}},
		{"mine", "claude-4.5", lane.Price{
			Input: 3, Cached: new(0.3), CacheWrite: new(3.75), Output: 15, Stated: true,
		}},
		{"org/local", "x", lane.Price{Stated: true}},
	} {
		got, err := p.Of(plan.Lane{Model: tc.model, Deployment: tc.deployment})
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s (-want +got): %v\n%s", tc.model, err, diff)
		}
	}
	_, err = p.Of(plan.Lane{Model: "gpt5", Deployment: "x"})
	if err == nil || !strings.Contains(err.Error(),
		"prices.yaml:2:1: there is no price for model gpt5\n  2 | gpt-5: {input: 1.25,") {
		t.Errorf("Of() error = %v", err)
	}
}

// A price that is null is none, which is not a price of 0.
func TestNullPricesAreUnknown(t *testing.T) {
	t.Parallel()
	for _, null := range []string{"", " null", " ~"} {
		p, err := plan.LoadPrices(write(t, "prices.yaml", "a:"+null+"\nb: {input: 1, output: 2}\n"))
		if err != nil {
			t.Fatalf("a:%s: %v", null, err)
		}
		_, err = p.Of(plan.Lane{Model: "a"})
		if err == nil || !strings.Contains(err.Error(), "there is no price for model a") ||
			strings.Contains(err.Error(), "input: 0") {
			t.Errorf("a:%s: %v", null, err)
		}
		providers, err := plan.LoadProviders(write(t, "p.yaml", "providers:\n  x:\n    base_url: http://x/v1\n"+
			"    keys: none\n    models:\n      m:\n        price:"+null+"\n"), env(nil))
		if err != nil {
			t.Fatalf("price:%s: %v", null, err)
		}
		if price := providers.Lanes("m")[0].Serve.Price; price != (lane.Price{}) {
			t.Errorf("price:%s is %+v", null, price)
		}
	}
}

func TestWrongPrices(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ old, new, want string }{
		{"cached: 0.125", "cache: 0.125", "2:22: unknown field \"cache\""},
		{"cached: 0.125", "cachd: 0.125", "hint: did you mean cached?"},
		{"cached: 0.3", "cached: -0.3", "5:11: price.cached is -0.3, want 0 to 1000000"},
		{"input: 3", "input: .inf", "the number is not finite"},
		{"input: 3", "input: cheap", "4:10: wrong type: found text, want a number"},
		{", output: 10", "", "2:1: the price of gpt-5 has no output"},
		{", output: 10", ", output: null", "hint: write output: in dollars per million tokens, or remove the price if you do not know it"},
		{pricesText, "", "file is empty"},
		{pricesText, "- gpt-5\n", "the file must be a mapping"},
	} {
		_, err := plan.LoadPrices(write(t, "prices.yaml", strings.Replace(pricesText, tc.old, tc.new, 1)))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error\n%v\nwant it to contain %q", tc.new, err, tc.want)
		}
	}
	if _, err := plan.LoadPrices("no.yaml"); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("LoadPrices() error = %v", err)
	}
}

// TestPriceDoubts checks which prices are taken for prices of one token.
func TestPriceDoubts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		price lane.Price
		want  []string
	}{
		{lane.Price{Input: 0.00000027, Output: 1.1e-6}, []string{
			"input: 0.00000027, in dollars per million tokens; if that is the price of one token, write input: 0.27",
			"output: 0.0000011, in dollars per million tokens; if that is the price of one token, write output: 1.1",
		}},
		{lane.Price{Input: 1.25, Output: 10, Cached: new(1.25e-7)}, []string{"write cached: 0.125"}},
		{lane.Price{Input: 0.00015, Output: 3}, []string{"the price of one token, write input: 150"}},
		{lane.Price{Input: 0.0005, Output: 3}, []string{"the price of a thousand tokens, write input: 0.5"}},
		{lane.Price{Input: 0.001, Output: 0.01}, nil},
		{lane.Price{Stated: true, Cached: new(float64)}, nil},
		{lane.Price{}, nil},
	} {
		got := plan.Lane{Model: "m", Serve: plan.Serve{Price: tc.price}}.PriceDoubts()
		if len(got) != len(tc.want) {
			t.Errorf("%+v: %q, want %q", tc.price, got, tc.want)
			continue
		}
		for i, want := range tc.want {
			if !strings.Contains(got[i], want) || !strings.HasPrefix(got[i], "the price of m is ") {
				t.Errorf("%+v: %q, want %q", tc.price, got[i], want)
			}
		}
	}
}
