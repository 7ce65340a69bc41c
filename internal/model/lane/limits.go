package lane

import (
	"cmp"
	"time"

	"github.com/assay-eval/assay"
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

// Buckets lists everything that a lane can have a limit of.
var Buckets = [...]assay.Bucket{
	assay.Concurrency, assay.RequestsPerSecond, assay.Requests, assay.Tokens,
	assay.InputTokens, assay.OutputTokens, assay.RequestsPerDay, assay.Burst,
}

// Indexes into [Buckets].
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

// Of returns the limit of a bucket, or nil if the bucket is unknown.
func (l *Limits) Of(b assay.Bucket) *int {
	fields := [numBuckets]*int{
		&l.Concurrency, &l.RPS, &l.RPM, &l.TPM, &l.ITPM, &l.OTPM, &l.RPD, &l.Burst,
	}
	for i, known := range Buckets {
		if b == known {
			return fields[i]
		}
	}
	return nil
}

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
	// Origin is the origin of the states in the endpoint's replies; see [assay.State].
	Origin string
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
