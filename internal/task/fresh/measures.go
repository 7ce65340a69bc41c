package fresh

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// profiles is the number of pairs of limits that a library has. From one to the next the first
// limit gets looser and the second one stricter, so that no tool is better than another under all.
const profiles = 4

// A scale is the numbers of a measure in a library, from the strictest limit to the loosest.
type scale struct {
	measure
	strictest, step int
}

// A measure is a property of operations; words.yaml explains the fields.
type measure struct {
	Is, Limit string
	Least     bool
}

// drawScales draws the two measures of a library and their numbers.
func drawScales(dice *rand.Rand) (scales [2]scale) {
	all := words().Measures
	for i, k := range dice.Perm(len(all))[:len(scales)] {
		s := scale{all[k], 0, 4 + dice.IntN(6)}
		s.strictest = (profiles+2)*s.step + dice.IntN(40)
		scales[i] = s
	}
	return scales
}

// limit returns the number of the n-th limit, which is the strictest if n is 0.
func (s scale) limit(n int) int {
	if s.Least {
		return s.strictest - n*s.step
	}
	return s.strictest + n*s.step
}

// value draws a number that keeps to the n-th limit and looser ones only. It keeps to none if n is
// [profiles].
func (s scale) value(dice *rand.Rand, n int) int {
	within := dice.IntN(s.step)
	if n == 0 { // how far it is below the strictest limit does not matter
		within = dice.IntN(2 * s.step)
	}
	if s.Least {
		return s.limit(n) + within
	}
	return s.limit(n) - within
}

// keeps reports whether a number keeps to the n-th limit.
func (s scale) keeps(value, n int) bool {
	if s.Least {
		return value >= s.limit(n)
	}
	return value <= s.limit(n)
}

// A span is the profiles whose limits a tool keeps to: from low to high. It is empty if high is
// smaller.
type span struct{ low, high int }

// spansOf returns the spans of the three tools of an edge. The digits of its choice say which of
// them keeps to the limits of each profile; 0 stands for none. A tool that keeps to none lies
// between its neighbours.
func spansOf(choice string) (spans [3]span) {
	end := -1
	for i := range spans {
		spans[i] = span{end + 1, end}
		for profile, digit := range choice {
			if int(digit-'1') != i {
				continue
			}
			if spans[i].high < spans[i].low {
				spans[i].low = profile
			}
			spans[i].high, end = profile, profile
		}
	}
	return spans
}

// numbers draws the numbers of tools that do the same. A tool with a smaller first number than
// another has a larger second one, or the other way round if a measure is one of those that should
// be large.
func (g *Grammar) numbers(dice *rand.Rand, spans []span) [][2]int {
	drawn := make([][2]int, len(spans))
	for m, s := range g.scales {
		var values []int
		for _, span := range spans {
			n := span.low
			if m == 1 {
				n = profiles - 1 - span.high
			}
			values = append(values, s.value(dice, n))
		}
		slices.Sort(values)
		if s.Least != (m == 1) {
			slices.Reverse(values)
		}
		for i, v := range values {
			drawn[i][m] = v
		}
	}
	return drawn
}

// keeps reports whether an operation keeps to both limits of a profile.
func (g *Grammar) keeps(s operation, profile int) bool {
	return g.scales[0].keeps(s.numbers[0], profile) &&
		g.scales[1].keeps(s.numbers[1], profiles-1-profile)
}

// limits returns the numbers of a profile's limits.
func (g *Grammar) limits(profile int) [2]int {
	return [2]int{g.scales[0].limit(profile), g.scales[1].limit(profiles - 1 - profile)}
}

// measured fills the marks {a} and {b} with the values of both measures, in a random order.
func (g *Grammar) measured(dice *rand.Rand, text string, numbers [2]int) string {
	a, b := fmt.Sprint(numbers[0]), fmt.Sprint(numbers[1])
	first, second := marks{"n": a}.fill(g.scales[0].Is), marks{"n": b}.fill(g.scales[1].Is)
	if dice.IntN(2) == 0 {
		first, second = second, first
	}
	return marks{"a": first, "b": second}.fill(text)
}
