//go:build !race

// The games take minutes under the race detector, and all code here runs in one goroutine.

package limit_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/assay-eval/assay/internal/model/limit"
)

// row is a limiter that the law has to find out. Fields that are zero have the values of play.
type row struct {
	name    string
	server  func() server
	fair    func() server // the part of server that others leave to a client; nil for server
	latency float64
	say     func(float64) float64
	seconds float64
	amount  func(*rand.Rand) limit.Amount
	clients int
	slow    bool // see game
	// least is the least share of the possible replies: 0.85 if it is zero.
	least float64
	moves bool // the limit moves, punishes or is shared, so that refusals go on
}

// Refusals announce the right wait, the same in whole seconds, or always the same.
func right(wait float64) float64   { return wait }
func seconds(wait float64) float64 { return math.Ceil(wait) }
func always(x float64) func(float64) float64 {
	return func(float64) float64 { return x }
}

// chat draws a request of 500 to 1,500 tokens in and 100 to 300 out.
func chat(r *rand.Rand) limit.Amount {
	return limit.Amount{Requests: 1, Input: 500 + r.IntN(1000), Output: 100 + r.IntN(200)}
}

const minute, hour, day = 60.0, 3600.0, 86400.0

func slide(n int, span float64) func() server {
	return func() server { return &sliding{n: n, span: span} }
}

func slideTokens(n int, of func(limit.Amount) int) func() server {
	return func() server { return &sliding{n: n, span: minute, of: of} }
}

func fix(s fixed) func() server {
	return func() server { fresh := s; return &fresh }
}

func tank(s bucket) func() server {
	return func() server { fresh := s; return &fresh }
}

func fly(n int) func() server { return func() server { return &flying{n: n} } }

// risky refuses 2 % by chance as well.
func risky(s func() server) func() server {
	return func() server { return &chance{s(), 0.02, rand.New(rand.NewPCG(1, 2))} }
}

func join(a, b func() server) func() server {
	return func() server { return &both{a(), b()} }
}

func move(every float64, rates ...int) func() server {
	return func() server { return &moving{rates: rates, every: every, sliding: sliding{span: 1}} }
}

// busy is a server that another program uses once a second.
func busy(s func() server) func() server {
	return func() server { return &shared{server: s(), rate: 1} }
}

func halved() server { return &punishing{full: 120, sliding: sliding{span: minute}} }

func input(a limit.Amount) int  { return a.Input }
func output(a limit.Amount) int { return a.Output }
func total(a limit.Amount) int  { return a.Input + a.Output }

func rows() []row {
	fixedMinute := fixed{n: 120, span: minute}
	anchored := fixed{n: 600, span: minute, anchored: true}
	return []row{
		{name: "5 per second", server: slide(5, 1)},
		{name: "10 per second", server: slide(10, 1)},
		{name: "50 per fixed second", server: fix(fixed{n: 50, span: 1})},
		{name: "20 per 10 s", server: slide(20, 10)},
		{name: "20 per fixed 10 s", server: fix(fixed{n: 20, span: 10})},
		{name: "120 per minute", server: slide(120, minute)},
		{name: "120 per minute, announced", server: slide(120, minute), say: right},
		{name: "120 per minute, announced in seconds", server: slide(120, minute), say: seconds},
		{name: "120 per minute, 1 s announced", server: slide(120, minute), say: always(1)},
		{name: "120 per fixed minute", server: fix(fixedMinute)},
		{
			name:   "120 per fixed minute from second 17",
			server: fix(fixed{n: 120, span: minute, phase: 17}),
		},
		{name: "600 per minute from the first request", server: fix(anchored)},
		{name: "600 per minute from the first request, announced", server: fix(anchored), say: right},
		{name: "120 per minute, slow to arrive", server: slide(120, minute), slow: true},
		// Requests arrive 0.4 s apart that were sent at once, so not all of a second can be used,
		// and they are in flight for longer than the server counts.
		{name: "5 per second, slow to arrive", server: slide(5, 1), slow: true, least: 0.6, moves: true},
		{name: "7 in flight, slow to arrive", server: fly(7), latency: 1, slow: true, least: 0.8},
		{name: "20 per minute", server: slide(20, minute)},
		{name: "12 per minute", server: slide(12, minute)},
		{name: "500 per hour", server: slide(500, hour), seconds: 3*hour - 60},
		{name: "1,000 per day", server: fix(fixed{n: 1000, span: day}), seconds: 3*day - hour},
		{name: "bucket of 1, 1 per second", server: tank(bucket{rate: 1, size: 1})},
		{name: "bucket of 5, 2 per second", server: tank(bucket{rate: 2, size: 5})},
		{
			name:   "bucket of 5, 2 per second, announced",
			server: tank(bucket{rate: 2, size: 5}), say: right,
		},
		{name: "bucket of 15, 15 per second", server: tank(bucket{rate: 15, size: 15})},
		{name: "bucket of 100, 20 per second", server: tank(bucket{rate: 20, size: 100})},
		{name: "bucket of 120, 2 per second", server: tank(bucket{rate: 2, size: 120})},
		{
			name:   "queue of 10, 4 per second",
			server: func() server { return &leaky{rate: 4, queue: 10} },
		},
		{name: "7 in flight", server: fly(7), latency: 1},
		{name: "7 in flight, 1 s announced", server: fly(7), latency: 1, say: always(1)},
		{name: "7 in flight, 30 s announced", server: fly(7), latency: 1, say: always(30)},
		{name: "30 in flight", server: fly(30), latency: 1},
		{name: "1 in flight", server: fly(1), latency: 5, seconds: 300},
		{name: "1 in flight, 5 s announced", server: fly(1), latency: 5, seconds: 300, say: always(5)},
		{name: "60,000 tokens per minute", server: slideTokens(60000, total), amount: chat},
		{name: "60,000 input tokens per minute", server: slideTokens(60000, input), amount: chat},
		{name: "10,000 output tokens per minute", server: slideTokens(10000, output), amount: chat},
		{name: "5 per second and 120 per minute", server: join(slide(5, 1), slide(120, minute))},
		{
			name:   "10 in flight and 300 per minute",
			server: join(fly(10), slide(300, minute)), latency: 0.7,
		},
		{
			name:   "5 per second, and 2 % by chance",
			server: risky(slide(5, 1)), fair: slide(5, 1), moves: true,
		},
		{
			name:   "120 per minute, and 2 % by chance",
			server: risky(slide(120, minute)), fair: slide(120, minute), least: 0.75, moves: true,
		},
		{name: "7 in flight, and 2 % by chance", server: risky(fly(7)), fair: fly(7), latency: 1, moves: true},
		{name: "60 → 600 → 60 per minute, every 30 s", server: move(30, 1, 10), least: 0.7, moves: true},
		// A client that finds out whether the limit has been raised cannot use much more than half.
		{name: "120 per minute, halved for a minute by each refusal", server: halved, seconds: 600, least: 0.5, moves: true},
		{name: "120 per minute, used by two keys", server: slide(120, minute), clients: 2, least: 0.7, moves: true},
		{name: "120 per fixed minute, used by two keys", server: fix(fixedMinute), clients: 2, least: 0.7, moves: true},
		{
			name:   "120 per minute, half used by others",
			server: busy(slide(120, minute)), fair: slide(60, minute), seconds: 300, least: 0.7, moves: true,
		},
		{
			name:   "120 per fixed minute, half used by others",
			server: busy(fix(fixedMinute)), fair: fix(fixed{n: 60, span: minute}), seconds: 300, least: 0.7, moves: true,
		},
	}
}

// heldOut are limiters that the law was not tuned for. They have no thresholds.
func heldOut() []row {
	return []row{
		{name: "25 per fixed 7 s from second 3", server: fix(fixed{n: 25, span: 7, phase: 3})},
		{name: "300 per 2 minutes", server: slide(300, 2*minute), seconds: 400},
		{name: "40 per minute, 60 s announced", server: slide(40, minute), say: always(60)},
		{name: "3 in flight and 40 per minute", server: join(fly(3), slide(40, minute)), latency: 2},
		{
			name:   "8 per second and 300 per minute, and 2 % by chance",
			server: risky(join(slide(8, 1), slide(300, minute))),
			fair:   join(slide(8, 1), slide(300, minute)),
		},
		{
			name:   "bucket of 30, one in 2 s, announced in seconds",
			server: tank(bucket{rate: 0.5, size: 30}), say: seconds,
		},
		{
			name:   "queue of 3, 1.5 per second, 1 s announced",
			server: func() server { return &leaky{rate: 1.5, queue: 3} }, say: always(1),
		},
		{name: "120 → 60 → 360 per minute, every 90 s", server: move(90, 2, 1, 6), seconds: 540},
		{name: "10 in flight, used by two keys", server: fly(10), latency: 1, clients: 2},
	}
}

// score is the result of a law in a row. Use is the share of the possible replies, and late the
// share of requests that were refused in the last third of the game, without two.
type score struct {
	use, late     float64
	refused, sent int
}

// play lets a law play a row from some second of a minute on.
func (r row) play(law func(game) client, start float64, seed uint64) (s score) {
	g := game{
		latency: cmp.Or(r.latency, 0.2), seconds: cmp.Or(r.seconds, 200), width: 64,
		say: r.say, amount: r.amount, start: start, seed: seed, slow: r.slow,
	}
	mean := limit.Amount{Requests: 1, Input: 1000, Output: 200} // of chat
	if g.server = r.server(); r.fair != nil {
		g.server = r.fair()
	}
	best := g.possible(mean)

	g.server = r.server()
	clients := []client{law(g)}
	for len(clients) < r.clients {
		clients = append(clients, law(g))
	}
	out := g.play(clients...)
	after := func(times []float64) (n int) {
		for _, t := range times {
			if t > g.seconds*2/3 {
				n++
			}
		}
		return n
	}
	refused := after(out.refused)
	return score{
		use:     float64(len(out.accepted)) / float64(best),
		late:    float64(max(0, refused-2)) / float64(max(1, refused+after(out.accepted))),
		refused: len(out.refused), sent: len(out.refused) + len(out.accepted),
	}
}

// starts are the seconds of a minute at which the games begin.
var starts = []float64{13, 41.3, 59, 7.7, 30}

// scores returns the score with the median of each figure, and the least use.
func (r row) scores(law func(game) client) (m score, worst float64) {
	var all []score
	for seed, start := range starts {
		all = append(all, r.play(law, start, uint64(seed)))
	}
	m = score{
		use:     median(all, func(s score) float64 { return s.use }),
		late:    median(all, func(s score) float64 { return s.late }),
		refused: int(median(all, func(s score) float64 { return float64(s.refused) })),
		sent:    all[0].sent,
	}
	worst = slices.MinFunc(all, func(a, b score) int { return cmp.Compare(a.use, b.use) }).use
	return m, worst
}

func median[T any](values []T, of func(T) float64) float64 {
	var x []float64
	for _, v := range values {
		x = append(x, of(v))
	}
	slices.Sort(x)
	return x[len(x)/2]
}

func newLimiter(g game) client { return limit.New(g.at(0), 8, g.width) }
func newCubic(g game) client   { return &cubic{most: g.width} }

// TestLimiters plays each row from five moments on, beside CUBIC. With -v, it prints the
// table of which docs/limits.md has some rows.
func TestLimiters(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: plays hours of traffic, 15 s of CPU")
	}
	t.Log("\n| limiter | use | least use | refused | use by CUBIC | refused |\n|---|---|---|---|---|---|")
	for _, r := range rows() {
		s, worst := r.scores(newLimiter)
		var c score
		if r.seconds < hour {
			c, _ = r.scores(newCubic)
		}
		t.Logf("| %s | %.2f | %.2f | %d of %d | %.2f | %d of %d |",
			r.name, s.use, worst, s.refused, s.sent, c.use, c.refused, c.sent)
		if least := cmp.Or(r.least, 0.85); s.use < least || worst < least-0.25 {
			t.Errorf("%s: use %.2f, and %.2f at least, want %.2f", r.name, s.use, worst, least)
		}
		if r.moves {
			continue
		}
		if most := 2*64 + 15 + s.sent/30; s.refused > most || s.late > 1.0/30 {
			t.Errorf("%s: %d of %d refused, want %d; %.3f in the last third", r.name, s.refused, s.sent, most, s.late)
		}
	}
}

// TestHeldOutLimiters plays limiters that the law was not tuned for, and checks only that they do
// not stop a lane. With -v, it prints the second table of docs/limits.md.
func TestHeldOutLimiters(t *testing.T) {
	for _, r := range heldOut() {
		s, worst := r.scores(newLimiter)
		c, _ := r.scores(newCubic)
		t.Logf("| %s | %.2f | %.2f | %d of %d | %.2f | %d of %d |",
			r.name, s.use, worst, s.refused, s.sent, c.use, c.refused, c.sent)
		if worst < 0.3 {
			t.Errorf("%s: use %.2f at least", r.name, worst)
		}
	}
}

// TestChance compares endpoints that refuse by chance with one that never does. Announced waits of
// the request that waited longest are allowed for.
func TestChance(t *testing.T) {
	for _, r := range []struct {
		width, jobs int
		latency     float64
		most        map[float64]float64 // times the time without refusals
	}{
		{20, 1000, 0.2, map[float64]float64{0.001: 1.1, 0.01: 1.25, 0.05: 1.5}},
		{200, 2000, 1, map[float64]float64{0.001: 1.25, 0.01: 1.5, 0.05: 1.75}},
		{200, 5000, 0.1, map[float64]float64{0.001: 1.25, 0.01: 1.5, 0.05: 1.75}},
		{50, 500, 0.1, map[float64]float64{0.001: 1.1, 0.01: 1.25, 0.05: 1.5}},
	} {
		for _, p := range []float64{0.001, 0.01, 0.05} {
			for _, said := range []float64{0, 1, 5, 30} {
				var without, times []float64
				for seed := range uint64(5) {
					g := game{latency: r.latency, width: r.width, jobs: r.jobs, seed: seed}
					if said > 0 {
						g.say = always(said)
					}
					g.server = open{}
					base := g.play(limit.New(epoch, 8, r.width)).took
					g.server = &chance{open{}, p, rand.New(rand.NewPCG(seed, 5))}
					out := g.play(limit.New(epoch, 8, r.width))
					times = append(times, out.took/base)
					without = append(without, (out.took-out.waited)/base)
				}
				same := func(x float64) float64 { return x }
				t.Logf("| %.1f %% of %d in flight for %v s, %v s announced | %.2f × |",
					100*p, r.width, r.latency, said, median(times, same))
				if x := median(without, same); x > r.most[p] {
					t.Errorf("%v by chance, %d in flight, %v s announced: %.2f × the time, want %.2f",
						p, r.width, said, x, r.most[p])
				}
			}
		}
	}
}
