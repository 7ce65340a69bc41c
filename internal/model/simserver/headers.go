package simserver

import (
	"net/http"
	"strconv"
	"time"
)

// The styles of [Config.Headers], which report limits in each response.
const (
	// HeadersOpenAI sends X-Ratelimit-Limit-, -Remaining- and -Reset- for Requests
	// and Tokens. The reset is a duration such as 59s.
	HeadersOpenAI = "openai"
	// HeadersAnthropic sends Anthropic-Ratelimit-Requests-Limit, -Remaining and
	// -Reset, and the same for Tokens, Input-Tokens and Output-Tokens. The reset is
	// a time.
	HeadersAnthropic = "anthropic"
	// HeadersNone sends no limit headers.
	HeadersNone = "none"
)

// HeaderStyles lists the values of [Config.Headers].
func HeaderStyles() []string {
	return []string{HeadersOpenAI, HeadersAnthropic, HeadersNone}
}

// The styles of [Config.RetryAfter], which ask a refused client to wait.
const (
	// RetryAfterBoth sends Retry-After in whole seconds and Retry-After-Ms.
	RetryAfterBoth = "both"
	// RetryAfterSeconds sends only Retry-After.
	RetryAfterSeconds = "seconds"
	// RetryAfterMs sends only Retry-After-Ms.
	RetryAfterMs = "ms"
	// RetryAfterDate sends Retry-After as a date, and the header Date.
	RetryAfterDate = "date"
	// RetryAfterNone sends no header. The wait is only in the message.
	RetryAfterNone = "none"
	// RetryAfterSilent reports neither the wait nor the limit.
	RetryAfterSilent = "silent"
)

// RetryAfters lists the values of [Config.RetryAfter].
func RetryAfters() []string {
	return []string{
		RetryAfterBoth, RetryAfterSeconds, RetryAfterMs,
		RetryAfterDate, RetryAfterNone, RetryAfterSilent,
	}
}

// headers are the names of a bucket's headers. They are empty if it has no headers.
type headers struct{ limit, remaining, reset string }

func headersOf(style, family string) headers {
	switch {
	case style == HeadersAnthropic:
		prefix := "Anthropic-Ratelimit-" + family
		return headers{prefix + "-Limit", prefix + "-Remaining", prefix + "-Reset"}
	case style == HeadersOpenAI && (family == "Requests" || family == "Tokens"):
		const prefix = "X-Ratelimit-"
		return headers{
			limit: prefix + "Limit-" + family, remaining: prefix + "Remaining-" + family,
			reset: prefix + "Reset-" + family,
		}
	}
	return headers{}
}

// report sets the headers that report the state of the lane.
func (l *keyTraffic) report(h http.Header, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expireLocked(now)
	for i := range l.buckets {
		b := &l.buckets[i]
		if b.headers == (headers{}) {
			continue
		}
		full := now // when the bucket will be unused again
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

// retryAfter asks the client to wait, in the configured style.
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

// seconds, milliseconds and wholeSecond round up, so that a client that waits as
// long as it was asked to does not come too early.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

func wholeSecond(t time.Time) time.Time {
	return t.Add(time.Second - 1).Truncate(time.Second).UTC()
}
