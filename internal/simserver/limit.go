package simserver

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const window = time.Minute

// A Limit bounds what one key may ask of one deployment. A field that is 0
// sets no bound.
type Limit struct {
	// Model is whose deployments the limit is for; "" for all.
	Model string
	// RPM bounds the requests that are let through in any 60 seconds.
	RPM int
	// TPM bounds their tokens, prompt and completion. While a request runs it
	// counts with an estimate and its max_tokens.
	TPM int
	// Concurrency bounds the requests in flight.
	Concurrency int
}

func limitNames() []string { return []string{"rpm", "tpm", "concurrency"} }

// ParseLimit reads "rpm=600,tpm=200000,concurrency=5", with a model and a
// colon before it for a limit of that model alone.
func ParseLimit(s string) (Limit, error) {
	var l Limit
	settings := s
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		if l.Model, settings = s[:i], s[i+1:]; l.Model == "" {
			return Limit{}, fmt.Errorf("limit %q: no model before the colon", s)
		}
	}
	fields := map[string]*int{"rpm": &l.RPM, "tpm": &l.TPM, "concurrency": &l.Concurrency}
	for setting := range strings.SplitSeq(settings, ",") {
		name, value, ok := strings.Cut(setting, "=")
		name = strings.TrimSpace(name)
		if !ok {
			return Limit{}, fmt.Errorf("limit %q: %q has no value\nhint: limits look like rpm=600,tpm=200000,concurrency=5", s, setting)
		}
		field, ok := fields[name]
		if !slices.Contains(limitNames(), name) {
			return Limit{}, fmt.Errorf("limit %q: %w", s, unknown("name", name, limitNames()))
		}
		if !ok {
			return Limit{}, fmt.Errorf("limit %q: %s is set twice", s, name)
		}
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil || n < 1 {
			return Limit{}, fmt.Errorf("limit %q: %s is %q, not a whole number above 0", s, name, value)
		}
		*field = n
		delete(fields, name)
	}
	return l, nil
}

func (l Limit) check() error {
	if l.RPM < 0 || l.TPM < 0 || l.Concurrency < 0 {
		return fmt.Errorf("a limit below 0: %+v", l)
	}
	return nil
}

// A lane is the traffic of one key on one deployment. Its windows slide: what
// it lets through in any 60 seconds is within the limit.
type lane struct {
	limit Limit

	mu       sync.Mutex
	inFlight int     // guarded by mu, as all below
	entries  []entry // oldest first, none older than the window
	gone     int     // how many entries have left the window
	tokens   int     // sum of the entries' tokens
}

// An entry is a request that was let through.
type entry struct {
	at     time.Time
	tokens int
}

// A ticket is the right to one request. Its holder calls done once,
// whatever came of the request.
type ticket struct {
	lane   *lane
	number int // of the entry, over the lane's life
}

// A denial says why a request is over its limit and when to come again.
type denial struct {
	what  string // "requests", "tokens" or "concurrent requests"
	unit  string // "requests" or "tokens"
	limit int
	used  int
	asked int
	wait  time.Duration
}

// admit lets a request through that reserves tokens, or says why not. A
// request that is not let through counts against nothing.
func (l *lane) admit(now time.Time, tokens int) (ticket, *denial) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expireLocked(now)
	if d := l.denyLocked(now, tokens); d != nil {
		return ticket{}, d
	}
	l.inFlight++
	if l.limit.RPM > 0 || l.limit.TPM > 0 {
		l.entries = append(l.entries, entry{now, tokens})
		l.tokens += tokens
	}
	return ticket{l, l.gone + len(l.entries) - 1}, nil
}

func (l *lane) denyLocked(now time.Time, tokens int) *denial {
	limit := l.limit
	var deny *denial
	if limit.Concurrency > 0 && l.inFlight >= limit.Concurrency {
		deny = &denial{"concurrent requests", "requests", limit.Concurrency, l.inFlight, 1, time.Second}
	}
	if limit.RPM > 0 && len(l.entries) >= limit.RPM {
		wait := l.entries[len(l.entries)-limit.RPM].at.Add(window).Sub(now)
		deny = &denial{"requests per min (RPM)", "requests", limit.RPM, len(l.entries), 1, wait}
	}
	if limit.TPM > 0 && l.tokens+tokens > limit.TPM {
		d := &denial{"tokens per min (TPM)", "tokens", limit.TPM, l.tokens, tokens, l.tokenWaitLocked(now, tokens)}
		if deny == nil || d.wait > deny.wait {
			deny = d
		}
	}
	return deny
}

// tokenWaitLocked is the time until enough entries have left the window. A
// request that is larger than the limit never fits; it is told a window.
func (l *lane) tokenWaitLocked(now time.Time, tokens int) time.Duration {
	left := l.tokens
	for _, e := range l.entries {
		left -= e.tokens
		if left+tokens <= l.limit.TPM {
			return e.at.Add(window).Sub(now)
		}
	}
	return window
}

func (l *lane) expireLocked(now time.Time) {
	n := 0
	for n < len(l.entries) && now.Sub(l.entries[n].at) >= window {
		l.tokens -= l.entries[n].tokens
		n++
	}
	l.entries = l.entries[n:]
	l.gone += n
}

// done takes the request, which took tokens, out of those in flight.
func (t ticket) done(tokens int) {
	l := t.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	if i := t.number - l.gone; i >= 0 && i < len(l.entries) {
		l.tokens += tokens - l.entries[i].tokens
		l.entries[i].tokens = tokens
	}
}

// report writes where the lane stands, as OpenAI does on every response.
func (l *lane) report(h http.Header, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expireLocked(now)
	var reset time.Duration
	if n := len(l.entries); n > 0 {
		reset = l.entries[n-1].at.Add(window).Sub(now)
	}
	family := func(what string, limit, used int) {
		if limit == 0 {
			return
		}
		h.Set("X-Ratelimit-Limit-"+what, strconv.Itoa(limit))
		h.Set("X-Ratelimit-Remaining-"+what, strconv.Itoa(max(limit-used, 0)))
		h.Set("X-Ratelimit-Reset-"+what, reset.Round(time.Millisecond).String())
	}
	family("Requests", l.limit.RPM, len(l.entries))
	family("Tokens", l.limit.TPM, l.tokens)
}
