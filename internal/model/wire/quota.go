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

const (
	// longestRetryAfter is the longest wait that is passed on. A longer wait means
	// a used-up quota, and asking again once an hour costs nothing.
	longestRetryAfter = time.Hour
	// longestReset is the longest time to a reset, because limits are for a day at
	// most.
	longestReset = 24 * time.Hour
)

// limitHeaders names the headers of one limit.
type limitHeaders struct {
	bucket                  assay.Bucket
	limit, remaining, reset string
}

// plainRequests stands for requests in a period that the header names do not
// specify. It is a minute, or a day for Groq and for free tiers.
const plainRequests assay.Bucket = ""

// knownHeaders lists the most specific names of each bucket first.
var knownHeaders = []limitHeaders{
	openaiHeaders(assay.RequestsPerDay, "-Requests-Day"),
	openaiHeaders(assay.Requests, "-Requests-Minute"),
	openaiHeaders(assay.Tokens, "-Tokens-Minute"),
	openaiHeaders(assay.Tokens, "-Tokens"),
	openaiHeaders(plainRequests, "-Requests"),
	openaiHeaders(plainRequests, ""),
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

func anthropicHeaders(b assay.Bucket, name string) limitHeaders {
	prefix := "Anthropic-Ratelimit-" + name
	return limitHeaders{b, prefix + "-Limit", prefix + "-Remaining", prefix + "-Reset"}
}

// quotaStates returns the state of each bucket that the headers report. It omits
// requests whose period is unknown, unless plainMinute is true.
func quotaStates(h http.Header, plainMinute bool) []assay.QuotaState {
	var states []assay.QuotaState
	for _, names := range knownHeaders {
		s := names.state(h)
		if s.Bucket == plainRequests {
			s.Bucket = requestsBucket(s)
			if plainMinute {
				s.Bucket = assay.Requests
			}
		}
		reported := s.Limit >= 0 || s.Remaining >= 0
		if reported && s.Bucket != plainRequests && stateOf(states, s.Bucket) == nil {
			states = append(states, s)
		}
	}
	return states
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

// requestsBucket decides whether a limit of requests is for a day or a minute.
// Used requests become available again evenly over the period, so
// reset = used × period / limit.
func requestsBucket(s assay.QuotaState) assay.Bucket {
	used := s.Limit - s.Remaining
	if s.Limit < 0 || s.Remaining < 0 || used <= 0 || s.Reset == 0 {
		return plainRequests
	}
	period := s.Reset.Seconds() * float64(s.Limit) / float64(used)
	switch {
	case period > 3600:
		return assay.RequestsPerDay
	case period <= 90:
		return assay.Requests
	}
	return plainRequests
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

// limitHit returns the bucket whose limit a request has hit, and that limit. It
// returns "" and 0 if they are unknown.
func limitHit(e *APIError, states []assay.QuotaState) (assay.Bucket, int) {
	text := e.text()
	b, named := bucketNamed(text)
	switch {
	case named:
	case e.is("tokens"):
		b = assay.Tokens
	case e.is("requests"):
		b = assay.Requests
	default:
		b = usedUp(states)
	}
	if b == "" {
		return "", 0
	}
	if n := limitNamed(text); n > 0 {
		return b, n
	}
	if s := stateOf(states, b); s != nil {
		return b, max(s.Limit, 0)
	}
	return b, 0
}

// bucketPhrases is searched in order. A phrase with an empty bucket matches a
// limit that has no bucket, such as tokens per day, so that it is not mistaken for
// another limit.
var bucketPhrases = []struct {
	phrase *regexp.Regexp
	bucket assay.Bucket
}{
	{
		regexp.MustCompile(`(?i)concurren`),
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
			`call rate limit`),
		assay.Requests,
	},
	{
		regexp.MustCompile(`(?i)tokens?.?(per.?|/ ?)min|\btpm\b|token rate limit`),
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

// usedUp returns the only bucket with nothing remaining. It returns "" if there is
// not exactly one.
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
	d, ok := seconds(h.Get("Retry-After-Ms"))
	d /= 1000
	if !ok {
		d, ok = seconds(h.Get("Retry-After"))
	}
	if !ok {
		d = httpDate(h)
	}
	if d == 0 {
		d = waitNamed(e)
	}
	return min(d, longestRetryAfter)
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

// limitReset returns the time until the limit that a request has hit is reset.
// If some limits are used up, that is the latest of their resets, and otherwise the
// soonest reset.
func limitReset(h http.Header) time.Duration {
	var usedUp, soonest time.Duration
	for _, names := range knownHeaders {
		d := reset(h, names.reset)
		if d == 0 {
			continue
		}
		if amount(h.Get(names.remaining)) == 0 {
			usedUp = max(usedUp, d)
		}
		if soonest == 0 || d < soonest {
			soonest = d
		}
	}
	if usedUp > 0 {
		return min(usedUp, longestRetryAfter)
	}
	return min(soonest, longestRetryAfter)
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

func seconds(v string) (time.Duration, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	return secondsOf(f), err == nil && !math.IsNaN(f)
}

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
