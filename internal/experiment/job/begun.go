package job

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// Begun counts attempts that have begun and have not ended: those in flight, and those that a run left
// when it was killed or stopped, or had no lane left. What they have cost is on disk, with the replies
// of bare models.
type Begun struct {
	Attempts int `json:"attempts"`
	Replies  int `json:"replies"`
	// Again counts those at trials that had an outcome, which the user chose to do again.
	Again      int `json:"again,omitempty"`
	assay.Bill     // with the simulated users
	// Answered counts the attempts with replies. The others begin again.
	Answered int `json:"answered"`
}

// Add adds the counts of other attempts.
func (b *Begun) Add(o Begun) {
	b.Attempts += o.Attempts
	b.Replies += o.Replies
	b.Again += o.Again
	b.Bill.Add(o.Bill)
	b.Answered += o.Answered
}

// BegunBy counts unfinished attempts.
func BegunBy(all ...store.Unfinished) (b Begun) {
	for i := range all {
		u := &all[i]
		b.Add(Begun{1, u.Replies, min(1, u.Round), u.Bill(), min(1, u.Replies)})
	}
	return b
}

// String tells a reader what the attempts have, that a run of an experiment left which does not work
// any more. It is "" without attempts.
func (b Begun) String() string {
	if b.Attempts == 0 {
		return ""
	}
	of := assay.Counted(b.Attempts, "attempt") + " of runs that have ended"
	cost := ""
	if b.USD > 0 {
		cost = assay.CostText(b.USD, 2) + " (counted in the cost)"
	}
	if b.AtLeast() {
		cost += fmt.Sprintf(" and up to %d tokens of unknown cost", b.Unpriced)
	}
	cost = strings.TrimPrefix(cost, " and ")
	if b.Replies == 0 {
		return fmt.Sprintf("%s cost %s, and will begin again", of, cmp.Or(cost, "nothing"))
	}
	replies := "1 reply"
	if b.Replies > 1 {
		replies = fmt.Sprint(b.Replies, " replies")
	}
	if cost != "" {
		cost = ", for " + cost
	}
	has, goes, rest := "have", "they go on", ""
	if b.Attempts == 1 {
		has, goes = "has", "it goes on"
	}
	with := "runs again"
	switch b.Again {
	case 0:
	case b.Attempts:
		with = "runs with --retry, as it did"
	default:
		with += fmt.Sprintf(", %d of them if it runs with --retry, as it did", b.Again)
	}
	if n := b.Attempts - b.Answered; n > 0 {
		goes = fmt.Sprintf("%d of them go on", b.Answered)
		rest = fmt.Sprintf("; %s without a reply will begin again", assay.Counted(n, "attempt"))
	}
	return fmt.Sprintf("%s %s %s%s; %s at the next turn when the experiment %s%s",
		of, has, replies, cost, goes, with, rest)
}

// Begun notes the attempts that have begun and have not ended, instead of those that it noted before.
func (t *Tally) Begun(all []store.Unfinished) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.models {
		m.Standing.Begun = Begun{}
	}
	for i := range all {
		m := t.model(all[i].Model)
		m.Standing.Begun.Add(BegunBy(all[i]))
	}
}

// Begun notes the attempts at planned trials that have begun and have not ended.
func (r *Recount) Begun(all []store.Unfinished) { r.Tally.Begun(r.Planned(all)) }

// Planned returns the unfinished attempts at planned trials.
func (r *Recount) Planned(all []store.Unfinished) (planned []store.Unfinished) {
	for _, u := range all {
		if yes, _ := r.Stands(u.ID); yes {
			planned = append(planned, u)
		}
	}
	return planned
}
