package session

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/assay-eval/assay/internal/model/lane"
)

// A LaneStrip shows the states of a lane during the whole run, in equal steps of time.
type LaneStrip struct {
	Model string `json:"model"`
	Lane  string `json:"lane"`
	// Step is the length of a step in seconds.
	Step int `json:"step_s"`
	// States has the main state of the lane in each step: full, busy, idle, paused, closed, or the
	// reason for which requests waited.
	States []string `json:"states"`
	// Used has the share of the lane's tightest limit that was in use; see [lane.Ledger.Occupancy].
	Used []float64 `json:"used"`
}

// States of a lane that are no reason to wait.
const (
	LaneFull   = "full"
	LaneBusy   = "busy"
	LaneIdle   = "idle"
	LanePaused = "paused"
	LaneClosed = "closed"
)

// maxSteps bounds a strip. When it is full, pairs of steps are joined.
const maxSteps = 240

// looksPerStep is how often a lane is looked at in a long step. Short ones have a look each second.
const looksPerStep = 8

// strips records the strips of all lanes, one look after another. Only the goroutine of record
// changes them; mu guards them against readers.
type strips struct {
	mu    sync.Mutex
	step  int // seconds, a power of two
	lanes []*strip
}

// every returns the seconds between two looks.
func (all *strips) every() int { return max(1, all.step/looksPerStep) }

type strip struct {
	model, lane string
	last        lane.Ledger
	steps       []stateSeconds
}

// stateSeconds has the seconds in each state, and the slot-time of the lane.
type stateSeconds struct {
	seconds         map[string]int
	used, available time.Duration
}

// keepStrips records the state of each lane until ctx ends.
func (s *Session) keepStrips(ctx context.Context) {
	look := time.NewTimer(time.Second)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			look.Reset(time.Duration(s.recordStrips()) * time.Second)
		}
	}
}

// recordStrips returns the seconds until the next look.
func (s *Session) recordStrips() int {
	all := &s.strips
	all.mu.Lock()
	defer all.mu.Unlock()
	full := false
	for i, r := range s.readLanes() {
		if i == len(all.lanes) {
			all.lanes = append(all.lanes, &strip{model: r.Model, lane: r.Ledger.Name})
		}
		x := all.lanes[i]
		x.add(r.Status, r.Ledger, all)
		full = full || x.full(all.step)
	}
	if full {
		all.join()
	}
	return all.every()
}

// add records the time since the latest look.
func (x *strip) add(now lane.Status, l lane.Ledger, all *strips) {
	used, available := l.Used-x.last.Used, l.Available-x.last.Available
	state := laneState(now, used, available)
	used += l.Bound - x.last.Bound
	x.last = l
	if n := len(x.steps); n == 0 || x.steps[n-1].length() >= all.step {
		x.steps = append(x.steps, stateSeconds{seconds: make(map[string]int)})
	}
	last := &x.steps[len(x.steps)-1]
	last.seconds[state] += all.every()
	last.used += used
	last.available += available
}

// full reports whether the last of as many steps as can be is over.
func (x *strip) full(step int) bool {
	return len(x.steps) == maxSteps && x.steps[maxSteps-1].length() >= step
}

// laneState names the state of a lane since the latest look. Available is 0 while no trial waits to start.
func laneState(now lane.Status, used, available time.Duration) string {
	switch {
	case now.Closed != nil:
		return LaneClosed
	case now.Held:
		return LanePaused
	case available > 0 && float64(used) >= .95*float64(available):
		return LaneFull
	case available > 0 && now.Waits != "":
		return now.Waits
	case now.InFlight > 0:
		return LaneBusy
	}
	return LaneIdle
}

func (s stateSeconds) length() (n int) {
	for _, k := range s.seconds {
		n += k
	}
	return n
}

// state returns the state of a lane for most of the step.
func (s stateSeconds) state() (state string) {
	for _, name := range slices.Sorted(maps.Keys(s.seconds)) {
		if s.seconds[name] > s.seconds[state] {
			state = name
		}
	}
	return state
}

// join doubles the length of all steps.
func (all *strips) join() {
	all.step *= 2
	for _, x := range all.lanes {
		for i := 0; i < len(x.steps); i += 2 {
			joined := x.steps[i]
			if i+1 < len(x.steps) {
				next := x.steps[i+1]
				for state, n := range next.seconds {
					joined.seconds[state] += n
				}
				joined.used += next.used
				joined.available += next.available
			}
			x.steps[i/2] = joined
		}
		x.steps = x.steps[:(len(x.steps)+1)/2]
	}
}

// read returns the strips so far.
func (all *strips) read() []LaneStrip {
	all.mu.Lock()
	defer all.mu.Unlock()
	out := []LaneStrip{}
	for _, x := range all.lanes {
		s := LaneStrip{Model: x.model, Lane: x.lane, Step: all.step}
		for _, p := range x.steps {
			share := 0.
			if p.available > 0 {
				share = min(1, float64(p.used)/float64(p.available))
			}
			s.States, s.Used = append(s.States, p.state()), append(s.Used, share)
		}
		out = append(out, s)
	}
	return out
}
