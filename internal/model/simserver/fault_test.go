package simserver_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gotest.tools/v3/golden"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/protocol/openai"
	"github.com/assay-eval/assay/internal/model/simserver"
	"github.com/assay-eval/assay/internal/model/wire"
)

// start serves s on a socket until the test ends, and returns its URL.
func start(t testing.TB, s *simserver.Server) string {
	t.Helper()
	server := httptest.NewUnstartedServer(s)
	server.Config.ConnState = s.ConnState
	server.Start()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	return server.URL
}

// always returns the faults of a server on which every request has a fault.
func always(kind string) []simserver.Fault {
	return []simserver.Fault{{Kind: kind, Share: 1}}
}

func request(text string) assay.Request {
	return assay.Request{
		Model:     "sim/listed",
		Messages:  []assay.Message{{Role: assay.User, Content: text}},
		Functions: []assay.Function{{Name: "read", Parameters: []byte(`{"type":"object"}`)}},
	}
}

// TestFaultResponses compares the responses of faults with a file. Faults that end the connection or
// hang are left to other tests. The clock stands still, so that responses have the same time.
func TestFaultResponses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got strings.Builder
		for _, kind := range simserver.FaultKinds() {
			if slices.Contains([]string{"hang", "hang-body", "drip", "reset", "truncate"}, kind) {
				continue
			}
			w := say(newServer(t, simserver.Config{Faults: always(kind)}), "sim/listed", "x")
			fmt.Fprintf(&got, "== %s\n%d\n", kind, w.Code)
			w.Header().Del("Content-Length")
			if err := w.Header().Write(&got); err != nil {
				t.Fatal(err)
			}
			body := strings.TrimSpace(w.Body.String())
			fmt.Fprintf(&got, "\n%s\n\n", body)
			if blank := w.Body.Len() - len(body); kind == "oversized" && blank < 9<<20 {
				t.Errorf("%d bytes of white space, want 9 MiB", blank)
			}
		}
		golden.Assert(t, strings.ReplaceAll(got.String(), "\r", ""), "faults.txt")
	})
}

// post sends a request with a client that does not follow redirects.
func post(t testing.TB, url string) (*http.Response, []byte) {
	t.Helper()
	client := &http.Client{
		Transport: &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions",
		strings.NewReader(`{"model":"sim/listed","messages":[{"role":"user","content":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+goodKey)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return resp, body
}

// TestResponseFreesSlotFirst checks that a client that keeps a concurrency limit exactly
// never finds its slot taken.
func TestResponseFreesSlotFirst(t *testing.T) {
	t.Parallel()
	s := newServer(t, simserver.Config{
		Limits: []simserver.Limit{{Concurrency: 4}},
		Faults: []simserver.Fault{
			{Kind: "500", Share: 0.2}, {Kind: "reset", Share: 0.2}, {Kind: "truncate", Share: 0.2},
		},
	})
	client := wire.NewClient(wire.ClientOptions{})
	t.Cleanup(client.CloseIdleConnections)
	p, err := openai.Protocol.New(wire.Config{
		BaseURL: start(t, s) + "/v1", Deployment: "sim/listed", Key: wire.NewSecret(goodKey), Client: client,
	})
	if err != nil {
		t.Fatal(err)
	}
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for range 100 {
				_, _ = p.Chat(t.Context(), new(request("x")))
			}
		})
	}
	workers.Wait()
	if got := s.Stats(); got.OverLimit != 0 || got.MaxInFlight > 4 || got.Requests != 400 {
		t.Errorf("Stats() = %+v, want 400 requests within the limit of 4", got)
	}
}

func TestCloseEndsHangingRequests(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"hang", "hang-body", "drip", ""} {
		t.Run("fault "+kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := simserver.Config{Latency: simserver.Latency{Median: time.Minute}}
				if kind != "" {
					cfg = simserver.Config{Faults: always(kind)}
				}
				s := newServer(t, cfg)
				began := time.Now()
				time.AfterFunc(time.Second, func() { _ = s.Close() })
				w := say(s, "sim/listed", "x")
				if took := time.Since(began); took != time.Second {
					t.Errorf("ended after %v, want 1s", took)
				}
				if (kind == "hang" || kind == "") && w.Code != http.StatusServiceUnavailable {
					t.Errorf("status %d, want 503", w.Code)
				}
				if got := s.Stats(); kind != "" && got.Faults[kind] != 1 {
					t.Errorf("Stats() = %+v, want one fault", got)
				}
				if w := say(s, "sim/listed", "x"); w.Code != http.StatusServiceUnavailable {
					t.Errorf("status %d after Close, want 503", w.Code)
				}
			})
		})
	}
}

func TestDripArrivesWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, simserver.Config{Faults: always("drip")})
		began := time.Now()
		w := say(s, "sim/listed", "x")
		decode(t, w)
		want := time.Duration(w.Body.Len()) * 100 * time.Millisecond
		if got := time.Since(began); got != want {
			t.Errorf("took %v, want %v", got, want)
		}
	})
}

// TestFaultsDependOnSeedAndNumber checks that the faults depend only on the seed and the
// number of the request, so a repeated request may have another result.
func TestFaultsDependOnSeedAndNumber(t *testing.T) {
	t.Parallel()
	draw := func(seed uint64) []int {
		s := newServer(t, simserver.Config{Seed: seed, Faults: []simserver.Fault{
			{Kind: "500", Share: 0.2}, {Kind: "503", Share: 0.1},
		}})
		var statuses []int
		for range 1000 {
			statuses = append(statuses, say(s, "sim/listed", "x").Code)
		}
		return statuses
	}
	a, b, c := draw(1), draw(1), draw(2)
	if !slices.Equal(a, b) {
		t.Error("the same seed gave different series")
	}
	if slices.Equal(a, c) {
		t.Error("different seeds gave the same series")
	}
	count := map[int]int{}
	for _, status := range a {
		count[status]++
	}
	if count[500] < 150 || count[500] > 250 || count[503] < 60 || count[503] > 140 {
		t.Errorf("faults = %v, want about 200 and 100 of 1000", count)
	}
}

func TestLatency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		latency := simserver.Latency{Median: time.Second, Sigma: 0.5}
		s := newServer(t, simserver.Config{Seed: 7, Latency: latency})
		measure := func(i int) time.Duration {
			began := time.Now()
			say(s, "sim/listed", fmt.Sprint(i))
			return time.Since(began)
		}
		var all []time.Duration
		for i := range 999 {
			all = append(all, measure(i))
		}
		if want := time.Duration(916_518_440); all[0] != want {
			t.Errorf("the first request took %v, want always %v", all[0], want)
		}
		for i := range 10 {
			if again := measure(i); again != all[i] {
				t.Errorf("request %d took %v, then %v", i, all[i], again)
			}
		}
		slices.Sort(all)
		if median := all[499]; median < 900*time.Millisecond || median > 1100*time.Millisecond {
			t.Errorf("median = %v, want about 1s", median)
		}
		// This is one standard deviation above the median, a factor of exp(0.5).
		if p84 := all[840]; p84 < 1480*time.Millisecond || p84 > 1820*time.Millisecond {
			t.Errorf("84th percentile = %v, want about 1.65s", p84)
		}
	})
}

func TestClientThatLeavesEndsItsRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, simserver.Config{Latency: simserver.Latency{Median: time.Hour}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		req := httptest.NewRequestWithContext(ctx, "POST", "/v1/chat/completions",
			strings.NewReader(`{"model":"sim/listed","messages":[{"role":"user","content":"x"}]}`))
		req.Header.Set("Authorization", "Bearer k")
		began := time.Now()
		s.ServeHTTP(httptest.NewRecorder(), req)
		if took := time.Since(began); took != time.Second {
			t.Errorf("ended after %v, want 1s", took)
		}
		if got := s.Stats(); got.InFlight != 0 || len(got.Statuses) != 0 {
			t.Errorf("Stats() = %+v, want 0 in flight and no status", got)
		}
	})
}

func TestParseFault(t *testing.T) {
	t.Parallel()
	good := map[string]simserver.Fault{
		"hang=1%":          {Kind: "hang", Share: 0.01},
		"hang=0.01":        {Kind: "hang", Share: 0.01},
		"wrong-model=100%": {Kind: "wrong-model", Share: 1},
		"503=0":            {Kind: "503"},
	}
	for text, want := range good {
		if got, err := simserver.ParseFault(text); err != nil || got != want {
			t.Errorf("ParseFault(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	bad := map[string]string{
		"hang":       "has no share",
		"hung=1%":    `did you mean hang?`,
		"505=1%":     `did you mean 500?`,
		"hang=often": "is not a number",
		"hang=101%":  "between 0 and 1",
		"hang=-1":    "between 0 and 1",
		"hang=NaN":   "between 0 and 1",
	}
	for text, want := range bad {
		got, err := simserver.ParseFault(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseFault(%q) = %+v, %v; want %q", text, got, err, want)
		}
	}
}
