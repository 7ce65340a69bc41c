package limit

import (
	"slices"
	"time"
)

// unsettledFor is how long limits that have moved are tried more often.
const unsettledFor = 2 * time.Minute

// judge decides which rules are obeyed after a block. If no rule is confirmed after two blocks, the
// lane is paced.
func (l *Limiter) judge(t time.Duration, w block) {
	strong := w.gate == Waiting
	l.weigh()
	switch {
	case len(l.obeyed) > 0:
	case l.pace.rate > 0:
		if by := l.pace.block(t, strong); by < 0.6 || by > 1.6 {
			l.unsettled = t + unsettledFor
		}
	case strong && l.blocks >= 2:
		l.pace.start(t, l.firstBlock, l.log.live(l.firstBlock))
	case strong && l.blocks == 1:
		l.firstBlock = w.began
	}
	explicable := slices.ContainsFunc(l.rules, (*rule).possible)
	if strong && len(l.obeyed) == 0 && l.blocks >= 4 && !explicable {
		l.epoch, l.blocks = w.first, 2
	}
}

// broken counts refusals of requests that the obeyed rules permit.
type broken struct {
	times, since int           // since is the number of requests sent when the rules were confirmed
	until        time.Duration // until then, no rule is believed
}

// breaks notes that a request was refused. If one in ten requests that the rules permit is refused,
// the rules are wrong in a way that more evidence will not show, so the lane is paced for a while.
func (l *Limiter) breaks(t time.Duration, r *request) {
	b := &l.broken
	if !r.permitted || len(l.obeyed) == 0 {
		return
	}
	if b.times++; b.times >= 4 && 10*b.times > l.sent-b.since {
		l.epoch, l.obeyed = r.number, nil
		b.until = t + time.Minute
	}
}

// weigh obeys the rules that are confirmed. It reports whether they explain all refusals.
func (l *Limiter) weigh() (explained bool) {
	if l.log.latest().sent < l.broken.until {
		return false
	}
	confirmed := l.confirm(l.rules, nil, apart)
	if len(confirmed) == 0 && l.challenge.failed >= surely {
		confirmed = l.together()
	}
	l.joint = slices.ContainsFunc(confirmed, func(r *rule) bool {
		return len(r.refusals) != len(confirmed[0].refusals)
	})
	if explained = l.log.explained(l.epoch, refusalsOf(confirmed)); explained && !l.joint {
		l.reconsider(confirmed)
	}
	if len(l.obeyed) == 0 {
		l.challenge.failed = 0
		l.broken.times, l.broken.since = 0, l.sent
	}
	l.obeyed = l.obeyed[:0]
	for _, r := range confirmed {
		o := r.obey(&l.log)
		if r.measure == InFlight && l.named > 0 {
			o.limit = min(o.limit, l.named)
		}
		l.obeyed = append(l.obeyed, o)
	}
	if explained {
		l.suspect = 0
	}
	return explained
}

// reconsider notes that the confirmed rules, as they are known now, do not permit the requests
// whose refusals they explain. How many requests are in flight at the endpoint is uncertain, so the
// limit may have seemed to be higher when they were sent.
func (l *Limiter) reconsider(confirmed []*rule) {
	for _, r := range confirmed {
		for i := 0; r.measure == InFlight && i < len(r.refusals); i++ {
			l.log.at(r.refusals[i].number).permitted = false
		}
	}
}

// confirm returns the rules that are confirmed by bursts which are a part of their span apart,
// given refusals that other rules explain.
func (l *Limiter) confirm(
	rules []*rule, explained map[uint64]bool, apart float64,
) (confirmed []*rule) {
	for _, r := range rules {
		if r.weigh(&l.log, l.epoch, explained, false); r.confirmed(apart) {
			confirmed = append(confirmed, r)
		}
	}
	return confirmed
}

// together finds rules that explain the refusals only together, because an endpoint may have
// several limits: the rules that are obeyed and that no accepted request has refuted, and others
// that explain the rest.
func (l *Limiter) together() (rules []*rule) {
	for _, o := range l.obeyed {
		o.rule.weigh(&l.log, l.epoch, nil, true)
		if o.rule.possible() {
			rules = append(rules, o.rule)
		}
	}
	if len(rules) == 0 {
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(l.rules), func(r *rule) bool {
		return slices.Contains(rules, r)
	})
	return append(rules, l.confirm(others, refusalsOf(rules), apartBeside)...)
}

// refusalsOf returns the refused requests that some rules explain.
func refusalsOf(rules []*rule) map[uint64]bool {
	known := make(map[uint64]bool)
	for _, r := range rules {
		for _, f := range r.refusals {
			known[f.number] = true
		}
	}
	return known
}

// lowered notes that requests which the obeyed rules permit are refused again: the limit is lower
// now. Requests before the first of these refusals are no longer evidence.
func (l *Limiter) lowered(w *block) {
	l.epoch, l.suspect = l.suspect, 0
	l.blocks, l.firstBlock = 1, w.began
	l.moved(l.log.latest().sent)
}

// raised notes that a challenge was accepted which no rule permits: the limit is higher now.
func (l *Limiter) raised(t time.Duration, r *request) {
	l.epoch = r.number
	l.blocks, l.pace, l.challenge.row = 0, pace{}, 0
	l.ramp = ramp{on: true, began: t}
	l.moved(t)
}

// moved forgets the obeyed rules. If they were right, the limit is tried more often for a while.
func (l *Limiter) moved(t time.Duration) {
	l.named, l.obeyed = 0, nil
	if l.challenge.failed > 0 {
		l.unsettled = t + unsettledFor
	}
}
