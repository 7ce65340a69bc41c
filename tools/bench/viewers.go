package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-eval/assay/internal/model/sim"
)

// viewers is measurement 2g: the same run alone and with many viewers of its pages, in turn.
func (b *bench) viewers(ctx context.Context) ([]row, error) {
	const viewers, pairs = 100, 5
	s := scenario{
		server: []string{"--latency", "1s", "--latency-sigma", "0"},
		model:  sim.Claimer, trials: b.size(5000, 500), limits: concurrency(b.size(200, 100)),
	}
	var ratios []float64
	events, undone := int64(0), 0
	for i := range b.size(pairs, 1) {
		s.store = b.path(fmt.Sprintf("alone-%d.db", i))
		alone, err := b.runScenario(ctx, s)
		if err != nil {
			return nil, err
		}
		s.store = b.path(fmt.Sprintf("watched-%d.db", i))
		ended := b.watch(ctx, s.store, viewers)
		watched, err := b.runScenario(ctx, s)
		n, failed := ended()
		if err != nil || failed != nil {
			return nil, fmt.Errorf("viewers: %w", firstError(err, failed))
		}
		events += n
		undone += alone.undone() + watched.undone()
		ratios = append(ratios, quotient(watched.wall.Seconds(), alone.wall.Seconds()))
	}
	slices.Sort(ratios)
	return []row{
		newRow("wall time with viewers ÷ alone", share, ratios[len(ratios)/2]).below(1.01).
			because("%d viewers, %d updates; median of %d pairs from %.3f to %.3f", viewers, events,
				len(ratios), ratios[0], ratios[len(ratios)-1]),
		countRow("trials not done", undone).zero(),
	}, nil
}

func firstError(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// watch starts `assay view` once the store has an experiment, and opens its live pages for a number
// of viewers. The returned function ends all of it, and returns how many updates the viewers got.
func (b *bench) watch(
	ctx context.Context, path string, viewers int,
) (end func() (updates int64, err error)) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	var updates atomic.Int64
	var failed atomic.Pointer[error]
	all.Go(func() {
		address, view := b.openView(ctx, path)
		if view == nil {
			return // the run ended before
		}
		defer func() {
			view.kill()
			_, _ = view.wait() // the error only reports the kill
		}()
		var watching sync.WaitGroup
		for i := range viewers {
			page := []string{"now", "lanes", "matrix", "flights", "faults"}[i%5]
			watching.Go(func() {
				if err := follow(ctx, address, page, &updates); err != nil && ctx.Err() == nil {
					failed.Store(&err)
				}
			})
		}
		watching.Wait()
	})
	return func() (int64, error) {
		cancel()
		all.Wait()
		if err := failed.Load(); err != nil {
			return 0, *err
		}
		return updates.Load(), nil
	}
}

// openView starts `assay view` again until it finds the experiment. The process is nil if ctx ends
// before.
func (b *bench) openView(ctx context.Context, path string) (address string, view *process) {
	for sleep(ctx, 200*time.Millisecond) == nil {
		found := make(chan string, 1)
		p, err := start(b.command(ctx, b.assay, "view", "--store", path), func(line []byte) {
			select {
			case found <- strings.TrimSpace(string(line)):
			default:
			}
		})
		if err != nil {
			continue
		}
		select {
		case address := <-found:
			return address, p
		case <-p.silent:
			_, _ = p.wait() // there is no experiment yet
		case <-ctx.Done():
		}
	}
	return "", nil
}

// follow counts the updates of a live page until ctx ends.
func follow(ctx context.Context, address, page string, updates *atomic.Int64) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	client := &http.Client{Jar: jar, Transport: new(http.Transport)}
	u.Path = "/events"
	v := u.Query()
	v.Set("page", page)
	u.RawQuery = v.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", page, resp.Status)
	}
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err
		}
		if line == "\n" {
			updates.Add(1)
		}
	}
}
