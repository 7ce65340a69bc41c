package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// Faulted counts attempts that ended in faults, and so say nothing about a model.
type Faulted struct {
	Attempts int `json:"attempts"`
	// Parked counts the trials without an outcome that the latest run gave up.
	Parked int `json:"parked"`
	// Kinds are sorted by the number of attempts, the largest first.
	Kinds []FaultCount `json:"kinds"`
}

// A FaultCount counts the attempts that ended in one kind of fault. Detail is the first line of their
// most frequent detail.
type FaultCount struct {
	Kind     assay.FaultKind `json:"fault"`
	Attempts int             `json:"attempts"`
	Detail   string          `json:"detail"`
}

// A FaultTally collects attempts for a [Faulted]. Its zero value is empty.
type FaultTally struct {
	kinds   map[assay.FaultKind]map[string]int // by detail
	parked  map[assay.TrialID]bool
	settled map[assay.TrialID]bool
}

// Add counts an attempt of an experiment whose latest run is given.
func (t *FaultTally) Add(a *assay.Attempt, latest assay.RunID) {
	if t.kinds == nil {
		t.kinds = make(map[assay.FaultKind]map[string]int)
		t.parked, t.settled = make(map[assay.TrialID]bool), make(map[assay.TrialID]bool)
	}
	switch {
	case a.Settles():
		t.settled[a.ID] = true
		return
	case a.OnlyCosts():
		return
	case a.Parked && a.Run == latest:
		t.parked[a.ID] = true
	}
	details := t.kinds[a.FaultKind]
	if details == nil {
		details = make(map[string]int)
		t.kinds[a.FaultKind] = details
	}
	detail, _, _ := strings.Cut(strings.TrimPrefix(a.FaultDetail, string(a.FaultKind)+": "), "\n")
	details[detail]++
}

// Sum returns the counts so far.
func (t *FaultTally) Sum() Faulted {
	f := Faulted{Kinds: []FaultCount{}}
	for id := range t.parked {
		if !t.settled[id] {
			f.Parked++
		}
	}
	for kind, details := range t.kinds {
		c := FaultCount{Kind: kind}
		for detail, n := range details {
			if most := details[c.Detail]; n > most || n == most && detail < c.Detail {
				c.Detail = detail
			}
			c.Attempts += n
		}
		f.Attempts += c.Attempts
		f.Kinds = append(f.Kinds, c)
	}
	slices.SortFunc(f.Kinds, func(a, b FaultCount) int {
		return cmp.Or(cmp.Compare(b.Attempts, a.Attempts), cmp.Compare(a.Kind, b.Kind))
	})
	return f
}

// maxDetail is the number of bytes of a detail that a line shows.
const maxDetail = 200

// Text words the counts in one line without a full stop. It is empty if there are none.
func (f Faulted) Text() string {
	if f.Attempts == 0 {
		return ""
	}
	kinds := make([]string, len(f.Kinds))
	for i, c := range f.Kinds {
		kinds[i] = fmt.Sprintf("%s %d", c.Kind, c.Attempts)
		if c.Detail != "" {
			detail := assay.Head(c.Detail, maxDetail)
			if len(detail) < len(c.Detail) {
				detail += "…"
			}
			kinds[i] += " (" + detail + ")"
		}
	}
	text := fmt.Sprintf("%s ended in faults, which are not failures of a model: %s",
		assay.Counted(f.Attempts, "attempt"), strings.Join(kinds, ", "))
	switch f.Parked {
	case 0:
	case 1:
		text += "; 1 trial is parked"
	default:
		text += fmt.Sprintf("; %d trials are parked", f.Parked)
	}
	return text
}

// Left names trials that are not done. Without the last run, nobody knows which ones it parked, but
// only faults can do that.
func Left(faults int) string {
	if faults == 0 {
		return "pending"
	}
	return "pending or parked"
}
