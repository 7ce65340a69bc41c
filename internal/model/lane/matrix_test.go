package lane_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/model/protocol/openai"
	"github.com/assay-eval/assay/internal/model/wire"
)

// client returns a client of an endpoint, without a network.
func client(t *testing.T, s *stranger) *wire.Provider {
	t.Helper()
	if s.took == 0 {
		s.took = 700 * time.Millisecond
	}
	return clientOf(t, s)
}

func clientOf(t *testing.T, transport http.RoundTripper) *wire.Provider {
	t.Helper()
	p, err := openai.Protocol.New(wire.Config{
		BaseURL: "http://stranger.example/v1", Deployment: "m",
		Client: &http.Client{Transport: transport},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// limiterRow is an endpoint that the lanes were not tuned for.
type limiterRow struct {
	name   string
	make   func() *stranger
	stated lane.Limits
	rate   float64 // requests per second that the endpoint permits
	window time.Duration
}

const second, minute, hour = time.Second, time.Minute, time.Hour

// matrix has kinds of limits, headers and waits in many combinations.
func matrix() []limiterRow {
	type style struct {
		name    string
		headers headerStyle
		wait    waitStyle
	}
	styles := []style{
		{"openai, ms", plainHeaders, waitInMs},
		{"azure, seconds", azureHeaders, waitInSeconds},
		{"anthropic, date", anthropicHeaders, waitUntilDate},
		{"mistral, none", mistralHeaders, noWait},
		{"litellm, zero", litellmHeaders, waitZero},
		{"none, as time", noHeaders, waitAsTime},
		{"none, none", noHeaders, noWait},
		{"openai, none", plainHeaders, noWait},
	}
	type limit struct {
		name   string
		make   func() limiter
		rate   float64
		window time.Duration
		stated lane.Limits
	}
	limits := []limit{
		{
			"fixed 10 s", func() limiter { return &fixed{n: 10, span: second} }, 10, second,
			lane.Limits{RPS: 10},
		},
		{
			"sliding 10 s", func() limiter { return &sliding{n: 10, span: second} }, 10, second,
			lane.Limits{RPM: 600},
		},
		{
			"fixed 600 min", func() limiter { return &fixed{n: 600, span: minute} }, 10, minute,
			lane.Limits{RPM: 600},
		},
		{
			"sliding 120 min", func() limiter { return &sliding{n: 120, span: minute} }, 2, minute,
			lane.Limits{RPM: 120},
		},
		{
			"leaky 900 min", func() limiter { return &bucket{n: 900, size: 15, span: minute} }, 15, minute,
			lane.Limits{RPM: 900},
		},
		{
			"token 300 min", func() limiter { return &bucket{n: 300, size: 300, span: minute} }, 5,
			minute,
			lane.Limits{RPM: 300},
		},
		{
			"fixed 3000 hour", func() limiter { return &fixed{n: 3000, span: hour} }, 50. / 60, hour,
			lane.Limits{RPM: 50},
		},
		{
			"token 9000 hour", func() limiter { return &bucket{n: 9000, size: 150, span: hour} }, 2.5,
			hour,
			lane.Limits{RPM: 150},
		},
		{
			"fixed 3000 day", func() limiter { return &fixed{n: 3000, span: 24 * hour} }, 3000. / 86400,
			24 * hour,
			lane.Limits{RPD: 3000},
		},
	}
	var rows []limiterRow
	for _, l := range limits {
		for i, s := range styles {
			if l.window >= hour && i%6 > 0 {
				continue // days of virtual time take seconds
			}
			rows = append(rows, limiterRow{
				name: l.name + "/" + s.name, rate: l.rate, window: l.window, stated: l.stated,
				make: func() *stranger {
					return &stranger{limiter: l.make(), headers: s.headers, wait: s.wait}
				},
			})
		}
	}
	return rows
}

// play keeps a lane busy at an endpoint for some windows and reports which share of the permitted
// use it had after the first two, and which share was refused.
func play(t *testing.T, s *stranger, stated lane.Limits, row limiterRow) (used, refused float64) {
	time.Sleep(27 * 365 * 24 * hour) // from the year 2000, when Unix times were short
	start := time.Now()
	c := lane.Config{Name: "l", Provider: client(t, s), Orders: "m", Limits: stated}
	p := lane.NewPool("m", []lane.Config{c}, lane.Options{Queue: 1000 * hour})
	from := start.Add(max(2*row.window, 3*minute))
	to := from.Add(max(2*row.window, 8*minute))
	if testing.Short() {
		to = from.Add(max(2*row.window, 3*minute))
	}
	saturate(p, 160, to.Sub(start))
	ok, not := between(s.accepted, from, to), between(s.refused, from, to)
	if gap := s.longestGap(from, to); s.wait == nil && gap > max(row.window, minute) {
		t.Errorf("silent for %v", gap)
	}
	return float64(ok) / (row.rate * to.Sub(from).Seconds()), float64(not) / float64(ok+not)
}
