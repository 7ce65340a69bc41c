package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/model/simserver"
)

// A measurement produces some rows of the report.
type measurement struct {
	id      string
	title   string
	seconds int // roughly, without --quick
	run     func(*bench, context.Context) ([]figure, error)
}

var measurements = []measurement{
	{"2a", "5,000 calls of 100 ms, 200 at once", 10, (*bench).shortCalls},
	{"2c", "10,000 episodes in flight, calls of 10 s", 210, (*bench).manyEpisodes},
	{"2d", "six lanes with stated limits", 250, (*bench).statedLimits},
	{"2e", "six lanes with limits to learn, twice", 500, (*bench).learnedLimits},
	{"2f", "5,000 calls of 100 ms, with hangs and refusals", 15, (*bench).faults},
	{"2h", "attempts of one turn beside a bare client", 150, (*bench).oneTurn},
	{"2i", "1,000 calls of 250 ms, 50 at once, of which 1 % hang", 100, (*bench).stragglers},
	{"2j", "100,000 episodes in flight over HTTP/2, and 10,000 over HTTP", 140, (*bench).inFlight},
	{"2k", "CPU of Assay for each call of a tool", 60, (*bench).steps},
	{"2l", "replies on disk before attempts go on, and without", 400, (*bench).kept},
	{"3", "a million trials, done and pending", 150, (*bench).million},
	{"5", "a hundred kills", 100, (*bench).kills},
}

// bench runs measurements at full size or, if quick, small versions of them.
type bench struct {
	*rig
	quick bool
}

// size returns the size of a measurement.
func (b *bench) size(full, quick int) int {
	if b.quick {
		return quick
	}
	return full
}

func concurrency(n int) string { return fmt.Sprintf("concurrency: %d", n) }

// shortCalls is measurement 2a: trials of one reply, the claim, with a constant latency.
func (b *bench) shortCalls(ctx context.Context) ([]figure, error) {
	trials, slots, latency := b.size(5000, 500), b.size(200, 50), 100*time.Millisecond
	s := workload{
		server: []string{"--latency", latency.String(), "--latency-sigma", "0"},
		model:  sim.Claimer, trials: trials, limits: concurrency(slots),
	}
	bodies, err := b.record(ctx, s)
	if err != nil {
		return nil, err
	}
	bare, err := b.runBareClient(ctx, s, bodies, trials, slots)
	if err != nil {
		return nil, err
	}
	m, err := b.runScenario(ctx, s)
	if err != nil {
		return nil, err
	}

	ideal := idealTime(slices.Repeat([]stay{{slot: latency}}, trials), slots)
	return []figure{
		newRow("ideal ÷ wall time", share, quotient(ideal.Seconds(), m.wall.Seconds())).
			beside(quotient(ideal.Seconds(), bare.wall.Seconds())).atLeast(0.85).
			because("ideal %v; %s; bare client %.2f s", ideal, m.phases(), bare.wall.Seconds()),
		newRow("occupancy", share, m.occupancy()),
		countRow("trials not done", m.undone()).zero(),
	}, nil
}

// manyEpisodes is measurement 2c.
func (b *bench) manyEpisodes(ctx context.Context) ([]figure, error) {
	slots := b.size(10_000, 500)
	latency := time.Duration(b.size(10_000, 1000)) * time.Millisecond
	m, err := b.runScenario(ctx, workload{
		server: []string{"--latency", latency.String()},
		model:  sim.Optimal, trials: b.size(25_000, 1000),
		text: "limits: {turns: 5}", limits: concurrency(slots),
	})
	if err != nil {
		return nil, err
	}
	return []figure{
		newRow("occupancy", share, m.occupancy()).atLeast(0.97).because(
			"while trials waited to start; at most %d requests at once, "+
				"%.0f/s on average, %.0f µs of CPU per call",
			m.stats.MaxInFlight, m.perSecond(), m.perCall()),
		newRow("peak resident memory", megabytes, m.peakMB).below(1000),
		countRow("trials not done", m.undone()).zero(),
	}, nil
}

// sixLanes are three lanes bound by requests and three bound by tokens.
var sixLanes = []laneLimits{
	{deployment: "sim-optimal-1", rpm: 120},
	{deployment: "sim-optimal-2", rpm: 240},
	{deployment: "sim-optimal-3", rpm: 400},
	{deployment: "sim-optimal-4", tpm: 100_000},
	{deployment: "sim-optimal-5", tpm: 200_000},
	{deployment: "sim-optimal-6", tpm: 400_000},
}

// limited returns a scenario on six lanes. It stops at the end of a window,
// when trials are still waiting.
func (b *bench) limited(flags ...string) workload {
	s := workload{
		server: append([]string{"--latency", "300ms"}, flags...),
		model:  sim.Optimal, trials: 4000,
		lanes: sixLanes, stop: 4*time.Minute - 20*time.Millisecond,
	}
	if b.quick {
		s.stop = 5 * time.Second
	}
	return s
}

// limitRows returns how much of the limits a run used from s.from on, how many
// requests came over a limit, and the share of requests that were refused.
func limitRows(m measured, s workload, suffix string) (used, over, refused figure) {
	span, total := s.stop-s.from, m.traffic()
	var lanes []string
	for _, l := range s.lanes {
		one := map[string]traffic{l.deployment: total[l.deployment]}
		lanes = append(lanes, fmt.Sprintf("%.1f %%", 100*usedShare([]laneLimits{l}, one, span)))
	}
	used = newRow("used ÷ permitted traffic"+suffix, share, usedShare(s.lanes, total, span)).
		because("from %v to %v after the first request, while trials waited; by lane %s",
			s.from.Round(time.Second), s.stop.Round(time.Second), strings.Join(lanes, ", "))

	over = countRow("requests over a limit"+suffix, int(m.stats.OverLimit-m.before.OverLimit))

	refused = newRow("requests answered 429"+suffix, share, refusedShare(m.stats, m.before)).
		because("%.2f %% since the first request", 100*refusedShare(m.stats, simserver.Stats{}))
	return used, over, refused
}

// refusedShare returns the share of requests answered 429 between two moments.
func refusedShare(end, start simserver.Stats) float64 {
	const tooMany = http.StatusTooManyRequests
	refused := end.Statuses[tooMany] - start.Statuses[tooMany]
	return quotient(float64(refused), float64(end.Requests-start.Requests))
}

// statedLimits is measurement 2d.
func (b *bench) statedLimits(ctx context.Context) ([]figure, error) {
	s := b.limited()
	s.stated = true
	m, err := b.runScenario(ctx, s)
	if err != nil {
		return nil, err
	}
	used, over, refused := limitRows(m, s, "")
	return []figure{used.atLeast(0.97), over.zero(), refused.below(0.005)}, nil
}

// learnedLimits is measurement 2e. It leaves out the first minute, in which the client is still
// finding the limits. The small version has only that minute.
func (b *bench) learnedLimits(ctx context.Context) ([]figure, error) {
	withoutHeaders := []string{
		"--limit-headers", simserver.HeadersNone, "--retry-after", simserver.RetryAfterSeconds,
	}
	var rows []figure
	for _, server := range []struct {
		suffix string
		flags  []string
	}{
		{"", nil},
		{", no headers", withoutHeaders},
	} {
		s := b.limited(server.flags...)
		if !b.quick {
			s.from = s.stop / 4
		}
		m, err := b.runScenario(ctx, s)
		if err != nil {
			return nil, err
		}
		used, _, refused := limitRows(m, s, server.suffix)
		rows = append(rows, used.atLeast(0.9), refused.below(0.02))
	}
	return rows, nil
}

// faults is measurement 2f.
func (b *bench) faults(ctx context.Context) ([]figure, error) {
	const latency, timeout, announced = 100 * time.Millisecond, 2 * time.Second, time.Second
	slots := b.size(200, 50)
	path := b.path("faults.db")
	m, err := b.runScenario(ctx, workload{
		server: []string{
			"--latency", latency.String(), "--latency-sigma", "0",
			"--fault", "hang=1%", "--fault", "500=5%", "--fault", "429=5%",
		},
		model: sim.Claimer, trials: b.size(5000, 500), limits: concurrency(slots),
		text:  fmt.Sprintf("limits: {request: %v}", timeout),
		store: path,
	})
	if err != nil {
		return nil, err
	}
	stays, err := endpointTimes(ctx, path, latency, timeout, announced)
	if err != nil {
		return nil, err
	}

	const note = "ideal %v: the same trials in the same order, each as long as its endpoint " +
		"took, with %d hangs of %v and %d refusals that announce %v; %s"
	ideal := idealTime(stays, slots)
	return []figure{
		newRow("ideal ÷ wall time", share, quotient(ideal.Seconds(), m.wall.Seconds())).
			atLeast(0.85).
			because(note, ideal.Round(time.Millisecond), m.stats.Faults["hang"], timeout,
				m.stats.Faults["429"], announced, m.phases()),
		newRow("occupancy", share, m.occupancy()),
		countRow("trials not done", m.undone()).zero(),
	}, nil
}
