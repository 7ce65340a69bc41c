package query

import (
	"fmt"
	"iter"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/store"
)

// runTimes are the times of the runs that have not written their end.
type runTimes struct {
	working float64 // seconds so far
	// killed are the runs that are not working, with the time of the last thing that is known of each.
	killed map[assay.RunID]*runTime
}

// A runTime ends before the next run begins, which may have gone on with its attempts.
type runTime struct{ began, latest, next time.Time }

func readTimes(db *store.DB, runs []store.Run, left store.Left) (t runTimes, err error) {
	t.killed = make(map[assay.RunID]*runTime)
	worker, err := db.Worker()
	for i, r := range runs {
		switch {
		case !r.FinishedAt.IsZero():
		case r.ID == worker:
			t.working = time.Since(r.StartedAt).Seconds()
		default:
			k := &runTime{r.StartedAt, r.StartedAt, time.Now()}
			if i+1 < len(runs) {
				k.next = runs[i+1].StartedAt
			}
			t.killed[r.ID] = k
		}
	}
	for i := range left.Attempts {
		t.add(&left.Attempts[i].Attempt)
	}
	return t, err
}

// note returns the attempts, and notes when they ended.
func (t runTimes) note(all iter.Seq2[assay.Attempt, error]) iter.Seq2[assay.Attempt, error] {
	return Filter(all, func(a *assay.Attempt) bool {
		if a.FaultKind != assay.Interrupted { // the next run saves those
			t.add(a)
		}
		return true
	})
}

func (t runTimes) add(a *assay.Attempt) {
	if k := t.killed[a.Run]; k != nil && a.FinishedAt.After(k.latest) && a.FinishedAt.Before(k.next) {
		k.latest = a.FinishedAt
	}
}

func (t runTimes) seconds() float64 {
	sum := t.working
	for _, k := range t.killed {
		sum += k.latest.Sub(k.began).Seconds()
	}
	return sum
}

// addBegun describes the attempts that count and have not ended.
func (x *Experiment) addBegun(b *report.Beside, left store.Left) {
	if left.Missing != nil {
		b.MissingJournal = left.Missing.String()
	}
	if len(left.Attempts) == 0 {
		return
	}
	begun := make(map[assay.TrialID]*store.Unfinished)
	for i := range left.Attempts {
		if u := &left.Attempts[i]; x.Where.Has(&u.Attempt) {
			begun[u.ID] = u
		}
	}
	var sum job.Begun
	for t := range x.Trials {
		if u := begun[t.ID]; u != nil {
			sum.Add(job.BegunBy(*u))
		}
	}
	if sum.Attempts == 0 {
		return
	}
	text := sum.String()
	if left.Working {
		text = fmt.Sprintf("%s in flight with replies so far: %d; what they have cost is counted",
			assay.Counted(sum.Attempts, "attempt"), sum.Replies)
	}
	b.Begun = &report.Begun{
		Attempts: sum.Attempts, Replies: sum.Replies, Bill: sum.Bill, Text: text,
	}
}

// withBegun adds the attempts that have not ended, which count for nothing but their cost.
func (x *Experiment) withBegun(
	all iter.Seq2[assay.Attempt, error], left store.Left,
) iter.Seq2[assay.Attempt, error] {
	return func(yield func(assay.Attempt, error) bool) {
		for a, err := range all {
			if !yield(a, err) {
				return
			}
		}
		for i := range left.Attempts {
			if u := &left.Attempts[i]; x.Where.Has(&u.Attempt) && !yield(u.Attempt, nil) {
				return
			}
		}
	}
}
