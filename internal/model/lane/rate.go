package lane

import (
	"math"
	"time"
)

// longWait is a wait that shows that the limit of some window was used up.
const longWait = 4 * time.Second

// rate is the pace of a lane, in requests per second.
type rate struct {
	control
	// safe is the goal to go back to if the present one, which is on trial, is refused.
	safe         float64
	search       time.Time
	found        int
	began        time.Time
	sent, passed window    // requests of the last minute, and those that were accepted
	wall         time.Time // the latest wall
	since        int       // requests accepted since then
	falls        time.Time // the first wall below the goal
	// before is the rate that was accepted before the latest fall. A request is calm if the rate
	// is lower, because it is refused only by chance.
	before            float64
	calm, calmRefused int
}

const (
	// mostCalm is the number of calm requests at which older ones count half.
	mostCalm = 1500
	// remeasure is how long the rate stays up before chance is measured again.
	remeasure = 15 * time.Second
)

// take counts a request and returns its entry, and whether it is calm.
func (r *rate) take(now time.Time, probe bool) (entry int, calm bool) {
	if r.began.IsZero() {
		r.began, r.wall = now, now
		r.sent.span, r.passed.span = time.Minute, time.Minute
	}
	if r.chance() > 0 && now.Sub(r.fell) > remeasure && now.Before(r.rested) {
		r.before = r.inMinute(now)
		r.floor, r.fell = 0.8*r.before, now
	}
	if calm = !probe && r.at(now) < 0.95*r.before; calm {
		r.calm++
	}
	if r.calm > mostCalm {
		r.calm, r.calmRefused = r.calm/2, r.calmRefused/2
	}
	r.since++
	r.found++
	r.sent.add(now, cost{requests: 1})
	return r.passed.add(now, cost{requests: 1}), calm
}

// refuse notes that a request was not accepted.
func (r *rate) refuse(entry int, calm bool) {
	r.since--
	r.found--
	r.passed.correct(entry, cost{requests: -1})
	if calm {
		r.calmRefused++
	}
}

// chance returns the share of requests that are refused by chance. It is 0 until three were,
// because one or two may be accidents.
func (r *rate) chance() float64 {
	return float64(max(0, r.calmRefused-2)) / float64(max(1, r.calm))
}

// explained reports whether chance explains the refusals since the latest wall, or since the rate
// began to exceed its goal: they are at most two standard deviations more than expected.
func (r *rate) explained(now time.Time) bool {
	from := r.wall
	if now.After(r.rested) {
		from = later(from, r.rested)
	}
	sent := r.sent.from(from).requests
	expected := r.chance() * float64(sent)
	refused := float64(sent - r.passed.from(from).requests)
	return expected > 0 && refused <= expected+2*math.Sqrt(expected)+1
}

// inMinute returns how many requests per second were accepted in the last minute.
func (r *rate) inMinute(now time.Time) float64 {
	r.passed.drop(now)
	took := min(time.Minute, max(now.Sub(r.began), time.Second))
	return float64(r.passed.sum.requests) / took.Seconds()
}

// hit reacts to a wall: a burst of refusals that began at the rate tried and lasted for wait. Its
// end was noticed late. The minute before accepted some requests per second.
func (r *rate) hit(now time.Time, tried, minute float64, wait, late time.Duration) {
	end := now.Add(-late)
	if r.goal == 0 && now.Add(-wait).Sub(r.wall) > time.Minute {
		r.goal = minute // nothing was refused in it
	}
	since := float64(max(0, r.since)) / max(end.Sub(r.wall), time.Millisecond).Seconds()
	above, fast := r.exceeds(tried), wait <= longWait
	grown := r.proven(max(since, r.inMinute(now)))
	if above && !fast { // a window was used up, so what the climb accepted is no burst
		from := r.rested.Add(-wait) // the clock stood still at the wall
		took := min(time.Minute, max(time.Second, end.Sub(from)))
		minute = max(minute, float64(r.passed.from(from).requests)/took.Seconds())
	}
	switch {
	case above && r.chance() < 0.01 && grown > 1.3*r.goal:
		r.settle(now, 0.9*tried, grown)
		r.floor = min(r.goal, max(grown, math.Sqrt(since*tried)))
		r.search, r.found = end, 0
	case !above && !r.search.IsZero():
		r.seek(now, end, tried, since, wait-late)
	case r.goal == 0 && r.since < 2: // it never worked
	case r.goal == 0:
		r.settle(now, 0.98*since, 0)
	case above && fast:
		r.settle(now, 0.9*tried, r.proven(minute))
		r.floor = max(r.safe, min(r.goal, 0.7*tried))
	case above:
		r.settle(now, r.proven(minute), 0)
	case r.safe > 0 && (fast || since > 1.03*r.safe) && tried > 1.26*r.safe:
		r.settle(now, 0.9*tried, r.safe)
	case r.safe > 0 && fast && since > 1.05*r.safe && since < tried:
		r.settle(now, 0.98*since, r.safe)
	case r.safe > 0:
		r.settle(now, r.safe, 0)
	case !fast:
		r.settle(now, min(r.goal, 0.98*minute), 0)
	default: // It falls for a moment. After a minute of walls the goal is lowered, too.
		r.floor, r.fell = max(0.85*since, 0.65*tried, slowest), now
		if r.falls.IsZero() {
			r.falls = now
		}
		if now.Sub(r.falls) >= time.Minute {
			r.settle(now, 0.98*minute, 0)
		}
	}
	r.wall, r.since, r.before = now, 0, since
	if !r.search.IsZero() {
		r.before = 0 // bursts are accepted in a search, so no lower rate is calm
	}
}

// seek reacts to a wall in a search for a much higher rate. The rate falls for a moment, so that
// the time behind walls would be used, but not below what the search accepts. The search ends
// after a minute with what it accepted, or with what was proven before it, if that is more. A trial
// of a tenth more follows, because the search fell below the limit at times.
func (r *rate) seek(now, end time.Time, tried, since float64, wait time.Duration) {
	took := end.Sub(r.search)
	found := float64(max(0, r.found)) / max(took, time.Second).Seconds()
	if took >= time.Minute {
		found = max(r.safe, 0.98*found)
		r.settle(now, 1.1*found, found)
		return
	}
	if took > 20*time.Second { // longer than the burst of most windows
		r.goal = min(r.goal, max(r.safe, 1.5*max(since, found, r.inMinute(now))))
	}
	open := 1 - wait.Seconds()/max(end.Sub(r.wall), time.Millisecond).Seconds()
	r.floor = min(r.goal, max(0.95*open*tried, 0.7*tried, 0.9*found, slowest))
	r.fell = now
}

// onTrial reports whether the rate at some time is higher than one that was proven.
func (r *rate) onTrial(at time.Time) bool { return r.safe > 0 || r.exceeds(r.at(at)) }

// proven returns the goal that a wall above it shows, given what a minute accepted: it is that, if
// that is more.
func (r *rate) proven(minute float64) float64 {
	return max(r.goal, 0.98*minute/(1-min(0.5, r.chance())))
}

// settle sets a new goal. If it is above a safe one, the next wall leads back to that.
func (r *rate) settle(now time.Time, goal, safe float64) {
	r.keep(now, max(goal, safe, slowest))
	r.safe, r.falls, r.search = safe, time.Time{}, time.Time{}
}
