package main

import (
	"container/heap"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/assay-eval/assay/internal/model/sim"
)

// hangs decides which requests of a server are never answered. Equal shares and seeds decide
// equally.
type hangs struct {
	share  float64
	random *rand.Rand
}

func newHangs(share float64, seed uint64) *hangs {
	return &hangs{share, rand.New(rand.NewPCG(seed, 1))}
}

// next decides about the next request.
func (h *hangs) next() bool { return h.random.Float64() < h.share }

// minTime returns the least time in which some trials of one request can be carried out if it is
// unknown which requests will hang. While trials wait, such a request holds its slot for the limit.
// Then its trial is sent again at once. At the end of the run, requests that hang cost no time.
func minTime(trials, slots int, latency, limit time.Duration, h *hangs) (least time.Duration) {
	free := make(slotTimes, slots)
	for done := 0; done < trials; {
		took := latency
		if h.next() {
			took = limit
		} else {
			done++
			least = max(least, free[0]+latency)
		}
		free[0] += took
		heap.Fix(&free, 0)
	}
	return least
}

// stragglers is measurement 2i: a run whose last requests hang, and the same without hangs.
func (b *bench) stragglers(ctx context.Context) ([]figure, error) {
	const (
		latency, limit = 250 * time.Millisecond, 2 * time.Second
		hanging, slots = 0.01, 50
	)
	trials, rounds := b.size(1000, 500), b.size(5, 1)
	var hung, calm []float64 // ÷ the least time
	var slower []float64     // ÷ the time without hangs
	undone := 0
	for seed := range uint64(rounds) {
		var walls []float64
		for _, v := range []struct {
			hang   float64
			ratios *[]float64
		}{{hanging, &hung}, {0, &calm}} {
			least := minTime(trials, slots, latency, limit, newHangs(v.hang, seed))
			m, err := b.runScenario(ctx, workload{
				plain: latency, hang: v.hang, seed: seed,
				model: sim.Claimer, trials: trials, limits: concurrency(slots),
				text: fmt.Sprintf("limits: {request: %v}", limit),
			})
			if err != nil {
				return nil, err
			}
			*v.ratios = append(*v.ratios, quotient(m.wall.Seconds(), least.Seconds()))
			walls = append(walls, m.wall.Seconds())
			undone += m.undone()
		}
		slower = append(slower, quotient(walls[0], walls[1]))
	}
	return []figure{
		newRow("wall time ÷ least", times, median(hung...)).because(
			"whole processes; median of %d rounds, at most %.2f; on the same "+
				"machine, %.2f without hangs", rounds, slices.Max(hung), median(calm...)),
		newRow("wall time ÷ that without hangs", times, median(slower...)).because(
			"at most %.2f", slices.Max(slower)),
		countRow("trials not done", undone).zero(),
	}, nil
}
