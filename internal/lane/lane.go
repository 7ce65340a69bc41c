// Package lane holds the limits of lanes and lets requests wait for them.
//
// A lane is one (deployment, key, model): the unit of a provider's limits. It
// counts requests in flight, requests per minute and tokens per minute, and
// pauses when its endpoint asks for it. A [Pool] serves a model from all its
// lanes: each request goes where it can start soonest, and waiting requests
// are served first come, first served. A lane's slot is held for one request,
// never across a backoff.
//
// The package does not know what a trial is, and no wire format.
package lane

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// Limits are what a lane may use. Zero means no limit, but for Concurrency,
// where it means [DefaultConcurrency].
type Limits struct {
	Concurrency int `yaml:"concurrency" json:"concurrency,omitempty"`
	RPM         int `yaml:"rpm" json:"rpm,omitempty"`
	TPM         int `yaml:"tpm" json:"tpm,omitempty"`
}

// DefaultConcurrency is the number of requests in flight on a lane for which
// nothing was stated.
const DefaultConcurrency = 8

// Price is in dollars per million tokens.
type Price struct {
	Input  float64 `yaml:"input" json:"input"`
	Output float64 `yaml:"output" json:"output"`
}

// Config describes one lane.
type Config struct {
	// Name is provider/key/deployment, as people see it.
	Name     string
	Provider assay.Provider
	Limits   Limits
	Price    Price
	// Orders is what the lane asks its endpoint for. Serves are further names
	// by which the endpoint may call the model that answers.
	Orders string
	Serves []string
}

// Constants of a lane's behaviour when it is in trouble.
const (
	// breakAfter faults in a row, with no success between, the lane pauses.
	breakAfter = 5
	// firstPause doubles with each pause in a row, up to longestPause.
	firstPause   = 5 * time.Second
	longestPause = 5 * time.Minute
	// closeAfter pauses in a row the lane is given up for the run: an outage
	// of ten minutes. One that never worked is given up after half a minute,
	// for its address or name is more likely wrong.
	closeAfter      = 6
	closeAfterNever = 3
	// mistakenAfter answers that tell of a mistake in the files, a refused
	// request or another model's name, close a lane that never worked: all
	// others would be paid for in vain.
	mistakenAfter = 5
	// longestRetryAfter is the longest wait that an endpoint can ask for; one
	// that asks for more is closed for the run.
	longestRetryAfter = 15 * time.Minute
)

// lane is the state of one lane. It is guarded by its pool's mutex.
type lane struct {
	Config
	inFlight int
	requests window
	tokens   window

	pausedSince time.Time
	pausedUntil time.Time
	pauseReason string
	closed      *assay.Fault

	worked      bool
	mistakes    int // refused requests and other models' answers before it worked
	faultsInRow int // without a success between, 429s not counted
	pausesInRow int
	limitedRow  int // bursts of 429s in a row

	used, available time.Duration // of slots, up to the pool's last booking
	waited          map[string]time.Duration
}

func newLane(c Config) *lane {
	if c.Limits.Concurrency <= 0 {
		c.Limits.Concurrency = DefaultConcurrency
	}
	return &lane{Config: c, waited: make(map[string]time.Duration), requests: window{limit: c.Limits.RPM}, tokens: window{limit: c.Limits.TPM}}
}

// width is how many requests the lane may have in flight. After a pause for
// faults a single one probes.
func (l *lane) width() int {
	if l.pausesInRow > 0 {
		return 1
	}
	return l.Limits.Concurrency
}

// start returns when a request of so many tokens can start, and what it waits
// for. Full says that the time is unknown: a request in flight has to end.
func (l *lane) start(now time.Time, tokens int) (at time.Time, reason string, full bool) {
	at = now
	later := func(t time.Time, why string) {
		if t.After(at) {
			at, reason = t, why
		}
	}
	later(l.requests.free(now, 1), "rpm")
	later(l.tokens.free(now, tokens), "tpm")
	later(l.pausedUntil, l.pauseReason)
	if l.inFlight >= l.width() {
		return at, "concurrency", true
	}
	return at, reason, false
}

// ticket is a request's hold on a lane.
type ticket struct {
	lane             *lane
	requests, tokens int // entries in the windows
	started          time.Time
}

func (l *lane) take(now time.Time, tokens int) ticket {
	l.inFlight++
	return ticket{lane: l, requests: l.requests.add(now, 1), tokens: l.tokens.add(now, tokens), started: now}
}

// giveBack undoes take: nothing was sent.
func (l *lane) giveBack(t ticket) {
	l.inFlight--
	l.requests.settle(t.requests, 0)
	l.tokens.settle(t.tokens, 0)
}

// release frees the slot and learns from how the request went.
func (l *lane) release(now time.Time, t ticket, usage assay.Usage, fault *assay.Fault) {
	l.inFlight--
	switch n := usage.Total(); {
	case n > 0:
		l.tokens.settle(t.tokens, n)
	case fault != nil && fault.Kind != assay.Timeout:
		l.tokens.settle(t.tokens, 0) // refused or broken: nothing was generated
	}
	switch {
	case fault == nil:
		l.worked = true
		l.faultsInRow, l.pausesInRow, l.limitedRow = 0, 0, 0
	case fault.Kind.ClosesLane():
		l.shut(fault)
	case fault.Kind == assay.RateLimited || fault.Kind == assay.Overloaded && fault.RetryAfter > 0:
		l.limited(now, t, fault)
	case fault.Kind.Retryable():
		l.faulted(now, t, fault)
	case !l.worked && (fault.Kind == assay.BadRequest || fault.Kind == assay.Identity):
		if l.mistakes++; l.mistakes >= mistakenAfter {
			l.shut(fault)
		}
	}
}

// limited pauses the lane as the endpoint asks. Requests that were sent before
// the pause began belong to the same burst and do not lengthen it.
func (l *lane) limited(now time.Time, t ticket, fault *assay.Fault) {
	if fault.RetryAfter > longestRetryAfter {
		l.shut(&assay.Fault{
			Kind: assay.Quota, Lane: l.Name, Status: fault.Status,
			Detail: fmt.Sprintf("the endpoint asks to wait %v: %s", fault.RetryAfter, fault.Detail),
		})
		return
	}
	wait := fault.RetryAfter
	if wait <= 0 {
		if l.oldNews(t) {
			return
		}
		wait = jitter(time.Second << min(l.limitedRow, 6))
		l.limitedRow++
	}
	l.pause(now, wait, string(fault.Kind))
}

// oldNews reports whether a request was sent before the latest pause began:
// what befell it is the trouble that the pause is for.
func (l *lane) oldNews(t ticket) bool {
	return !t.started.After(l.pausedSince) && !l.pausedSince.IsZero()
}

func (l *lane) faulted(now time.Time, t ticket, fault *assay.Fault) {
	if l.pausesInRow > 0 && l.oldNews(t) {
		return
	}
	l.faultsInRow++
	if l.faultsInRow < breakAfter && l.pausesInRow == 0 {
		return
	}
	if l.pausesInRow >= closeAfter || !l.worked && l.pausesInRow >= closeAfterNever {
		l.shut(fault)
		return
	}
	wait := min(longestPause, firstPause<<l.pausesInRow)
	l.pausesInRow++
	l.faultsInRow = 0
	l.pause(now, wait, fmt.Sprintf("down (%s)", fault.Kind))
}

func (l *lane) pause(now time.Time, wait time.Duration, reason string) {
	l.pausedSince = now
	if until := now.Add(wait); until.After(l.pausedUntil) {
		l.pausedUntil, l.pauseReason = until, reason
	}
}

func (l *lane) shut(fault *assay.Fault) {
	if l.closed == nil {
		l.closed = fault
	}
}

// knows reports whether a response may name this model. Beside the lane's own
// names a name with a date behind it counts, as gpt-4o-mini-2024-07-18 for
// gpt-4o-mini: that is how OpenAI names the snapshot behind an alias.
func (l *lane) knows(served string) bool {
	return slices.ContainsFunc(append([]string{l.Orders}, l.Serves...), func(name string) bool {
		if strings.EqualFold(name, served) {
			return true
		}
		if len(served) != len(name)+len("-2006-01-02") || !strings.EqualFold(served[:len(name)], name) {
			return false
		}
		_, err := time.Parse("-2006-01-02", served[len(name):])
		return err == nil
	})
}

// jitter returns a random duration between half of d and d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }
