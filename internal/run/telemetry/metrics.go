// Package telemetry informs other programs about a run: Prometheus, a collector of traces, and
// whoever a webhook wakes. Each of them is a [session.Observer].
//
// It cannot slow down a run or change its results. It only counts and queues, and records that do
// not fit into a queue are dropped and counted.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// Metrics serves the counts of a run to Prometheus. Models, lanes and kinds of fault are its only
// labels, so the number of series does not grow with the number of trials.
type Metrics struct {
	listener net.Listener
	server   *http.Server
	registry *prometheus.Registry
	scrapes  *scrapes

	took   *prometheus.HistogramVec
	saving prometheus.Histogram
}

// Listen starts to serve metrics at an address such as :9464. Without a host, only this machine
// can reach it.
func Listen(ctx context.Context, addr string) (*Metrics, error) {
	host, port, err := net.SplitHostPort(addr)
	if n, parseErr := strconv.ParseUint(port, 10, 16); err != nil || parseErr != nil {
		return nil, fmt.Errorf("%q is not an address\nhint: write :9464 or 127.0.0.1:9464", addr)
	} else if host == "" {
		addr = net.JoinHostPort("127.0.0.1", strconv.FormatUint(n, 10))
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("cannot serve metrics: %w\nhint: port 0 takes a free one", err)
	}
	m := newMetrics()
	m.listener = l
	go func() { _ = m.server.Serve(l) }() // until Close
	return m, nil
}

func newMetrics() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		scrapes:  &scrapes{read: make(chan struct{})},
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "assay_request_duration_seconds", Help: "Time from sending a request to its end.",
			Buckets: prometheus.ExponentialBuckets(.1, 2, 13),
		}, []string{"model"}),
		saving: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "assay_store_save_seconds",
			Help:    "Time until an attempt is on disk, including the wait for its group.",
			Buckets: prometheus.ExponentialBuckets(.001, 2, 14),
		}),
	}
	m.registry.MustRegister(m.took, m.saving, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.scrapes.watch(promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4, Timeout: 10 * time.Second,
	})))
	m.server = &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 20 * time.Second,
		MaxHeaderBytes: 1 << 16, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	return m
}

// URL returns the address of the metrics.
func (m *Metrics) URL() string { return "http://" + m.listener.Addr().String() + "/metrics" }

// Close stops serving.
func (m *Metrics) Close() error {
	err := m.server.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

var _ session.Observer = (*Metrics)(nil)

// Begin implements [session.Observer].
func (m *Metrics) Begin(s session.Start, l session.Live) {
	m.registry.MustRegister(counts{s, time.Now(), l})
}

// Request implements [session.Observer].
func (m *Metrics) Request(x lane.Exchange) {
	m.took.WithLabelValues(x.Model).Observe(x.Took.Seconds())
}

// Attempt implements [session.Observer].
func (m *Metrics) Attempt(e session.Episode) {
	m.saving.Observe(e.Saving.Ended.Sub(e.Saving.Began).Seconds())
}

// counts reads a run when Prometheus asks.
type counts struct {
	start session.Start
	began time.Time
	live  session.Live
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	runInfo = desc("assay_run_info", "The run, always 1.", "experiment", "run", "program")
	begun   = desc("assay_run_start_time_seconds", "When the run began, since 1970.")
	trials  = desc("assay_trials",
		"Planned trials by state, including those of earlier runs.", "model", "state")
	full = desc("assay_full_success_trials",
		"Trials that are done with full success, including those of earlier runs.", "model")
	flying = desc("assay_episodes_in_flight", "Attempts in flight.", "model")
	agents = desc("assay_agents", "Foreign agents by what they are doing.", "model", "state")
	alarms = desc("assay_attention_trials",
		"Trials at stake, by what needs the user's attention.", "cause")

	attempts = desc("assay_attempts_total",
		"Attempts on disk, by their level of success or as a fault.", "model", "result")
	attemptFaults = desc("assay_attempt_faults_total",
		"Attempts that ended with a fault, by its kind.", "model", "fault")

	requests = desc("assay_requests_total", "Requests that have ended.", "model", "lane")
	faults   = desc("assay_request_faults_total",
		"Requests that failed, by the kind of fault.", "model", "lane", "fault")
	tokens = desc("assay_tokens_total",
		"Tokens by kind. The kinds do not overlap, so their sum is the total.",
		"model", "lane", "kind")
	costs = desc("assay_cost_dollars_total",
		"Cost at the prices of the providers file.", "model", "lane")
	unpriced = desc("assay_unpriced_tokens_total",
		"Tokens of replies with an unknown cost, which the cost leaves out.", "model", "lane")

	laneFlying = desc("assay_lane_requests_in_flight", "Requests in flight.", "model", "lane")
	laneWidth  = desc("assay_lane_width",
		"The number of requests that the lane takes at once.", "model", "lane")
	laneLimit = desc("assay_lane_limit",
		"Limits in force. A lane without one has no series.", "model", "lane", "limit")
	laneUsed = desc("assay_lane_used_seconds_total",
		"Time of slots with a request in flight.", "model", "lane")
	laneBound = desc("assay_lane_bound_seconds_total",
		"Time of slots without a request in flight while the next one waited for a limit.",
		"model", "lane")
	laneAvailable = desc("assay_lane_available_seconds_total",
		"Time of all slots. Occupancy is the rate of used and bound time by the rate of this.",
		"model", "lane")
	laneWaited = desc("assay_lane_waited_seconds_total",
		"Time in which a request or a new trial waited for the lane, by reason.",
		"model", "lane", "reason")
	laneClosed = desc("assay_lane_closed", "1 if the lane cannot serve any more.", "model", "lane")
	lanePaused = desc("assay_lane_paused", "1 if the user paused the lane.", "model", "lane")
)

// Describe implements [prometheus.Collector]. It names no metric, because which there are depends on
// the run.
func (c counts) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (c counts) Collect(ch chan<- prometheus.Metric) {
	put := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	p := c.live.Progress()
	put(runInfo, 1, c.start.Experiment, string(c.start.Run), c.start.Program)
	put(begun, float64(c.began.UnixMilli())/1000)
	for _, m := range p.Models {
		put(trials, float64(m.Done), m.Model, "done")
		put(trials, float64(m.Pending), m.Model, "pending")
		put(trials, float64(m.Parked), m.Model, "parked")
		put(trials, float64(m.Skipped), m.Model, "skipped")
		put(full, float64(m.Full), m.Model)
		put(flying, float64(m.InFlight), m.Model)
		collectAttempts(ch, m)
		if m.Agents == nil {
			continue
		}
		for _, state := range assay.AgentStates {
			put(agents, float64(m.Agents[state]), m.Model, string(state))
		}
	}
	stake := make(map[string]int)
	for _, a := range p.Attention {
		stake[a.Cause] += a.Trials
	}
	for cause, n := range stake {
		put(alarms, float64(n), cause)
	}
	for _, u := range c.live.Requests() {
		collectRequests(ch, u)
	}
	for _, l := range c.live.Lanes() {
		collectLane(ch, l)
	}
}

// count sends the value of a counter.
func count(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
}

func collectAttempts(ch chan<- prometheus.Metric, m terminal.ModelState) {
	for level, n := range m.InRun.Outcomes {
		count(ch, attempts, float64(n), m.Model, string(level))
	}
	for kind, n := range m.InRun.Faults {
		count(ch, attemptFaults, float64(n), m.Model, string(kind))
	}
	if n := m.InRun.Faulted(); n > 0 {
		count(ch, attempts, float64(n), m.Model, "fault")
	}
}

func collectRequests(ch chan<- prometheus.Metric, u session.LaneUse) {
	put := func(d *prometheus.Desc, v float64, more ...string) {
		count(ch, d, v, append([]string{u.Model, u.Lane}, more...)...)
	}
	put(requests, float64(u.Requests))
	for kind, n := range u.Faults {
		put(faults, float64(n), string(kind))
	}
	for kind, n := range map[string]int{
		"input":        u.InputTokens - u.CachedTokens - u.CacheWriteTokens,
		"cached_input": u.CachedTokens,
		"cache_write":  u.CacheWriteTokens,
		"output":       u.OutputTokens - u.ReasoningTokens,
		"reasoning":    u.ReasoningTokens,
	} {
		put(tokens, float64(max(0, n)), kind)
	}
	put(costs, max(0, u.CostUSD))
	put(unpriced, float64(u.UnpricedTokens))
}

func collectLane(ch chan<- prometheus.Metric, l session.LaneReading) {
	labels := func(more ...string) []string {
		return append([]string{l.Model, l.Status.Name}, more...)
	}
	put := func(d *prometheus.Desc, v float64, more ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels(more...)...)
	}
	took := func(d *prometheus.Desc, v time.Duration, more ...string) {
		count(ch, d, v.Seconds(), labels(more...)...)
	}
	put(laneFlying, float64(l.Status.InFlight))
	put(laneWidth, float64(l.Status.Width))
	put(laneClosed, oneIf(l.Status.Closed != nil))
	put(lanePaused, oneIf(l.Status.Held))
	for _, b := range lane.Buckets {
		if n := *l.Status.Limits.Of(b); n > 0 {
			put(laneLimit, float64(n), string(b))
		}
	}
	took(laneUsed, l.Ledger.Used)
	took(laneBound, l.Ledger.Bound)
	took(laneAvailable, l.Ledger.Available)
	for reason, d := range l.Ledger.Waited {
		took(laneWaited, d, reason)
	}
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
