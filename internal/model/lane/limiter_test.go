package lane_test

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A limiter permits requests. take counts a request, if it is permitted, or returns
// how long to wait until one may be permitted. state is for headers.
type limiter interface {
	take(now time.Time) (ok bool, wait time.Duration)
	state(now time.Time) (limit, remaining int, reset time.Duration)
}

// fixed permits n requests in each span of the clock.
type fixed struct {
	n     int
	span  time.Duration
	used  int
	until time.Time
}

func (f *fixed) turn(now time.Time) {
	if !now.Before(f.until) {
		f.until, f.used = now.Truncate(f.span).Add(f.span), 0
	}
}

func (f *fixed) take(now time.Time) (bool, time.Duration) {
	if f.turn(now); f.used >= f.n {
		return false, f.until.Sub(now)
	}
	f.used++
	return true, 0
}

func (f *fixed) state(now time.Time) (int, int, time.Duration) {
	f.turn(now)
	return f.n, f.n - f.used, f.until.Sub(now)
}

// sliding permits n requests in any span.
type sliding struct {
	n    int
	span time.Duration
	at   []time.Time
}

func (s *sliding) take(now time.Time) (bool, time.Duration) {
	for len(s.at) > 0 && now.Sub(s.at[0]) >= s.span {
		s.at = s.at[1:]
	}
	if len(s.at) >= s.n {
		return false, s.at[len(s.at)-s.n].Add(s.span).Sub(now)
	}
	s.at = append(s.at, now)
	return true, 0
}

func (s *sliding) state(now time.Time) (int, int, time.Duration) {
	reset := time.Duration(0)
	if len(s.at) > 0 {
		reset = s.at[len(s.at)-1].Add(s.span).Sub(now)
	}
	return s.n, max(0, s.n-len(s.at)), reset
}

// bucket fills up with n tokens in a span and holds size of them. A leaky bucket
// has the size of a few requests.
type bucket struct {
	n, size int
	span    time.Duration
	tokens  float64
	at      time.Time
}

func (b *bucket) fill(now time.Time) {
	if b.at.IsZero() {
		b.tokens = float64(b.size)
	}
	b.tokens += now.Sub(b.at).Seconds() * float64(b.n) / b.span.Seconds()
	b.tokens, b.at = min(b.tokens, float64(b.size)), now
}

func (b *bucket) in(tokens float64) time.Duration {
	return time.Duration(math.Ceil(tokens * b.span.Seconds() / float64(b.n) * 1e9))
}

func (b *bucket) take(now time.Time) (bool, time.Duration) {
	if b.fill(now); b.tokens < 1 {
		return false, b.in(1 - b.tokens)
	}
	b.tokens--
	return true, 0
}

func (b *bucket) state(now time.Time) (int, int, time.Duration) {
	b.fill(now)
	return b.size, int(b.tokens), b.in(float64(b.size) - b.tokens)
}

// liar is a limiter that reports another state.
type liar struct {
	limiter
	limit, remaining int
	reset            time.Duration
}

func (l liar) state(time.Time) (int, int, time.Duration) { return l.limit, l.remaining, l.reset }

// A headerStyle writes the state of a limit into the headers of a reply.
type headerStyle func(h http.Header, limit, remaining int, reset time.Duration)

func noHeaders(http.Header, int, int, time.Duration) {}

// plainHeaders adds headers like OpenAI's and Groq's, for a period that they do not name.
func plainHeaders(h http.Header, limit, remaining int, reset time.Duration) {
	h.Set("X-Ratelimit-Limit-Requests", strconv.Itoa(limit))
	h.Set("X-Ratelimit-Remaining-Requests", strconv.Itoa(remaining))
	h.Set("X-Ratelimit-Reset-Requests", reset.Round(time.Millisecond).String())
}

func azureHeaders(h http.Header, _, remaining int, _ time.Duration) {
	h.Set("X-Ratelimit-Remaining-Requests", strconv.Itoa(remaining))
}

func anthropicHeaders(h http.Header, limit, remaining int, reset time.Duration) {
	h.Set("Anthropic-Ratelimit-Requests-Limit", strconv.Itoa(limit))
	h.Set("Anthropic-Ratelimit-Requests-Remaining", strconv.Itoa(remaining))
	at := time.Now().Add(reset).UTC().Format(time.RFC3339)
	h.Set("Anthropic-Ratelimit-Requests-Reset", at)
}

func mistralHeaders(h http.Header, limit, remaining int, _ time.Duration) {
	h.Set("X-Ratelimit-Limit-Req-Minute", strconv.Itoa(limit))
	h.Set("X-Ratelimit-Remaining-Req-Minute", strconv.Itoa(remaining))
}

func litellmHeaders(h http.Header, limit, remaining int, _ time.Duration) {
	h.Set("X-Ratelimit-Api_key-Limit-Requests", strconv.Itoa(limit))
	h.Set("X-Ratelimit-Api_key-Remaining-Requests", strconv.Itoa(remaining))
	h.Set("Rate_limit_type", "requests")
}

// A waitStyle announces a wait in the headers of a refusal.
type waitStyle func(h http.Header, wait time.Duration)

func noWait(http.Header, time.Duration) {}

func waitInSeconds(h http.Header, wait time.Duration) {
	h.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
}

func waitInMs(h http.Header, wait time.Duration) {
	h.Set("Retry-After-Ms", strconv.Itoa(int(math.Ceil(wait.Seconds()*1000))))
}

func waitUntilDate(h http.Header, wait time.Duration) {
	now := time.Now().UTC()
	h.Set("Date", now.Format(http.TimeFormat))
	h.Set("Retry-After", now.Add(wait+time.Second).Format(http.TimeFormat))
}

func waitZero(h http.Header, _ time.Duration) { h.Set("Retry-After", "0") }

// waitAsTime is a mistake of some gateways: seconds since 1970.
func waitAsTime(h http.Header, wait time.Duration) {
	h.Set("Retry-After", fmt.Sprint(time.Now().Add(wait+time.Second).Unix()))
}

// stranger is an endpoint that we did not write: it replies after some time, or
// refuses a request that its limiter or its width does not permit. It is a
// RoundTripper, so that the client reads real headers and bodies in virtual time.
type stranger struct {
	limiter
	width   int // requests in flight, 0 for any number
	took    time.Duration
	headers headerStyle
	wait    waitStyle
	status  int // of refusals, 0 for 429
	message string

	mu       sync.Mutex
	rand     *rand.Rand
	inFlight int
	accepted []time.Time
	refused  []time.Time
	early    int       // requests before the end of an announced wait
	quiet    time.Time // end of the announced wait
	// silence is the longest time without a request or an announced wait.
	latest  time.Time
	silence time.Duration
}

func (s *stranger) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	h := http.Header{"Content-Type": {"application/json"}}
	if !s.admit(h) {
		status := s.status
		if status == 0 {
			status = http.StatusTooManyRequests
		}
		return reply(r, status, h, fmt.Sprintf(`{"error":{"message":%q}}`, s.message)), nil
	}
	select {
	case <-time.After(time.Duration((0.6 + 0.8*s.random()) * float64(s.took))):
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	s.report(h)
	return reply(r, http.StatusOK, h, `{"model":"m","choices":[{"index":0,"finish_reason":"stop",
		"message":{"role":"assistant","content":"hello"}}],
		"usage":{"prompt_tokens":11,"completion_tokens":3,"total_tokens":14}}`), nil
}

// random returns a number from 0 to 1.
func (s *stranger) random() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rand == nil {
		s.rand = rand.New(rand.NewPCG(1, 2))
	}
	return s.rand.Float64()
}

func reply(r *http.Request, status int, h http.Header, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r,
		ContentLength: int64(len(body)),
	}
}

func (s *stranger) report(h http.Header) {
	if s.limiter != nil && s.headers != nil {
		limit, remaining, reset := s.state(time.Now())
		s.headers(h, limit, remaining, reset)
	}
}

func (s *stranger) admit(h http.Header) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Before(s.quiet) && now.After(s.refused[len(s.refused)-1]) {
		s.early++
	}
	s.hear(now)
	ok, wait := s.width == 0 || s.inFlight < s.width, time.Second
	if ok && s.limiter != nil {
		ok, wait = s.take(now)
	}
	if ok {
		s.inFlight++
		s.accepted = append(s.accepted, now)
		return true
	}
	s.refused = append(s.refused, now)
	s.report(h)
	if s.wait != nil {
		if s.wait(h, wait); h.Get("Retry-After")+h.Get("Retry-After-Ms") > "0" {
			s.quiet = now.Add(wait)
		}
	}
	return false
}

// hear notes that a request arrived, or that requests are no longer waiting.
func (s *stranger) hear(now time.Time) {
	if s.quiet.After(s.latest) {
		s.latest = s.quiet
	}
	if !s.latest.IsZero() {
		s.silence = max(s.silence, now.Sub(s.latest))
	}
	s.latest = now
}

// between counts the requests in a part of the time.
func between(at []time.Time, from, to time.Time) (n int) {
	for _, t := range at {
		if !t.Before(from) && t.Before(to) {
			n++
		}
	}
	return n
}

// longestGap returns the longest time without a request.
func (s *stranger) longestGap(from, to time.Time) time.Duration {
	var longest time.Duration
	i, j := 0, 0
	for last := from; ; {
		next := to
		if i < len(s.accepted) && s.accepted[i].Before(next) {
			next = s.accepted[i]
		}
		if j < len(s.refused) && s.refused[j].Before(next) {
			next = s.refused[j]
		}
		longest = max(longest, next.Sub(last))
		if last = next; !next.Before(to) {
			return longest
		}
		for i < len(s.accepted) && !s.accepted[i].After(next) {
			i++
		}
		for j < len(s.refused) && !s.refused[j].After(next) {
			j++
		}
	}
}
