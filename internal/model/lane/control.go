package lane

import (
	"math"
	"time"
)

// control is a value that grows to a goal after it fell, rests there, and then grows beyond it
// faster and faster, until requests are refused. The zero value is unlimited.
type control struct {
	goal   float64   // 0 if no request was refused yet
	floor  float64   // the value to which it fell
	fell   time.Time // when it fell
	rested time.Time // when it begins to grow beyond the goal
}

const (
	// A goal is kept for rest, because limits often count the last minute. The value doubles within
	// growth, grows sixteenfold within twice that time, and so on. So a value that is a thousand
	// times higher is found in 75 + 8 × √10 seconds.
	rest   = 75 * time.Second
	growth = 8 * time.Second
	// mostGrowth is the largest growth, as a power of two.
	mostGrowth = 16
	// slowest is the lowest rate, in requests per second. It is two per minute, so that no lane is
	// silent for longer than one.
	slowest = 1.0 / 30
)

// at returns the value at some time.
func (c *control) at(now time.Time) float64 {
	if c.goal == 0 {
		return math.Inf(1)
	}
	if now.After(c.rested) {
		return c.goal * grown(now.Sub(c.rested))
	}
	return min(c.goal, c.floor*grown(now.Sub(c.fell)))
}

// grown returns by which factor a value grows within some time.
func grown(d time.Duration) float64 {
	t := max(0, d).Seconds() / growth.Seconds()
	return math.Exp2(min(t*t, mostGrowth))
}

// keep sets the goal and begins a rest.
func (c *control) keep(now time.Time, goal float64) {
	*c = control{goal: goal, floor: goal, fell: now, rested: now.Add(rest)}
}

// exceeds reports whether a value is above the goal.
func (c *control) exceeds(value float64) bool { return c.goal > 0 && value > 1.02*c.goal }

// hold stops the clock for some time.
func (c *control) hold(d time.Duration) { c.fell, c.rested = c.fell.Add(d), c.rested.Add(d) }
