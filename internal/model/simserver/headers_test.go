package simserver_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/simserver"
)

// TestHeaderStyles runs in virtual time, which begins at midnight of 2000-01-01, UTC. A
// request takes a second, 10 prompt tokens and 5 reply tokens.
func TestHeaderStyles(t *testing.T) {
	t.Parallel()
	every := simserver.Limit{RPM: 9, RPD: 90, TPM: 1000, ITPM: 600, OTPM: 700}
	const nextMinute, nextDay = "2000-01-01T00:01:00Z", "2000-01-02T00:00:00Z"
	anthropic := func(family, limit, remaining, reset string) map[string]string {
		prefix := "Anthropic-Ratelimit-" + family
		return map[string]string{
			prefix + "-Limit": limit, prefix + "-Remaining": remaining, prefix + "-Reset": reset,
		}
	}
	allAnthropic := anthropic("Requests", "9", "8", nextMinute)
	maps.Copy(allAnthropic, anthropic("Tokens", "1000", "985", nextMinute))
	maps.Copy(allAnthropic, anthropic("Input-Tokens", "600", "590", nextMinute))
	maps.Copy(allAnthropic, anthropic("Output-Tokens", "700", "695", nextMinute))

	for _, test := range []struct {
		name, style string
		limit       simserver.Limit
		want        map[string]string
	}{
		{"default", "", every, map[string]string{
			"Limit-Requests": "9", "Remaining-Requests": "8", "Reset-Requests": "59s",
			"Limit-Tokens": "1000", "Remaining-Tokens": "985", "Reset-Tokens": "59s",
		}},
		{"openai per day", "openai", simserver.Limit{RPD: 90, ITPM: 600}, map[string]string{
			"Limit-Requests": "90", "Remaining-Requests": "89", "Reset-Requests": "23h59m59s",
		}},
		{"openai concurrency", "openai", simserver.Limit{Concurrency: 1}, map[string]string{}},
		{"anthropic", "anthropic", every, allAnthropic},
		{
			"anthropic per day", "anthropic",
			simserver.Limit{RPD: 2},
			anthropic("Requests", "2", "1", nextDay),
		},
		{"none", "none", every, map[string]string{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, simserver.Config{
					Headers: test.style, Limits: []simserver.Limit{test.limit},
					Latency: simserver.Latency{Median: time.Second},
				})
				wantHeaders(t, say(s, "sim/listed", "x"), test.want)
			})
		})
	}
}

// TestAnthropicResetRoundsUp checks that a reset in whole seconds is not too early.
func TestAnthropicResetRoundsUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, simserver.Config{
			Headers: "anthropic", Limits: []simserver.Limit{{RPM: 1}},
		})
		time.Sleep(time.Millisecond)
		wantHeaders(t, say(s, "sim/listed", "x"), map[string]string{
			"Anthropic-Ratelimit-Requests-Limit":     "1",
			"Anthropic-Ratelimit-Requests-Remaining": "0",
			"Anthropic-Ratelimit-Requests-Reset":     "2000-01-01T00:01:01Z",
		})
	})
}

func TestRetryAfters(t *testing.T) {
	t.Parallel()
	const message = "Rate limit reached for sim/listed on requests per min (RPM): " +
		"Limit 1, Used 1, Requested 1. Please try again in 58800ms."
	both := map[string]string{"Retry-After": "59", "Retry-After-Ms": "58800"}
	date := map[string]string{
		"Retry-After": "Sat, 01 Jan 2000 00:01:01 GMT", "Date": "Sat, 01 Jan 2000 00:00:01 GMT",
	}
	tests := map[string]struct {
		want          map[string]string
		message, kind string
	}{
		"":        {both, message, "requests"},
		"both":    {both, message, "requests"},
		"seconds": {map[string]string{"Retry-After": "59"}, message, "requests"},
		"ms":      {map[string]string{"Retry-After-Ms": "58800"}, message, "requests"},
		"date":    {date, message, "requests"},
		"none":    {map[string]string{}, message, "requests"},
		"silent":  {map[string]string{}, "Rate limit reached", "rate_limit_error"},
	}
	for _, style := range simserver.RetryAfters() {
		if _, ok := tests[style]; !ok {
			t.Errorf("%s has no test", style)
		}
	}
	for style, test := range tests {
		t.Run("style "+style, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, simserver.Config{
					Headers: simserver.HeadersNone, RetryAfter: style,
					Limits: []simserver.Limit{{RPM: 1}},
				})
				time.Sleep(300 * time.Millisecond)
				wantStatus(t, say(s, "sim/listed", "x"), 200)
				time.Sleep(1200 * time.Millisecond)
				over := say(s, "sim/listed", "x") // at 1.5 s; the limit is free again at 60.3 s
				wantStatus(t, over, http.StatusTooManyRequests)

				want := map[string]any{
					"message": test.message, "type": test.kind,
					"param": nil, "code": "rate_limit_exceeded",
				}
				if d := cmp.Diff(want, decode(t, over)["error"]); d != "" {
					t.Errorf("error differs (-want +got):\n%s", d)
				}
				got := limitHeaders(over)
				if date := over.Header().Get("Date"); date != "" {
					got["Date"] = date
				}
				if d := cmp.Diff(test.want, got); d != "" {
					t.Errorf("headers differ (-want +got):\n%s", d)
				}
			})
		})
	}
}

// TestRetryAfterOfFaults checks that refusals not caused by a limit of the server use the
// same style.
func TestRetryAfterOfFaults(t *testing.T) {
	t.Parallel()
	for style, want := range map[string]map[string]string{
		"seconds": {"Retry-After": "1"},
		"ms":      {"Retry-After-Ms": "1000"},
		"silent":  {},
	} {
		t.Run(style, func(t *testing.T) {
			injected := newServer(t, simserver.Config{RetryAfter: style, Faults: always("429")})
			wantHeaders(t, say(injected, "sim/listed", "x"), want)
			provider := newServer(t, simserver.Config{RetryAfter: style})
			refused := say(provider, "sim/listed", "fault "+string(assay.RateLimited))
			wantHeaders(t, refused, want)
		})
	}
}

// TestNoneSendsNoLimitHeaders checks responses of different statuses.
func TestNoneSendsNoLimitHeaders(t *testing.T) {
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

// TestRetryAfterDateOverHTTP checks that the header Date is sent once, and that the date
// in Retry-After is not too early.
func TestRetryAfterDateOverHTTP(t *testing.T) {
	t.Parallel()
	url := start(t, newServer(t, simserver.Config{
		RetryAfter: "date", Limits: []simserver.Limit{{RPM: 1}},
	}))
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
	wait := again.Sub(date)
	if resp.StatusCode != 429 || wait < time.Second || wait > 62*time.Second {
		t.Errorf("status %d, wait %v: %s", resp.StatusCode, wait, body)
	}
}
