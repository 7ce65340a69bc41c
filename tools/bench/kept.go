package main

import (
	"context"
	"os"
	"time"

	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/sim"
)

// kept is measurement 2l: what it takes to have each reply on disk before the attempt goes on, beside
// the same run that has only ended attempts there. Trials have 15 turns. Runs of both kinds take
// turns, so that both meet the same machine.
func (b *bench) kept(ctx context.Context) ([]figure, error) {
	trials, slots, latency := b.size(1500, 100), 40, 100*time.Millisecond
	sum, sizes, undone := make(map[string]*usage), make(map[string]int64), 0
	rounds := b.size(3, 1)
	for range rounds {
		for _, save := range []string{plan.SaveAttempts, plan.SaveTurns} {
			s := workload{
				server: []string{"--latency", latency.String()}, model: sim.Searcher, trials: trials,
				limits: concurrency(slots), serve: "price: {input: 1, output: 2}", store: b.path("kept.db"),
				text: "loops: {search: off, repeat: off}\nsave: " + save + "\n",
			}
			m, err := b.runScenario(ctx, s)
			if err != nil {
				return nil, err
			}
			undone += m.undone()
			if sum[save] == nil {
				sum[save] = new(usage)
			}
			sum[save].add(m.usage)
			if fi, err := os.Stat(s.store); err == nil {
				sizes[save] += fi.Size()
			}
		}
	}
	with, without := sum[plan.SaveTurns], sum[plan.SaveAttempts]
	calls := float64(rounds * trials * 15)
	return []figure{
		newRow("CPU with replies on disk ÷ without", share,
			quotient(with.cpu.Seconds(), without.cpu.Seconds())).below(1.15).because(
			"%d trials of 15 turns, %d at once, %d rounds; %.0f and %.0f µs a turn", trials, slots, rounds,
			float64(with.cpu.Microseconds())/calls, float64(without.cpu.Microseconds())/calls),
		newRow("bytes written ÷ without", share, quotient(float64(with.written), float64(without.written))).
			below(1.15).because("%.0f and %.0f MB", float64(with.written)/1e6, float64(without.written)/1e6),
		newRow("size of the store ÷ without", share, quotient(
			float64(sizes[plan.SaveTurns]), float64(sizes[plan.SaveAttempts]))).below(1.15),
		newRow("peak memory ÷ without", share, quotient(with.peakMB, without.peakMB)).because(
			"%.0f and %.0f MB", with.peakMB, without.peakMB),
		newRow("wall time ÷ without", share, quotient(with.wall.Seconds(), without.wall.Seconds())),
		countRow("trials not done", undone).zero(),
	}, nil
}

// add adds what another process used.
func (u *usage) add(v usage) {
	u.wall, u.cpu, u.written = u.wall+v.wall, u.cpu+v.cpu, u.written+v.written
	u.peakMB = max(u.peakMB, v.peakMB)
}
