package limit_test

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"

	"github.com/assay-eval/assay/internal/model/limit"
)

// client is an algorithm that the games compare: [limit.Limiter] and others.
type client interface {
	Next(now time.Time, a limit.Amount) (time.Time, bool)
	Send(now time.Time, a limit.Amount) uint64
	Accept(now time.Time, n uint64, used limit.Amount)
	Refuse(now time.Time, n uint64, why limit.Refusal)
}

// game lets clients use a server whose limit they do not know.
type game struct {
	server  server
	latency float64 // mean time to a reply, in seconds
	width   int     // most requests in flight of each client
	jobs    int     // of each client; 0 for any number
	seconds float64 // 0 until all jobs are done
	// say returns the wait that refusals announce if the server needs wait seconds; nil to omit it.
	say    func(wait float64) float64
	amount func(r *rand.Rand) limit.Amount // nil for one request
	start  float64                         // seconds after a full minute
	slow   bool                            // requests take longer to arrive, and to be refused
	seed   uint64
}

// result has the outcome of the requests. Times are in seconds since the start of the game.
type result struct {
	took     float64
	accepted []float64 // when replies arrived
	refused  []float64
	waited   float64 // the longest announced wait of any job, over all its refusals
}

// job is a request that is sent until it is accepted.
type job struct {
	amount limit.Amount
	due    float64
	waited float64
}

// player is a client with its jobs.
type player struct {
	client
	todo, flying int
	held         byTime[job] // refused before
}

type event struct {
	t       float64
	player  *player
	number  uint64
	job     job
	arrives bool // at the server; else it has a reply
	ok      bool
	wait    float64
}

// byTime is a heap.
type byTime[T interface{ time() float64 }] []T

func (e event) time() float64 { return e.t }
func (j job) time() float64   { return j.due }

func (h byTime[T]) Len() int           { return len(h) }
func (h byTime[T]) Less(i, j int) bool { return h[i].time() < h[j].time() }
func (h byTime[T]) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byTime[T]) Push(x any)        { *h = append(*h, x.(T)) }
func (h *byTime[T]) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// epoch is a full minute, hour and day.
var epoch = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	// lag is the longest time that a request needs to the server, in seconds, and slowLag the time
	// of a slow one.
	lag, slowLag = 0.01, 0.4
	// refusing is the mean time to a refusal.
	refusing = 0.02
)

func (g game) at(t float64) time.Time { return epoch.Add(time.Duration((g.start + t) * 1e9)) }

func (g game) play(clients ...client) (out result) {
	random := rand.New(rand.NewPCG(g.seed, 9))
	var queue byTime[event]
	var players []*player
	for _, c := range clients {
		todo := g.jobs
		if todo == 0 {
			todo = math.MaxInt
		}
		players = append(players, &player{client: c, todo: todo})
	}
	t := 0.0
	for g.seconds == 0 || t < g.seconds {
		wake := math.Inf(1)
		for _, p := range players {
			wake = min(wake, g.send(p, t, &queue, random))
		}
		switch {
		case len(queue) == 0 && math.IsInf(wake, 1):
			return out
		case len(queue) == 0 || wake < queue[0].t:
			t = wake
			continue
		}
		e := heap.Pop(&queue).(event)
		t = e.t
		if e.arrives {
			heap.Push(&queue, g.serve(e, random))
			continue
		}
		g.reply(e, &out)
		out.took = t
	}
	return out
}

// send sends all requests that a client may send now. It returns when it may send the next one.
func (g game) send(p *player, t float64, queue *byTime[event], random *rand.Rand) (wake float64) {
	wake = math.Inf(1)
	lag := lag
	if g.slow {
		lag = slowLag
	}
	for p.flying < g.width {
		again := len(p.held) > 0 && p.held[0].due <= t
		var j job
		switch {
		case again:
			j = p.held[0]
		case p.todo == 0 && len(p.held) == 0:
			return wake
		case p.todo == 0:
			return p.held[0].due
		case g.amount != nil:
			j.amount = g.amount(random)
		default:
			j.amount = limit.Amount{Requests: 1}
		}
		when, ok := p.Next(g.at(t), j.amount)
		if !ok {
			return wake
		}
		if when.After(g.at(t)) {
			return t + when.Sub(g.at(t)).Seconds() + 1e-9
		}
		if again {
			heap.Pop(&p.held)
		} else {
			p.todo--
		}
		p.flying++
		heap.Push(queue, event{
			t: t + lag*random.Float64(), player: p, number: p.Send(g.at(t), j.amount),
			job: j, arrives: true,
		})
	}
	return wake
}

// serve returns the reply to a request.
func (g game) serve(e event, random *rand.Rand) event {
	e.arrives = false
	e.ok, e.wait = g.server.admit(e.t+g.start, e.job.amount)
	switch took := 0.8 + 0.4*random.Float64(); {
	case e.ok:
		e.t += g.latency * took
		if d, is := g.server.(delayer); is {
			e.t += d.delay()
		}
	case g.say != nil:
		e.wait = g.say(e.wait)
		e.t += refusing * took
	default:
		e.wait = 0
		e.t += refusing * took
	}
	return e
}

// reply hands a reply to the client.
func (g game) reply(e event, out *result) {
	e.player.flying--
	if e.ok {
		if s, is := g.server.(ender); is {
			s.end()
		}
		out.accepted = append(out.accepted, e.t)
		e.player.Accept(g.at(e.t), e.number, e.job.amount)
		return
	}
	out.refused = append(out.refused, e.t)
	e.job.due = e.t + e.wait
	e.job.waited += e.wait
	out.waited = max(out.waited, e.job.waited)
	heap.Push(&e.player.held, e.job)
	e.player.Refuse(g.at(e.t), e.number, limit.Refusal{Wait: time.Duration(e.wait * 1e9)})
}

// possible returns how many replies a client can have that knows the server and wastes no time.
func (g game) possible(mean limit.Amount) (n int) {
	var ends []float64 // of replies, if the server counts requests in flight
	_, counts := g.server.(ender)
	for t := 0.0; t+g.latency <= g.seconds; {
		for len(ends) > 0 && ends[0] <= t {
			ends = ends[1:]
			g.server.(ender).end()
		}
		ok, wait := g.server.admit(t+g.start, mean)
		switch {
		case ok:
			n++
			if counts {
				ends = append(ends, t+g.latency)
			}
		case counts && len(ends) > 0:
			t = ends[0]
		default:
			t += max(wait, 1e-3)
		}
	}
	return n
}
