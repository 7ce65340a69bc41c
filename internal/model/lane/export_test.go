package lane

import (
	"container/heap"
	"time"

	"github.com/assay-eval/assay"
)

// Answer is what an endpoint does with a request, and how long that takes.
type Answer struct {
	Took  time.Duration
	Resp  assay.Response
	Fault *assay.Fault
}

// Play keeps a lane busy in virtual time, without goroutines, HTTP or clocks, so that an hour
// takes milliseconds. It calls answer when a request starts.
func Play(c Config, from time.Time, took time.Duration, answer func(time.Time) Answer) {
	q := newQueue(from, "m", []Config{c})
	answers := make(map[*conversation]Answer)
	var flying events
	now := from
	ask := func() {
		q.enqueue(now, &waiter{cost: cost{1, 11, 3}, answer: func(t ticket, err error) {
			if err == nil {
				a, id := answer(now), &conversation{}
				answers[id] = a
				heap.Push(&flying, event{now.Add(a.Took), t, id, nil})
			}
		}})
	}
	for range 2 * widest {
		ask()
	}
	for now.Before(from.Add(took)) && q.closed() == nil {
		wake := q.dispatch(now)
		if len(flying) == 0 || !wake.IsZero() && wake.Before(flying[0].at) {
			now = wake
			continue
		}
		e := heap.Pop(&flying).(event)
		now = e.at
		a := answers[e.conversation]
		delete(answers, e.conversation)
		q.release(now, e.ticket, 0, a.Resp.Usage, a.Resp.Quotas, a.Fault)
		ask()
	}
}
