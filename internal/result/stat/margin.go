package stat

// The levels of both tests of [Noninferior], one-sided.
const (
	// PassLevel is the largest share of passes among sides that are worse by just the margin.
	PassLevel = .05
	// FailLevel is the largest share of failures among equal sides. It is half of the 1 % that a
	// gate may promise, so that the promise also holds in a sample of 1,000.
	FailLevel = .005
)

// A Noninferiority is the verdict on whether side B is worse than side A by less than a margin.
// Differences are B minus A, in shares of 1.
type Noninferiority struct {
	Margin float64 `json:"margin"`
	// Lower and Upper are bounds of the difference: it is below Lower in at most 5 % of such data,
	// and above Upper in at most .5 %.
	Lower float64 `json:"lower_95"`
	Upper float64 `json:"upper_995"`
	// PPass is the p-value for a side B that is worse by the margin, and PFail that for a side B
	// that is not worse at all. Both are one-sided.
	PPass float64 `json:"p_pass"`
	PFail float64 `json:"p_fail"`
	// Finds is the share of data like these in which a side B fails that is worse by the margin,
	// and Passing the share in which an equal one passes; see [SizeOf].
	Finds   float64 `json:"finds"`
	Passing float64 `json:"passing"`
}

// Passes reports whether side B is shown to be worse by less than the margin. The level is
// [PassLevel], or less at an early look.
func (n Noninferiority) Passes(level float64) bool { return n.PPass <= level }

// Fails reports whether side B is shown to be worse. The level is [FailLevel], or less at an early
// look. A side that passes is not a failure, even if it fails: the margin allows for it.
func (n Noninferiority) Fails(level float64) bool { return n.PFail <= level }

// Noninferior tests whether side B is worse than side A by less than a margin, over the tasks that
// both tried. It has the weights, the standard error and the degrees of freedom of [Compare]. The
// test against the margin is the test of whether a confidence interval lies above it (Piaggio et
// al., "Reporting of noninferiority and equivalence randomized trials", JAMA 308, 2012).
//
// In simulations (40 to 250 tasks, three trials a side, rates of .5 and .9), at most .6 % of equal
// sides fail, and 4.6 to 6.5 % of sides that are worse by just the margin pass.
//
// With fewer than two clusters there is no verdict: the bounds are -1 and 1.
func Noninferior(tasks []Matched, bySequence bool, margin float64) Noninferiority {
	n := Noninferiority{Margin: margin, Lower: -1, Upper: 1, PPass: 1, PFail: 1}
	x := contrastOf(tasks, bySequence)
	if x.counts.Clusters < 2 {
		return n
	}
	e := x.estimate(x.typical())
	n.Lower = max(-1, e.mean-studentQuantile(1-PassLevel, e.df)*e.se)
	n.Upper = min(1, e.mean+studentQuantile(1-FailLevel, e.df)*e.se)
	n.PPass = studentCDF(-(e.mean+margin)/e.se, e.df)
	n.PFail = studentCDF(e.mean/e.se, e.df)
	size := SizeOf(tasks, bySequence)
	n.Finds, n.Passing = size.Fails(margin), size.Passes(margin)
	return n
}

// An Equivalence is the verdict on whether two sides differ by less than a margin. Differences are
// B minus A, in shares of 1.
type Equivalence struct {
	Margin float64 `json:"margin"`
	// Lower and Upper are the bounds of the 90 % interval, which lies within the margin if the
	// sides are equivalent.
	Lower float64 `json:"lower_90"`
	Upper float64 `json:"upper_90"`
	// P is the p-value for sides that differ by just the margin.
	P float64 `json:"p"`
	// Passing is the share of data like these in which equal sides are shown to be equivalent.
	Passing float64 `json:"passing"`
}

// Holds reports whether the sides are shown to differ by less than the margin. At most 5 % of sides
// that differ by the margin pass.
func (e Equivalence) Holds() bool { return e.P <= PassLevel }

// Equivalent tests whether two sides differ by less than a margin, over the tasks that both tried.
// It makes the test of [Noninferior] in both directions, and its p-value is the larger of the two
// (Schuirmann, "A comparison of the two one-sided tests procedure and the power approach for
// assessing the equivalence of average bioavailability", Journal of Pharmacokinetics and
// Biopharmaceutics 15, 1987).
func Equivalent(tasks []Matched, bySequence bool, margin float64) Equivalence {
	down := Noninferior(tasks, bySequence, margin)
	up := Noninferior(exchanged(tasks), bySequence, margin)
	return Equivalence{
		Margin: margin, Lower: down.Lower, Upper: -up.Lower, P: max(down.PPass, up.PPass),
		Passing: max(0, down.Passing+up.Passing-1),
	}
}

// exchanged returns the tasks with side B in place of side A.
func exchanged(tasks []Matched) []Matched {
	out := make([]Matched, len(tasks))
	for i, t := range tasks {
		out[i] = Matched{Sequence: t.Sequence}
		for _, c := range t.Cells {
			c.Pair = Pair{A: c.B, NA: c.NB, B: c.A, NB: c.NA}
			out[i].Cells = append(out[i].Cells, c)
		}
	}
	return out
}
