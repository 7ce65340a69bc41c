package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/library"
)

// endpointTimes returns how long the endpoint took for each attempt in a store,
// in the order in which they began: one latency for a reply, the client's timeout
// for each hang, and the announced wait for each refusal. Errors take no time.
func endpointTimes(
	ctx context.Context, path string, latency, timeout, announced time.Duration,
) (stays []stay, err error) {
	db, err := store.OpenReadOnly(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	type attempt struct {
		began time.Time
		stay
	}
	var all []attempt
	for a, err := range db.Attempts(ctx, store.Filter{}) {
		if err != nil {
			return nil, err
		}
		t := stay{
			slot: time.Duration(a.Retried[assay.Timeout]) * timeout,
			wait: time.Duration(a.Retried[assay.RateLimited]) * announced,
		}
		switch {
		case a.Settles():
			t.slot += latency
		case a.FaultKind == assay.Timeout:
			t.slot += timeout
		}
		all = append(all, attempt{a.StartedAt, t})
	}

	slices.SortFunc(all, func(a, b attempt) int { return a.began.Compare(b.began) })
	for _, a := range all {
		stays = append(stays, a.stay)
	}
	return stays, nil
}

// million is measurement 3.
func (b *bench) million(ctx context.Context) ([]figure, error) {
	n := b.size(1_000_000, 5000)
	s := workload{
		server: []string{"--latency", "1s"},
		model:  sim.Claimer, trials: n, limits: concurrency(8),
		stop: time.Nanosecond,
	}
	pending, err := b.runScenario(ctx, s)
	if err != nil {
		return nil, err
	}

	s.store, s.trials = b.path("million.db"), n+500
	began := time.Now()
	if err := b.fill(ctx, s, n); err != nil {
		return nil, err
	}
	filled := time.Since(began)
	stored, err := b.runScenario(ctx, s)
	if err != nil {
		return nil, err
	}

	const note = "%d results without transcripts, stored in %.0f s, followed by " +
		"500 pending trials; peak resident memory %.0f MB"
	return []figure{
		newRow("time to first request, results stored", seconds, stored.untilFirst().Seconds()).
			below(5).because(note, n, filled.Seconds(), stored.peakMB),
		newRow("time to first request, trials pending", seconds, pending.untilFirst().Seconds()).
			below(5).because("%d pending trials", n),
		newRow("peak resident memory, trials pending", megabytes, pending.peakMB).below(500),
	}, nil
}

// fill stores an outcome for the first n trials of a scenario.
func (b *bench) fill(ctx context.Context, s workload, n int) (err error) {
	path, err := b.writeFiles(s, "http://127.0.0.1:1")
	if err != nil {
		return err
	}
	e, err := plan.Load(path)
	if err != nil {
		return err
	}
	lib, err := library.Builtin(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lib.Close()) }()
	p, err := e.Expand(ctx, lib.Refs, nil) // the scenario has no flawed variants
	if err != nil {
		return err
	}

	db, err := store.Open(ctx, s.store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	const run, name = assay.RunID("bench"), "filled" // an experiment that cannot be planned again
	if err := db.BeginRun(ctx, store.Experiment{Name: name, Spec: []byte("{}")},
		store.Run{ID: run, StartedAt: time.Now().UTC()}); err != nil {
		return err
	}
	saves, ctx := errgroup.WithContext(ctx)
	saves.SetLimit(512) // concurrent saves share a flush
	left := n
	for t := range p.Trials(s.model) {
		if left--; left < 0 || ctx.Err() != nil {
			break
		}
		a := settledAttempt(t)
		a.Run, a.Experiment = run, name
		saves.Go(func() error { return db.Save(ctx, &a, nil) })
	}
	return saves.Wait()
}

// settledAttempt returns an outcome as a run would store it.
func settledAttempt(t assay.Trial) assay.Attempt {
	now := time.Now().UTC()
	return assay.Attempt{
		Trial: t, Program: "bench", Lane: "lane/SIM_KEY/sim-mute", ServedModel: t.Model,
		Outcome: assay.Outcome{
			Level: assay.Failure, Ended: assay.TurnLimit, ErrorCategory: "bench", Turns: 1,
			RequiredTools: []string{
				"file_operations_reader", "data_processing_parser", "file_operations_writer",
			},
			ScoreVersion: "bench",
		},
		Requests: 1, Spend: assay.NewSpend(assay.Usage{InputTokens: 1000, OutputTokens: 50}, 0), WorkingMS: 1000,
		StartedAt: now, FinishedAt: now,
	}
}

// kills is measurement 5. A result is lost if it was displayed as done, or was
// in the store after an earlier kill, and is missing from the store now.
func (b *bench) kills(ctx context.Context) ([]figure, error) {
	s := workload{
		server: []string{"--latency", "100ms"},
		model:  sim.Optimal, trials: b.size(4000, 500),
		limits: concurrency(32), store: b.path("killed.db"),
	}
	server, err := b.serve(ctx, s)
	if err != nil {
		return nil, err
	}
	defer server.stop()

	kills := b.size(100, 5)
	seen := make(map[assay.TrialID]bool)
	lost, duplicated, atLastKill := 0, 0, 0
	for i := range kills + 1 {
		var m measured
		if i < kills {
			// The display prints a snapshot each second, so some kills come after one.
			delay := 50*time.Millisecond + rand.N(1350*time.Millisecond)
			m, err = b.killAfter(ctx, s, server.url, delay)
		} else {
			s.limits = concurrency(300)
			m, err = b.runAt(ctx, s, server.url)
		}
		if err != nil {
			return nil, err
		}

		now, err := countOutcomes(ctx, s.store)
		if err != nil {
			return nil, err
		}
		lost += max(0, m.shown-len(now))
		for id := range seen {
			if now[id] == 0 {
				lost++
			}
		}
		duplicated = 0
		for id, n := range now {
			seen[id] = true
			duplicated += n - 1
		}
		if i < kills {
			atLastKill = len(now)
		}
	}

	return []figure{
		countRow("results lost", lost).zero().
			because("%d kills; a lost result was displayed or stored, and then missing", kills),
		countRow("results duplicated", duplicated).zero(),
		countRow("trials not done at the end", s.trials-len(seen)).zero().
			because("%d of %d were done at the last kill", atLastKill, s.trials),
	}, nil
}

// countOutcomes counts the outcomes of each trial in a store. A store that does
// not exist yet has no outcomes.
func countOutcomes(ctx context.Context, path string) (map[assay.TrialID]int, error) {
	outcomes := make(map[assay.TrialID]int)
	db, err := store.OpenReadOnly(ctx, path)
	if errors.Is(err, store.ErrNoStore) {
		return outcomes, nil
	}
	if err != nil {
		return nil, err
	}
	defer db.Close()
	for a, err := range db.Attempts(ctx, store.Filter{OnlySettled: true}) {
		if err != nil {
			return nil, err
		}
		outcomes[a.ID]++
	}
	return outcomes, nil
}
