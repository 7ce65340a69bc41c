// Package stat holds the statistics of results: rates and their intervals, the
// comparison of two cells, what difference a design can detect, and what
// chance alone moves. It is pure mathematics and knows nothing of trials.
package stat

// Z95, Z99 and Z999 are the two-sided standard normal quantiles of 95, 99 and
// 99.9 %.
const (
	Z95  = 1.959963984540054
	Z99  = 2.5758293035489004
	Z999 = 3.2905267314918945
)

// An Interval is a range that holds a rate with some confidence.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// A Group is the trials of one task: Full of N fulfilled it. Trials of one task
// resemble each other, so that ten of them tell less than ten tasks.
type Group struct {
	Full, N int
}

// rate is Full in N; N must not be 0.
func (g Group) rate() float64 { return float64(g.Full) / float64(g.N) }

// A Task is the trials of one task in all its cells, counted in two ways. Two
// trials of it resemble each other wherever they are, and those of one repeat in
// different cells may share their luck.
type Task struct {
	Cells   []Group // one for each cell: its repeats
	Repeats []Group // one for each repeat: its trials in all cells
}

// observed drops the groups without trials.
func observed(groups []Group) []Group {
	var out []Group
	for _, g := range groups {
		if g.N > 0 {
			out = append(out, g)
		}
	}
	return out
}
