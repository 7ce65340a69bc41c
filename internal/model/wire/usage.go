package wire

import (
	"math"
	"strconv"

	"github.com/assay-eval/assay"
)

// A Count is a number of tokens. Some endpoints send fractions or texts, and odd ones negative
// numbers. A value that is not a number counts as 0.
type Count int

// UnmarshalJSON implements [json.Unmarshaler]. It never fails.
func (c *Count) UnmarshalJSON(raw []byte) error {
	f, _ := strconv.ParseFloat(TextOf(raw), 64) // on error 0 or infinite
	if *c = 0; f > 0 {
		*c = Count(min(f, math.MaxInt32))
	}
	return nil
}

// Tokens are the counts of a reply as its endpoint reports them. Endpoints that count a prompt or
// a reply in several parts are added up before.
type Tokens struct {
	Input, Output Count
	// Total is 0 if the endpoint does not report it.
	Total Count
	// Cached and CacheWrite are tokens of the prompt that were read from a cache and written to it,
	// and Reasoning are tokens of thinking.
	Cached, CacheWrite, Reasoning Count
	// Details is true if the endpoint states how much of the reply was thinking, even if it is 0.
	Details bool
}

// Usage returns the usage that explains the counts. It never counts less than was reported.
//
// Endpoints differ in whether Input includes Cached and CacheWrite, and Output includes Reasoning.
// A part that is larger than the whole lies beside it. Otherwise the total decides:
//
//  1. OpenAI: total = input + output. Parts are included.
//     1000 + 300 = 1300, 200 of them reasoning: 1000 and 300.
//  2. xAI: total = input + output + reasoning. Reasoning is beside the output.
//     10120 + 1499 + 2809 = 14428: 10120 and 4308.
//  3. Gateways of Anthropic: total = input + output + cached + cache write. Caches are beside
//     the input. 10 + 50 + 900 + 40 = 1000: 950 and 50.
//  4. Both of the latter at once.
//  5. Gemini's OpenAI-compatible address: a total larger than input + output, without a word
//     about reasoning. The rest is thinking. 20 + 198 in a total of 623: 20 and 603.
//
// If no law explains the total, the dearest reading is taken and UncertainTokens has the
// difference between total and parts.
func (t Tokens) Usage() assay.Usage {
	input, output := t.Input, t.Output
	caches := t.Cached + t.CacheWrite
	cachesBeside, thinkingBeside := caches > t.Input, t.Reasoning > t.Output
	if cachesBeside {
		input += caches
	}
	if thinkingBeside {
		output += t.Reasoning
	}
	rest, reasoning, uncertain := t.Total-input-output, t.Reasoning, Count(0)
	switch {
	case t.Total == 0, rest == 0:
	case !thinkingBeside && rest == t.Reasoning:
		output += rest
	case !cachesBeside && rest == caches:
		input += rest
	case !thinkingBeside && !cachesBeside && rest == t.Reasoning+caches:
		input, output = t.Input+caches, t.Output+t.Reasoning
	case rest > 0 && !t.Details:
		output += rest
		reasoning = rest
	default:
		output += max(rest, 0)
		uncertain = max(rest, -rest)
	}
	return assay.Usage{
		InputTokens: int(input), OutputTokens: int(output), ReasoningTokens: int(reasoning),
		CachedTokens: int(t.Cached), CacheWriteTokens: int(t.CacheWrite),
		UncertainTokens: int(uncertain),
	}
}
