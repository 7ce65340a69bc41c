package lane

import (
	"cmp"
	"slices"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/limit"
)

// Limits are the limits that a lane keeps. Zero means that the limit is not stated, so the lane
// learns it from its endpoint.
type Limits struct {
	Concurrency int `yaml:"concurrency" json:"concurrency,omitempty"`
	RPS         int `yaml:"rps" json:"rps,omitempty"`
	RPM         int `yaml:"rpm" json:"rpm,omitempty"`
	TPM         int `yaml:"tpm" json:"tpm,omitempty"`
	ITPM        int `yaml:"itpm" json:"itpm,omitempty"`
	OTPM        int `yaml:"otpm" json:"otpm,omitempty"`
	RPD         int `yaml:"rpd" json:"rpd,omitempty"`
	// Burst is the number of requests that may start at once after a pause. Without
	// it, the limits per second and per minute are spent evenly.
	Burst int `yaml:"burst" json:"burst,omitempty"`
}

// Indexes into [Buckets]. Those from requestsPerSecond to requestsPerDay have a period, the longest last.
const (
	concurrency = iota
	requestsPerSecond
	requests
	tokens
	inputTokens
	outputTokens
	requestsPerDay
	burstSize
	numBuckets
)

// rules say everything about each limit that a lane can have; a field of [Limits] holds it.
var rules = [numBuckets]struct {
	bucket  assay.Bucket
	field   func(*Limits) *int
	counts  func(cost) int // nil if it is not about what requests use
	per     time.Duration
	measure limit.Measure // which limiters count for it
	unit    string        // in words
}{
	concurrency: {assay.Concurrency, func(l *Limits) *int { return &l.Concurrency }, nil, 0, limit.InFlight, "requests at once"},
	requestsPerSecond: {
		assay.RequestsPerSecond, func(l *Limits) *int { return &l.RPS }, allRequests, time.Second, limit.Requests,
		"requests a second",
	},
	requests: {assay.Requests, func(l *Limits) *int { return &l.RPM }, allRequests, time.Minute, limit.Requests, "requests a minute"},
	tokens:   {assay.Tokens, func(l *Limits) *int { return &l.TPM }, allTokens, time.Minute, limit.Tokens, "tokens a minute"},
	inputTokens: {
		assay.InputTokens, func(l *Limits) *int { return &l.ITPM }, allInput, time.Minute, limit.InputTokens,
		"input tokens a minute",
	},
	outputTokens: {
		assay.OutputTokens, func(l *Limits) *int { return &l.OTPM }, allOutput, time.Minute, limit.OutputTokens,
		"output tokens a minute",
	},
	requestsPerDay: {assay.RequestsPerDay, func(l *Limits) *int { return &l.RPD }, allRequests, day, limit.RequestsPerDay, "requests a day"},
	burstSize:      {assay.Burst, func(l *Limits) *int { return &l.Burst }, nil, 0, 0, "requests in a burst"},
}

func allRequests(c cost) int { return c.requests }
func allTokens(c cost) int   { return c.input + c.output }
func allInput(c cost) int    { return c.input }
func allOutput(c cost) int   { return c.output }

// Buckets lists everything that a lane can have a limit of.
var Buckets = func() (all [numBuckets]assay.Bucket) {
	for i := range rules {
		all[i] = rules[i].bucket
	}
	return all
}()

// Of returns the limit of a bucket, or nil if the bucket is unknown.
func (l *Limits) Of(b assay.Bucket) *int {
	if i := slices.Index(Buckets[:], b); i >= 0 {
		return rules[i].field(l)
	}
	return nil
}

// Unit returns what a limit counts, such as "requests a minute".
func Unit(b assay.Bucket) string { return rules[slices.Index(Buckets[:], b)].unit }

// A lane without a stated concurrency starts with firstWidth requests in flight. Each accepted
// request permits one more, up to widest.
const (
	firstWidth = 8
	widest     = 128
)

// widths returns how many requests may be in flight at first and at most.
func (l Limits) widths() (first, most int) {
	if l.Concurrency > 0 {
		return l.Concurrency, l.Concurrency
	}
	return firstWidth, widest
}

// Widest returns the largest number of requests that may be in flight.
func (l Limits) Widest() int {
	if l.Concurrency > 0 {
		return l.Concurrency
	}
	return widest
}

// Price is in dollars per million tokens.
type Price struct {
	Input  float64 `yaml:"input" json:"input"`
	Output float64 `yaml:"output" json:"output"`
	// Cached and CacheWrite are the prices of input that is read from a cache or written to
	// it. If one is nil, the price of other input applies.
	Cached     *float64 `yaml:"cached" json:"cached,omitempty"`
	CacheWrite *float64 `yaml:"cache_write" json:"cache_write,omitempty"`
	// Stated is true if the user states the price, even if it is 0.
	Stated bool `yaml:"-" json:"-"`
}

// Of returns the price of some usage in dollars, as [assay.RoundUSD] rounds it.
func (p Price) Of(u assay.Usage) float64 {
	cached := min(u.CachedTokens, u.InputTokens)
	written := min(u.CacheWriteTokens, u.InputTokens-cached)
	sum := float64(u.InputTokens-cached-written)*p.Input + float64(u.OutputTokens)*p.Output
	for _, part := range []struct {
		tokens int
		price  *float64
	}{{cached, p.Cached}, {written, p.CacheWrite}} {
		sum += float64(part.tokens) * *cmp.Or(part.price, &p.Input)
	}
	return assay.RoundUSD(sum / 1e6)
}

// Unknown reports whether there is no price.
func (p Price) Unknown() bool { return p == Price{} }

// Free reports whether the price is stated as 0.
func (p Price) Free() bool {
	zero := func(x *float64) bool { return x == nil || *x == 0 }
	return p.Stated && p.Input == 0 && p.Output == 0 && zero(p.Cached) && zero(p.CacheWrite)
}

// unpriced returns how many tokens of a usage have an unknown cost. The usage is estimated if the
// endpoint does not report it.
func (p Price) unpriced(u assay.Usage, estimated bool) int {
	if p.Unknown() || estimated && !p.Free() {
		return u.Total()
	}
	return 0
}

// Config describes one lane.
type Config struct {
	// Name is provider/key/deployment. It is shown to users.
	Name     string
	Provider assay.Provider
	Limits   Limits
	// FirstReply is how long the lane waits for an endpoint that has never replied
	// because it is busy or loads its model; 0 means [DefaultFirstReply].
	FirstReply time.Duration
	// Spent lists what earlier runs have used of the limits within the last day, oldest first.
	Spent []Spent
	Price Price
	// CachedFree is true if the endpoint does not count input that is read from a
	// cache against its limits.
	CachedFree bool
	// Orders is the model name that the lane sends to its endpoint. Serves are
	// other names that the endpoint may return for the same model.
	Orders string
	Serves []string
	// Origin is the origin of the states in the endpoint's replies; see [assay.State]. Address is the
	// endpoint's base URL.
	Origin, Address string
}

// counted returns the part of a usage that counts against the lane's limits.
func (c *Config) counted(u assay.Usage) assay.Usage {
	if c.CachedFree {
		u.InputTokens -= min(u.CachedTokens, u.InputTokens)
	}
	return u
}

// Spent is what a lane used of its limits at some time.
type Spent struct {
	At                      time.Time
	Requests, Input, Output int
}

// Windowed reports whether there is a limit of what may be used in some span of time.
func (l Limits) Windowed() bool {
	l.Concurrency, l.Burst = 0, 0
	return l != Limits{}
}
