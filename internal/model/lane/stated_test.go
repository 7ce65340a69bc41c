package lane_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/model/protocol/openai"
	"github.com/assay-eval/assay/internal/model/simserver"
	"github.com/assay-eval/assay/internal/model/wire"
)

// network delivers requests after a random delay, so that they arrive at other intervals than
// they were sent at, and in another order.
type network struct {
	http.RoundTripper
	longest time.Duration
}

func (n network) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(time.Duration(rand.Float64() * float64(n.longest)))
	return n.RoundTripper.RoundTrip(r)
}

// served is the transport of a server's handler.
type served struct{ http.Handler }

func (s served) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

// hello is a model.
type hello struct{}

func (hello) Chat(context.Context, *assay.Request) (*assay.Response, error) {
	return &assay.Response{
		Message: assay.Message{Role: assay.Assistant, Content: "hello"},
		Usage:   assay.Usage{InputTokens: 10, OutputTokens: 5},
	}, nil
}

// TestStatedLimitsHoldAtServer checks that a server with five lanes for each key at their stated
// limits refuses no request, although requests take up to 0.4 s to arrive.
func TestStatedLimitsHoldAtServer(t *testing.T) {
	t.Parallel()
	const rpm = 300
	keys := 3
	if testing.Short() {
		keys = 1
	}
	for _, burst := range []int{0, rpm} {
		t.Run(fmt.Sprintf("burst %d", burst), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, err := simserver.New(simserver.Config{
					Provider: hello{}, Models: []string{"sim/m"},
					Limits:  []simserver.Limit{{RPM: rpm}},
					Latency: simserver.Latency{Median: 800 * time.Millisecond, Sigma: 0.5},
				})
				if err != nil {
					t.Fatal(err)
				}
				var lanes []lane.Config
				for key := range keys {
					for deployment := range 5 {
						p, err := openai.Protocol.New(wire.Config{
							BaseURL: "http://sim.example/v1", Deployment: fmt.Sprintf("sim/m-%d", deployment+1),
							Key:    wire.NewSecret(fmt.Sprintf("sk-test-%d", key)),
							Client: &http.Client{Transport: network{served{server}, 400 * time.Millisecond}},
						})
						if err != nil {
							t.Fatal(err)
						}
						lanes = append(lanes, lane.Config{
							Name: fmt.Sprintf("sim/%d/%d", key, deployment), Provider: p, Orders: "sim/m",
							Limits: lane.Limits{RPM: rpm, Burst: burst},
						})
					}
				}
				const minutes = 2
				saturate(lane.NewPool("sim/m", lanes, lane.Options{}), 133*keys, minutes*time.Minute)
				stats := server.Stats()
				if want := int64(5 * keys * rpm * minutes * 94 / 100); stats.OverLimit != 0 ||
					stats.Requests < want {
					t.Errorf("%d requests refused, %d in all, want 0 and at least %d",
						stats.OverLimit, stats.Requests, want)
				}
			})
		})
	}
}

// TestStatedLimitIsNeverExceeded checks the first law for random limits, headers and delays.
func TestStatedLimitIsNeverExceeded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(rt, "limit")
		span := rapid.SampledFrom([]time.Duration{second, minute, 24 * hour}).Draw(rt, "span")
		took := time.Duration(rapid.IntRange(1, 5000).Draw(rt, "ms")) * time.Millisecond
		late := rapid.Float64Range(0, 1./130).Draw(rt, "late")
		limits := lane.Limits{Burst: rapid.IntRange(0, n).Draw(rt, "burst")}
		switch span {
		case second:
			limits.RPS = n
		case minute:
			limits.RPM = n
		default:
			limits.RPD, late = n, late/12
		}
		headers := rapid.SampledFrom([]headerStyle{
			noHeaders, plainHeaders, azureHeaders, anthropicHeaders, mistralHeaders, litellmHeaders,
		}).Draw(rt, "headers")
		synctest.Test(t, func(t *testing.T) {
			s := &stranger{limiter: &sliding{n: n, span: span}, headers: headers, took: took}
			p := lane.NewPool("m", []lane.Config{{
				Name: "l", Orders: "m", Limits: limits,
				Provider: clientOf(t, network{s, time.Duration(late * float64(span))}),
			}}, lane.Options{Queue: 1000 * hour})
			saturate(p, min(2*n, 50), 2*span+3*second)
			if len(s.refused) > 0 {
				t.Errorf("%d of %d requests exceed the limit", len(s.refused),
					len(s.refused)+len(s.accepted))
			}
		})
	})
}

// hungry is an endpoint that counts the tokens of each request when it arrives.
type hungry struct {
	took    time.Duration
	mu      sync.Mutex
	arrived []time.Time
	counted [][3]int // all tokens, input and output
}

func (h *hungry) Chat(_ context.Context, req *assay.Request) (*assay.Response, error) {
	input, output := len(req.Messages[0].Content)/4, 256 // as a lane estimates them first
	h.mu.Lock()
	h.arrived = append(h.arrived, time.Now())
	h.counted = append(h.counted, [3]int{input + output, input, output})
	h.mu.Unlock()
	time.Sleep(h.took)
	return &assay.Response{
		ServedModel: "m", Usage: assay.Usage{InputTokens: input, OutputTokens: output},
	}, nil
}

// most returns the most tokens of a kind that arrived within a minute.
func (h *hungry) most(kind int) (most int) {
	first, sum := 0, 0
	for i, at := range h.arrived {
		sum += h.counted[i][kind]
		for ; at.Sub(h.arrived[first]) >= minute; first++ {
			sum -= h.counted[first][kind]
		}
		most = max(most, sum)
	}
	return most
}

// TestStatedTokensAreNeverExceeded checks the first law for limits in tokens and requests of random
// sizes, some of which take nearly a minute's tokens, and that the lane is not silent for longer
// than they need.
func TestStatedTokensAreNeverExceeded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1000, 100_000).Draw(rt, "limit")
		largest := rapid.IntRange(1, limit-256).Draw(rt, "largest")
		kind := rapid.IntRange(0, 2).Draw(rt, "kind")
		limits := [3]lane.Limits{{TPM: limit}, {ITPM: limit}, {OTPM: limit}}[kind]
		limits.Burst = rapid.IntRange(0, 50).Draw(rt, "burst")
		sizes := rapid.SliceOfN(rapid.IntRange(1, largest), 1, 60).Draw(rt, "sizes")
		h := &hungry{took: time.Duration(rapid.IntRange(1, 9000).Draw(rt, "ms")) * time.Millisecond}
		synctest.Test(t, func(t *testing.T) {
			p := poolOf(h, limits)
			var wg sync.WaitGroup
			for _, n := range sizes {
				req := assay.Request{Messages: []assay.Message{{Content: strings.Repeat("x", 4*n)}}}
				wg.Go(func() {
					if _, err := p.Chat(t.Context(), &req); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		})
		if got := h.most(kind); got > limit {
			rt.Errorf("%d tokens in a minute, limit %d", got, limit)
		}
		for i := 1; i < len(h.arrived); i++ {
			if gap := h.arrived[i].Sub(h.arrived[i-1]); gap > minute+second {
				rt.Errorf("silent for %v", gap)
			}
		}
	})
}
