package lane

import (
	"cmp"
	"sync"

	"github.com/assay-eval/assay"
)

// longestReply is how many tokens a lost reply may have had, if neither the request nor earlier
// replies say more.
const longestReply = 4096

// dearest reads the most that requests may have used from the replies of a lane. The zero value
// knows no reply. It is safe for concurrent use.
type dearest struct {
	mu      sync.Mutex
	density float64 // the most tokens of input for a byte of a request; 0 before the first reply
	longest int     // the most tokens of a reply
}

// learn notes the usage of a request of some bytes.
func (d *dearest) learn(bytes int, u assay.Usage) {
	if bytes == 0 || u.Total() == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.density = max(d.density, float64(u.InputTokens)/float64(bytes))
	d.longest = max(d.longest, u.OutputTokens)
}

// of returns the most that a request of some bytes may have used: input as dense as the densest of
// the lane, or a token for each byte, and a reply as long as the request permits.
func (d *dearest) of(bytes int, s assay.Sampling) assay.Usage {
	d.mu.Lock()
	defer d.mu.Unlock()
	u := assay.Usage{
		InputTokens:  int(float64(bytes)*cmp.Or(d.density, 1)) + 1,
		OutputTokens: max(longestReply, d.longest),
	}
	if s.MaxTokens != nil {
		u.OutputTokens = *s.MaxTokens
		if s.Thinking != nil {
			u.OutputTokens += *s.Thinking // some endpoints do not count it
		}
	}
	return u
}

// MostTokens returns the most tokens that a request may use, if nothing is known of its lane.
func MostTokens(req *assay.Request) int {
	return new(dearest).of(size(req), req.Sampling).Total()
}

// dearest prices a usage as if all of its input had the highest price of input.
func (p Price) dearest(u assay.Usage) float64 {
	for _, price := range []*float64{p.Cached, p.CacheWrite} {
		if price != nil {
			p.Input = max(p.Input, *price)
		}
	}
	return Price{Input: p.Input, Output: p.Output}.Of(u)
}
