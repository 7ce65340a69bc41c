package lane_test

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

// An endpoint with limits of its own, which holds them in sliding windows of a
// minute and refuses what is beyond.
type limitedEndpoint struct {
	concurrency, rpm, tpm int
	chance                float64 // of a refusal for no reason
	took                  time.Duration
	tokens                int // of a reply
	style                 refusalStyle
	// reserve is what counts for a request in flight beyond its tokens, and
	// headers tells the state of the tokens with each reply.
	reserve int
	headers bool

	mu       sync.Mutex
	start    time.Time
	random   *rand.Rand
	inFlight int
	accepted []time.Duration
	refused  []time.Duration
}

type refusalStyle int

const (
	namesLimit refusalStyle = iota // the bucket and its limit, and how long to wait
	waits                          // how long to wait, exactly
	saysOne                        // to wait for a second
	silent                         // nothing
)

func (s refusalStyle) String() string { return [...]string{"names", "waits", "one", "silent"}[s] }

func (e *limitedEndpoint) Chat(ctx context.Context, _ assay.Request) (assay.Response, error) {
	if f := e.admit(); f != nil {
		return assay.Response{}, f
	}
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.inFlight--
	}()
	select {
	case <-time.After(e.took):
	case <-ctx.Done():
		return assay.Response{}, ctx.Err()
	}
	resp := assay.Response{ServedModel: "m", Usage: assay.Usage{InputTokens: e.tokens / 2, OutputTokens: e.tokens - e.tokens/2}}
	if e.headers {
		e.mu.Lock()
		defer e.mu.Unlock()
		used := e.recent()*e.tokens + (e.inFlight-1)*e.reserve // the deferred call comes later
		resp.Quotas = []assay.QuotaState{{Bucket: assay.Tokens, Limit: e.tpm, Remaining: max(0, e.tpm-used), Reset: time.Minute}}
	}
	return resp, nil
}

// recent is how many requests were let through in the last minute.
func (e *limitedEndpoint) recent() int {
	n, now := 0, time.Since(e.start)
	for i := len(e.accepted) - 1; i >= 0 && now-e.accepted[i] < time.Minute; i-- {
		n++
	}
	return n
}

func (e *limitedEndpoint) admit() *assay.Fault {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Since(e.start)
	recent := e.recent()
	var f *assay.Fault
	switch {
	case e.concurrency > 0 && e.inFlight >= e.concurrency:
		f = &assay.Fault{Bucket: assay.Concurrency, Limit: e.concurrency, RetryAfter: time.Second}
	case e.rpm > 0 && recent >= e.rpm:
		f = &assay.Fault{Bucket: assay.Requests, Limit: e.rpm, RetryAfter: e.accepted[len(e.accepted)-e.rpm] + time.Minute - now}
	case e.tpm > 0 && (recent+1)*e.tokens+(e.inFlight+1)*e.reserve > e.tpm:
		f = &assay.Fault{Bucket: assay.Tokens, Limit: e.tpm, RetryAfter: e.accepted[len(e.accepted)-recent] + time.Minute - now}
	case e.random != nil && e.random.Float64() < e.chance:
		f = &assay.Fault{RetryAfter: time.Second}
	default:
		e.inFlight++
		e.accepted = append(e.accepted, now)
		return nil
	}
	e.refused = append(e.refused, now)
	f.Kind = assay.RateLimited
	switch e.style {
	case waits:
		f.Bucket, f.Limit = "", 0
	case saysOne:
		*f = assay.Fault{Kind: f.Kind, RetryAfter: time.Second}
	case silent:
		*f = assay.Fault{Kind: f.Kind}
	}
	return f
}

// saturate keeps n turns waiting or in flight for some time.
func saturate(p *lane.Pool, n int, d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for ctx.Err() == nil {
				_, _ = p.Chat(ctx, assay.Request{Messages: []assay.Message{{Content: "0123456789"}}})
			}
		})
	}
	wg.Wait()
}

// figures tells how an endpoint was used from the second minute on.
func (e *limitedEndpoint) figures(until time.Duration) (accepted, refused int) {
	for _, at := range e.accepted {
		if at >= time.Minute && at < until {
			accepted++
		}
	}
	for _, at := range e.refused {
		if at >= time.Minute && at < until {
			refused++
		}
	}
	return accepted, refused
}

// permitted is what the limits let through in some minutes.
func (e *limitedEndpoint) permitted(minutes float64) float64 {
	n := math.Inf(1)
	if e.rpm > 0 {
		n = min(n, minutes*float64(e.rpm))
	}
	if e.tpm > 0 {
		n = min(n, minutes*float64(e.tpm/e.tokens))
	}
	if e.concurrency > 0 {
		n = min(n, minutes*60/e.took.Seconds()*float64(e.concurrency))
	}
	return n
}

// TestLimitsAreLearned: of limits that nobody stated, nearly all is used from
// the second minute on, with few refusals; more where these say nothing, for
// then a rate is learned from the second minute only.
func TestLimitsAreLearned(t *testing.T) {
	t.Parallel()
	limits := []limitedEndpoint{
		{rpm: 60}, {rpm: 240}, {tpm: 60000}, {concurrency: 1}, {concurrency: 4}, {concurrency: 30}, {concurrency: 10, rpm: 300},
	}
	for style, want := range map[refusalStyle]struct{ share, refused float64 }{
		namesLimit: {0.99, 0}, waits: {0.75, 0.15}, saysOne: {0.6, 0.5}, silent: {0.6, 0.5},
	} {
		for i := range limits {
			synctest.Test(t, func(t *testing.T) {
				e := &limitedEndpoint{
					rpm: limits[i].rpm, tpm: limits[i].tpm, concurrency: limits[i].concurrency,
					took: 700 * time.Millisecond, tokens: 500, style: style, start: time.Now(),
				}
				p := lane.NewPool("m", []lane.Config{{Name: "l", Provider: e, Orders: "m"}}, lane.Options{})
				saturate(p, 150, 6*time.Minute)
				accepted, refused := e.figures(6 * time.Minute)
				share := float64(accepted) / e.permitted(5)
				if share < want.share || float64(refused) > want.refused*float64(accepted+refused) {
					lanes, _ := p.Status()
					t.Errorf("refusals that say %v, rpm %d, tpm %d, concurrency %d: %.3f of what is permitted, %d refused; learned %+v",
						style, e.rpm, e.tpm, e.concurrency, share, refused, lanes[0].Learned)
				}
			})
		}
	}
}

// TestRefusalsByChance: an endpoint that refuses one request in twenty, for no
// reason, does not slow its lane down.
func TestRefusalsByChance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &limitedEndpoint{took: 100 * time.Millisecond, tokens: 10, chance: 0.05, random: rand.New(rand.NewPCG(1, 1)), start: time.Now()}
		p := lane.NewPool("m", []lane.Config{{Name: "l", Provider: e, Orders: "m", Limits: lane.Limits{Concurrency: 50}}}, lane.Options{})
		saturate(p, 150, 20*time.Second)
		if want := 20 * 10 * 50; len(e.accepted) < want*95/100 {
			t.Errorf("%d requests in 20s, want nearly %d", len(e.accepted), want)
		}
		if lanes, _ := p.Status(); lanes[0].Learned != (lane.Limits{}) {
			t.Errorf("learned %+v from chance", lanes[0].Learned)
		}
	})
}

// TestLearnedLimitRecovers: when the endpoint allows more again, the lane finds
// out, and a limit that stays is tried ever less often.
func TestLearnedLimitRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &limitedEndpoint{concurrency: 5, took: 3 * time.Second, tokens: 10, style: silent, start: time.Now()}
		p := lane.NewPool("m", []lane.Config{{Name: "l", Provider: e, Orders: "m"}}, lane.Options{})
		saturate(p, 60, 30*time.Minute)
		if _, refused := e.figures(30 * time.Minute); refused > 12 {
			t.Errorf("a limit that stays was tried %d times in half an hour", refused)
		}
		e.concurrency = 40
		saturate(p, 60, 45*time.Minute)
		if lanes, _ := p.Status(); lanes[0].Width < 38 {
			t.Errorf("45 minutes after the endpoint allowed 40, the lane is %d wide", lanes[0].Width)
		}
	})
}

// TestOneCutABurst: a hundred requests that are refused together are one
// reason, and the lane is then as wide as the endpoint is.
func TestOneCutABurst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &limitedEndpoint{concurrency: 40, took: time.Second, tokens: 10, style: waits, start: time.Now()}
		p := lane.NewPool("m", []lane.Config{{Name: "l", Provider: e, Orders: "m", Limits: lane.Limits{Concurrency: 100}}}, lane.Options{})
		saturate(p, 100, 5*time.Second)
		lanes, _ := p.Status()
		if got := lanes[0].Learned.Concurrency; len(e.refused) < 2 || got != 40 {
			t.Errorf("after %d refusals in one burst the width is %d, want 40", len(e.refused), got)
		}
	})
}

// TestLearnedLimitIsAStartingPoint of the next run.
func TestLearnedLimitIsAStartingPoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &limitedEndpoint{rpm: 100, concurrency: 6, took: time.Second, tokens: 10, style: silent, start: time.Now()}
		p := lane.NewPool("m", []lane.Config{{
			Name: "l", Provider: e, Orders: "m", Learned: lane.Limits{Concurrency: 6, RPM: 100},
		}}, lane.Options{})
		saturate(p, 50, time.Minute)
		if len(e.refused) != 0 || len(e.accepted) != 100 {
			t.Errorf("%d accepted and %d refused, want 100 and none", len(e.accepted), len(e.refused))
		}
	})
}

// TestWithheldTokens: an endpoint that reserves more for a reply than it will
// be, as most do, refuses nothing to a lane that reads its headers, and its
// limit is used up all the same.
func TestWithheldTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &limitedEndpoint{tpm: 60_000, tokens: 500, reserve: 250, headers: true, took: 300 * time.Millisecond, start: time.Now()}
		p := lane.NewPool("m", []lane.Config{{
			Name: "l", Provider: e, Orders: "m", Limits: lane.Limits{Concurrency: 16, TPM: 60_000},
		}}, lane.Options{})
		saturate(p, 50, 6*time.Minute)
		accepted, refused := e.figures(6 * time.Minute)
		if share := float64(accepted) / e.permitted(5); share < 0.97 || refused > 0 {
			t.Errorf("%.3f of what is permitted, %d refused; want .97 and none", share, refused)
		}
	})
}

// TestRefusedFromTheStart: a run that begins when others, or an earlier run,
// have used up the minute learns nothing wrong from that.
func TestRefusedFromTheStart(t *testing.T) {
	t.Parallel()
	for _, style := range []refusalStyle{waits, saysOne, silent} {
		synctest.Test(t, func(t *testing.T) {
			e := &limitedEndpoint{rpm: 60, took: 700 * time.Millisecond, tokens: 500, style: style, start: time.Now()}
			for range 60 {
				e.accepted = append(e.accepted, 0)
			}
			p := lane.NewPool("m", []lane.Config{{Name: "l", Provider: e, Orders: "m", Limits: lane.Limits{Concurrency: 1}}}, lane.Options{})
			saturate(p, 6, 5*time.Minute)
			if accepted, _ := e.figures(5 * time.Minute); accepted < 4*60*8/10 {
				t.Errorf("refusals that say %v: %d requests in four minutes, where 240 are allowed", style, accepted)
			}
		})
	}
}

// TestChanceTeachesNoRate: the first minute of a storm is no measure of what an
// endpoint allows in a minute.
func TestChanceTeachesNoRate(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			e := &limitedEndpoint{took: time.Second, tokens: 10, chance: 0.1, random: rand.New(rand.NewPCG(seed, 1)), start: time.Now()}
			p := lane.NewPool("m", []lane.Config{{Name: "l", Provider: e, Orders: "m", Limits: lane.Limits{Concurrency: 12}}}, lane.Options{})
			saturate(p, 40, 50*time.Second)
			if lanes, _ := p.Status(); lanes[0].Learned.RPM != 0 || lanes[0].Learned.TPM != 0 {
				t.Errorf("learned %+v from chance", lanes[0].Learned)
			}
		})
	}
}
