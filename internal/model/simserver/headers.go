package simserver

import (
	"net/http"
	"strconv"
	"time"
)

// How a server tells its limits on each response; see [Config.Headers].
const (
	// HeadersOpenAI is X-Ratelimit-Limit-, -Remaining- and -Reset- of Requests
	// and of Tokens, the reset as a duration such as 59s.
	HeadersOpenAI = "openai"
	// HeadersAnthropic is Anthropic-Ratelimit-Requests-Limit, -Remaining and
	// -Reset, and likewise of Tokens, Input-Tokens and Output-Tokens, the reset
	// as a time.
	HeadersAnthropic = "anthropic"
	// HeadersNone tells nothing.
	HeadersNone = "none"
)

// HeaderStyles lists what [Config.Headers] can be.
func HeaderStyles() []string { return []string{HeadersOpenAI, HeadersAnthropic, HeadersNone} }

// How a server tells when to come again; see [Config.RetryAfter].
const (
	// RetryAfterBoth is Retry-After in whole seconds and Retry-After-Ms.
	RetryAfterBoth = "both"
	// RetryAfterSeconds is Retry-After alone.
	RetryAfterSeconds = "seconds"
	// RetryAfterMs is Retry-After-Ms alone.
	RetryAfterMs = "ms"
	// RetryAfterDate is Retry-After as a date, beside a Date.
	RetryAfterDate = "date"
	// RetryAfterNone is no header; the wait is in the message alone.
	RetryAfterNone = "none"
	// RetryAfterSilent tells neither the wait nor which limit it was.
	RetryAfterSilent = "silent"
)

// RetryAfters lists what [Config.RetryAfter] can be.
func RetryAfters() []string {
	return []string{RetryAfterBoth, RetryAfterSeconds, RetryAfterMs, RetryAfterDate, RetryAfterNone, RetryAfterSilent}
}

// headers are the names of a bucket's headers; "" for none.
type headers struct{ limit, remaining, reset string }

func headersOf(style, family string) headers {
	switch {
	case style == HeadersAnthropic:
		prefix := "Anthropic-Ratelimit-" + family
		return headers{prefix + "-Limit", prefix + "-Remaining", prefix + "-Reset"}
	case style == HeadersOpenAI && (family == "Requests" || family == "Tokens"):
		return headers{"X-Ratelimit-Limit-" + family, "X-Ratelimit-Remaining-" + family, "X-Ratelimit-Reset-" + family}
	}
	return headers{}
}

// report writes where the lane stands.
func (l *lane) report(h http.Header, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expireLocked(now)
	for i := range l.buckets {
		b := &l.buckets[i]
		if b.headers == (headers{}) {
			continue
		}
		full := now // when the bucket will have its whole limit left
		if n := len(l.entries); b.first < l.gone+n {
			full = l.entries[n-1].at.Add(b.span)
		}
		h.Set(b.headers.limit, strconv.Itoa(b.limit))
		h.Set(b.headers.remaining, strconv.Itoa(max(b.limit-b.used, 0)))
		h.Set(b.headers.reset, reset(l.style, full, now))
	}
}

func reset(style string, at, now time.Time) string {
	if style == HeadersAnthropic {
		return wholeSecond(at).Format(time.RFC3339)
	}
	return at.Sub(now).Round(time.Millisecond).String()
}

// retryAfter asks the client for patience in the server's way.
func (x *exchange) retryAfter(wait time.Duration) {
	h := x.w.Header()
	style := x.server.cfg.RetryAfter
	if style == RetryAfterBoth || style == RetryAfterSeconds {
		h.Set("Retry-After", seconds(wait))
	}
	if style == RetryAfterBoth || style == RetryAfterMs {
		h.Set("Retry-After-Ms", strconv.FormatInt(milliseconds(wait), 10))
	}
	if style == RetryAfterDate {
		now := time.Now()
		h.Set("Date", now.UTC().Format(http.TimeFormat))
		h.Set("Retry-After", wholeSecond(now.Add(wait)).Format(http.TimeFormat))
	}
}

// seconds, milliseconds and wholeSecond round up: a client that waits as long
// as it is told must not come too early.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

func milliseconds(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }

func wholeSecond(t time.Time) time.Time {
	return t.Add(time.Second - 1).Truncate(time.Second).UTC()
}
