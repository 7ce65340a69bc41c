package limit

import (
	"math"
	"time"
)

// pace is a rate that grows until requests are refused, and then falls to the rate that was
// accepted meanwhile. It is for limits that no rule explains.
type pace struct {
	rate float64       // requests a second, or 0 if not paced
	due  time.Duration // when the next request is due

	// Since began, some requests were sent and some of them refused.
	began         time.Duration
	sent, refused int
	rest          time.Duration // how long the rate is kept before it grows
	// calm requests were sent while the rate did not grow, so that only chance refuses them.
	calm, calmRefused float64
}

const (
	// A rate grows after a rest: the first one at first, and twice as long each time that the rate
	// was the same as before, up to the longest. It doubles within growth, grows sixteenfold within
	// twice that time, and so on.
	firstRest, longestRest = 8 * time.Second, time.Minute
	growth                 = 8 * time.Second
	// longestPace is the longest time between two requests. However many are refused, no rate is
	// lower than minRate.
	longestPace = 10 * time.Second
	minRate     = 1. / 3600
	// maxByChance is the largest share of refusals that counts as chance and not as a rate.
	maxByChance = 0.9
	// A rate that rests falls if this share of requests is refused, beyond chance.
	tooMany = 0.1
	// Of calm requests, older ones count half after maxCalm.
	maxCalm = 500
)

// begin begins to count.
func (p *pace) begin(t time.Duration) { p.began, p.sent, p.refused = t, 0, 0 }

// rests reports whether the rate does not grow yet.
func (p *pace) rests(t time.Duration) bool { return t < p.began+p.rest }

// start sets the first rate: the rate of requests accepted since some time.
func (p *pace) start(t, since time.Duration, accepted int) {
	rate := max(1, float64(accepted)) / max((t-since).Seconds(), 0.1)
	*p = pace{rate: max(minRate, rate), due: t, rest: firstRest}
	p.begin(t)
}

// chance returns the share of requests that are refused at any rate.
func (p *pace) chance() float64 {
	return min(maxByChance, max(0, p.calmRefused-1)/max(20, p.calm))
}

// refuse notes that a request was refused.
func (p *pace) refuse(t time.Duration) {
	if p.refused++; p.rests(t) {
		p.calmRefused++
	}
}

// block adjusts the rate after a block. It returns by which factor, or 1 if the rate before was not
// known well.
func (p *pace) block(t time.Duration, strong bool) float64 {
	share := float64(p.refused) / float64(max(1, p.sent))
	fell := p.sent >= 20 && share > p.chance()+tooMany
	if p.rests(t) && !strong && !fell {
		return 1
	}
	passed := p.sent - p.refused
	old, known := p.rate, p.sent >= 20
	measured := float64(passed) / max((t-p.began).Seconds(), 0.1)
	if passed < 8 {
		p.rate = max(0.7*p.rate, min(measured, p.rate))
	} else {
		p.rate = min(p.at(t), 0.98*measured/(1-p.chance()))
	}
	p.rate = max(minRate, p.rate)
	p.begin(t)
	by := p.rate / old
	if by < 0.8 || by > 1.25 {
		p.rest = firstRest
	} else {
		p.rest = min(2*p.rest, longestRest)
	}
	if known {
		return by
	}
	return 1
}

func (p *pace) at(t time.Duration) float64 {
	if p.rests(t) {
		return p.rate
	}
	x := (t - p.began - p.rest).Seconds() / growth.Seconds()
	return p.rate * math.Exp2(min(16, x*x))
}

// gap returns the time between two requests.
func (p *pace) gap(t time.Duration) time.Duration {
	if p.rate == 0 {
		return 0
	}
	return time.Duration(min(longestPace.Seconds(), 1/p.at(t)) * float64(time.Second))
}

func (p *pace) next(t time.Duration) time.Duration { return max(t, p.due) }

func (p *pace) send(t time.Duration) {
	if p.rate == 0 {
		return
	}
	p.sent++
	if p.rests(t) {
		if p.calm++; p.calm > maxCalm {
			p.calm, p.calmRefused = p.calm/2, p.calmRefused/2
		}
	}
	due := p.due
	if t-due > 20*time.Millisecond {
		due = t
	}
	p.due = due + p.gap(t)
}
