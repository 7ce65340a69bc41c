package limit_test

import (
	"math"
	"time"

	"github.com/assay-eval/assay/internal/model/limit"
)

// cubic sends requests at a rate that follows CUBIC (RFC 9438): a refusal lowers it to 0.7, at most
// once for all requests that were sent at the old rate, and it grows by a cubic function of the
// time since. Before the first refusal it doubles each second.
type cubic struct {
	started, due time.Time
	fell         time.Time
	highest      float64 // requests a second before the latest fall; 0 before the first fall
	sent         uint64
	fellAt       uint64 // the number of the first request after the latest fall
	flying, most int
}

func (c *cubic) rate(now time.Time) float64 {
	const growth, fall = 0.4, 0.7
	if c.highest == 0 {
		return 8 * math.Exp2(min(12, now.Sub(c.started).Seconds()))
	}
	k := math.Cbrt(c.highest * (1 - fall) / growth)
	x := now.Sub(c.fell).Seconds() - k
	return max(1.0/60, growth*x*x*x+c.highest)
}

func (c *cubic) Next(now time.Time, _ limit.Amount) (time.Time, bool) {
	return c.due, c.flying < c.most
}

func (c *cubic) Send(now time.Time, _ limit.Amount) uint64 {
	if c.started.IsZero() {
		c.started = now
	}
	c.flying++
	c.due = now.Add(time.Duration(float64(time.Second) / c.rate(now)))
	c.sent++
	return c.sent
}

func (c *cubic) Accept(time.Time, uint64, limit.Amount) { c.flying-- }

func (c *cubic) Refuse(now time.Time, n uint64, _ limit.Refusal) {
	if c.flying--; n > c.fellAt {
		c.highest, c.fell, c.fellAt = c.rate(now), now, c.sent
	}
}
