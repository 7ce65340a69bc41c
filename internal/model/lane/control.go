package lane

import (
	"math"
	"time"
)

// control keeps a rate or a width just below what the endpoint accepts, without
// any theory of why it refuses. It keeps a level for a minute, then an aim that may
// be higher, and then grows faster and faster until requests are refused. The zero
// value is unlimited.
type control struct {
	level, aim float64 // 0 if no request was refused yet
	since      time.Time
	// safe are the level and the aim to go back to if the present ones, which were
	// only accepted for a moment, are refused. fleeting is true if that happened last
	// time: then the endpoint accepts bursts.
	safe     struct{ level, aim float64 }
	fleeting bool
	// grew is true if the value had grown when it was refused last. The endpoint may
	// still count that for a while.
	grew bool
}

const (
	// A level is kept for hold, because limits often count the last minute, and the
	// aim until rest. Then the value doubles within growth, grows sixteenfold within
	// twice that time, and so on. So a rate that is a thousand times higher is found
	// in 75 + 8 × √10 seconds.
	hold   = time.Minute
	rest   = 75 * time.Second
	growth = 8 * time.Second
	// mostGrowth is the largest growth above an aim, as a power of two.
	mostGrowth = 16
	// slowest is the lowest rate, in requests per second. It is one per minute, so
	// that no lane is silent for longer.
	slowest = 1.0 / 60
	// A value that has grown to far times its aim shows that the endpoint allows
	// more than before, even if it accepts bursts, unless the average is the same.
	far = 4
	// A value that was refused before it had grown to near times its aim shows that
	// the limit is a sharp one, so the next aim may be a little higher.
	near = 1.4
)

// at returns the value at some time.
func (c *control) at(now time.Time) float64 {
	switch kept := now.Sub(c.since); {
	case c.level == 0:
		return math.Inf(1)
	case kept < hold:
		return c.level
	default:
		t := max(0, kept-rest).Seconds() / growth.Seconds()
		return c.aim * math.Exp2(min(t*t, mostGrowth))
	}
}

// keep sets the level and the aim and begins a rest.
func (c *control) keep(now time.Time, level, aim float64) {
	c.level, c.aim, c.since = level, aim, now
	c.safe.level, c.grew = 0, false
}

// grown reports whether a value is above the level, which is still good then.
func (c *control) grown(value float64) bool { return c.level > 0 && value > 1.001*c.level }

// refuse sets the level after the value tried was refused. The endpoint accepted
// through on average, but perhaps more than that for a moment.
func (c *control) refuse(now time.Time, tried, through float64) {
	through = max(slowest, min(0.98*through, 0.97*tried))
	if !c.grown(tried) {
		switch {
		case c.safe.level > 0:
			c.fleeting = true
			c.keep(now, c.safe.level, c.safe.aim)
			c.grew = true
		case c.grew && now.Sub(c.since) < hold:
			c.level = through
		default:
			c.keep(now, through, through)
		}
		return
	}
	c.fleeting = c.fleeting && c.safe.level == 0
	level := c.level
	if tried > c.aim {
		level = c.aim
	}
	isFar := tried > far*c.aim && through > 1.15*c.level
	if isFar || through < 0.93*c.level {
		level = through
	}
	sharp := tried < near*c.aim
	if c.keep(now, level, max(level, through)); sharp {
		c.aim = max(c.aim, min(1.1*level, 0.95*tried))
	}
	c.grew = true
	switch moment := 0.9 * tried; {
	case isFar:
		c.keep(now, moment, moment) // it may fall in several steps
	case !sharp && moment > c.aim && !c.fleeting:
		c.safe.level, c.safe.aim = c.level, c.aim
		c.level, c.aim = moment, moment
	}
}
