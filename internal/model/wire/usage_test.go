package wire_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// TestUsageExplainsCounts has a case for each law and for counts that no law explains. Cases with a
// name were reported by its endpoint.
func TestUsageExplainsCounts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		in   wire.Tokens
		want assay.Usage
	}{
		{
			"OpenAI",
			wire.Tokens{
				Input: 1000, Output: 300, Total: 1300, Cached: 600, Reasoning: 200, Details: true,
			},
			assay.Usage{
				InputTokens: 1000, OutputTokens: 300, CachedTokens: 600, ReasoningTokens: 200,
			},
		},
		{
			"xAI", // it cost 0.0232856 at 1.25, 0.2 for cached and 2.5
			wire.Tokens{
				Input: 10120, Output: 1499, Total: 14428, Cached: 128, Reasoning: 2809, Details: true,
			},
			assay.Usage{
				InputTokens: 10120, OutputTokens: 4308, CachedTokens: 128, ReasoningTokens: 2809,
			},
		},
		{
			"xAI, nearly all of it thinking",
			wire.Tokens{Input: 12, Output: 2, Total: 331, Reasoning: 317, Details: true},
			assay.Usage{InputTokens: 12, OutputTokens: 319, ReasoningTokens: 317},
		},
		{
			"Gemini by its compatible address",
			wire.Tokens{Input: 20, Output: 198, Total: 623},
			assay.Usage{InputTokens: 20, OutputTokens: 603, ReasoningTokens: 405},
		},
		{
			"Gemini by a proxy, cut off while it thinks",
			wire.Tokens{Input: 21, Total: 81, Reasoning: 60, Details: true},
			assay.Usage{InputTokens: 21, OutputTokens: 60, ReasoningTokens: 60},
		},
		{
			"LiteLLM",
			wire.Tokens{
				Input: 98805, Output: 5120, Total: 103925, Cached: 66360, CacheWrite: 32435,
				Reasoning: 1710, Details: true,
			},
			assay.Usage{
				InputTokens: 98805, OutputTokens: 5120, CachedTokens: 66360,
				CacheWriteTokens: 32435, ReasoningTokens: 1710,
			},
		},
		{
			"caches beside the input",
			wire.Tokens{Input: 10, Output: 50, Total: 1000, Cached: 900, CacheWrite: 40},
			assay.Usage{
				InputTokens: 950, OutputTokens: 50, CachedTokens: 900, CacheWriteTokens: 40,
			},
		},
		{
			"small caches and thinking beside",
			wire.Tokens{
				Input: 100, Output: 50, Total: 220, Cached: 60, CacheWrite: 0, Reasoning: 10,
				Details: true,
			},
			assay.Usage{
				InputTokens: 160, OutputTokens: 60, CachedTokens: 60, ReasoningTokens: 10,
			},
		},
		{
			"parts larger than the whole, without a total",
			wire.Tokens{Input: 10, Output: 5, Cached: 90, Reasoning: 20, Details: true},
			assay.Usage{
				InputTokens: 100, OutputTokens: 25, CachedTokens: 90, ReasoningTokens: 20,
			},
		},
		{
			"an unexplained rest",
			wire.Tokens{Input: 100, Output: 50, Total: 190, Reasoning: 10, Details: true},
			assay.Usage{
				InputTokens: 100, OutputTokens: 90, ReasoningTokens: 10, UncertainTokens: 40,
			},
		},
		{
			"a total below its parts",
			wire.Tokens{Input: 100, Output: 50, Total: 120},
			assay.Usage{InputTokens: 100, OutputTokens: 50, UncertainTokens: 30},
		},
		{
			"a total that leaves no room for the thinking",
			wire.Tokens{Input: 100, Output: 50, Total: 150, Reasoning: 70, Details: true},
			assay.Usage{
				InputTokens: 100, OutputTokens: 120, ReasoningTokens: 70, UncertainTokens: 70,
			},
		},
	} {
		if got := tc.in.Usage(); got != tc.want {
			t.Errorf("%s: %+v is\n%+v, want\n%+v", tc.name, tc.in, got, tc.want)
		}
	}
}

// TestUsageIsNeverTakenLow checks that no part is larger than its whole, that all reported tokens
// are counted, and that a difference from the total is marked.
func TestUsageIsNeverTakenLow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Map(rapid.IntRange(0, 12), func(n int) wire.Count { return wire.Count(n) })
		in := wire.Tokens{
			Input: n.Draw(t, "in"), Output: n.Draw(t, "out"), Total: 2 * n.Draw(t, "total"),
			Cached: n.Draw(t, "read"), CacheWrite: n.Draw(t, "written"),
		}
		if in.Details = rapid.Bool().Draw(t, "details"); in.Details {
			in.Reasoning = n.Draw(t, "reasoning")
		}
		u := in.Usage()
		switch {
		case u.CachedTokens+u.CacheWriteTokens > u.InputTokens, u.ReasoningTokens > u.OutputTokens:
			t.Errorf("%+v: a part is larger than the whole: %+v", in, u)
		case u.InputTokens < int(in.Input), u.OutputTokens < int(in.Output), u.Total() < int(in.Total),
			u.CachedTokens != int(in.Cached), u.CacheWriteTokens != int(in.CacheWrite),
			u.ReasoningTokens < int(in.Reasoning):
			t.Errorf("%+v is taken low: %+v", in, u)
		case in.Total > 0 && (u.Total() != int(in.Total)) && u.UncertainTokens == 0:
			t.Errorf("%+v does not add up, without a mark: %+v", in, u)
		}
	})
}
