package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/sim"
)

// sleepers is measurement 2k: agents that sleep, on three workers on this machine, beside a loop
// that starts the same program.
func (b *bench) sleepers(ctx context.Context) ([]row, error) {
	const workers = 3
	slots, trials := b.size(100, 10), b.size(5000, 100)
	nap := time.Duration(b.size(2000, 200)) * time.Millisecond
	naps := slices.Repeat([]stay{{slot: nap}}, trials)
	least := idealTime(naps, workers*slots).Seconds()
	full := (time.Duration(trials) * nap / time.Duration(workers*slots)).Seconds()
	rounds, undone := b.size(5, 1), 0
	var shares, shareOfFull, bare []float64
	for range rounds {
		took, err := startAll(ctx, trials, workers*slots, nap)
		if err != nil {
			return nil, err
		}
		bare = append(bare, least/took.Seconds())
		var settled int
		if took, settled, err = b.runSleepers(ctx, trials, workers, slots, nap); err != nil {
			return nil, err
		}
		undone += trials - settled
		shares = append(shares, least/took.Seconds())
		shareOfFull = append(shareOfFull, full/took.Seconds())
	}
	what := fmt.Sprintf("%d agents that sleep %v, %d workers with %d slots: ",
		trials, nap, workers, slots)
	return []row{
		newRow(what+"least time ÷ time", share, median(shares...)).atLeast(0.95).
			beside(median(bare...)).because("from the first start to the last end; median of %d "+
			"rounds; the least time is %.1f s, because the last round of agents leaves slots empty; "+
			"%.3f of %.1f s, in which all would be full", rounds, least, median(shareOfFull...), full),
		countRow(what+"trials not done", undone).zero(),
	}, nil
}

// nappingProgram returns the command that sleeps.
func nappingProgram(nap time.Duration) []string {
	return []string{"sleep", fmt.Sprint(nap.Seconds())}
}

// startAll starts n programs that sleep, some at a time, and returns how long that takes.
func startAll(ctx context.Context, n, slots int, nap time.Duration) (time.Duration, error) {
	began, left := time.Now(), make(chan struct{}, n)
	for range n {
		left <- struct{}{}
	}
	close(left)
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range slots {
		all.Go(func() {
			for range left {
				command := nappingProgram(nap)
				if err := exec.CommandContext(ctx, command[0], command[1:]...).Run(); err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(began), failed
}

// runSleepers runs the trials on workers. It returns the time from the first start to the last end,
// and how many trials have an outcome.
func (r *rig) runSleepers(
	ctx context.Context, trials, workers, slots int, nap time.Duration,
) (took time.Duration, settled int, err error) {
	command, err := json.Marshal(nappingProgram(nap))
	if err != nil {
		return 0, 0, err
	}
	width := concurrency(workers * slots)
	experiment, err := r.writeFiles(scenario{
		model: sim.Claimer, trials: trials, limits: width,
		agent: fmt.Sprintf("command: %s, %s", command, width),
	}, "http://127.0.0.1:9") // the agents ask nothing
	if err != nil {
		return 0, 0, err
	}
	address, err := freeAddress()
	if err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // kills those that run if another one cannot start
	store := r.path("results.db")
	all := [][]string{
		{"run", experiment, "--store", store, "--serve", address, "--display", "none"},
	}
	for range workers {
		all = append(all, []string{
			"worker", "--connect", "nats://" + address, "--once", "--slots", fmt.Sprint(slots),
		})
	}
	var processes []*process
	for _, args := range all {
		cmd := r.command(ctx, r.assay, args...)
		cmd.Env = append(cmd.Env, "ASSAY_WORKER_TOKEN=a-token-of-the-bench")
		p, err := start(cmd, func([]byte) {})
		if err != nil {
			return 0, 0, err
		}
		processes = append(processes, p)
	}
	for _, p := range processes {
		if _, err := p.wait(); err != nil {
			return 0, 0, err
		}
	}
	return r.spanOf(ctx, store)
}

// freeAddress returns an address of this machine on which nobody listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// spanOf returns the time from the first start to the last end of a store's attempts, and how many
// of them have an outcome.
func (r *rig) spanOf(
	ctx context.Context, store string,
) (span time.Duration, settled int, err error) {
	out, err := r.command(ctx, r.assay, "export", "--store", store).Output()
	if err != nil {
		return 0, 0, err
	}
	var first, last time.Time
	for line := range bytes.Lines(out) {
		var a assay.Attempt
		if err := json.Unmarshal(line, &a); err != nil {
			return 0, 0, err
		}
		if a.Settles() {
			settled++
		}
		if first.IsZero() || a.StartedAt.Before(first) {
			first = a.StartedAt
		}
		if a.FinishedAt.After(last) {
			last = a.FinishedAt
		}
	}
	return last.Sub(first), settled, nil
}
