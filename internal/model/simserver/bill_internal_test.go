package simserver

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
)

func TestBillIsExact(t *testing.T) {
	t.Parallel()
	var b Bill
	tariff := Tariff{Input: 37_500, Cached: 3_750, CacheWrite: 46_875, Output: 150_000}
	for range 1_000_000 {
		b.charge(tariff, assay.Usage{
			InputTokens: 7, CachedTokens: 3, CacheWriteTokens: 1, OutputTokens: 5, ReasoningTokens: 4,
		})
	}
	want := Bill{
		Requests: 1e6, InputTokens: 3e6, CachedTokens: 3e6, CacheWriteTokens: 1e6,
		OutputTokens: 5e6, ReasoningTokens: 4e6, MicroUSD: 112_500 + 11_250 + 46_875 + 750_000,
	}
	if diff := cmp.Diff(want, b); diff != "" {
		t.Errorf("bill (-want +got):\n%s", diff)
	}
}

// TestPrefixesAreCached checks that a longer conversation reads the earlier one from the cache.
func TestPrefixesAreCached(t *testing.T) {
	t.Parallel()
	s := &Server{prefixes: make(map[uint64]struct{})}
	s.cfg.Tariff = Tariff{Cached: 1, CacheWrite: 1}
	talk := assay.Request{Model: "m", Messages: []assay.Message{
		{Role: assay.User, Content: "one"}, {Role: assay.Assistant, Content: "two"},
	}}
	usage := assay.Usage{InputTokens: 1000}
	first := s.cached(talk, usage)
	again := s.cached(talk, usage)
	talk.Messages = append(talk.Messages, assay.Message{Role: assay.User, Content: "three"})
	longer := s.cached(talk, usage)
	talk.Model = "n"
	other := s.cached(talk, usage)
	got := [][2]int{}
	for _, u := range []assay.Usage{first, again, longer, other} {
		got = append(got, [2]int{u.CachedTokens, u.CacheWriteTokens})
	}
	partly := got[2][0]
	want := [][2]int{{0, 1000}, {1000, 0}, {partly, 1000 - partly}, {0, 1000}}
	if diff := cmp.Diff(want, got); diff != "" || partly < 400 || partly > 800 {
		t.Errorf("cached and written (-want +got):\n%s", diff)
	}
}

func TestParseTariff(t *testing.T) {
	t.Parallel()
	got, err := ParseTariff(" input=1.25, cached=0.125,output=10")
	if want := (Tariff{Input: 1_250_000, Cached: 125_000, Output: 10_000_000}); err != nil ||
		got != want {
		t.Errorf("ParseTariff() = %+v, %v, want %+v", got, err, want)
	}
	for text, want := range map[string]string{
		"1.25":             `tariff "1.25": "1.25" has no value`,
		"imput=1":          "did you mean input?",
		"input=1,input=2":  "input is set twice",
		"output=-1":        `output is "-1", not a number from 0 to 1000000`,
		"output=NaN":       `output is "NaN"`,
		"output=1e7":       `output is "1e7"`,
		"cache_write=free": `cache_write is "free"`,
	} {
		if _, err := ParseTariff(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseTariff(%q) fails with %v, want %q", text, err, want)
		}
	}
}
