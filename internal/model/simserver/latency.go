package simserver

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Latency is a log-normal distribution of response times: most are near the
// median, a few are much longer.
type Latency struct {
	// Median is exceeded by half of the requests; 0 for no latency.
	Median time.Duration
	// Sigma is the standard deviation of the logarithm; 0 makes all alike,
	// 0.5 makes one in a hundred three times the median.
	Sigma float64
}

// longestLatency bounds the tail.
const longestLatency = time.Hour

func (l Latency) check() error {
	if l.Median < 0 || !(l.Sigma >= 0 && l.Sigma <= 10) {
		return fmt.Errorf("latency with median %v and sigma %v\nhint: the median is not below 0 and sigma is between 0 and 10", l.Median, l.Sigma)
	}
	return nil
}

// of is the latency of the request with the given hash, whenever it comes.
func (l Latency) of(seed, hash uint64) time.Duration {
	if l.Median == 0 || l.Sigma == 0 {
		return l.Median
	}
	z := rand.New(rand.NewPCG(seed, hash)).NormFloat64()
	return time.Duration(min(float64(l.Median)*math.Exp(l.Sigma*z), float64(longestLatency)))
}
