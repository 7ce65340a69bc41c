package engine

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
)

// TestExcuse checks which attempts are excused after the machine was suspended, and how a run then
// describes it.
func TestExcuse(t *testing.T) {
	const limit = time.Minute
	ended := func(e assay.Ended) assay.Attempt {
		return assay.Attempt{Outcome: assay.Outcome{Ended: e, Level: assay.Failure}}
	}
	fault := func(k assay.FaultKind) assay.Attempt { return assay.Attempt{FaultKind: k, Parked: true} }
	for name, x := range map[string]struct {
		stood   time.Duration
		attempt assay.Attempt
		excused bool
	}{
		"its time":            {7 * time.Second, ended(assay.AgentTimeout), true},
		"a tenth of it":       {6 * time.Second, ended(assay.AgentTimeout), false},
		"nothing":             {0, ended(assay.AgentTimeout), false},
		"an answer":           {7 * time.Second, ended(assay.Finished), false},
		"time of the agent":   {3 * time.Second, ended(assay.AgentError), true},
		"crash":               {900 * time.Millisecond, ended(assay.AgentError), false},
		"time of a tool":      {7 * time.Second, fault(assay.ToolServer), true},
		"time of the model":   {7 * time.Second, fault(assay.Timeout), true},
		"before it began":     {7 * time.Second, fault(assay.AgentEnded), true},
		"fault of the model":  {7 * time.Second, fault(assay.BadRequest), false},
		"end of the run":      {7 * time.Second, fault(assay.Interrupted), false},
		"end of the other":    {7 * time.Second, ended(assay.TurnLimit), false},
		"several short stops": {8 * 900 * time.Millisecond, ended(assay.AgentTimeout), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := NewStillWatch(func(string) {})
				began := time.Now()
				for left := x.stood; left > 0; left -= 900 * time.Millisecond {
					time.Sleep(lookEvery + min(left, 900*time.Millisecond))
					w.look(time.Now(), true)
				}
				a, tr := x.attempt, assay.Transcript{Ended: x.attempt.Ended}
				a.StartedAt, a.FinishedAt = began, time.Now()
				w.Excuse(&a, &tr, began, limit)
				said := strings.Contains(w.String(), "1 attempt ended by time meanwhile and is a fault")
				is := a.FaultKind == assay.Timeout && a.Level == "" && a.Ended == "" && tr.Ended == "" &&
					!a.Parked && strings.Contains(a.FaultDetail, "was suspended")
				if is != x.excused || said != x.excused {
					t.Errorf("after %v: %+v\n%s", x.stood, a, w)
				}
			})
		})
	}
}

// TestClocks checks that a suspended computer and late goroutines count, that a clock which is set
// back does not, and that a look between two ticks does not hide a stop.
func TestClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		w := NewStillWatch(func(text string) { told = append(told, text) })
		began := time.Now()
		stood := func(want time.Duration) {
			t.Helper()
			if got := w.since(began); got != want {
				t.Errorf("was suspended for %v, want %v", got, want)
			}
		}
		time.Sleep(lookEvery + minStop - 1)
		stood(0)
		w.look(time.Now(), true)
		time.Sleep(lookEvery + 2*time.Second)
		w.look(time.Now(), true)
		if len(told) != 1 || w.String() != "" {
			t.Errorf("of two seconds, it says %q and %q", told, w)
		}
		began, told, w = time.Now(), nil, NewStillWatch(w.told)
		time.Sleep(lookEvery + 14*time.Second)
		stood(14 * time.Second) // the attempt ends before the tick
		w.look(time.Now(), true)
		stood(14 * time.Second)

		w.last = time.Now().Add(time.Hour) // the monotonic clock of a time that is behind it
		w.look(time.Now(), true)
		stood(14 * time.Second)

		w.last = time.Now().Round(0).Add(-time.Minute) // only the wall clock went on
		w.look(time.Now(), true)
		began = began.Add(-time.Hour)
		stood(14*time.Second + time.Minute - lookEvery)
		if !w.Resumed(2*time.Minute).IsZero() || time.Since(w.Resumed(time.Minute-lookEvery)) != 0 {
			t.Errorf("went on at %v and %v", w.Resumed(2*time.Minute), w.Resumed(time.Minute-lookEvery))
		}
		if len(told) != 2 || !strings.Contains(told[0], "was suspended for 14s at ") ||
			!strings.Contains(w.String(), "in 2 stops, the first at ") {
			t.Errorf("it says %q and %q", told, w)
		}
	})
}

// TestRun checks that a watch on time finds no stops.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewStillWatch(func(text string) { t.Error(text) })
		began := time.Now()
		go w.Run(t.Context())
		time.Sleep(time.Hour)
		if stood := w.since(began); stood != 0 || w.String() != "" {
			t.Errorf("was suspended for %v: %s", stood, w)
		}
	})
}
