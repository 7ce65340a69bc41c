package lane

import "time"

// longWait is a wait that shows that the limit of some window was used up.
const longWait = 4 * time.Second

// rate is the pace of a lane, in requests per second.
type rate struct {
	control
	// safe is the goal to go back to if the present one, which is on trial, is refused.
	safe   float64
	latest window // accepted requests of the last minute
	began  time.Time
	wall   counts // since the latest wall
	climb  counts // since the rate began to exceed its goal
	falls  counts // since the first wall below the goal
	// chance is true if lowering the goal did not help, as the test of the goal before showed.
	chance bool
	before trial
}

// counts counts requests from some time on.
type counts struct {
	from          time.Time
	sent, refused int
}

func (c *counts) accepted() int { return c.sent - c.refused }

// rate returns how many requests per second were accepted until some time.
func (c *counts) rate(until time.Time) float64 {
	return float64(c.accepted()) / max(until.Sub(c.from), time.Millisecond).Seconds()
}

// trial is what was accepted, in requests per second, at some goal.
type trial struct{ goal, accepted float64 }

// follows reports whether what was accepted followed the goal.
func (t trial) follows(u trial) bool {
	more := u.accepted / t.accepted
	return t.goal > 0 && (more > 1.05 && u.goal > t.goal || more < 0.95 && u.goal < t.goal)
}

// take counts a request and returns its entry.
func (r *rate) take(now time.Time) int {
	if r.began.IsZero() {
		r.began, r.latest.span = now, time.Minute
	}
	if r.goal > 0 && r.climb.from.IsZero() && now.After(r.rested) {
		r.climb = counts{from: now}
	}
	if r.wall.sent == 0 {
		r.wall.from = now
	}
	for _, c := range []*counts{&r.wall, &r.climb, &r.falls} {
		c.sent++
	}
	return r.latest.add(now, cost{requests: 1})
}

// refuse notes that a request was not accepted.
func (r *rate) refuse(entry int) {
	for _, c := range []*counts{&r.wall, &r.climb, &r.falls} {
		c.refused++
	}
	r.latest.correct(entry, cost{requests: -1})
}

// inMinute returns how many requests per second were accepted in the last minute.
func (r *rate) inMinute(now time.Time) float64 {
	r.latest.drop(now)
	took := min(time.Minute, max(now.Sub(r.began), time.Second))
	return float64(r.latest.sum.requests) / took.Seconds()
}

// hit reacts to a wall: a burst of refusals that began at the rate tried and lasted for wait. Its
// end was noticed late. The minute before accepted some requests per second.
func (r *rate) hit(now time.Time, tried, minute float64, wait, late time.Duration) {
	since, above, fast := r.wall.rate(now.Add(-late)), r.exceeds(tried), wait <= longWait
	through := min(0.98*since, 0.97*tried)
	switch {
	case r.goal == 0 && r.wall.accepted() < 2: // it never worked
	case r.goal == 0:
		r.settle(now, 0.98*since)
	case above && fast:
		r.try(now, r.proven(minute), 0.9*tried)
		r.floor = max(r.safe, min(r.goal, 0.7*tried))
	case above:
		if tried > 2*r.goal && !r.climb.from.IsZero() {
			minute = max(minute, r.climb.rate(now.Add(-late)))
		}
		r.settle(now, r.proven(minute))
	case r.safe > 0 && since > 1.03*r.safe && tried > 1.1*r.safe:
		r.try(now, r.safe, 0.9*tried)
	case r.safe > 0:
		r.settle(now, r.safe)
	case !fast:
		r.settle(now, min(r.goal, max(0.98*minute, through)))
	case r.chance && 4*r.falls.refused <= r.falls.accepted():
		r.fall(now, tried, minute)
	default:
		r.fall(now, max(through, 0.7*tried), minute)
	}
	r.wall = counts{from: now}
}

// proven returns the goal that a wall above it shows, given what a minute accepted.
func (r *rate) proven(minute float64) float64 {
	if minute < 0.93*r.goal {
		return 0.98 * minute
	}
	return max(r.goal, 0.98*minute)
}

// settle sets a new goal.
func (r *rate) settle(now time.Time, goal float64) {
	if r.falls.from.IsZero() {
		r.chance, r.before = false, trial{}
	}
	r.keep(now, max(goal, slowest))
	r.safe, r.falls, r.climb = 0, counts{}, counts{}
}

// try sets a goal that is above a safe one, to which the next wall leads back.
func (r *rate) try(now time.Time, safe, goal float64) {
	r.settle(now, max(safe, goal))
	r.safe = max(safe, slowest)
}

// fall lowers the rate for a moment. After a minute of walls the goal is lowered, too, unless
// less was accepted when it was lower. Then the refusals are chance.
func (r *rate) fall(now time.Time, to, minute float64) {
	r.floor, r.fell = max(to, slowest), now
	if r.falls.from.IsZero() {
		r.falls = counts{from: now}
	}
	if now.Sub(r.falls.from) < time.Minute {
		return
	}
	before, this := r.before, trial{r.goal, minute}
	goal := 0.98 * minute
	if before.follows(this) {
		r.chance, goal = true, 1.1*max(before.goal, this.goal)
	}
	r.settle(now, goal)
	r.before = this
}
