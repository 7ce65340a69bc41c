package simserver

import (
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
