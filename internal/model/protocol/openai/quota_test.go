package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// noon is the endpoint's time in these tests.
const noon = "Fri, 02 Jan 2026 12:00:00 GMT"

// headers returns the headers of a response, from alternating names and values.
func headers(kv ...string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Date": {noon}}
	for i := 0; i < len(kv); i += 2 {
		h.Set(kv[i], kv[i+1])
	}
	return h
}

// answering returns a provider whose endpoint always sends the same response.
func answering(t testing.TB, status int, h http.Header, body string) *wire.Provider {
	t.Helper()
	return newProvider(t, wire.Config{
		BaseURL: "http://endpoint.example",
		Client:  &http.Client{Transport: canned{status, h, body}},
	})
}

func state(b assay.Bucket, limit, remaining int, reset time.Duration) assay.QuotaState {
	return assay.QuotaState{Bucket: b, Limit: limit, Remaining: remaining, Reset: reset}
}

func TestQuotasOfHeaders(t *testing.T) {
	t.Parallel()
	type states = []assay.QuotaState
	const s, m, hour = time.Second, time.Minute, time.Hour
	requests := func(limit, remaining, reset string) http.Header {
		return headers("x-ratelimit-limit-requests", limit,
			"x-ratelimit-remaining-requests", remaining, "x-ratelimit-reset-requests", reset)
	}
	plain := func(limit, remaining, reset string) http.Header {
		return headers("X-RateLimit-Limit", limit,
			"X-RateLimit-Remaining", remaining, "X-RateLimit-Reset", reset)
	}
	tokens := func(limit, remaining, reset string) http.Header {
		return headers("x-ratelimit-limit-tokens", limit,
			"x-ratelimit-remaining-tokens", remaining, "x-ratelimit-reset-tokens", reset)
	}
	tests := []struct {
		name   string
		header http.Header
		want   states
	}{
		{"None", headers(), nil},
		{"RequestsOfAMinute", requests("60", "59", "1s"), states{state(assay.Requests, 60, 59, s)}},
		{
			"RequestsOfAMinuteSpent", requests("3", "0", "1m0s"),
			states{state(assay.Requests, 3, 0, m)},
		},
		{
			"ManyRequestsOfAMinute", requests("10000", "9999", "6ms"),
			states{state(assay.Requests, 10000, 9999, 6*time.Millisecond)},
		},
		{
			"RequestsOfADay", requests("14400", "14370", "2m59.56s"),
			states{state(assay.Requests, 14400, 14370, 179560*time.Millisecond)},
		},
		{
			"RequestsOfADaySpent", requests("200", "0", "24h0m0s"),
			states{state(assay.Requests, 200, 0, 24*hour)},
		},
		{
			"RequestsOfAnUnusedLimit", requests("60", "60", "0s"),
			states{state(assay.Requests, 60, 60, 0)},
		},
		{"RequestsWithoutReset", requests("60", "59", ""), states{state(assay.Requests, 60, 59, 0)}},
		{"RequestsOfTenMinutes", requests("60", "59", "10s"), states{state(assay.Requests, 60, 59, 10*s)}},
		{"MoreThanAll", requests("60", "61", "1s"), states{state(assay.Requests, 60, 61, s)}},
		{
			"Mistral", headers("x-ratelimit-limit-req-minute", "720",
				"x-ratelimit-remaining-req-minute", "717"),
			states{state(assay.Requests, 720, 717, 0)},
		},
		{
			"LiteLLM", headers("x-ratelimit-api_key-limit-requests", "60",
				"x-ratelimit-api_key-remaining-requests", "0"),
			states{state(assay.Requests, 60, 0, 0)},
		},
		{
			"Tokens", tokens("150000", "149984", "6ms"),
			states{state(assay.Tokens, 150000, 149984, 6*time.Millisecond)},
		},
		{
			"TokensWithoutReset", tokens("150000", "149984", ""),
			states{state(assay.Tokens, 150000, 149984, 0)},
		},
		{
			"TokensInFractions", tokens("6000", "5999.5", "0.005"),
			states{state(assay.Tokens, 6000, 5999, 5*time.Millisecond)},
		},
		{"LimitOnly", tokens("6000", "", "1s"), states{state(assay.Tokens, 6000, -1, s)}},
		{"ResetOnly", tokens("", "", "1s"), nil},
		{"NoSuchLimit", tokens("0", "-1", ""), nil},
		{"Rubbish", tokens("many", "NaN", "soon"), nil},
		{"Huge", tokens("1e300", "7", "1e300"), states{state(assay.Tokens, 1<<31-1, 7, 24*hour)}},
		{"Negative", tokens("6000", "5", "-3s"), states{state(assay.Tokens, 6000, 5, 0)}},
		{"WithWindows", tokens("60, 60;w=1", "59;x", "1"), states{state(assay.Tokens, 60, 59, s)}},
		{"PlainSeconds", plain("60", "30", "30"), states{state(assay.Requests, 60, 30, 30*s)}},
		{
			"PlainUnixSeconds", plain("20", "0", "1767355260"),
			states{state(assay.Requests, 20, 0, m)},
		},
		{
			"PlainUnixMilliseconds", plain("50", "0", "1767384000000"),
			states{state(assay.Requests, 50, 0, 8*hour)},
		},
		{
			"PlainRFC3339", plain("20", "0", "2026-01-02T13:00:30+01:00"),
			states{state(assay.Requests, 20, 0, 30*s)},
		},
		{"PlainPast", plain("20", "0", "1767350000"), states{state(assay.Requests, 20, 0, 0)}},
		{
			"Azure",
			headers("x-ratelimit-remaining-tokens", "900", "x-ratelimit-remaining-requests", "9"),
			states{state(assay.Tokens, -1, 900, 0), state(assay.Requests, -1, 9, 0)},
		},
		{
			"Periods", headers(
				"x-ratelimit-limit-requests-day", "14400",
				"x-ratelimit-remaining-requests-day", "14399",
				"x-ratelimit-reset-requests-day", "43200.5",
				"x-ratelimit-limit-tokens-minute", "60000",
				"x-ratelimit-remaining-tokens-minute", "60000",
				"x-ratelimit-reset-tokens-minute", "17.3",
				"x-ratelimit-limit-requests-minute", "30",
				"x-ratelimit-remaining-requests-minute", "29",
			),
			states{
				state(assay.RequestsPerDay, 14400, 14399, 12*hour+500*time.Millisecond),
				state(assay.Requests, 30, 29, 0),
				state(assay.Tokens, 60000, 60000, 17300*time.Millisecond),
			},
		},
		{
			"Anthropic", headers(
				"anthropic-ratelimit-requests-limit", "50",
				"anthropic-ratelimit-requests-remaining", "49",
				"anthropic-ratelimit-requests-reset", "2026-01-02T12:00:01Z",
				"anthropic-ratelimit-tokens-limit", "100",
				"anthropic-ratelimit-tokens-remaining", "90",
				"anthropic-ratelimit-tokens-reset", "2026-01-02T12:00:06Z",
				"anthropic-ratelimit-input-tokens-limit", "80",
				"anthropic-ratelimit-input-tokens-remaining", "70",
				"anthropic-ratelimit-output-tokens-limit", "20",
				"anthropic-ratelimit-output-tokens-remaining", "0",
				"anthropic-ratelimit-output-tokens-reset", "2026-01-02T12:01:00Z",
			),
			states{
				state(assay.Requests, 50, 49, s), state(assay.Tokens, 100, 90, 6*s),
				state(assay.InputTokens, 80, 70, 0), state(assay.OutputTokens, 20, 0, m),
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for status, body := range map[int]string{200: hello, 500: `{}`} {
				resp, err := answering(t, status, test.header, body).Chat(t.Context(), new(hi()))
				if (err == nil) != (status == 200) {
					t.Errorf("Chat() = %v", err)
				}
				if d := cmp.Diff(test.want, resp.Quotas); d != "" {
					t.Errorf("quotas with status %d differ (-want +got):\n%s", status, d)
				}
			}
		})
	}
}

func TestFaultNamesTheLimit(t *testing.T) {
	t.Parallel()
	type hit struct {
		Bucket assay.Bucket
		Limit  int
		Wait   time.Duration
	}
	const s = time.Second
	message := func(text string) string { return openaiError(text, "", "", "") }
	usedUp := func(remainingTokens string) http.Header {
		return headers(
			"x-ratelimit-limit-requests-minute", "60", "x-ratelimit-remaining-requests-minute", "0",
			"x-ratelimit-limit-tokens", "9000", "x-ratelimit-remaining-tokens", remainingTokens)
	}
	tests := []struct {
		name   string
		header http.Header
		body   string
		want   hit
	}{
		{
			"OpenAIRequests", nil,
			openaiError("Rate limit reached for gpt-4o in organization org-x on requests per min "+
				"(RPM): Limit 3, Used 3, Requested 1. Please try again in 20s. "+
				"Visit https://platform.openai.com", "requests", "", "rate_limit_exceeded"),
			hit{assay.Requests, 3, 20 * s},
		},
		{
			"OpenAITokens", nil,
			openaiError("Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, "+
				"Used 29999, Requested 600. Please try again in 1.198s.",
				"tokens", "", "rate_limit_exceeded"),
			hit{assay.Tokens, 30000, 1198 * time.Millisecond},
		},
		{
			"OpenAIRequestsOfADay", nil,
			message("Rate limit reached on requests per day (RPD): Limit 200, Used 200. " +
				"Please try again in 7m12s."),
			hit{assay.RequestsPerDay, 200, 432 * s},
		},
		{
			"TokensOfADay", usedUp("7"),
			openaiError("Rate limit reached on tokens per day (TPD): Limit 100000, Used 99999. "+
				"Please try again in 2m1.5s.", "tokens", "", ""),
			hit{"", 0, 121500 * time.Millisecond},
		},
		{
			"AnthropicInput", nil,
			message("This request would exceed your organization's rate limit of 50,000 input " +
				"tokens per minute (org: x, model: y)."),
			hit{assay.InputTokens, 50000, 0},
		},
		{
			"AnthropicOutput", nil,
			message("This request would exceed the rate limit of 8,000 output tokens per minute."),
			hit{assay.OutputTokens, 8000, 0},
		},
		{
			"Concurrent", nil, message("Too many concurrent requests, limit 600"),
			hit{assay.Concurrency, 600, 0},
		},
		{
			"Concurrency", nil, openaiError("slow down", "concurrency_limit_exceeded", "", ""),
			hit{assay.Concurrency, 0, 0},
		},
		{
			"AzureTokens", nil,
			message("Requests to the ChatCompletions_Create Operation under Azure OpenAI API version " +
				"2024-10-21 have exceeded token rate limit of your current OpenAI S0 pricing tier. " +
				"Please retry after 26 seconds. Please go here: x"),
			hit{assay.Tokens, 0, 26 * s},
		},
		{
			"AzureCalls", nil,
			message("Requests to the ChatCompletions_Create Operation under Azure OpenAI API version " +
				"2024-10-21 have exceeded call rate limit of your current pricing tier. " +
				"Please retry after 1 second."),
			hit{assay.Requests, 0, s},
		},
		{
			"Google", nil,
			`[{"error":{"code":429,"message":"Quota exceeded for metric, limit: 50, model: m",
			"status":"RESOURCE_EXHAUSTED","details":[{"@type":"QuotaFailure","violations":[
			{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},
			{"@type":"RetryInfo","retryDelay":"34s"}]}}]`,
			hit{assay.RequestsPerDay, 50, 34 * s},
		},
		{
			"GoogleQuota", nil,
			message("You exceeded your current quota, please check your plan and billing details. " +
				"Please retry in 34.5s."),
			hit{"", 0, 34500 * time.Millisecond},
		},
		{
			"Type", usedUp("0"), openaiError("slow down", "tokens", "", ""),
			hit{assay.Tokens, 0, 0},
		},
		{"Code", nil, openaiError("slow down", "", "", "requests"), hit{assay.Requests, 0, 0}},
		{"Spent", usedUp("7"), `{}`, hit{assay.Requests, 0, 0}},
		{"BothSpent", usedUp("0"), `{}`, hit{}},
		{"NoneSpent", headers("x-ratelimit-remaining-tokens", "7"), `{}`, hit{}},
		{"Minutes", nil, message("Please try again in 2 minutes."), hit{"", 0, 120 * s}},
		{
			"MinutesAndSeconds", nil, message("retry after 2 minutes and 3 seconds"),
			hit{"", 0, 123 * s},
		},
		{
			"Milliseconds", nil, message("Please try again in 20ms."),
			hit{"", 0, 20 * time.Millisecond},
		},
		{"MinutesAsGoWritesThem", nil, message("Please try again in 6m0s."), hit{"", 0, 360 * s}},
		{"SecondWait", nil, message("Try again later, or wait for 5 seconds"), hit{"", 0, 5 * s}},
		{
			"LiteLLMParallel", headers("Retry-After", "60"),
			message("Rate limit exceeded for api_key: ab12. Limit type: max_parallel_requests. " +
				"Current limit: 6, Remaining: 0."),
			hit{assay.Concurrency, 6, 60 * s},
		},
		{
			"LiteLLMTokens", nil, message("Rate limit exceeded for api_key: ab12. " +
				"Limit type: tokens. Current limit: 9000, Remaining: 0."),
			hit{assay.Tokens, 9000, 0},
		},
		{
			"LiteLLMHeader", headers("rate_limit_type", "max_parallel_requests"),
			message("No capacity."),
			hit{assay.Concurrency, 0, 0},
		},
		{"RetryAfterATime", headers("Retry-After", "1767355230"), `{}`, hit{"", 0, 30 * s}},
		{"RetryAfterMs", headers("Retry-After-Ms", "72000000"), `{}`, hit{"", 0, 72000 * s}},
		{"RetryAfterADuration", headers("Retry-After", "1m30s"), `{}`, hit{"", 0, 90 * s}},
		{"RetryAfterTheLongWay", headers("Retry-After", "7200"), `{}`, hit{"", 0, 7200 * s}},
		{
			"ResetOfAnUnnamedPeriod", headers("x-ratelimit-limit-requests", "600",
				"x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "6h"),
			`{}`,
			hit{assay.Requests, 0, 0},
		},
		{
			"ResetOfADay", headers("x-ratelimit-limit-requests", "600",
				"x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "6h"),
			message("Too many requests per day."),
			hit{assay.RequestsPerDay, 0, 6 * 3600 * s},
		},
		{
			"ResetOfAnotherLimit", headers("x-ratelimit-limit-requests", "600",
				"x-ratelimit-remaining-requests", "7", "x-ratelimit-reset-requests", "6s"),
			`{}`,
			hit{},
		},
		{"NoWait", nil, message("Please try again in 5 more ways or retry after 3"), hit{}},
		{
			"EndlessWait", nil, message("Please try again in 99999999999999999999 days"),
			hit{},
		},
		{
			"HeaderFirst", headers("Retry-After", "2"), message("Please try again in 20ms."),
			hit{"", 0, 2 * s},
		},
		{
			"MessageBeforeReset", headers("x-ratelimit-reset-requests", "6m0s"),
			message("Please try again in 20ms."),
			hit{"", 0, 20 * time.Millisecond},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.header == nil {
				test.header = headers()
			}
			_, f := chatFault(t, t.Context(), answering(t, 429, test.header, test.body))
			if f.Kind != assay.RateLimited {
				t.Errorf("fault = %+v, want rate_limited", f)
			}
			if d := cmp.Diff(test.want, hit{f.Bucket, f.Limit, f.RetryAfter}); d != "" {
				t.Errorf("fault differs (-want +got):\n%s", d)
			}
		})
	}
}

// TestRateLimitWithOtherStatus checks rate limits with the statuses of some gateways.
func TestRateLimitWithOtherStatus(t *testing.T) {
	t.Parallel()
	body := openaiError("rate limit of 20 requests per minute, try again in 3s", "", "", "")
	for _, status := range []int{200, 400} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			_, f := chatFault(t, t.Context(), answering(t, status, headers(), body))
			if f.Kind != assay.RateLimited || f.Bucket != assay.Requests || f.Limit != 20 ||
				f.RetryAfter != 3*time.Second {
				t.Errorf("fault = %+v", f)
			}
		})
	}
}

func FuzzQuotas(f *testing.F) {
	f.Add("60", "59", "1s", "20",
		"on requests per min (RPM): Limit 3, Used 3. Please try again in 6m0s", "34s")
	f.Add("1e300", "-1", "2026-01-02T12:00:06Z", "Mon, 02 Jan 2006 15:04:05 GMT",
		"retry after 1 minute and 9e9 seconds", "-3h")
	f.Add("0x7fp1", "NaN", "1767384000000", "-Inf",
		"limit of 99,999,999,999,999 tokens/minute; wait 99999999999999999999999h", "1e3s")
	f.Add("5;w", ",", "9223372036854775807ns", "1e999", "concurrent", "")
	f.Fuzz(func(t *testing.T, limit, remaining, reset, retryAfter, message, delay string) {
		h := headers("Retry-After", retryAfter)
		for _, family := range []string{"", "-Requests", "-Tokens", "-Requests-Day"} {
			h["X-Ratelimit-Limit"+family] = []string{limit}
			h["X-Ratelimit-Remaining"+family] = []string{remaining}
			h["X-Ratelimit-Reset"+family] = []string{reset}
		}
		h["Anthropic-Ratelimit-Output-Tokens-Remaining"] = []string{remaining}
		h["Anthropic-Ratelimit-Output-Tokens-Reset"] = []string{reset}
		body := `{"error":{"message":` + quoted(message) +
			`,"details":[{"retryDelay":` + quoted(delay) + `}]}}`
		resp, err := answering(t, 429, h, body).Chat(t.Context(), new(hi()))
		var fault *assay.Fault
		if !errors.As(err, &fault) {
			t.Fatalf("Chat() = %v, want a fault", err)
		}
		if fault.RetryAfter < 0 || fault.RetryAfter > 24*time.Hour ||
			fault.Limit < 0 || fault.Limit > 0 && fault.Bucket == "" {
			t.Errorf("fault = %+v", fault)
		}
		var seen []assay.Bucket
		for _, q := range resp.Quotas {
			switch {
			case q.Bucket == "", slices.Contains(seen, q.Bucket),
				q.Limit < -1, q.Limit == 0, q.Remaining < -1, q.Limit < 0 && q.Remaining < 0,
				q.Reset < 0, q.Reset > 24*time.Hour:
				t.Errorf("quotas = %+v", resp.Quotas)
			}
			seen = append(seen, q.Bucket)
		}
	})
}

// quoted returns text as a JSON string.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}
