// Package stat provides the statistics of results: rates with intervals, paired
// comparisons of two cells, the smallest difference that a design can detect,
// and the variation that chance alone causes. It is pure mathematics and does not know trials.
package stat

// Z95, Z99 and Z999 are the two-sided standard normal quantiles of 95, 99 and
// 99.9 %.
const (
	Z95  = 1.959963984540054
	Z99  = 2.5758293035489004
	Z999 = 3.2905267314918945
)

// An Interval is a range that contains a rate with some confidence.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// A Group counts the trials of one task: Full of N were fulfilled. Trials of
// the same task resemble each other, so ten of them are worth less than one
// trial each of ten tasks.
type Group struct {
	Full, N int
}

// rate returns Full/N; N must not be 0.
func (g Group) rate() float64 { return float64(g.Full) / float64(g.N) }

// A Task counts the trials of one task over all its cells, in two ways. Two
// trials of a task resemble each other in whichever cells they are. In
// addition, trials of the same repeat in different cells may share their luck.
//
// Tasks that need the same sequence of tools have the same Sequence and are
// alike.
type Task struct {
	Sequence int
	Cells    []Group // one per cell, with its repeats
	Repeats  []Group // one per repeat, with its trials in all cells
}

// observed returns the groups that have trials.
func observed(groups []Group) []Group {
	var out []Group
	for _, g := range groups {
		if g.N > 0 {
			out = append(out, g)
		}
	}
	return out
}
