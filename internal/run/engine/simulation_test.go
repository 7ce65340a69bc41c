package engine_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/engine"
)

// A trouble is how an endpoint fails a share of its requests for a while.
type trouble struct {
	from, to time.Duration
	share    float64
	fault    assay.Fault
}

var (
	refused = assay.Fault{Kind: assay.RateLimited, Detail: "429"}
	soon    = assay.Fault{Kind: assay.RateLimited, Detail: "429", RetryAfter: time.Second}
	later   = assay.Fault{Kind: assay.RateLimited, Detail: "429", RetryAfter: 2 * time.Hour}
	broken  = assay.Fault{Kind: assay.Server, Detail: "500"}
)

// A simulation is a run in virtual time: the real engine with a real pool, whose endpoint fails as
// scripted. While it runs, somebody looks at the pool all the time.
type simulation struct {
	trials   int
	limits   lane.Limits
	troubles []trouble
	pause    [2]time.Duration // by the user, from and to
	kills    []time.Duration  // each after the start of its process
	longest  time.Duration    // of the whole simulation
	left     bool             // trials may be left, because the lane is closed
	requests int              // at most, or 0
}

// A simulated is the state of a simulation outside its processes.
type simulated struct {
	simulation
	start time.Time

	mu       sync.Mutex // guards the fields below
	random   *rand.Rand
	arrived  []time.Time
	sent     map[int64]lane.Spent // by the second, as a store has it
	settled  map[assay.TrialID]int
	faults   []string
	negative bool
}

// Chat is the endpoint.
func (s *simulated) Chat(ctx context.Context, _ *assay.Request) (*assay.Response, error) {
	s.mu.Lock()
	now := time.Now()
	s.arrived = append(s.arrived, now)
	took := 20 * time.Millisecond
	if s.random.IntN(5) == 0 {
		took = time.Duration(s.random.IntN(6000)) * time.Millisecond
	}
	var fault *assay.Fault
	for _, x := range s.troubles {
		if at := now.Sub(s.start); at >= x.from && at < x.to && s.random.Float64() < x.share {
			fault = &x.fault
		}
	}
	if fault == nil {
		took += time.Second
	}
	s.mu.Unlock()
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return &assay.Response{}, ctx.Err()
	}
	if fault != nil {
		return &assay.Response{}, fault
	}
	return &assay.Response{ServedModel: "m", Usage: assay.Usage{InputTokens: 9, OutputTokens: 9}}, nil
}

// process runs the trials that are left until all are done, or until ctx ends.
func (s *simulated) process(ctx context.Context) (engine.Summary, error) {
	c := lane.Config{Name: "l", Provider: s, Orders: "m", Limits: s.limits}
	s.mu.Lock()
	for _, second := range slices.Sorted(maps.Keys(s.sent)) {
		x := s.sent[second]
		x.At = time.Unix(second+1, 0)
		c.Spent = append(c.Spent, x)
	}
	s.mu.Unlock()
	wake := make(chan struct{}, 1)
	pool := lane.NewPool("m", []lane.Config{c}, lane.Options{
		Sent: func(_ string, used lane.Spent) {
			s.mu.Lock()
			defer s.mu.Unlock()
			x := s.sent[used.At.Unix()]
			x.Requests, x.Input, x.Output = x.Requests+used.Requests, x.Input+used.Input, x.Output+used.Output
			s.sent[used.At.Unix()] = x
		},
		Wake: func() {
			select {
			case wake <- struct{}{}:
			default:
			}
		},
	})
	ctx, end := context.WithCancel(ctx)
	var people sync.WaitGroup
	defer people.Wait()
	defer end()
	people.Go(func() { s.look(ctx, pool) })
	people.Go(func() { s.hold(ctx, pool) })
	return engine.Run(ctx, nil, engine.Config{
		Models: []engine.Model{{
			Name: "m", Pending: s.pending(), Admit: pool.Admit, Closed: pool.Closed,
			Most: func() int { return 2*pool.Width() + 64 },
		}},
		Wake: wake,
		Attempt: func(ctx context.Context, trial *assay.Trial) (*assay.Attempt, *assay.Transcript) {
			return s.attempt(ctx, pool, trial), nil
		},
		Save: func(_ context.Context, a *assay.Attempt, _ *assay.Transcript) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if a.Settles() {
				s.settled[a.ID]++
			} else {
				s.faults = append(s.faults, string(a.FaultKind)+": "+a.FaultDetail)
			}
			return nil
		},
	})
}

// attempt has three turns.
func (s *simulated) attempt(ctx context.Context, pool *lane.Pool, trial *assay.Trial) *assay.Attempt {
	a := &assay.Attempt{Trial: *trial, Outcome: assay.Outcome{Level: assay.FullSuccess}}
	for range 3 {
		resp, err := pool.Chat(ctx, &assay.Request{Model: "m"})
		s.mu.Lock()
		s.negative = s.negative || resp.Waits.Queued < 0 || resp.Waits.Working < 0
		s.mu.Unlock()
		if f := assay.AsFault(err); f != nil {
			a.Level, a.FaultKind, a.FaultDetail = "", f.Kind, f.Error()
			return a
		}
	}
	return a
}

func (s *simulated) pending() iter.Seq[assay.Trial] {
	return func(yield func(assay.Trial) bool) {
		for trial := range trials("m", s.trials) {
			s.mu.Lock()
			done := s.settled[trial.ID] > 0
			s.mu.Unlock()
			if !done && !yield(trial) {
				return
			}
		}
	}
}

// look reads everything that views read.
func (s *simulated) look(ctx context.Context, pool *lane.Pool) {
	for ctx.Err() == nil {
		pool.Status()
		pool.Ledgers()
		pool.Hopeful()
		sleep(ctx, 7300*time.Millisecond)
	}
}

func (s *simulated) hold(ctx context.Context, pool *lane.Pool) {
	all := func(string) bool { return true }
	if s.pause[1] > 0 && sleep(ctx, s.pause[0]-time.Since(s.start)) {
		pool.Hold(true, all)
		sleep(ctx, s.pause[1]-time.Since(s.start))
		pool.Hold(false, all)
	}
}

// sleep returns false if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// run returns the state in which a simulation ends.
func (s simulation) run(t *testing.T, seed uint64) {
	var minutes atomic.Int64 // of virtual time that have passed
	defer watch(t, &minutes)()
	synctest.Test(t, func(t *testing.T) {
		w := &simulated{
			simulation: s, start: time.Now(), random: rand.New(rand.NewPCG(seed, 1)),
			sent: make(map[int64]lane.Spent), settled: make(map[assay.TrialID]int),
		}
		ctx, end := context.WithTimeout(t.Context(), s.longest)
		defer end()
		var clock sync.WaitGroup
		clock.Go(func() {
			for sleep(ctx, time.Minute) {
				minutes.Add(1)
			}
		})
		var sum engine.Summary
		for i := 0; i <= len(s.kills); i++ {
			alive, kill := context.WithCancel(ctx)
			if i < len(s.kills) {
				time.AfterFunc(s.kills[i], kill)
			}
			var err error
			if sum, err = w.process(alive); err != nil {
				t.Error(err)
			}
			kill()
		}
		if ctx.Err() != nil {
			t.Errorf("the run has not ended within %v", s.longest)
		}
		end()
		clock.Wait()
		w.check(t, sum)
	})
}

// check checks the laws.
func (s *simulated) check(t *testing.T, sum engine.Summary) {
	if len(s.settled) < s.trials && !s.left {
		t.Errorf("%d of %d trials settled, summary %+v, faults %v", len(s.settled), s.trials, sum, s.faults)
	}
	for id, n := range s.settled {
		if n > 1 {
			t.Errorf("%s settled %d times", id, n)
		}
	}
	for _, f := range s.faults {
		if strings.Contains(f, "waited") {
			t.Errorf("a fault that never was: %s", f)
		}
	}
	if s.negative {
		t.Error("a turn waited for a negative time")
	}
	if s.requests > 0 && len(s.arrived) > s.requests {
		t.Errorf("%d requests, want at most %d", len(s.arrived), s.requests)
	}
	for _, l := range []struct {
		most int
		span time.Duration
	}{{s.limits.RPM, time.Minute}, {s.limits.RPD, 24 * time.Hour}} {
		for i := l.most; l.most > 0 && i < len(s.arrived); i++ {
			if took := s.arrived[i].Sub(s.arrived[i-l.most]); took < l.span {
				t.Errorf("%d requests within %v, limit %d in %v", l.most+1, took, l.most, l.span)
				break
			}
		}
	}
}

// watch ends the test program if virtual time stands still, because synctest would wait for ever.
func watch(t *testing.T, minutes *atomic.Int64) (stop func()) {
	over := make(chan struct{})
	go func() {
		for before := int64(-1); ; before = minutes.Load() {
			select {
			case <-over:
				return
			case <-time.After(time.Minute):
			}
			if minutes.Load() == before {
				panic(fmt.Sprintf("%s: virtual time stands still after %d minutes", t.Name(), before))
			}
		}
	}()
	return func() { close(over) }
}

// TestSimulatedDays checks the laws of lanes and engine in long runs: virtual time advances, every
// run ends, no wait is negative, time in which nothing could be done is no fault, no stated limit is
// exceeded, and a trial settles once.
func TestSimulatedDays(t *testing.T) {
	t.Parallel()
	small := lane.Limits{Concurrency: 8, RPM: 12}
	for name, s := range map[string]simulation{
		"quota of three hours": {
			trials: 20, limits: small, longest: 12 * time.Hour,
			troubles: []trouble{{2 * time.Minute, 182 * time.Minute, 1, refused}},
		},
		"quota of 22 hours": {
			trials: 20, limits: small, longest: 48 * time.Hour,
			troubles: []trouble{{2 * time.Minute, 22 * time.Hour, 1, refused}},
		},
		"outage of 26 hours": {
			trials: 20, limits: small, longest: 27 * time.Hour, left: true, requests: 600,
			troubles: []trouble{{2 * time.Minute, 26 * time.Hour, 1, refused}},
		},
		"announced waits of two hours": {
			trials: 20, limits: small, longest: 24 * time.Hour,
			troubles: []trouble{{time.Minute, 4 * time.Hour, .05, later}},
		},
		"pause of two hours, then errors": {
			trials: 20, limits: small, longest: 12 * time.Hour,
			pause:    [2]time.Duration{2 * time.Minute, 122 * time.Minute},
			troubles: []trouble{{0, 12 * time.Hour, .15, broken}},
		},
		"refused, then paused for two days": {
			trials: 20, limits: small, longest: 72 * time.Hour,
			pause:    [2]time.Duration{3 * time.Minute, 50 * time.Hour},
			troubles: []trouble{{2 * time.Minute, 51 * time.Hour, 1, refused}},
		},
		"a bad hour": {
			trials: 20, limits: lane.Limits{Concurrency: 8, RPM: 600}, longest: 12 * time.Hour,
			troubles: []trouble{
				{10 * time.Second, 50 * time.Minute, 1, soon}, {50 * time.Minute, 12 * time.Hour, .4, broken},
			},
		},
		"a storm": {
			trials: 300, limits: lane.Limits{Concurrency: 8}, longest: 12 * time.Hour,
			troubles: []trouble{{20 * time.Second, 40 * time.Minute, .9, refused}},
		},
		"kills": {
			trials: 60, limits: lane.Limits{Concurrency: 8, RPM: 12, RPD: 150, Burst: 12},
			longest: 72 * time.Hour,
			kills: []time.Duration{
				4 * time.Second, time.Second, 29 * time.Second, 0, 50 * time.Second, 8 * time.Minute,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seeds := 3
			if testing.Short() {
				seeds = 1
			}
			for seed := range seeds {
				s.run(t, uint64(seed))
			}
		})
	}
}
