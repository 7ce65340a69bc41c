package lane

import "time"

// slack is how late a request may start without slowing down those after it.
const slack = 20 * time.Millisecond

// onTime returns the time at which a request that starts now was due, unless it was
// not due for a while.
func onTime(due, now time.Time) time.Time {
	if now.Sub(due) <= slack {
		return due
	}
	return now
}

// evenly returns when the learned rate allows the next request, but a second from
// now at most, because the rate may grow.
func (l *lane) evenly(now time.Time) time.Time {
	if l.rate.goal == 0 {
		return now
	}
	at := l.paced.Add(gap(l.rate.at(now)))
	if soon := now.Add(time.Second); at.After(soon) {
		return soon
	}
	return at
}

// interval returns the time between two requests of some weight if a stated limit
// is spent evenly. It is 0 for a limit per day, because days are longer than runs.
func (l *lane) interval(b, weight int) time.Duration {
	limit := l.stated[b]
	if limit <= 0 || b == requestsPerDay {
		return 0
	}
	return time.Duration(float64(l.windows[b].span) * float64(weight) / float64(limit))
}

// burstTime returns how much earlier than evenly requests of some weight may start.
func (l *lane) burstTime(b, weight int) time.Duration {
	return time.Duration(max(0, l.stated[burstSize]-1)) * l.interval(b, weight)
}

// pace returns the current rate in requests per second, which is infinite if no
// rate is stated or learned.
func (l *lane) pace(now time.Time, c cost) float64 {
	rate := l.rate.at(now)
	for b := requestsPerSecond; b < requestsPerDay; b++ {
		if d := l.interval(b, c.in(b)); d > 0 {
			rate = min(rate, 1/d.Seconds())
		}
	}
	return rate
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// gap returns the time between two requests at a rate.
func gap(rate float64) time.Duration { return time.Duration(float64(time.Second) / rate) }
