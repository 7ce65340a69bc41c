package limit

import "time"

// challenge is a request that exceeds the rules that are obeyed, to find out whether they hold.
type challenge struct {
	out    bool
	number uint64
	sent   time.Duration
	since  int // requests accepted since the latest one
	failed int // challenges refused since rules are obeyed
	row    int // challenges accepted in a row
}

const (
	// The first challenge follows challengeFirst requests. The number doubles each time, up to
	// challengeEvery. If the limit has moved lately, it is challengeOften, and at least oftenEvery apart.
	challengeFirst, challengeEvery, challengeOften = 10, 60, 10
	oftenEvery                                     = 5 * time.Second
	// If the obeyed rules disagree, so that one request would find out which is right, it is sent a
	// second after the latest challenge at the earliest.
	soonestChallenge = time.Second
	// Rules are surely right after this many refused challenges.
	surely = 2
)

func (d *challenge) is(n uint64) bool { return d.out && d.number == n }

func (d *challenge) send(t time.Duration, n uint64) { d.out, d.number, d.sent, d.since = true, n, t, 0 }

// cancel forgets a challenge that has no result.
func (d *challenge) cancel(n uint64) {
	if d.is(n) {
		d.out = false
	}
}

// nextChallenge returns when a request may exceed the obeyed rules, which permit one at time hard.
func (l *Limiter) nextChallenge(now time.Duration, a Amount, hard time.Duration) time.Duration {
	d := &l.challenge
	if d.out {
		return never
	}
	every, span := min(challengeEvery, challengeFirst<<min(d.failed, 8)), time.Duration(0)
	for _, o := range l.obeyed {
		span = max(span, min(o.span, time.Minute))
	}
	if now < l.unsettled {
		every = challengeOften
	}
	at := l.nextTry(now, span)
	if d.since >= every {
		at = min(at, d.sent+span)
	}
	if d.row > 0 {
		at = now
	}
	if soft := l.soonest(now, a); !l.joint && soft < hard-disagreement(hard-now) {
		at = min(at, max(soft, d.sent+soonestChallenge))
	}
	// A moment after the latest request, the level of the challenge is certain.
	return max(at, now, l.log.lastLive()+2*l.log.slack)
}

// disagreement is by how much rules that make a request wait may differ without a challenge.
func disagreement(wait time.Duration) time.Duration { return max(wait/8, 100*time.Millisecond) }

// nextTry returns when a request may try whether a limit that moves has been raised.
func (l *Limiter) nextTry(now, span time.Duration) time.Duration {
	d := &l.challenge
	switch {
	case now >= l.unsettled || d.out || d.since < 3 && d.row == 0:
		return never
	case d.row > 0:
		return now
	}
	return max(now, d.sent+max(span, oftenEvery))
}

// challenged learns from a challenge.
func (l *Limiter) challenged(t time.Duration, r *request) {
	d := &l.challenge
	d.out = false
	if d.row++; r.fate == refused {
		if d.failed++; d.failed == surely && len(l.obeyed) > 0 {
			l.pace = pace{}
		}
		d.row = 0
		r.burst = -1 - int(r.number) // its own burst
	}
	if len(l.obeyed) == 0 && l.pace.rate > 0 {
		if float64(d.row) > 4+0.1*l.pace.rate*(t-l.pace.began).Seconds() {
			l.raised(t, r)
		}
		return
	}
	obeyed := len(l.obeyed) > 0
	if l.weigh(); obeyed && len(l.obeyed) == 0 && r.fate == accepted {
		l.raised(t, r)
	}
}
