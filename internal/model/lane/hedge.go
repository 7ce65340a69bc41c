package lane

import (
	"container/list"
	"slices"
	"time"
)

// How the last stragglers of a run are hedged: see "The tail at scale" by Dean and Barroso,
// Communications of the ACM 56(2), 2013, who send a second request after the time in which 95 % of
// the replies come.
const (
	// A request is late after lateness times the time in which lateShare of the latest replies
	// came. It is never late before soonestLate, because a busy machine delays any reply that long.
	lateShare   = 0.9
	lateness    = 1.5
	soonestLate = 200 * time.Millisecond
	// latestReplies are remembered. Before leastReplies, no request is late.
	latestReplies = 256
	leastReplies  = 20
	// refresh is the number of replies after which lateness is computed again.
	refresh = 16
	// mostSeconds is how many further requests a turn may get: the last one if the one before is
	// late as well.
	mostSeconds = 2
)

// hedger knows the turns in flight and how long replies take. Once no trials are waiting to start,
// it sends second requests for late turns, if a lane has room that no other turn needs.
type hedger struct {
	// talking counts admitted conversations, and asking counts the ones with a request in flight or
	// waiting. The others may ask at any time, so a place is kept for each.
	talking, asking int
	peers           []*peers
	hedged          []*flight // with a second request in flight
}

// peers are the turns of one model. A pool may serve several: the levels of effort of a model
// take different times.
type peers struct {
	model   string
	flights list.List // of *flight, by the time of the latest request
	took    [latestReplies]time.Duration
	replies int
	late    time.Duration // as of the reply with number lateAt
	lateAt  int
}

// A flight is a turn with a request in flight.
type flight struct {
	waiter
	model string
	// second sends another request. It is called once for each, and must not block.
	second func(heldSlot)
	// yield ends second requests in flight. It must not block.
	yield func()

	peers   *peers
	place   *list.Element // in peers.flights, or nil if no more requests may be sent
	sent    time.Time     // when the latest request was sent
	on      *lane         // where it was sent
	out     int           // requests in flight
	extra   int           // second requests that were sent
	decided bool          // a reply has arrived
}

// peersOf returns the turns of a model.
func (h *hedger) peersOf(model string) *peers {
	for _, p := range h.peers {
		if p.model == model {
			return p
		}
	}
	p := &peers{model: model}
	h.peers = append(h.peers, p)
	return p
}

// add remembers how long a reply took.
func (p *peers) add(took time.Duration) {
	p.took[p.replies%latestReplies] = took
	p.replies++
}

// patience returns how long a request may take before it is late. It returns false if there is too
// little to compare it with.
func (p *peers) patience() (time.Duration, bool) {
	if p.replies < leastReplies {
		return 0, false
	}
	if p.late == 0 || p.replies-p.lateAt >= refresh {
		took := slices.Clone(p.took[:min(p.replies, latestReplies)])
		slices.Sort(took)
		usual := took[int(lateShare*float64(len(took)))]
		p.late = max(soonestLate, time.Duration(lateness*float64(usual)))
		p.lateAt = p.replies
	}
	return p.late, true
}

// depart notes that a request of a turn was sent.
func (q *queue) depart(now time.Time, f *flight, t heldSlot) {
	if f.peers == nil {
		f.peers = q.peersOf(f.model)
	}
	f.out++
	f.sent, f.on = now, t.lane
	q.forget(f)
	if f.extra < mostSeconds {
		f.place = f.peers.flights.PushBack(f)
	}
}

// forget makes sure that no more requests are sent for a turn.
func (q *queue) forget(f *flight) {
	if f.place != nil {
		f.peers.flights.Remove(f.place)
		f.place = nil
	}
}

// land notes that a request of a turn has ended after some time, with a reply or without. It
// returns true for the first reply.
func (q *queue) land(f *flight, took time.Duration, replied bool) (first bool) {
	f.out--
	if replied {
		f.peers.add(took)
		first, f.decided = !f.decided, true
	}
	if f.decided || f.out == 0 {
		q.forget(f)
		if f.extra > 0 {
			q.hedged = slices.DeleteFunc(q.hedged, func(x *flight) bool { return x == f })
		}
	}
	return first
}

// hedge sends second requests for turns that are late, as far as lanes have room, if no trials are
// waiting to start or the run is being stopped, and no request is waiting. It returns the
// latest time to call it again, or zero if only a release can change anything.
func (q *queue) hedge(now time.Time) (next time.Time) {
	if q.demand && !q.refusing || q.peek() != nil {
		return time.Time{}
	}
	for _, p := range q.peers {
		patience, known := p.patience()
		for e := p.flights.Front(); known && e != nil; {
			f := e.Value.(*flight)
			e = e.Next()
			if late := f.sent.Add(patience); late.After(now) {
				next = earliest(next, late)
				break
			}
			room, at := q.spare(now)
			if !room {
				return earliest(next, at)
			}
			if l := q.spareLane(now, f); l != nil {
				q.sendSecond(now, l, f)
				next = earliest(next, now.Add(patience))
			}
		}
	}
	return next
}

func (q *queue) sendSecond(now time.Time, l *lane, f *flight) {
	if f.extra++; f.extra == 1 {
		q.hedged = append(q.hedged, f)
	}
	t := l.take(now, f.cost)
	t.later, t.second = f.later(), true
	q.depart(now, f, t)
	f.second(t)
}

// spare reports whether a lane that may be hedged on has a place that no other conversation needs.
// If not, it returns the latest time to ask again, or zero if only a release can change anything.
func (q *queue) spare(now time.Time) (bool, time.Time) {
	c := q.typical()
	places, usable := 0, 0
	var soonest time.Time
	for _, l := range q.lanes {
		if l.closed != nil {
			continue
		}
		n := l.room(now, c)
		places += n
		if !l.mayHedge(now) {
			continue
		}
		usable += n
		if at, _, full := l.start(now, c); n == 0 && !full {
			soonest = earliest(soonest, at)
		}
	}
	return usable > 0 && places > q.talking-q.asking, soonest
}

// mayHedge reports whether a lane may get second requests. A lane in trouble may not.
func (l *lane) mayHedge(now time.Time) bool {
	return l.Hedge && l.closed == nil && l.pausesInRow == 0 && !l.limiter.Doubts(now)
}

// spareLane returns the lane that can start a second request for a turn now, or nil if no lane can.
// It prefers a lane other than the latest request's.
func (q *queue) spareLane(now time.Time, f *flight) (best *lane) {
	bound := q.bound(&f.waiter)
	if f.bytes > 0 {
		f.cost = q.estimate(f.bytes)
	}
	for _, l := range q.lanes {
		if !l.mayHedge(now) || bound && l.Origin != f.origin || l.room(now, f.cost) == 0 {
			continue
		}
		if best == nil || best == f.on || l != f.on && l.preferred(best) {
			best = l
		}
	}
	return best
}

// giveWay ends second requests, because another turn needs a place.
func (q *queue) giveWay() {
	for _, f := range q.hedged {
		f.yield()
	}
}
