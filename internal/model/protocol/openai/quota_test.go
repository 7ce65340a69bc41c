package openai_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
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
		resp, err := answering(t, 429, h, body).Chat(t.Context(), new(wiretest.Hi()))
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
