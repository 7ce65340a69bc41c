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
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/job"
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
}

// endpoint replies as a design has it.
type endpoint struct {
	design
	mu      sync.Mutex
	random  *rand.Rand
	started time.Time
	busy    int
}

func (e *endpoint) Chat(ctx context.Context, _ assay.Request) (assay.Response, error) {
	e.mu.Lock()
	if e.hidden > 0 && e.busy >= e.hidden {
		e.mu.Unlock()
		time.Sleep(50 * time.Millisecond)
		return assay.Response{}, &assay.Fault{Kind: assay.RateLimited, Detail: "too many"}
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
	return assay.Response{
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
	left map[time.Duration]job.Left, wall time.Duration,
) {
	left = make(map[time.Duration]job.Left)
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
			mu.Lock()
			defer mu.Unlock()
			if l, ok := pace.Left(at, d.trials-done, inFlight); ok && done < d.trials {
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
				if _, err := pool.Chat(ctx, assay.Request{}); err != nil {
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
			pace.Ended(turns, time.Since(began))
		})
		synctest.Wait()
	}
	wg.Wait()
	return left, time.Since(start)
}

// TestForecastHoldsTruthAfterTwoMinutes checks over many designs that the interval which is
// announced after two minutes holds the time that the run really took in at least nine of ten, and
// that an announcement is never five times too long, however early.
func TestForecastHoldsTruthAfterTwoMinutes(t *testing.T) {
	t.Parallel()
	designs := 40 // with 300 of them, 287 intervals hold the truth
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
					if l.Low <= truth && truth <= l.High {
						held++
					}
				}
				if l.Expected > 5*max(truth, 10*time.Second) {
					t.Errorf("%d after %v: expected %v, but it takes %v: %+v",
						i, at, l.Expected, truth, d)
				}
			}
		})
	}
	if asked < designs*9/10 || held < asked*9/10 {
		t.Errorf("the interval held the truth in %d of %d runs", held, asked)
	}
}
