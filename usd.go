package assay

import (
	"fmt"
	"math"
)

// RoundUSD rounds dollars to a billionth. Costs are rounded after each addition, so that they are
// whole billionths, whose sums are exact in any order: a float holds them up to four million
// dollars. Without rounding, the errors of many small costs add up.
func RoundUSD(x float64) float64 { return math.Round(x*1e9) / 1e9 }

// DollarsText spells dollars with some digits, such as "$1.20", and less than a cent with four. If more
// may have been billed, it is "at least $1.20", or "unknown" without any dollars.
func DollarsText(usd float64, digits int, atLeast bool) string {
	if usd > 0 && usd < 0.01 {
		digits = max(digits, 4)
	}
	text := fmt.Sprintf("$%.*f", digits, usd)
	switch {
	case !atLeast:
		return text
	case usd == 0:
		return "unknown"
	}
	return "at least " + text
}

// CostText spells dollars like [DollarsText]. If unpriced names models, or runs, with requests of unknown
// cost, the dollars are the cost of the others: "at least $1.20; not all costs of m are known", or "cost
// unknown" without others.
func CostText(usd float64, digits int, unpriced ...string) string {
	text := DollarsText(usd, digits, len(unpriced) > 0)
	switch {
	case len(unpriced) == 0:
		return text
	case usd == 0:
		return "cost " + text
	}
	return text + "; not all costs of " + Enumerate(unpriced, "and") + " are known"
}
