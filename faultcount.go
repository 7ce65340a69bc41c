package assay

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A FaultCount counts the faults that attempts on disk have met. Everything that states a number of
// faults reads it from here.
type FaultCount struct {
	// Ended counts the attempts that ended in a fault, by its kind. Interrupted and superseded
	// attempts are none of them.
	Ended map[FaultKind]int `json:"faults"`
	// Retried counts the requests of attempts that failed and were sent again, by the kind of fault.
	Retried map[FaultKind]int `json:"retried"`
}

// Add counts the faults of an attempt.
func (c *FaultCount) Add(a *Attempt) {
	if a.OnlyCosts() {
		return
	}
	if !a.Settles() {
		addKind(&c.Ended, a.FaultKind, 1)
	}
	for kind, n := range a.Retried {
		addKind(&c.Retried, kind, n)
	}
}

func addKind(by *map[FaultKind]int, kind FaultKind, n int) {
	if *by == nil {
		*by = make(map[FaultKind]int)
	}
	(*by)[kind] += n
}

// Merge adds the faults of other attempts. Copies that were made of the count stay as they are.
func (c *FaultCount) Merge(o FaultCount) {
	c.Ended, c.Retried = addKinds(c.Ended, o.Ended), addKinds(c.Retried, o.Retried)
}

// addKinds returns the sum in a new map.
func addKinds(a, b map[FaultKind]int) map[FaultKind]int {
	sum := make(map[FaultKind]int, len(a))
	maps.Copy(sum, a)
	for kind, n := range b {
		sum[kind] += n
	}
	return sum
}

// Attempts returns the number of attempts that ended in faults.
func (c FaultCount) Attempts() int { return sumKinds(c.Ended) }

func sumKinds(by map[FaultKind]int) (n int) {
	for _, k := range by {
		n += k
	}
	return n
}

// Kinds lists the faults by kind, the most frequent first, such as "49 rate_limited, 21 network". It
// is empty if there are none.
func (c FaultCount) Kinds() string {
	all := addKinds(c.Ended, c.Retried)
	kinds := slices.SortedFunc(maps.Keys(all), func(a, b FaultKind) int {
		return cmp.Or(all[b]-all[a], cmp.Compare(a, b))
	})
	var parts []string
	for _, k := range kinds {
		if all[k] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", all[k], k))
		}
	}
	return strings.Join(parts, ", ")
}

// Brief is like Kinds, and says which of the faults ended attempts, such as "49 rate_limited, 21
// network, all retried" or "51 rate_limited; 2 ended attempts".
func (c FaultCount) Brief() string {
	ended, retried := sumKinds(c.Ended), sumKinds(c.Retried)
	switch {
	case ended+retried == 0:
		return ""
	case ended == 0 && retried == 1:
		return c.Kinds() + ", retried"
	case ended == 0:
		return c.Kinds() + ", all retried"
	case ended == 1:
		return c.Kinds() + "; 1 ended an attempt"
	}
	return fmt.Sprintf("%s; %d ended attempts", c.Kinds(), ended)
}

// Text counts the faults in words, such as "no faults" or "2 faults (2 timeout; 1 ended an
// attempt)".
func (c FaultCount) Text() string {
	n := sumKinds(c.Ended) + sumKinds(c.Retried)
	if n == 0 {
		return "no faults"
	}
	return fmt.Sprintf("%s (%s)", Counted(n, "fault"), c.Brief())
}
