//go:build !race

package job_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/model/lane"
)

// A design is a run whose rest a Pace has to foresee.
type design struct {
	limits  []lane.Limits // of each lane
	hidden  int           // the endpoint accepts this many requests at once; 0 means all
	trials  int
	turns   float64 // mean
	skewed  bool    // trials differ
	planned float64 // the plan's assumption
	latency time.Duration
	sigma   float64
	warm    time.Duration // the endpoint is slower until then
	minute  int           // the endpoint accepts this many requests in a clock's minute; 0 means all
	chance  float64       // of a refusal
}

// endpoint replies as a design has it.
type endpoint struct {
	design
	mu      sync.Mutex
	random  *rand.Rand
	started time.Time
	busy    int
	minute  int // the present one
	spent   int // requests in it
}

// refuses decides whether the endpoint accepts a request.
func (e *endpoint) refuses() *assay.Fault {
	since := time.Since(e.started)
	if minute := int(since / time.Minute); minute > e.minute {
		e.minute, e.spent = minute, 0
	}
	switch {
	case e.hidden > 0 && e.busy >= e.hidden:
		return &assay.Fault{Kind: assay.RateLimited, Detail: "too many"}
	case e.design.minute > 0 && e.spent >= e.design.minute:
		return &assay.Fault{
			Kind: assay.RateLimited, RetryAfter: time.Duration(e.minute+1)*time.Minute - since,
		}
	case e.chance > 0 && e.random.Float64() < e.chance:
		return &assay.Fault{Kind: assay.RateLimited, Detail: "by chance"}
	}
	e.spent++
	return nil
}

func (e *endpoint) Chat(ctx context.Context, _ *assay.Request) (*assay.Response, error) {
	e.mu.Lock()
	if fault := e.refuses(); fault != nil {
		e.mu.Unlock()
		time.Sleep(min(50*time.Millisecond, e.latency/20))
		return &assay.Response{}, fault
	}
	e.busy++
	x := math.Exp(e.sigma*e.random.NormFloat64() - e.sigma*e.sigma/2)
	if time.Since(e.started) < e.warm {
		x *= 3
	}
	e.mu.Unlock()
	select {
	case <-time.After(time.Duration(x * float64(e.latency))):
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.busy--
	return &assay.Response{
		ServedModel: "m", Usage: assay.Usage{InputTokens: 500, OutputTokens: 100},
	}, ctx.Err()
}

// draw makes a design of a run of about 4 to 40 minutes.
func draw(random *rand.Rand) design {
	d := design{
		turns: 1 + 9*random.Float64(), sigma: 0.2 + 0.8*random.Float64(),
		latency: time.Duration((0.5 + 8*random.Float64()) * float64(time.Second)),
		planned: 5, skewed: random.IntN(3) > 0,
	}
	for range 1 + random.IntN(3) {
		l := lane.Limits{Concurrency: 2 + random.IntN(12)}
		switch random.IntN(4) {
		case 0:
			l.RPM = 20 + random.IntN(100)
		case 1:
			l.TPM = 20_000 + random.IntN(60_000)
		case 2:
			l.Concurrency = 0 // to be learned
			d.hidden = 3 + random.IntN(20)
		}
		d.limits = append(d.limits, l)
	}
	if random.IntN(4) == 0 {
		d.warm = 45 * time.Second
	}
	rate := 0.0 // replies a second, roughly
	for _, l := range d.limits {
		r := float64(max(l.Concurrency, d.hidden/len(d.limits), 1)) / d.latency.Seconds()
		if l.RPM > 0 {
			r = min(r, float64(l.RPM)/60)
		}
		if l.TPM > 0 {
			r = min(r, float64(l.TPM)/600/60)
		}
		rate += r
	}
	minutes := 4 + 36*random.Float64()*random.Float64()
	d.trials = int(math.Ceil(minutes * 60 * rate / d.turns))
	return d
}

// run carries the design out in virtual time. It returns the forecast at some times, and the time
// the run took.
func (d design) run(t *testing.T, seed uint64, ask []time.Duration) (
	left map[time.Duration]time.Duration, wall time.Duration,
) {
	left = make(map[time.Duration]time.Duration)
	start := time.Now()
	random := rand.New(rand.NewPCG(seed, 2))
	e := &endpoint{design: d, random: rand.New(rand.NewPCG(seed, 3)), started: start}
	var configs []lane.Config
	for i, l := range d.limits {
		configs = append(configs, lane.Config{
			Name: fmt.Sprint("gw/K/", i), Orders: "m", Provider: e, Limits: l,
		})
	}
	wake := make(chan struct{}, 1)
	pool := lane.NewPool("m", configs, lane.Options{Request: time.Hour, Wake: func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}})
	var mu sync.Mutex
	pace, done, inFlight := job.Pace{Turns: d.planned}, 0, 0
	for _, at := range ask {
		time.AfterFunc(at, func() {
			lanes, _ := pool.Status()
			mu.Lock()
			defer mu.Unlock()
			silence, _ := job.Silence(lanes)
			l, ok := pace.Left(at, silence, d.trials-done, inFlight)
			if ok && done < d.trials {
				left[at] = l
			}
		})
	}
	var wg sync.WaitGroup
	for range d.trials {
		ctx, end, ok := pool.Admit(t.Context())
		for !ok {
			<-wake
			ctx, end, ok = pool.Admit(t.Context())
		}
		turns := int(math.Round(d.turns))
		if d.skewed {
			turns = 1 + int(-math.Log(1-random.Float64())*(d.turns-1))
		}
		mu.Lock()
		inFlight++
		mu.Unlock()
		wg.Go(func() {
			defer end()
			began := time.Now()
			for n := 0; n < turns; {
				if _, err := pool.Chat(ctx, &assay.Request{}); err != nil {
					continue
				}
				n++
				mu.Lock()
				pace.Replied(time.Since(start))
				mu.Unlock()
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			inFlight--
			pace.Ended(time.Since(began))
		})
		synctest.Wait()
	}
	wg.Wait()
	return left, time.Since(start)
}

// TestForecastOfMixedLanes checks over many designs with up to three lanes, which have limits of
// requests, of tokens and limits to learn, that the time left which is announced after two minutes is
// wrong by a factor of two at most in nine of ten, and that an announcement is never five times too
// long, however early.
func TestForecastOfMixedLanes(t *testing.T) {
	t.Parallel()
	designs := 40
	if testing.Short() {
		t.Skip("a statistical test of 3 s")
	}
	ask := []time.Duration{14 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute}
	held, asked := 0, 0
	random := rand.New(rand.NewPCG(7, 7))
	for i := range uint64(designs) {
		d := draw(random)
		synctest.Test(t, func(t *testing.T) {
			left, wall := d.run(t, i, ask)
			for at, l := range left {
				truth := wall - at
				if at == 2*time.Minute {
					asked++
					if truth/2 <= l && l <= 2*truth {
						held++
					}
				}
				if l > 5*max(truth, 10*time.Second) {
					t.Errorf("%d after %v: expected %v, but it takes %v: %+v",
						i, at, l, truth, d)
				}
			}
		})
	}
	if asked < designs*9/10 || held < asked*9/10 {
		t.Errorf("the time left was right within a factor of two in %d of %d runs", held, asked)
	}
}

// TestForecastIsRightAfterHalfAMinute checks for entirely unknown endpoints that the time left is
// wrong by a factor of two at most, from 30 s until half of the run is over. An endpoint that
// allows a burst a minute is judged when it has refused twice, and not in the seconds of a burst.
func TestForecastIsRightAfterHalfAMinute(t *testing.T) {
	t.Parallel()
	const fast, slow = 100 * time.Millisecond, 5 * time.Second
	unknown, wide := []lane.Limits{{}}, []lane.Limits{{Concurrency: 50}}
	for name, d := range map[string]design{
		"fast":         {limits: wide, latency: fast, sigma: 0.4, trials: 14_000},
		"slow":         {limits: unknown, latency: slow, sigma: 0.4, trials: 2000},
		"uneven":       {limits: unknown, latency: slow, sigma: 0.8, trials: 2000},
		"120 a minute": {limits: unknown, latency: fast, sigma: 0.4, trials: 600, minute: 120},
		"5 % refused":  {limits: []lane.Limits{{Concurrency: 8}}, latency: 3 * fast, sigma: 0.4, trials: 600, chance: 0.05},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d.turns, d.planned = 6, 5
			var ask []time.Duration
			for at := 30 * time.Second; at < 10*time.Minute; at += 7 * time.Second {
				if d.minute == 0 || at > 62*time.Second && at%time.Minute > 2*time.Second {
					ask = append(ask, at)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				left, wall := d.run(t, 1, ask)
				for _, at := range ask {
					truth := wall - at
					// One burst of two in a minute that is missed makes it a factor of two and seconds.
					if l := left[at]; at < wall/2 && (l < truth/2 || l > 2*truth+truth/20) {
						t.Errorf("after %v: expected %v, but it takes %v", at, l, truth)
					}
				}
			})
		})
	}
}

// TestForecastCountsSilence checks the time left at an endpoint that answers 120 requests at the
// beginning of each minute and announces the wait. At first, most replies belong to trials in
// flight, which have two replies each.
func TestForecastCountsSilence(t *testing.T) {
	t.Parallel()
	const trials, turns, inFlight, burst = 1000, 6, 100, 120
	pace := job.Pace{Turns: turns}
	replies, ended := 0, 0
	for at := time.Duration(0); at < 40*time.Minute; at += time.Second {
		if at%time.Minute == 0 {
			for range burst {
				pace.Replied(at)
			}
			replies += burst
			for ; ended < (replies-2*inFlight)/turns; ended++ {
				pace.Ended(turns * inFlight * time.Minute / burst)
			}
		}
		truth := (trials*turns - time.Duration(replies)) * time.Minute / burst
		left, ok := pace.Left(at, time.Minute-at%time.Minute, trials-ended, inFlight)
		if ratio := left.Seconds() / truth.Seconds(); at >= 10*time.Second &&
			(!ok || ratio < 0.6 || ratio > 1.5) {
			t.Errorf("after %v: expected %v, but it takes %v", at, left, truth)
		}
	}
}

// TestForecastOfTrialsInFlight checks that trials which all wait for the next minute are not
// expected to take as little as the few that have ended in the first.
func TestForecastOfTrialsInFlight(t *testing.T) {
	t.Parallel()
	pace := job.Pace{Turns: 6}
	for range 120 {
		pace.Replied(0)
	}
	for range 6 {
		pace.Ended(time.Second)
	}
	const truth = 3*time.Minute - 10*time.Second // (60×6 - 84)/120 bursts
	left, ok := pace.Left(10*time.Second, 50*time.Second, 60, 60)
	if !ok || left < truth/2 || left > 2*truth {
		t.Errorf("expected %v, but it takes %v", left, truth)
	}
}
