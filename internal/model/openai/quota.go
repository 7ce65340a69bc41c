package openai

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
	// longestRetryAfter bounds what an endpoint can ask for. A longer wait is a
	// spent quota, and asking again once an hour costs nothing.
	longestRetryAfter = time.Hour
	// longestReset bounds a limit's reset: no bucket is longer than a day.
	longestReset = 24 * time.Hour
)

// limitHeaders names the headers that tell about one limit.
type limitHeaders struct {
	bucket                  assay.Bucket
	limit, remaining, reset string
}

// plainRequests marks requests of a period that the headers' names leave open:
// a minute or, as at Groq and of free tiers, a day.
const plainRequests assay.Bucket = ""

// knownHeaders has for each bucket the names that say most before the others.
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
	return limitHeaders{b, prefix + "Limit" + suffix, prefix + "Remaining" + suffix, prefix + "Reset" + suffix}
}

func anthropicHeaders(b assay.Bucket, what string) limitHeaders {
	prefix := "Anthropic-Ratelimit-" + what
	return limitHeaders{b, prefix + "-Limit", prefix + "-Remaining", prefix + "-Reset"}
}

// quotaStates is what the headers tell about limits, one state for a bucket.
// Requests of a period that stays open are left out; Azure's are of a minute.
func quotaStates(h http.Header, azure bool) []assay.QuotaState {
	var states []assay.QuotaState
	for _, names := range knownHeaders {
		s := names.state(h)
		if s.Bucket == plainRequests {
			s.Bucket = requestsBucket(s)
			if azure {
				s.Bucket = assay.Requests
			}
		}
		said := s.Limit >= 0 || s.Remaining >= 0
		if said && s.Bucket != plainRequests && stateOf(states, s.Bucket) == nil {
			states = append(states, s)
		}
	}
	return states
}

func (names limitHeaders) state(h http.Header) assay.QuotaState {
	s := assay.QuotaState{Bucket: names.bucket, Limit: amount(h.Get(names.limit)), Remaining: amount(h.Get(names.remaining))}
	if s.Limit == 0 {
		s.Limit = -1 // nobody serves nothing: a gateway that does not know
	}
	if s.Limit >= 0 || s.Remaining >= 0 {
		s.Reset = min(reset(h, names.reset), longestReset)
	}
	return s
}

// requestsBucket tells requests of a day from those of a minute. What is used
// comes back evenly over the period, so that reset = used × period / limit.
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

// stateOf returns the state of a bucket, nil if there is none.
func stateOf(states []assay.QuotaState, b assay.Bucket) *assay.QuotaState {
	for i := range states {
		if states[i].Bucket == b {
			return &states[i]
		}
	}
	return nil
}

// amount reads a count as headers give it, "60" or "60, 60;w=1"; -1 if v is
// none.
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

// limitHit returns the bucket whose limit a rate-limited request hit, and that
// limit; "" and 0 if the endpoint does not say.
func limitHit(e apiError, states []assay.QuotaState) (assay.Bucket, int) {
	text := e.text()
	b, named := bucketNamed(text)
	switch {
	case named:
	case e.is("tokens"):
		b = assay.Tokens
	case e.is("requests"):
		b = assay.Requests
	default:
		b = spent(states)
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

// bucketPhrases are searched in order. A limit without a bucket of its own,
// as of the tokens of a day, must not pass for another.
var bucketPhrases = []struct {
	phrase *regexp.Regexp
	bucket assay.Bucket
}{
	{regexp.MustCompile(`(?i)concurren`), assay.Concurrency},
	{regexp.MustCompile(`(?i)tokens?.?(per.?|/ ?)(day|hour|second)|\btp[dhs]\b|requests?.?(per.?|/ ?)(hour|second)|\brp[hs]\b`), ""},
	{regexp.MustCompile(`(?i)requests?.?(per.?|/ ?)day|requests\w*perday|\brpd\b`), assay.RequestsPerDay},
	{regexp.MustCompile(`(?i)input.?tokens?.?(per.?|/ ?)min|inputtokens\w*perminute|\bitpm\b`), assay.InputTokens},
	{regexp.MustCompile(`(?i)output.?tokens?.?(per.?|/ ?)min|\botpm\b`), assay.OutputTokens},
	{regexp.MustCompile(`(?i)requests?.?(per.?|/ ?)min|requests\w*perminute|\brpm\b|call rate limit`), assay.Requests},
	{regexp.MustCompile(`(?i)tokens?.?(per.?|/ ?)min|\btpm\b|token rate limit`), assay.Tokens},
}

// bucketNamed returns the bucket that a message speaks of, and whether it
// speaks of a limit at all.
func bucketNamed(text string) (b assay.Bucket, named bool) {
	for _, p := range bucketPhrases {
		if p.phrase.MatchString(text) {
			return p.bucket, true
		}
	}
	return "", false
}

// spent is the one bucket with nothing remaining, "" if there are none or more.
func spent(states []assay.QuotaState) assay.Bucket {
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

// limitPhrase finds "Limit 600," "limit: 50" and "limit of 50,000 input".
var limitPhrase = regexp.MustCompile(`(?i)\blimit(?: of| is|:|=)? ?(\d{1,3}(?:,\d{3})+|\d+)[.,;]?(?:[\s)/]|$)`)

// limitNamed is the limit in a message, 0 if there is none.
func limitNamed(text string) int {
	m := limitPhrase.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	return max(amount(strings.ReplaceAll(m[1], ",", "")), 0)
}

// retryAfter is the wait that an endpoint asks for in a header made for it or,
// without one, in its message; 0 if it says nothing.
func retryAfter(h http.Header, e apiError) time.Duration {
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

// clock is the endpoint's own time, if it shows it.
func clock(h http.Header) time.Time {
	if now, err := http.ParseTime(h.Get("Date")); err == nil {
		return now
	}
	return time.Now()
}

// limitReset is the time until the limit that a rate-limited request hit is
// there again: of the limits with nothing remaining the later, and where none
// says so the sooner.
func limitReset(h http.Header) time.Duration {
	var spent, soonest time.Duration
	for _, names := range knownHeaders {
		d := reset(h, names.reset)
		if d == 0 {
			continue
		}
		if amount(h.Get(names.remaining)) == 0 {
			spent = max(spent, d)
		}
		if soonest == 0 || d < soonest {
			soonest = d
		}
	}
	if spent > 0 {
		return min(spent, longestRetryAfter)
	}
	return min(soonest, longestRetryAfter)
}

// reset reads the header called name: "6m0s", "20ms", bare seconds, or a time
// as RFC 3339 or as seconds or milliseconds since 1970. 0 if it is none.
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

// secondsOf bounds f to what a duration holds with room to spare: a year.
func secondsOf(f float64) time.Duration {
	const year = 365 * 24 * 3600
	if !(f > 0) {
		return 0
	}
	return time.Duration(min(f, year) * float64(time.Second))
}

var (
	// waitPhrase is what comes before a wait in a message.
	waitPhrase = regexp.MustCompile(`(?i)\b(?:(?:re)?try(?: again)?|wait)(?: in| after| for| at least)? (?:about )?`)
	// waitPart is one part of a wait, as in "1m26.5s" or "2 minutes".
	waitPart = regexp.MustCompile(`(?i)^(?:\s|,|and\b)*(\d+(?:\.\d+)?)\s*([a-z]+)`)
)

// waitNamed is the wait that a message asks for, 0 if it does not.
func waitNamed(e apiError) time.Duration {
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

// wait sums the parts at the start of text.
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

// unitOf is a unit of time in seconds, 0 for another word.
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
