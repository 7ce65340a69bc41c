package main

import (
	"context"
	"fmt"
	"math"

	"github.com/assay-eval/assay/internal/model/sim"
)

// A driver is a way in which the same model makes the same calls.
type driver struct {
	name  string
	agent string // of the providers file; "" for the built-in episode
}

// bridge is measurement 8. All drivers make the same trials, one after the other.
func (b *bench) bridge(ctx context.Context) ([]row, error) {
	service := serveAgent()
	defer service.Close()
	drivers := []driver{
		{"built in", ""},
		{"a service", "url: " + service.URL},
		{"a program an attempt", fmt.Sprintf("command: [%q, %s]", b.self, agentVerb)},
	}
	took, cpu := make([][]float64, len(drivers)), make([][]float64, len(drivers))
	calls := 0.
	for range b.size(5, 1) {
		for i, d := range drivers {
			m, err := b.runDriver(ctx, d)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", d.name, err)
			}
			n := float64(m.stats.Requests)
			if i > 0 && math.Abs(n-calls) > calls/100 {
				return nil, fmt.Errorf("%s: %v requests, but %v before", d.name, n, calls)
			}
			calls = n
			took[i] = append(took[i], 1e6/m.perSecond())
			cpu[i] = append(cpu[i], m.perCall())
		}
	}

	const note = "a turn of the model and the call of a tool that it asks for; one attempt at a " +
		"time, no latency; median of %d rounds; beside it, the built-in episode at the same trials"
	var rows []row
	for i, d := range drivers[1:] {
		rows = append(rows,
			newRow("time a call, "+d.name, micros, median(took[i+1]...)).
				beside(median(took[0]...)).because(note, len(took[0])),
			newRow("CPU a call, "+d.name, micros, median(cpu[i+1]...)).
				beside(median(cpu[0]...)).because("Assay's process and those that it starts"),
		)
	}
	return rows, nil
}

// runDriver runs trials with a driver.
func (b *bench) runDriver(ctx context.Context, d driver) (measured, error) {
	s := scenario{model: sim.Listed, trials: b.size(200, 20), limits: concurrency(1)}
	if d.agent != "" {
		s.agent = d.agent + ", concurrency: 1"
	}
	return b.runScenario(ctx, s)
}
