package openai

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestRetryAfter bounds what an endpoint can ask for. A longer wait is a
// spent quota, and asking again once an hour costs nothing.
const longestRetryAfter = time.Hour

// retryAfter is the wait that an endpoint asks for, 0 if it says nothing.
func retryAfter(h http.Header) time.Duration {
	if d, ok := number(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return d
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if d, ok := number(v, time.Second); ok {
		return d
	}
	at, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	// By the endpoint's own clock, if it shows it.
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return sane(at.Sub(now))
}

// limitReset is the time until the limit that a rate-limited request hit is
// free again, from OpenAI's headers: of the limits with nothing remaining the
// later, and where none says so the sooner.
func limitReset(h http.Header) time.Duration {
	var spent, soonest time.Duration
	for _, what := range []string{"Requests", "Tokens"} {
		d := duration(h.Get("X-Ratelimit-Reset-" + what))
		if d == 0 {
			continue
		}
		if h.Get("X-Ratelimit-Remaining-"+what) == "0" {
			spent = max(spent, d)
		}
		if soonest == 0 || d < soonest {
			soonest = d
		}
	}
	if spent > 0 {
		return spent
	}
	return soonest
}

// duration reads "6m0s", "20ms" and a bare number of seconds.
func duration(v string) time.Duration {
	v = strings.TrimSpace(v)
	if d, ok := number(v, time.Second); ok {
		return d
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		return 0
	}
	return sane(d)
}

func number(v string, unit time.Duration) (time.Duration, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil || math.IsNaN(f) {
		return 0, false
	}
	if f > float64(longestRetryAfter/unit) {
		return longestRetryAfter, true
	}
	return sane(time.Duration(max(f, 0) * float64(unit))), true
}

func sane(d time.Duration) time.Duration { return min(max(d, 0), longestRetryAfter) }
