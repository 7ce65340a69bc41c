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
	safe   float64
	latest window // requests of the last minute; those that were accepted count as input
	began  time.Time
	wall   time.Time // the latest wall
	passed int       // requests accepted since then
	falls  time.Time // the first wall below the goal
	// accepted is the rate that was accepted before the latest fall. A request is calm if the rate
	// is lower, because it is refused only by chance.
	accepted          float64
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
		r.began, r.wall, r.latest.span = now, now, time.Minute
	}
	if r.chance() > 0 && now.Sub(r.fell) > remeasure && now.Before(r.rested) {
		r.accepted = r.inMinute(now)
		r.floor, r.fell = 0.8*r.accepted, now
	}
	if calm = !probe && r.at(now) < 0.95*r.accepted; calm {
		r.calm++
	}
	if r.calm > mostCalm {
		r.calm, r.calmRefused = r.calm/2, r.calmRefused/2
	}
	r.passed++
	return r.latest.add(now, cost{requests: 1, input: 1}), calm
}

// refuse notes that a request was not accepted.
func (r *rate) refuse(entry int, calm bool) {
	r.passed--
	r.latest.correct(entry, cost{input: -1})
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
	c := r.latest.from(from)
	expected := r.chance() * float64(c.requests)
	return expected > 0 && float64(c.requests-c.input) <= expected+2*math.Sqrt(expected)+1
}

// inMinute returns how many requests per second were accepted in the last minute.
func (r *rate) inMinute(now time.Time) float64 {
	r.latest.drop(now)
	took := min(time.Minute, max(now.Sub(r.began), time.Second))
	return float64(r.latest.sum.input) / took.Seconds()
}

// hit reacts to a wall: a burst of refusals that began at the rate tried and lasted for wait. Its
// end was noticed late. The minute before accepted some requests per second.
func (r *rate) hit(now time.Time, tried, minute float64, wait, late time.Duration) {
	end := now.Add(-late)
	since := float64(r.passed) / max(end.Sub(r.wall), time.Millisecond).Seconds()
	above, fast := r.exceeds(tried), wait <= longWait
	through := min(0.98*since, 0.97*tried)
	switch {
	case r.goal == 0 && r.passed < 2: // it never worked
	case r.goal == 0:
		r.settle(now, 0.98*since)
	case above && fast:
		r.try(now, r.proven(minute), 0.9*tried)
		r.floor = max(r.safe, min(r.goal, 0.7*tried))
	case above:
		climb := float64(r.latest.from(r.rested).input)
		climb /= max(time.Second, end.Sub(r.rested)).Seconds()
		r.settle(now, r.proven(max(minute, climb)))
	case r.safe > 0 && (fast || since > 1.03*r.safe) && tried > 1.26*r.safe:
		r.try(now, r.safe, 0.9*tried)
	case r.safe > 0:
		r.settle(now, r.safe)
	case !fast:
		r.settle(now, min(r.goal, max(0.98*minute, through)))
	default:
		r.fall(now, max(0.85*since, 0.7*tried), minute)
	}
	r.wall, r.passed, r.accepted = now, 0, since
}

// proven returns the goal that a wall above it shows, given what a minute accepted.
func (r *rate) proven(minute float64) float64 {
	minute /= 1 - min(0.5, r.chance())
	if minute < 0.93*r.goal {
		return 0.98 * minute
	}
	return max(r.goal, 0.98*minute)
}

// settle sets a new goal.
func (r *rate) settle(now time.Time, goal float64) {
	r.keep(now, max(goal, slowest))
	r.safe, r.falls = 0, time.Time{}
}

// try sets a goal that is above a safe one, to which the next wall leads back.
func (r *rate) try(now time.Time, safe, goal float64) {
	r.settle(now, max(safe, goal))
	r.safe = max(safe, slowest)
}

// fall lowers the rate for a moment. After a minute of walls the goal is lowered, too.
func (r *rate) fall(now time.Time, to, minute float64) {
	r.floor, r.fell = max(to, slowest), now
	if r.falls.IsZero() {
		r.falls = now
	}
	if now.Sub(r.falls) >= time.Minute {
		r.settle(now, 0.98*minute)
	}
}
