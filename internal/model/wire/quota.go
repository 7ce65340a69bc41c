package wire

import (
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// longestReset is the longest time to a reset, because limits are for a day at most.
const longestReset = 24 * time.Hour

// limitHeaders names the headers of one limit.
type limitHeaders struct {
	bucket                  assay.Bucket
	limit, remaining, reset string
}

// knownHeaders lists the most specific names of each bucket first. Plain names of
// requests are for a minute, or for a day at Groq and in free tiers. Lanes do not
// need to know.
var knownHeaders = []limitHeaders{
	openaiHeaders(assay.RequestsPerDay, "-Requests-Day"),
	openaiHeaders(assay.Requests, "-Requests-Minute"),
	openaiHeaders(assay.Requests, "-Req-Minute"), // Mistral
	openaiHeaders(assay.Tokens, "-Tokens-Minute"),
	openaiHeaders(assay.Tokens, "-Tokens"),
	openaiHeaders(assay.Requests, "-Requests"),
	openaiHeaders(assay.Requests, ""),
	litellmHeaders(assay.Requests, "Requests"),
	litellmHeaders(assay.Tokens, "Tokens"),
	anthropicHeaders(assay.Requests, "Requests"),
	anthropicHeaders(assay.Tokens, "Tokens"),
	anthropicHeaders(assay.InputTokens, "Input-Tokens"),
	anthropicHeaders(assay.OutputTokens, "Output-Tokens"),
}

func openaiHeaders(b assay.Bucket, suffix string) limitHeaders {
	const prefix = "X-Ratelimit-"
	return limitHeaders{
		bucket:    b,
		limit:     prefix + "Limit" + suffix,
		remaining: prefix + "Remaining" + suffix,
		reset:     prefix + "Reset" + suffix,
	}
}

// litellmHeaders returns the names at LiteLLM's proxy, whose windows have no reset.
func litellmHeaders(b assay.Bucket, name string) limitHeaders {
	const prefix = "X-Ratelimit-Api_key-"
	return limitHeaders{b, prefix + "Limit-" + name, prefix + "Remaining-" + name, ""}
}

func anthropicHeaders(b assay.Bucket, name string) limitHeaders {
	prefix := "Anthropic-Ratelimit-" + name
	return limitHeaders{b, prefix + "-Limit", prefix + "-Remaining", prefix + "-Reset"}
}

// quotaStates returns the state of each bucket that the headers report.
func quotaStates(h http.Header) []assay.QuotaState {
	if !reportsLimits(h) {
		return nil
	}
	var states []assay.QuotaState
	for _, names := range knownHeaders {
		s := names.state(h)
		if (s.Limit >= 0 || s.Remaining >= 0) && stateOf(states, s.Bucket) == nil {
			states = append(states, s)
		}
	}
	return states
}

// reportsLimits reports whether any header may belong to one of knownHeaders.
func reportsLimits(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "X-Ratelimit-") ||
			strings.HasPrefix(name, "Anthropic-Ratelimit-") {
			return true
		}
	}
	return false
}

func (names limitHeaders) state(h http.Header) assay.QuotaState {
	s := assay.QuotaState{
		Bucket:    names.bucket,
		Limit:     amount(h.Get(names.limit)),
		Remaining: amount(h.Get(names.remaining)),
	}
	if s.Limit == 0 {
		s.Limit = -1 // some gateways send 0 if they do not know the limit
	}
	if s.Limit >= 0 || s.Remaining >= 0 {
		s.Reset = min(reset(h, names.reset), longestReset)
	}
	return s
}

// stateOf returns the state of a bucket, or nil if it was not reported.
func stateOf(states []assay.QuotaState, b assay.Bucket) *assay.QuotaState {
	for i := range states {
		if states[i].Bucket == b {
			return &states[i]
		}
	}
	return nil
}

// amount parses a count in a header, such as "60" or "60, 60;w=1". It returns -1
// for other text.
func amount(v string) int {
	if i := strings.IndexAny(v, ",;"); i >= 0 {
		v = v[:i]
	}
	if v == "" {
		return -1
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil || !(f >= 0) {
		return -1
	}
	return int(min(f, math.MaxInt32))
}

// limitHit returns the bucket whose limit a request has hit, and that limit if the
// refusal names it. It returns "" and 0 if they are unknown.
func limitHit(h http.Header, e *APIError, states []assay.QuotaState) (assay.Bucket, int) {
	text := e.text() + " limit type: " + h.Get("Rate_limit_type") // of LiteLLM
	b, named := bucketNamed(text)
	switch {
	case named:
	case e.is("tokens"):
		b = assay.Tokens
	case e.is("requests"):
		b = assay.Requests
	default:
		return usedUp(states), 0
	}
	if b == "" {
		return "", 0
	}
	return b, limitNamed(text)
}

// bucketPhrases is searched in order. A phrase with an empty bucket matches a
// limit that has no bucket, such as tokens per day, so that it is not mistaken for
// another limit.
var bucketPhrases = []struct {
	phrase *regexp.Regexp
	bucket assay.Bucket
}{
	{
		regexp.MustCompile(`(?i)concurren|limit type: max_parallel`),
		assay.Concurrency,
	},
	{
		regexp.MustCompile(`(?i)tokens?.?(per.?|/ ?)(day|hour|second)|\btp[dhs]\b|` +
			`requests?.?(per.?|/ ?)(hour|second)|\brp[hs]\b`),
		"",
	},
	{
		regexp.MustCompile(`(?i)requests?.?(per.?|/ ?)day|requests\w*perday|\brpd\b`),
		assay.RequestsPerDay,
	},
	{
		regexp.MustCompile(`(?i)input.?tokens?.?(per.?|/ ?)min|inputtokens\w*perminute|\bitpm\b`),
		assay.InputTokens,
	},
	{
		regexp.MustCompile(`(?i)output.?tokens?.?(per.?|/ ?)min|\botpm\b`),
		assay.OutputTokens,
	},
	{
		regexp.MustCompile(`(?i)requests?.?(per.?|/ ?)min|requests\w*perminute|\brpm\b|` +
			`call rate limit|limit type: requests`),
		assay.Requests,
	},
	{
		regexp.MustCompile(`(?i)tokens?.?(per.?|/ ?)min|\btpm\b|token rate limit|` +
			`limit type: tokens`),
		assay.Tokens,
	},
}

// bucketNamed returns the bucket that a message names, and whether it names a
// limit at all.
func bucketNamed(text string) (b assay.Bucket, named bool) {
	for _, p := range bucketPhrases {
		if p.phrase.MatchString(text) {
			return p.bucket, true
		}
	}
	return "", false
}

// usedUp returns the only bucket that is empty. It returns "" if there is not exactly one.
func usedUp(states []assay.QuotaState) assay.Bucket {
	var found assay.Bucket
	for _, s := range states {
		if s.Remaining != 0 {
			continue
		}
		if found != "" {
			return ""
		}
		found = s.Bucket
	}
	return found
}

// limitPhrase matches "Limit 600," "limit: 50" and "limit of 50,000 input".
var limitPhrase = regexp.MustCompile(
	`(?i)\blimit(?: of| is|:|=)? ?(\d{1,3}(?:,\d{3})+|\d+)[.,;]?(?:[\s)/]|$)`)

// limitNamed returns the limit in a message, or 0.
func limitNamed(text string) int {
	m := limitPhrase.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	return max(amount(strings.ReplaceAll(m[1], ",", "")), 0)
}

// retryAfter returns the wait that an endpoint asks for, or 0. A header takes
// precedence over the message.
func retryAfter(h http.Header, e *APIError) time.Duration {
	var d time.Duration
	if ms, err := strconv.ParseFloat(strings.TrimSpace(h.Get("Retry-After-Ms")), 64); err == nil {
		d = secondsOf(ms / 1000)
	} else {
		d = reset(h, "Retry-After")
	}
	if d == 0 {
		d = httpDate(h)
	}
	if d == 0 {
		d = waitNamed(e)
	}
	if d > longestReset {
		return 0 // limits are for a day at most
	}
	return d
}

func httpDate(h http.Header) time.Duration {
	at, err := http.ParseTime(strings.TrimSpace(h.Get("Retry-After")))
	if err != nil {
		return 0
	}
	return max(at.Sub(clock(h)), 0)
}

// clock returns the endpoint's time, or ours if the response has no date.
func clock(h http.Header) time.Time {
	if now, err := http.ParseTime(h.Get("Date")); err == nil {
		return now
	}
	return time.Now()
}

// dayReset returns the time until a limit per day that is used up is reset, or 0. Other
// resets are not waits that the endpoint asks for: in some places, the time until all of
// a limit is available again is much longer than that until the next request.
func dayReset(states []assay.QuotaState, hit assay.Bucket) time.Duration {
	var wait time.Duration
	for _, s := range states {
		if s.Remaining == 0 && (hit == assay.RequestsPerDay || s.Bucket == assay.RequestsPerDay) {
			wait = max(wait, s.Reset)
		}
	}
	return wait
}

// reset parses a header with a duration or a time: "6m0s", "20ms", seconds, an
// RFC 3339 time, or seconds or milliseconds since 1970. It returns 0 for
// other text.
func reset(h http.Header, name string) time.Duration {
	v := strings.TrimSpace(h.Get(name))
	if v == "" {
		return 0
	}
	const thirtyYears, inMilliseconds = 1e9, 1e11 // in seconds since 1970
	f, err := strconv.ParseFloat(v, 64)
	switch {
	case err == nil && f >= inMilliseconds:
		return secondsOf(f/1000 - unix(clock(h)))
	case err == nil && f >= thirtyYears:
		return secondsOf(f - unix(clock(h)))
	case err == nil:
		return secondsOf(f)
	}
	if at, err := time.Parse(time.RFC3339, v); err == nil {
		return max(at.Sub(clock(h)), 0)
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		return 0
	}
	return max(d, 0)
}

func unix(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// secondsOf converts f to a duration of at most a year, which is far below the
// largest duration.
func secondsOf(f float64) time.Duration {
	const year = 365 * 24 * 3600
	if !(f > 0) {
		return 0
	}
	return time.Duration(min(f, year) * float64(time.Second))
}

var (
	// waitPhrase matches the words before a wait in a message.
	waitPhrase = regexp.MustCompile(
		`(?i)\b(?:(?:re)?try(?: again)?|wait)(?: in| after| for| at least)? (?:about )?`)
	// waitPart matches one part of a wait such as "1m26.5s" or "2 minutes".
	waitPart = regexp.MustCompile(`(?i)^(?:\s|,|and\b)*(\d+(?:\.\d+)?)\s*([a-z]+)`)
)

// waitNamed returns the wait that an error asks for, or 0.
func waitNamed(e *APIError) time.Duration {
	if d, err := time.ParseDuration(e.retryDelay); err == nil && d > 0 {
		return d
	}
	text := e.text()
	for _, at := range waitPhrase.FindAllStringIndex(text, -1) {
		if d := wait(text[at[1]:]); d > 0 {
			return d
		}
	}
	return 0
}

// wait returns the sum of the parts at the start of text.
func wait(text string) time.Duration {
	var sum float64
	for {
		m := waitPart.FindStringSubmatch(text)
		if m == nil {
			return secondsOf(sum)
		}
		n, err := strconv.ParseFloat(m[1], 64)
		unit := unitOf(m[2])
		if err != nil || unit == 0 {
			return secondsOf(sum)
		}
		sum += n * unit
		text = text[len(m[0]):]
	}
}

// unitOf returns a unit of time in seconds, or 0 for other words.
func unitOf(word string) float64 {
	switch strings.ToLower(word) {
	case "ms", "millisecond", "milliseconds":
		return 0.001
	case "s", "sec", "secs", "second", "seconds":
		return 1
	case "m", "min", "mins", "minute", "minutes":
		return 60
	case "h", "hr", "hrs", "hour", "hours":
		return 3600
	case "d", "day", "days":
		return 86400
	}
	return 0
}
