package limit

import "time"

// block is a row of refusals. It ends when a request that was sent after them is not refused.
type block struct {
	gate  State         // Open if there is no block, Doubting or Waiting
	began time.Duration // when the first refused request was sent
	first uint64        // the first refused request
	last  uint64        // the latest refused request
	// Requests from number mark on were sent after the first refusal had arrived: they are probes.
	mark    uint64
	until   time.Duration // when the next probe is due
	refused time.Duration // when the latest refused probe was sent
	end     time.Duration // when the endpoint announced to accept requests, or 0
}

const (
	// A request that is not refused for refusalFactor times as long as refusals take counts as
	// accepted.
	refusalFactor                  = 3
	minRefusalTime, maxRefusalTime = 50 * time.Millisecond, 5 * time.Second
	// Waits between probes are half as long as the block has lasted, from firstGap to longestGap. In
	// the first minute, steadyGap is the longest.
	firstGap   = 250 * time.Millisecond
	steadyGap  = 20 * time.Second
	longestGap = time.Hour
	// Rules that silence a lane for longBlock may be wrong about when it opens again.
	longBlock = time.Second
)

// doubt begins a block.
func (l *Limiter) doubt(t time.Duration, r *request, why Refusal) {
	l.block = block{
		gate: Doubting, began: r.sent, first: r.number, last: r.number, mark: l.log.next(),
		until: t + l.pace.gap(t), end: why.until(t),
	}
}

// wait notes that a probe was refused. If the rules explain that, they are obeyed, and the block has
// ended.
func (l *Limiter) wait(t time.Duration, r *request, why Refusal) {
	w := &l.block
	if w.gate == Doubting {
		w.gate = Waiting
		l.chance = chance{}
		l.blocks++
		l.hard++
		obeyed := len(l.obeyed) > 0
		explained := l.weigh()
		if obeyed && !explained && l.suspect > 0 { // for the second time
			l.lowered(w)
			explained = l.weigh()
		} else if obeyed && !explained {
			l.suspect = w.first
		}
		if explained {
			l.open(r)
			return
		}
	}
	w.last, w.refused = max(w.last, r.number), r.sent
	w.end = max(w.end, why.until(t))
	w.until = l.nextProbe(t)
}

// pass ends a block, because request r, which was sent after its refusals, was not refused.
func (l *Limiter) pass(t time.Duration, r *request) {
	w := l.block
	l.open(r)
	mixed := l.mixed(w)
	l.chance.refused += mixed
	if mixed == 0 {
		l.ramp = ramp{on: true, began: t}
	}
	if w.gate == Waiting {
		for _, u := range l.rules {
			u.place(w.refused, r.sent)
		}
	}
	l.judge(t, w)
}

// open ends a block as of request r.
func (l *Limiter) open(r *request) {
	l.passed, l.block = r.number, block{}
	l.log.burst++
}

// crowd notes that too many requests were in flight. A reply ends that, and not the clock.
func (l *Limiter) crowd(r *request, limit int) {
	l.crowded = true
	if limit > 0 {
		l.named = limit
	}
	if l.weigh(); len(l.obeyed) == 0 { // the limit is lower than it was
		l.epoch = r.number
		l.weigh()
	}
}

// probe returns the request in flight that ends a block unless it is refused soon, or nil.
func (l *Limiter) probe() *request {
	if r := l.log.latest(); l.block.gate != Open && r != nil && r.number > l.block.last &&
		r.fate == pending {
		return r
	}
	return nil
}

// probing returns until when requests wait because of a block.
func (l *Limiter) probing(now time.Duration) time.Duration {
	if l.block.gate == Open {
		return now
	}
	if r := l.probe(); r != nil {
		return r.sent + l.refusalTime
	}
	return l.block.until
}

// nextProbe returns when the next probe of a block is due.
func (l *Limiter) nextProbe(t time.Duration) time.Duration {
	elapsed := t - l.block.began
	gap := max(firstGap, elapsed/2)
	if l.pace.rate > 0 {
		gap = max(min(firstGap, l.pace.gap(t)), elapsed/2)
	}
	if elapsed < time.Minute {
		gap = min(gap, steadyGap)
	}
	next := t + min(gap, longestGap)
	for _, at := range l.openings() {
		if at > t+max(firstGap/2, elapsed/64) {
			next = min(next, at)
		}
	}
	return next
}

// openings returns when each of the rules would end the block, and when it was announced to end.
func (l *Limiter) openings() []time.Duration {
	w := &l.block
	at := []time.Duration{w.end + tolerance}
	for _, r := range l.rules {
		switch {
		case r.shape == clock:
			begin, _ := r.begin(w.began)
			at = append(at, begin+r.span+3*tolerance)
		case r.span > 0 && r.shape == sliding:
			if first := l.log.firstLive(w.began - r.span); first >= 0 {
				at = append(at, first+r.span+2*tolerance)
			}
		}
	}
	return at
}

// until returns until when a refusal that arrives at some time asks to wait, or 0.
func (r Refusal) until(t time.Duration) time.Duration {
	if r.Wait <= 0 {
		return 0
	}
	return t + r.Wait
}

// ramp bounds how many requests a lane sends at once after it was opened again.
type ramp struct {
	on    bool
	began time.Duration
	waits bool // it begins when rules that have silenced the lane for longBlock permit a request
}

// silence notes whether the obeyed rules silence the lane for long from now on.
func (l *Limiter) silence(now time.Duration) {
	if l.state() == Obeying {
		at := l.permitted(now, l.asked)
		l.ramp.waits = l.ramp.waits || at > now+longBlock && at < never
	}
}

// height returns how many requests the ramp permits that may still be refused. It doubles each time
// that refusals would have arrived.
func (l *Limiter) height(now time.Duration) int {
	return 1 << min(30, max(0, now-l.ramp.began)/l.refusalTime)
}

// climbs reports whether the ramp still bounds requests.
func (l *Limiter) climbs(now time.Duration) bool { return l.ramp.on && l.height(now) < l.width }

// climb ends the ramp if it has reached the width.
func (l *Limiter) climb(now time.Duration) { l.ramp.on = l.climbs(now) }

// ramped returns when the ramp permits a request.
func (l *Limiter) ramped(now time.Duration) time.Duration {
	if !l.climbs(now) {
		return now
	}
	fresh, oldest := l.log.fresh(now - l.refusalTime)
	if fresh < l.height(now) {
		return now
	}
	return oldest + l.refusalTime
}
