package lane

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"

	"github.com/assay-eval/assay"
)

// Work describes the conversations that [Simulate] has to carry out.
type Work struct {
	Conversations int
	// Turns is the mean number of replies in a conversation, at least 1.
	Turns float64
	// Prompt is the mean number of tokens in a conversation's first prompt, Growth
	// the number that each turn adds, and Reply the number in a reply.
	Prompt, Growth, Reply float64
	// Cached and CacheWrite are the shares of prompts that are read from a cache and
	// written to it.
	Cached, CacheWrite float64
	// Latency is the mean time to a reply. The times are log-normal, and Sigma is
	// the standard deviation of their logarithm.
	Latency time.Duration
	Sigma   float64
}

// Simulation is the result of [Simulate].
type Simulation struct {
	Wall                                time.Duration
	Requests, InputTokens, OutputTokens int
	Cost                                float64 // in dollars
	Ledgers                             []Ledger
}

// maxSimulated is the number of requests that are simulated one by one. Results for more requests
// are extrapolated, because windows and widths have settled by then. If only the width is limited,
// they are settled from the start, and each slot needs two conversations to show that the second
// one waits for it.
const (
	maxSimulated  = 200_000
	leastOfASlot  = 2    // conversations
	leastOfSpread = 2000 // requests, because their latencies differ
)

// Simulate carries out work on a model's lanes in virtual time, with the same code
// that runs in real time. It assumes that endpoints have exactly the stated limits
// and never fail.
func Simulate(lanes []Config, work Work) Simulation {
	s := simulator{
		now: time.Unix(0, 0), work: work, pending: work.Conversations,
		random: rand.New(rand.NewPCG(1, 2)),
	}
	s.work.Turns = max(1, work.Turns)
	for i := range lanes {
		s.hedges = s.hedges || lanes[i].Hedge
	}
	s.pending = min(s.pending, int(maxSimulated/s.work.Turns))
	if s.width = onlyWidth(lanes); s.width > 0 {
		s.pending = min(s.pending, max(leastOfASlot*s.width, int(leastOfSpread/s.work.Turns)))
	}
	conversations := s.pending
	s.queue = newQueue(s.now, "", lanes)
	s.run()
	return s.result(conversations)
}

// onlyWidth returns how many requests may be in flight together, or 0 if lanes have other limits or
// are unlimited.
func onlyWidth(lanes []Config) (width int) {
	for i := range lanes {
		n := lanes[i].Limits.Concurrency
		if (n == 0 || lanes[i].Limits != Limits{Concurrency: n}) {
			return 0
		}
		width += n
	}
	return width
}

type simulator struct {
	work    Work
	random  *rand.Rand
	queue   *queue
	now     time.Time
	pending int
	active  int // conversations in progress
	hedges  bool
	width   int // if it is the only limit
	events  events
	total   Simulation

	// half is when half of the conversations had begun, and full when the last one
	// began. The pace is steady between the two.
	half, full           time.Time
	halfPending          int
	halfKnown, fullKnown bool
}

// arrival is a reply that arrives at some time.
type arrival struct {
	at           time.Time
	ticket       heldSlot
	conversation *simulatedTalk
	flight       *flight // nil if the turn is never hedged
}

type simulatedTalk struct {
	turn, turns int
	tickets     []heldSlot // of the turn's requests, if it may be hedged
}

type events []arrival

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(arrival)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (s *simulator) run() {
	first := s.pending
	for s.pending > 0 || s.active > 0 {
		wake := s.queue.dispatch(s.now)
		for s.pending > 0 && s.active < 2*s.queue.width()+64 {
			room, at := s.queue.room(s.now)
			if !room {
				if wake.IsZero() {
					wake = at
				}
				break
			}
			s.pending--
			s.active++
			s.ask(&simulatedTalk{turns: s.turns()})
			wake = s.queue.dispatch(s.now)
		}
		if !s.halfKnown && s.pending <= first/2 {
			s.half, s.halfPending, s.halfKnown = s.now, s.pending, true
		}
		if !s.fullKnown && s.pending == 0 {
			s.full, s.fullKnown = s.now, true
			s.queue.book(s.now)
			s.queue.demand = false
		}
		if !s.next(wake) {
			return // no lane can ever start a request
		}
	}
}

// next advances the time to the next reply or to wake, whichever is earlier. It
// returns false if neither exists.
func (s *simulator) next(wake time.Time) bool {
	for len(s.events) > 0 && s.events[0].overtaken() {
		heap.Pop(&s.events)
	}
	if len(s.events) == 0 || !wake.IsZero() && wake.Before(s.events[0].at) {
		if wake.IsZero() || !wake.After(s.now) {
			return false
		}
		s.now = wake
		return true
	}

	e := heap.Pop(&s.events).(arrival)
	s.now = e.at
	c := e.conversation
	prompt := s.work.Prompt + s.work.Growth*float64(c.turn)
	usage := assay.Usage{
		InputTokens: int(prompt), OutputTokens: int(s.work.Reply),
		CachedTokens: int(prompt * s.work.Cached), CacheWriteTokens: int(prompt * s.work.CacheWrite),
	}
	s.queue.release(s.now, e.ticket, 0, e.ticket.lane.counted(usage), nil, nil)
	s.land(e)
	s.total.Requests++
	s.total.InputTokens += usage.InputTokens
	s.total.OutputTokens += usage.OutputTokens
	s.total.Cost += e.ticket.lane.Price.Of(usage)
	if c.turn++; c.turn < c.turns {
		s.ask(c)
	} else {
		s.active--
	}
	return true
}

func (s *simulator) ask(c *simulatedTalk) {
	input := s.work.Prompt + s.work.Growth*float64(c.turn)
	f := &flight{waiter: waiter{cost: cost{1, int(input), int(s.work.Reply)}}}
	send := func(t heldSlot) {
		c.tickets = append(c.tickets, t)
		heap.Push(&s.events, arrival{s.now.Add(s.latency()), t, c, f})
	}
	f.answer = func(t heldSlot, err error) {
		if err == nil {
			send(t)
		}
	}
	f.second = send
	f.yield = func() {} // the next turn finds the place of the one before
	c.tickets = c.tickets[:0]
	if s.hedges {
		f.waiter.flight = f
	}
	s.queue.enqueue(s.now, &f.waiter)
}

// land ends the other requests of a turn, to which a reply has arrived.
func (s *simulator) land(e arrival) {
	if e.flight.peers == nil {
		return
	}
	s.queue.land(e.flight, s.now.Sub(e.ticket.started), true)
	for _, t := range e.conversation.tickets {
		if t.number != e.ticket.number || t.lane != e.ticket.lane {
			s.queue.abandon(s.now, t)
			s.total.Requests++
		}
	}
}

// overtaken reports whether the turn of a reply was answered before.
func (e arrival) overtaken() bool { return e.flight != nil && e.flight.decided }

// turns draws an integer whose mean is work.Turns.
func (s *simulator) turns() int {
	whole, rest := math.Modf(s.work.Turns)
	if s.random.Float64() < rest {
		whole++
	}
	return int(whole)
}

func (s *simulator) latency() time.Duration {
	if s.work.Sigma <= 0 {
		return s.work.Latency
	}
	// The mean of a log-normal is exp(mu + sigma²/2).
	x := math.Exp(s.work.Sigma*s.random.NormFloat64() - s.work.Sigma*s.work.Sigma/2)
	return time.Duration(float64(s.work.Latency) * x)
}

// result extrapolates the simulated conversations to all of the work.
func (s *simulator) result(conversations int) Simulation {
	out := s.total
	out.Wall = s.now.Sub(time.Unix(0, 0))
	out.Ledgers = s.queue.ledgers()
	rest := s.work.Conversations - conversations
	if rest <= 0 || conversations == 0 {
		return out
	}
	scale := float64(s.work.Conversations) / float64(conversations)
	out.Requests = int(float64(out.Requests) * scale)
	out.InputTokens = int(float64(out.InputTokens) * scale)
	out.OutputTokens = int(float64(out.OutputTokens) * scale)
	out.Cost *= scale
	simulated := out.Wall
	switch {
	case s.width > 0:
		var worked time.Duration
		for i := range out.Ledgers {
			worked += out.Ledgers[i].Worked
		}
		out.Wall += time.Duration(float64(worked) * (scale - 1) / float64(s.width))
	case s.halfPending > 0:
		steady := float64(s.full.Sub(s.half))
		out.Wall += time.Duration(steady * float64(rest) / float64(s.halfPending))
	}
	for i := range out.Ledgers {
		out.Ledgers[i].scale(float64(out.Wall)/float64(max(1, simulated)), scale)
	}
	return out
}
