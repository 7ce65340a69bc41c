package simserver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/model/simserver"
)

// limitHeaders returns a response's headers about limits, without X-Ratelimit-.
func limitHeaders(w *httptest.ResponseRecorder) map[string]string {
	got := map[string]string{}
	for name := range w.Header() {
		if strings.Contains(name, "Ratelimit-") || strings.HasPrefix(name, "Retry-After") {
			got[strings.TrimPrefix(name, "X-Ratelimit-")] = w.Header().Get(name)
		}
	}
	return got
}

func limited(t testing.TB, limits ...simserver.Limit) *simserver.Server {
	latency := simserver.Latency{Median: time.Second}
	return newServer(t, simserver.Config{Limits: limits, Latency: latency})
}

func wantStatus(t testing.TB, w *httptest.ResponseRecorder, status int) {
	t.Helper()
	if w.Code != status {
		t.Errorf("status = %d %s, want %d", w.Code, w.Body, status)
	}
}

func wantHeaders(t testing.TB, w *httptest.ResponseRecorder, want map[string]string) {
	t.Helper()
	if d := cmp.Diff(want, limitHeaders(w)); d != "" {
		t.Errorf("headers differ (-want +got):\n%s", d)
	}
}

func TestRequestsPerMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := limited(t, simserver.Limit{RPM: 2})
		wantHeaders(t, say(s, "sim/listed", "x"), map[string]string{ // at 0 s, answered at 1 s
			"Limit-Requests": "2", "Remaining-Requests": "1", "Reset-Requests": "59s",
		})
		time.Sleep(9 * time.Second)
		wantStatus(t, say(s, "sim/listed", "x"), 200) // at 10 s
		time.Sleep(500 * time.Millisecond)

		over := say(s, "sim/listed", "x") // at 11.5 s
		wantStatus(t, over, 429)
		wantHeaders(t, over, map[string]string{
			"Limit-Requests": "2", "Remaining-Requests": "0", "Reset-Requests": "58.5s",
			"Retry-After": "49", "Retry-After-Ms": "48500",
		})

		time.Sleep(48500*time.Millisecond - 1) // just before 60 s
		wantStatus(t, say(s, "sim/listed", "x"), 429)
		time.Sleep(time.Nanosecond)
		wantStatus(t, say(s, "sim/listed", "x"), 200)
		wantStatus(t, say(s, "sim/listed", "x"), 429) // the window slides
		if got := s.Stats().OverLimit; got != 3 {
			t.Errorf("OverLimit = %d, want 3", got)
		}
	})
}

func TestTokensPerMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// A request reserves 5 tokens for its prompt and 256 for the reply, and uses
		// 15.
		s := limited(t, simserver.Limit{TPM: 300})
		first := say(s, "sim/listed", "x")
		wantStatus(t, first, 200)
		wantHeaders(t, first, map[string]string{
			"Limit-Tokens": "300", "Remaining-Tokens": "285", "Reset-Tokens": "59s",
		})
		wantStatus(t, say(s, "sim/listed", "x"), 200)
		wantStatus(t, say(s, "sim/listed", "x"), 200) // 2 s to 3 s, 45 tokens now
		over := say(s, "sim/listed", "x")
		wantStatus(t, over, 429)
		wantHeaders(t, over, map[string]string{
			"Limit-Tokens": "300", "Remaining-Tokens": "255", "Reset-Tokens": "59s",
			"Retry-After": "57", "Retry-After-Ms": "57000",
		})
		wantStatus(t, ask(s, chatPath, goodKey, chat(`"max_tokens":10,`+userX)), 200)
		wantStatus(t, ask(s, chatPath, goodKey, chat(`"max_tokens":1000,`+userX)), 429)
	})
}

// TestBucketsDenyWithExactWait checks the error message of each bucket, and that the
// client is admitted again after exactly the wait in the message.
func TestBucketsDenyWithExactWait(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	// A request reserves 5 prompt tokens and 20 reply tokens, and uses 10 and 5.
	body := chat(`"max_tokens":20,` + userX)
	for _, test := range []struct {
		name    string
		limit   simserver.Limit
		admit   int // requests before the first denial
		message string
		kind    string
		wait    time.Duration
	}{
		{
			"rpm",
			simserver.Limit{RPM: 2},
			2,
			"requests per min (RPM): Limit 2, Used 2, Requested 1. Please try again in 58000ms.",
			"requests", 58 * time.Second,
		},
		{
			"rpd",
			simserver.Limit{RPD: 3},
			3,
			"requests per day (RPD): Limit 3, Used 3, Requested 1. Please try again in 86397000ms.",
			"requests", day - 3*time.Second,
		},
		{
			"tpm",
			simserver.Limit{TPM: 50},
			2,
			"tokens per min (TPM): Limit 50, Used 30, Requested 25. Please try again in 58000ms.",
			"tokens", 58 * time.Second,
		},
		{
			"itpm",
			simserver.Limit{ITPM: 24},
			2,
			"input tokens per min (ITPM): Limit 24, Used 20, Requested 5. Please try again in 58000ms.",
			"tokens", 58 * time.Second,
		},
		{
			"otpm",
			simserver.Limit{OTPM: 33},
			3,
			"output tokens per min (OTPM): Limit 33, Used 15, Requested 20. Please try again in 57000ms.",
			"tokens", 57 * time.Second,
		},
		{
			"longest wait of three",
			simserver.Limit{RPM: 2, RPD: 2, TPM: 50},
			2,
			"requests per day (RPD): Limit 2, Used 2, Requested 1. Please try again in 86398000ms.",
			"requests", day - 2*time.Second,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := limited(t, test.limit)
				send := func() *httptest.ResponseRecorder { return ask(s, chatPath, goodKey, body) }
				for range test.admit {
					wantStatus(t, send(), 200)
				}
				over := send()
				wantStatus(t, over, 429)
				want := map[string]any{
					"message": "Rate limit reached for sim/listed on " + test.message,
					"type":    test.kind, "param": nil, "code": "rate_limit_exceeded",
				}
				if d := cmp.Diff(want, decode(t, over)["error"]); d != "" {
					t.Errorf("error differs (-want +got):\n%s", d)
				}
				time.Sleep(test.wait - 1)
				wantStatus(t, send(), 429)
				time.Sleep(time.Nanosecond)
				wantStatus(t, send(), 200)
			})
		})
	}
}

func TestConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := limited(t, simserver.Limit{Concurrency: 2})
		var running sync.WaitGroup
		for range 2 {
			running.Go(func() { wantStatus(t, say(s, "sim/listed", "x"), 200) })
		}
		synctest.Wait()
		over := say(s, "sim/listed", "x")
		wantStatus(t, over, 429)
		wantHeaders(t, over, map[string]string{"Retry-After": "1", "Retry-After-Ms": "1000"})
		// Another deployment has its own limit.
		wantStatus(t, say(s, "sim-listed-2", "x"), 200)
		running.Wait()
		wantStatus(t, say(s, "sim/listed", "x"), 200)
		if got := s.Stats(); got.MaxInFlight != 3 || got.InFlight != 0 || got.OverLimit != 1 {
			t.Errorf("Stats() = %+v, want at most 3 in flight, 0 now, 1 over the limit", got)
		}
	})
}

func TestLimitsAreOfKeyAndDeployment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := limited(t, simserver.Limit{RPM: 1}, simserver.Limit{Model: "sim-direct", RPM: 2})
		body := func(model string) string {
			return `{"model":"` + model + `","messages":[{"role":"user","content":"x"}]}`
		}
		for _, step := range []struct {
			key, model string
			status     int
		}{
			{"k1", "sim/listed", 200},
			{"k1", "sim-listed", 429}, // the same deployment
			{"k1", "sim-listed-2", 200},
			{"k2", "sim/listed", 200},
			{"k1", "sim/direct", 200},
			{"k1", "sim/direct", 200},
			{"k1", "sim/direct", 429},
		} {
			if w := ask(s, chatPath, step.key, body(step.model)); w.Code != step.status {
				t.Errorf("%s %s: status %d, want %d", step.key, step.model, w.Code, step.status)
			}
		}
		azure := ask(s, "/openai/deployments/sim-listed/chat/completions", "k2", body(""))
		wantStatus(t, azure, http.StatusTooManyRequests)
	})
}

func TestParseLimit(t *testing.T) {
	t.Parallel()
	good := map[string]simserver.Limit{
		"rpm=600,tpm=200000,concurrency=5": {RPM: 600, TPM: 200000, Concurrency: 5},
		"rpd=9,itpm=8,otpm=7":              {RPD: 9, ITPM: 8, OTPM: 7},
		"sim/listed:rpm=60":                {Model: "sim/listed", RPM: 60},
		"llama3:8b: tpm = 7":               {Model: "llama3:8b", TPM: 7},
	}
	for text, want := range good {
		if got, err := simserver.ParseLimit(text); err != nil || got != want {
			t.Errorf("ParseLimit(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
	bad := map[string]string{
		"":                         "has no value",
		"rpm":                      "has no value",
		"ipm=6":                    `did you mean rpm?`,
		"itmp=6":                   `did you mean itpm?`,
		"otpm=1,otpm=1":            "set twice",
		"rmp=6":                    `did you mean rpm?`,
		"concurency=6":             `did you mean concurrency?`,
		"rpm=0":                    "not a whole number above 0",
		"rpm=1.5":                  "not a whole number above 0",
		"rpm=1,rpm=2":              "set twice",
		":rpm=1":                   "no model",
		"rpm=99999999999999999999": "not a whole number",
	}
	for text, want := range bad {
		got, err := simserver.ParseLimit(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseLimit(%q) = %+v, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("sim/listed:rpm=60,tpm=1")
	f.Add("hang=1%")
	f.Fuzz(func(t *testing.T, s string) {
		l, err := simserver.ParseLimit(s)
		if err == nil && max(l.RPM, l.RPD, l.TPM, l.ITPM, l.OTPM, l.Concurrency) < 1 {
			t.Errorf("ParseLimit(%q) = %+v without a limit", s, l)
		}
		if x, err := simserver.ParseFault(s); err == nil && !(x.Share >= 0 && x.Share <= 1) {
			t.Errorf("ParseFault(%q) = %+v", s, x)
		}
	})
}

// TestDeploymentsHaveTheirOwnLimits checks that a limit for a deployment takes precedence
// over the limit for its model.
func TestDeploymentsHaveTheirOwnLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := limited(t,
			simserver.Limit{Model: "sim/listed", RPM: 2},
			simserver.Limit{Model: "sim/listed-2", RPM: 1})
		for _, deployment := range []string{"sim/listed", "sim-listed", "sim/listed-2"} {
			wantStatus(t, say(s, deployment, "x"), 200)
		}
		for _, deployment := range []string{"sim/listed", "sim-listed-2"} {
			wantStatus(t, say(s, deployment, "x"), 429)
		}
	})
	_, err := simserver.New(simserver.Config{
		Provider: echo{}, Models: []string{"sim/listed"},
		Limits: []simserver.Limit{{Model: "sim/lister-2", RPM: 1}},
	})
	if err == nil || !strings.Contains(err.Error(), "did you mean sim/listed") {
		t.Errorf("error %v, want a hint with sim/listed", err)
	}
}
