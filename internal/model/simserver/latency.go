package simserver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Latency is a log-normal distribution of response times. Most are near the
// median, and a few are much longer.
type Latency struct {
	// Median is the median response time, or 0 for no latency.
	Median time.Duration
	// Sigma is the standard deviation of the logarithm. With 0 all times are equal.
	// With 0.5 one in a hundred is three times the median.
	Sigma float64
}

// longestLatency is the maximum response time.
const longestLatency = time.Hour

func (l Latency) check() error {
	if l.Median < 0 || !(l.Sigma >= 0 && l.Sigma <= 10) {
		return fmt.Errorf("invalid latency with median %v and sigma %v\n"+
			"hint: the median must not be negative, and sigma must be between 0 and 10",
			l.Median, l.Sigma)
	}
	return nil
}

// of returns the latency of the request with the given hash. It depends only
// on the seed and the hash.
func (l Latency) of(seed, hash uint64) time.Duration {
	if l.Median == 0 || l.Sigma == 0 {
		return l.Median
	}
	z := rand.New(rand.NewPCG(seed, hash)).NormFloat64()
	d := float64(l.Median) * math.Exp(l.Sigma*z)
	return time.Duration(min(d, float64(longestLatency)))
}
