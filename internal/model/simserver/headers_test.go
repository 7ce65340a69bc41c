package simserver_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/simserver"
)

// Virtual time begins at midnight of 2000-01-01, UTC. A request takes a second
// and 10 tokens of prompt and 5 of reply.
func TestHeaderStyles(t *testing.T) {
	t.Parallel()
	every := simserver.Limit{RPM: 9, RPD: 90, TPM: 1000, ITPM: 600, OTPM: 700}
	tests := []struct {
		style string
		limit simserver.Limit
		want  map[string]string
	}{
		{"", every, map[string]string{
			"Limit-Requests": "9", "Remaining-Requests": "8", "Reset-Requests": "59s",
			"Limit-Tokens": "1000", "Remaining-Tokens": "985", "Reset-Tokens": "59s",
		}},
		{"openai", simserver.Limit{RPD: 90, ITPM: 600}, map[string]string{
			"Limit-Requests": "90", "Remaining-Requests": "89", "Reset-Requests": "23h59m59s",
		}},
		{"openai", simserver.Limit{Concurrency: 1}, map[string]string{}},
		{"anthropic", every, map[string]string{
			"Anthropic-Ratelimit-Requests-Limit": "9", "Anthropic-Ratelimit-Requests-Remaining": "8",
			"Anthropic-Ratelimit-Requests-Reset": "2000-01-01T00:01:00Z",
			"Anthropic-Ratelimit-Tokens-Limit":   "1000", "Anthropic-Ratelimit-Tokens-Remaining": "985",
			"Anthropic-Ratelimit-Tokens-Reset":       "2000-01-01T00:01:00Z",
			"Anthropic-Ratelimit-Input-Tokens-Limit": "600", "Anthropic-Ratelimit-Input-Tokens-Remaining": "590",
			"Anthropic-Ratelimit-Input-Tokens-Reset":  "2000-01-01T00:01:00Z",
			"Anthropic-Ratelimit-Output-Tokens-Limit": "700", "Anthropic-Ratelimit-Output-Tokens-Remaining": "695",
			"Anthropic-Ratelimit-Output-Tokens-Reset": "2000-01-01T00:01:00Z",
		}},
		{"anthropic", simserver.Limit{RPD: 2}, map[string]string{
			"Anthropic-Ratelimit-Requests-Limit": "2", "Anthropic-Ratelimit-Requests-Remaining": "1",
			"Anthropic-Ratelimit-Requests-Reset": "2000-01-02T00:00:00Z",
		}},
		{"none", every, map[string]string{}},
	}
	for _, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, simserver.Config{
				Headers: test.style, Limits: []simserver.Limit{test.limit},
				Latency: simserver.Latency{Median: time.Second},
			})
			wantHeaders(t, say(s, "sim/listed", "x"), test.want)
		})
	}
}

// Whole seconds are rounded up, so that nobody comes too early.
func TestAnthropicResetRoundsUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, simserver.Config{Headers: "anthropic", Limits: []simserver.Limit{{RPM: 1}}})
		time.Sleep(time.Millisecond)
		wantHeaders(t, say(s, "sim/listed", "x"), map[string]string{
			"Anthropic-Ratelimit-Requests-Limit": "1", "Anthropic-Ratelimit-Requests-Remaining": "0",
			"Anthropic-Ratelimit-Requests-Reset": "2000-01-01T00:01:01Z",
		})
	})
}

func TestRetryAfters(t *testing.T) {
	t.Parallel()
	const told = "Rate limit reached for sim/listed on requests per min (RPM): Limit 1, Used 1, Requested 1. Please try again in 58800ms."
	tests := map[string]struct {
		want          map[string]string
		message, kind string
	}{
		"":        {map[string]string{"Retry-After": "59", "Retry-After-Ms": "58800"}, told, "requests"},
		"both":    {map[string]string{"Retry-After": "59", "Retry-After-Ms": "58800"}, told, "requests"},
		"seconds": {map[string]string{"Retry-After": "59"}, told, "requests"},
		"ms":      {map[string]string{"Retry-After-Ms": "58800"}, told, "requests"},
		"date":    {map[string]string{"Retry-After": "Sat, 01 Jan 2000 00:01:01 GMT", "Date": "Sat, 01 Jan 2000 00:00:01 GMT"}, told, "requests"},
		"none":    {map[string]string{}, told, "requests"},
		"silent":  {map[string]string{}, "Rate limit reached", "rate_limit_error"},
	}
	for _, way := range simserver.RetryAfters() {
		if _, ok := tests[way]; !ok {
			t.Errorf("no test of %s", way)
		}
	}
	for way, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, simserver.Config{
				Headers: simserver.HeadersNone, RetryAfter: way,
				Limits: []simserver.Limit{{RPM: 1}},
			})
			time.Sleep(300 * time.Millisecond)
			wantStatus(t, say(s, "sim/listed", "x"), 200)
			time.Sleep(1200 * time.Millisecond)
			over := say(s, "sim/listed", "x") // at 1.5 s; there is room at 60.3 s
			wantStatus(t, over, http.StatusTooManyRequests)
			want := map[string]any{"message": test.message, "type": test.kind, "param": nil, "code": "rate_limit_exceeded"}
			if d := cmp.Diff(want, decode(t, over)["error"]); d != "" {
				t.Errorf("%q: error differs (-want +got):\n%s", way, d)
			}
			got := limitHeaders(over)
			if date := over.Header().Get("Date"); date != "" {
				got["Date"] = date
			}
			if d := cmp.Diff(test.want, got); d != "" {
				t.Errorf("%q: headers differ (-want +got):\n%s", way, d)
			}
		})
	}
}

// Refusals that no limit of the server caused keep to the same way.
func TestRetryAfterOfFaults(t *testing.T) {
	t.Parallel()
	for way, want := range map[string]map[string]string{
		"seconds": {"Retry-After": "1"},
		"ms":      {"Retry-After-Ms": "1000"},
		"silent":  {},
	} {
		injected := newServer(t, simserver.Config{RetryAfter: way, Faults: []simserver.Fault{{Kind: "429", Share: 1}}})
		wantHeaders(t, say(injected, "sim/listed", "x"), want)
		provider := newServer(t, simserver.Config{RetryAfter: way})
		wantHeaders(t, say(provider, "sim/listed", "fault "+string(assay.RateLimited)), want)
	}
}

// No response tells anything, whatever its status.
func TestNoneIsOnNoResponse(t *testing.T) {
	t.Parallel()
	s := newServer(t, simserver.Config{
		Headers: "none", RetryAfter: "none",
		Limits: []simserver.Limit{{RPM: 3, RPD: 3, TPM: 5000, ITPM: 3000, OTPM: 3000}},
		Faults: []simserver.Fault{{Kind: "500", Share: 0.3}, {Kind: "429", Share: 0.3}},
	})
	for range 6 {
		wantHeaders(t, say(s, "sim/listed", "x"), map[string]string{})
	}
	if got := s.Stats().OverLimit; got != 3 {
		t.Errorf("OverLimit = %d, want 3", got)
	}
}

// A date reaches a client over a socket once, and is no earlier than the wait.
func TestRetryAfterDateOverHTTP(t *testing.T) {
	t.Parallel()
	url := start(t, newServer(t, simserver.Config{RetryAfter: "date", Limits: []simserver.Limit{{RPM: 1}}}))
	post(t, url)
	resp, body := post(t, url)
	date, err := http.ParseTime(strings.Join(resp.Header.Values("Date"), ","))
	if err != nil {
		t.Fatal(err)
	}
	again, err := http.ParseTime(resp.Header.Get("Retry-After"))
	if err != nil {
		t.Fatal(err)
	}
	if wait := again.Sub(date); resp.StatusCode != 429 || wait < time.Second || wait > 62*time.Second {
		t.Errorf("status %d, wait %v: %s", resp.StatusCode, wait, body)
	}
}
