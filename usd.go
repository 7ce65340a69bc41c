package assay

import "math"

// RoundUSD rounds dollars to a billionth. Costs are rounded after each addition, so that they are
// whole billionths, whose sums are exact in any order: a float holds them up to four million
// dollars. Without rounding, the errors of many small costs add up.
func RoundUSD(x float64) float64 { return math.Round(x*1e9) / 1e9 }
