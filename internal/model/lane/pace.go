package lane

import "time"

// slack is how late a request may start without slowing down later requests.
const slack = 20 * time.Millisecond

// onTime returns the time at which a request that starts now was due, unless it was
// not due for a while.
func onTime(due, now time.Time) time.Time {
	if now.Sub(due) <= slack {
		return due
	}
	return now
}

// interval returns the time between two requests of some weight if a stated limit
// is spent evenly. It is 0 for a limit per day, because days are longer than runs.
func (l *lane) interval(b, weight int) time.Duration {
	limit := l.stated[b]
	if limit <= 0 || rules[b].per >= day {
		return 0
	}
	return time.Duration(float64(l.windows[b].span) * float64(weight) / float64(limit))
}

// burstTime returns how much earlier than evenly requests of some weight may start.
func (l *lane) burstTime(b, weight int) time.Duration {
	return time.Duration(max(0, l.stated[burstSize]-1)) * l.interval(b, weight)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
