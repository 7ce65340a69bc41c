package lane_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

// limitedEndpoint has its own limits, in sliding windows of a minute. It refuses requests beyond
// them.
type limitedEndpoint struct {
	concurrency, rpm, tpm int
	chance                float64 // of a refusal without reason
	took                  time.Duration
	tokens                int // per request
	style                 refusalStyle
	// reserve is the number of tokens reserved for a request in flight beyond its
	// own. If headers is true, each reply reports the state of the tokens.
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
	namesLimit refusalStyle = iota // report the bucket, its limit and the exact wait
	exactWait                      // report the exact wait
	oneSecond                      // ask for a wait of one second
	silent                         // send no reports
)

func (s refusalStyle) String() string {
	return [...]string{"limit named", "exact wait", "one second", "silent"}[s]
}

func (e *limitedEndpoint) Chat(ctx context.Context, _ *assay.Request) (*assay.Response, error) {
	time.Sleep(rand.N(10 * time.Millisecond)) // so that requests arrive one after the other
	if f := e.admit(); f != nil {
		time.Sleep(20 * time.Millisecond)
		return &assay.Response{}, f
	}
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.inFlight--
	}()
	select {
	case <-time.After(e.took):
	case <-ctx.Done():
		return &assay.Response{}, ctx.Err()
	}
	resp := assay.Response{
		ServedModel: "m",
		Usage:       assay.Usage{InputTokens: e.tokens / 2, OutputTokens: e.tokens - e.tokens/2},
	}
	if e.headers {
		e.mu.Lock()
		defer e.mu.Unlock()
		others := e.inFlight - 1 // this request still counts
		used := e.recent()*e.tokens + others*e.reserve
		resp.Quotas = []assay.QuotaState{{
			Bucket: assay.Tokens, Limit: e.tpm, Remaining: max(0, e.tpm-used),
			Reset: time.Minute,
		}}
	}
	return &resp, nil
}

// recent returns the number of requests accepted in the last minute.
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
	// wait is the time until the n-th last accepted request leaves the window.
	wait := func(n int) time.Duration { return e.accepted[len(e.accepted)-n] + time.Minute - now }
	var f *assay.Fault
	switch {
	case e.concurrency > 0 && e.inFlight >= e.concurrency:
		f = &assay.Fault{Bucket: assay.Concurrency, Limit: e.concurrency, RetryAfter: time.Second}
	case e.rpm > 0 && recent >= e.rpm:
		f = &assay.Fault{Bucket: assay.Requests, Limit: e.rpm, RetryAfter: wait(e.rpm)}
	case e.tpm > 0 && (recent+1)*e.tokens+(e.inFlight+1)*e.reserve > e.tpm:
		f = &assay.Fault{Bucket: assay.Tokens, Limit: e.tpm, RetryAfter: wait(recent)}
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
	case exactWait:
		f.Bucket, f.Limit = "", 0
	case oneSecond:
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
	req := assay.Request{Messages: []assay.Message{{Content: "0123456789"}}}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, err := p.Chat(ctx, &req); err != nil {
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
}

// counts returns the number of accepted and refused requests from the third minute
// on.
func (e *limitedEndpoint) counts(until time.Duration) (accepted, refused int) {
	for _, at := range e.accepted {
		if at >= 2*time.Minute && at < until {
			accepted++
		}
	}
	for _, at := range e.refused {
		if at >= 2*time.Minute && at < until {
			refused++
		}
	}
	return accepted, refused
}

// permitted returns the number of requests that the limits permit in some minutes.
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

// TestLimitsAreLearned checks that a lane uses nearly all of a limit that is not stated from the
// third minute on, whatever the refusals announce. The order in which simultaneous requests are
// refused is chance, so each row is played several times. The median of the games has less than 2 %
// refusals or three in 75 seconds. An endpoint that hides a rate and a concurrency refuses more in
// one of 40 games.
func TestLimitsAreLearned(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 108 games of six virtual minutes take 30 s of CPU")
	}
	t.Parallel()
	limits := []limitedEndpoint{
		{rpm: 60},
		{rpm: 240},
		{tpm: 60000},
		{concurrency: 1},
		{concurrency: 4},
		{concurrency: 30},
		{concurrency: 10, rpm: 300},
	}
	const minutes = 6
	for _, style := range []refusalStyle{namesLimit, silent, exactWait, oneSecond} {
		for i := range limits {
			l := &limits[i]
			games := 3
			if l.concurrency > 0 && l.rpm > 0 {
				games = 9
			}
			name := fmt.Sprintf("%v rpm=%d tpm=%d concurrency=%d",
				style, l.rpm, l.tpm, l.concurrency)
			t.Run(name, func(t *testing.T) {
				var excess []int
				for range games {
					synctest.Test(t, func(t *testing.T) {
						excess = append(excess, learn(t, l, style, minutes))
					})
				}
				slices.Sort(excess)
				if excess[games/2] > 0 {
					t.Errorf("the games have more refusals than they may by %d", excess)
				}
			})
		}
	}
}

// learn lets a lane use an endpoint with some limits. It returns by how much the refusals exceed
// what is usual.
func learn(t *testing.T, l *limitedEndpoint, style refusalStyle, minutes int) (excess int) {
	e := &limitedEndpoint{
		rpm: l.rpm, tpm: l.tpm, concurrency: l.concurrency,
		took: 700 * time.Millisecond, tokens: 500, style: style, start: time.Now(),
	}
	p := poolOf(e, lane.Limits{})
	span := time.Duration(minutes) * time.Minute
	saturate(p, 150, span)
	accepted, refused := e.counts(span)
	share := float64(accepted) / e.permitted(float64(minutes-2))
	if share < 0.9 || refused > accepted/4 {
		lanes, _ := p.Status()
		t.Errorf("%.3f of the permitted requests, %d refused; %s", share, refused, lanes[0].Found)
	}
	return refused - max(accepted/50, 3*(minutes-2)*60/75)
}

// TestLearnedLimitRecovers checks that a lane finds out when its endpoint allows more
// again, and that it tries to exceed an unchanged limit less and less often.
func TestLearnedLimitRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &limitedEndpoint{
			concurrency: 5, took: 3 * time.Second, tokens: 10, style: silent, start: time.Now(),
		}
		p := poolOf(e, lane.Limits{})
		long := 30 * time.Minute
		if testing.Short() {
			long = 10 * time.Minute
		}
		saturate(p, 60, long)
		if n, refused := e.counts(long); refused > n*2/100 {
			t.Errorf("%d of %d refused by an unchanged limit", refused, n)
		}
		e.concurrency = 40
		saturate(p, 60, 2*time.Minute)
		if lanes, _ := p.Status(); lanes[0].Width < 38 {
			t.Errorf("the width is %d after two minutes with a limit of 40", lanes[0].Width)
		}
	})
}

// TestBurstsTeachTheWidth checks that two bursts of refusals teach the endpoint's concurrency,
// whatever wait they announce.
func TestBurstsTeachTheWidth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &limitedEndpoint{
			concurrency: 40, took: time.Second, tokens: 10, style: exactWait, start: time.Now(),
		}
		p := poolOf(e, lane.Limits{Concurrency: 100})
		saturate(p, 100, 10*time.Second)
		lanes, _ := p.Status()
		if got := lanes[0].Learned.Concurrency; len(e.refused) > 150 || got != 40 {
			t.Errorf("after %d refusals the width is %d, want 40 after 150 at most; %s",
				len(e.refused), got, lanes[0].Found)
		}
	})
}

// TestReservedTokensAreAnticipated checks a lane whose endpoint reserves more tokens
// for a reply than the reply will have, as most endpoints do. The lane reads the
// headers, so no request is refused, and still uses up the limit.
func TestReservedTokensAreAnticipated(t *testing.T) {
	t.Parallel()
	var accepted, refused int
	var permitted float64
	repeats := 20
	if testing.Short() {
		repeats = 4
	}
	for range repeats { // the order of goroutines differs, and with it a few refusals
		synctest.Test(t, func(t *testing.T) {
			e := &limitedEndpoint{
				tpm: 60_000, tokens: 500, reserve: 250, headers: true,
				took: 300 * time.Millisecond, start: time.Now(),
			}
			p := poolOf(e, lane.Limits{Concurrency: 16, TPM: 60_000})
			saturate(p, 50, 6*time.Minute)
			a, r := e.counts(6 * time.Minute)
			accepted, refused, permitted = accepted+a, refused+r, permitted+e.permitted(4)
		})
	}
	if share := float64(accepted) / permitted; share < 0.95 || refused > accepted/50 {
		t.Errorf("%.3f of the permitted requests, %d of %d refused; want 0.95 and 2 %%",
			share, refused, accepted)
	}
	t.Logf("%d of %d refused", refused, accepted)
}

// TestRefusedFromTheStart checks that a run learns no wrong limit if others have used
// up the first minute before it begins.
func TestRefusedFromTheStart(t *testing.T) {
	t.Parallel()
	for _, style := range []refusalStyle{exactWait, oneSecond, silent} {
		t.Run(style.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &limitedEndpoint{
					rpm: 60, took: 700 * time.Millisecond, tokens: 500, style: style,
					start: time.Now(),
				}
				for range 60 {
					e.accepted = append(e.accepted, 0)
				}
				saturate(poolOf(e, lane.Limits{Concurrency: 1}), 6, 5*time.Minute)
				if accepted, _ := e.counts(5 * time.Minute); accepted < 3*60*7/10 {
					t.Errorf("%d requests in three minutes, but 180 are allowed", accepted)
				}
			})
		})
	}
}
