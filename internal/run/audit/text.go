package audit

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// String describes the result and lists the first problems.
func (r *Report) String() string {
	var b strings.Builder
	const most = 50
	for n, problem := range r.Problems {
		if n == most {
			fmt.Fprintf(&b, "… and %d more; --json lists all\n", len(r.Problems)-most)
			break
		}
		fmt.Fprintf(&b, "%s: %s: %s\n    → %s\n",
			problem.Check, problem.Where, problem.What, problem.Do)
	}
	if len(r.Problems) > 0 {
		fmt.Fprintln(&b)
	}

	fmt.Fprintf(&b, "%s, snapshot %s: %s, %s, %s, %s; %s proved by transcripts\n",
		r.Store, r.Snapshot, assay.Counted(r.Trials, "trial"), assay.Counted(r.Attempts, "attempt"),
		assay.Counted(r.Outcomes, "outcome"), assay.Counted(r.Transcripts, "transcript"),
		assay.Counted(r.Rescored, "score"))
	for _, why := range slices.Sorted(maps.Keys(r.Unjudged)) {
		fmt.Fprintf(&b, "%d scores are not proved: %s\n", r.Unjudged[why], why)
	}
	if r.Unfinished > 0 {
		fmt.Fprintf(&b, "its journal has %s without an end, with replies of models: %d\n",
			assay.Counted(r.Unfinished, "attempt"), r.Replies)
	}
	for _, n := range []struct {
		n    int
		text string
	}{
		{r.Deleted, "attempts were deleted on purpose"},
		{r.Dropped, "transcripts were deleted on purpose"},
		{int(r.Torn), "bytes at the end of the journal are torn, as a power cut leaves them; nothing was acted on that they say"},
		{r.Lost, "transcripts were lost before, and a recovery kept their attempts"},
	} {
		if n.n > 0 {
			fmt.Fprintf(&b, "%d %s\n", n.n, n.text)
		}
	}

	problems := assay.Counted(len(r.Problems), "problem")
	switch {
	case r.Damaged() && r.Mark != "":
		fmt.Fprintf(&b, "%s: the store is damaged. No run writes to it while %s exists.\n",
			problems, r.Mark)
	case r.Damaged():
		fmt.Fprintf(&b, "%s: the store is damaged.\n", problems)
	case len(r.Problems) > 0 && !slices.ContainsFunc(r.Problems, func(p store.Problem) bool { return p.Check != "journal" }):
		fmt.Fprintf(&b, "%s with the journal; the store itself is whole.\n", problems)
	case len(r.Problems) > 0:
		fmt.Fprintf(&b, "%s: the store is as it was written, but its contents cannot be right.\n",
			problems)
	default:
		fmt.Fprintln(&b, "The store is whole.")
	}
	return b.String()
}
