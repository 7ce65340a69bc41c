package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/assay-eval/assay"
)

const (
	// lookEvery is how often a StillWatch looks at its clocks, and minStop how late it must be to
	// count that.
	lookEvery = 250 * time.Millisecond
	minStop   = 250 * time.Millisecond
	// worthTelling is how long the machine must be suspended for a note while it runs, and
	// worthKeeping for a warning afterwards, if no attempt was affected. A busy machine pauses
	// for a second without any harm.
	worthTelling = time.Second
	worthKeeping = 10 * time.Second
	// foreign is the shortest time limit that an agent itself is taken to have.
	foreign = 10 * time.Second
)

// A StillWatch measures for how long the machine was suspended, because the process was stopped, the
// computer suspended, or the load so high that goroutines ran late. A timeout is then not an
// outcome. The watch must be run.
type StillWatch struct {
	told func(string)

	mu       sync.Mutex
	last     time.Time
	stops    []standstill
	attempts int // that ended by time meanwhile
}

type standstill struct {
	until time.Time
	took  time.Duration
}

// NewStillWatch returns a watch that reports long stops to a function.
func NewStillWatch(told func(string)) *StillWatch { return &StillWatch{told: told, last: time.Now()} }

// Run watches until ctx ends.
func (w *StillWatch) Run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	w.mu.Lock()
	w.last = time.Now() // a run may have prepared for long
	w.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.look(time.Now(), true) // not the time in the tick, which may have waited
		}
	}
}

// look compares both clocks with the latest look. The monotonic clock does not advance while the
// computer is suspended, and the wall clock may be set back.
func (w *StillWatch) look(now time.Time, ticked bool) {
	w.mu.Lock()
	late := max(now.Sub(w.last), now.Round(0).Sub(w.last.Round(0))) - lookEvery
	if late >= minStop {
		w.stops = append(w.stops, standstill{now.Round(0), late})
	}
	if late >= minStop || ticked {
		w.last = now
	}
	w.mu.Unlock()
	if late >= worthTelling {
		w.told(fmt.Sprintf("the machine was suspended for %s at %s", round(late), clock(now.Add(-late))))
	}
}

// since returns for how long the machine was suspended since a time.
func (w *StillWatch) since(began time.Time) (sum time.Duration) {
	w.look(time.Now(), false) // an attempt may end before the next tick
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range slices.Backward(w.stops) {
		ago := s.until.Sub(began.Round(0))
		if ago <= 0 {
			break
		}
		sum += min(s.took, ago)
	}
	return sum
}

// Resumed returns when the machine resumed after it was last suspended for a while, or the zero time.
func (w *StillWatch) Resumed(while time.Duration) time.Time {
	w.look(time.Now(), false)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range slices.Backward(w.stops) {
		if s.took >= while {
			return s.until
		}
	}
	return time.Time{}
}

// Excuse turns an attempt that ended by time into a fault if the machine was suspended for more than
// a tenth of that time since the attempt began. limit is the time that its agent had, if any. An
// agent's error counts, too, because agents have their own time limits.
func (w *StillWatch) Excuse(
	a *assay.Attempt, t *assay.Transcript, began time.Time, limit time.Duration,
) {
	switch {
	case a.Ended == assay.AgentTimeout:
	case a.Ended == assay.AgentError, a.FaultKind == assay.AgentEnded,
		a.FaultKind == assay.ToolServer, a.FaultKind == assay.Timeout:
		limit = max(foreign, a.FinishedAt.Sub(a.StartedAt))
	default:
		return
	}
	stood := w.since(began)
	if stood <= limit/10 {
		return
	}
	w.mu.Lock()
	w.attempts++
	w.mu.Unlock()
	detail := fmt.Sprintf("the machine was suspended for %s meanwhile, so how the attempt ended does "+
		"not count: %s", round(stood), cmp.Or(a.FaultDetail, string(a.Ended)))
	a.FaultKind, a.FaultDetail, a.Parked = assay.Timeout, detail, false
	a.Withdraw()
	t.Ended = ""
}

// String describes in a sentence the stops that users must know about, or returns "".
func (w *StillWatch) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var told []standstill
	var sum time.Duration
	for _, s := range w.stops {
		if s.took >= worthKeeping || w.attempts > 0 {
			told, sum = append(told, s), sum+s.took
		}
	}
	if len(told) == 0 {
		return ""
	}
	text := fmt.Sprintf("the machine was suspended for %s ", round(sum))
	if first := clock(told[0].until.Add(-told[0].took)); len(told) == 1 {
		text += "at " + first
	} else {
		text += fmt.Sprintf("in %d stops, the first at %s", len(told), first)
	}
	switch w.attempts {
	case 0:
		return text
	case 1:
		return text + "; 1 attempt ended by time meanwhile and is a fault"
	}
	return text + fmt.Sprintf("; %d attempts ended by time meanwhile and are faults", w.attempts)
}

func round(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

func clock(t time.Time) string { return t.Format(time.TimeOnly) }
