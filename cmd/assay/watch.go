package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/store"
)

// Intervals of the watch.
const (
	// stallAfter is how long nothing may have finished before the user is
	// told what everything waits for, and again after twice as long.
	stallAfter = time.Minute
	// rememberEvery is how often learned limits are stored.
	rememberEvery = 30 * time.Second
)

// watch says what a run waits for in which no request ends, until ctx ends.
func (s *session) watch(ctx context.Context) {
	said := stallAfter
	every(ctx, time.Second, func() {
		last := s.started
		if at := s.latest.Load(); at > 0 {
			last = time.Unix(0, at)
		}
		switch still := time.Since(last); {
		case still < stallAfter:
			said = stallAfter
		case still >= said:
			said *= 2
			s.note(s.stall(time.Now(), still))
		}
	})
}

// keepLearned stores what lanes learn now and then, until ctx ends: a run that
// is killed has not learned in vain.
func (s *session) keepLearned(ctx context.Context) {
	every(ctx, rememberEvery, func() {
		if err := s.remember(ctx); err != nil && ctx.Err() == nil {
			s.note("limits that were learned could not be stored: " + err.Error())
		}
	})
}

func every(ctx context.Context, d time.Duration, do func()) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// stall names every wait of a run in which nothing has finished for a while.
func (s *session) stall(now time.Time, still time.Duration) string {
	var parts []string
	for _, model := range s.Experiment.Models {
		lanes, waiting := s.pools.ByModel[model].Status()
		for _, l := range lanes {
			if l.InFlight > 0 {
				parts = append(parts, fmt.Sprintf("%d in flight on %s, the oldest request for %s",
					l.InFlight, l.Name, now.Sub(l.Oldest).Round(time.Second)))
			}
		}
		switch why := waitText(lanes); {
		case waiting.Requests > 0:
			parts = append(parts, fmt.Sprintf("waiting of %s: %d for %s, the first for %s",
				model, waiting.Requests, orNothing(why), now.Sub(waiting.Since).Round(time.Second)))
		case why != "":
			parts = append(parts, fmt.Sprintf("trials of %s wait for %s", model, why))
		}
	}
	if len(parts) == 0 {
		parts = []string{"no request is in flight and none waits: results are being saved, or tasks read"}
	}
	return fmt.Sprintf("no request has ended for %s: %s", still.Round(time.Second), strings.Join(parts, "; "))
}

func orNothing(why string) string {
	if why == "" {
		return "a lane"
	}
	return why
}

// learnedLimits are those that lanes found out, in the order of the models. With
// all, buckets of which nothing is learned are there too, with 0.
func (s *session) learnedLimits(all bool) []store.LaneLimit {
	var limits []store.LaneLimit
	now := time.Now().UTC()
	for _, model := range s.Experiment.Models {
		lanes, _ := s.pools.ByModel[model].Status()
		for _, l := range lanes {
			for _, b := range lane.Buckets {
				if n := *l.Learned.Of(b); n > 0 || all {
					limits = append(limits, store.LaneLimit{Lane: l.Name, Bucket: b, Value: n, At: now})
				}
			}
		}
	}
	return limits
}

// remember stores what has changed of the learned limits, and that one no
// longer holds.
func (s *session) remember(ctx context.Context) error {
	type key struct {
		lane   string
		bucket assay.Bucket
	}
	stored, err := s.db.Learned(ctx)
	if err != nil {
		return err
	}
	known := make(map[key]int)
	for _, l := range stored {
		known[key{l.Lane, l.Bucket}] = l.Value
	}
	var news []store.LaneLimit
	for _, l := range s.learnedLimits(true) {
		if known[key{l.Lane, l.Bucket}] != l.Value {
			news = append(news, l)
		}
	}
	if len(news) == 0 {
		return nil
	}
	return s.db.Learn(ctx, s.id, news)
}

// limitText says a limit in words.
func limitText(b assay.Bucket, n int) string {
	unit := map[assay.Bucket]string{
		assay.Concurrency: "requests at once", assay.Requests: "requests a minute", assay.RequestsPerDay: "requests a day",
		assay.Tokens: "tokens a minute", assay.InputTokens: "input tokens a minute", assay.OutputTokens: "output tokens a minute",
	}[b]
	return fmt.Sprintf("%d %s", n, unit)
}

// waits says what requests of a model wait for, "" for nothing.
func waitsOf(p *job.Pools, model string) string {
	lanes, waiting := p.ByModel[model].Status()
	if waiting.Requests == 0 {
		return ""
	}
	return waitText(lanes)
}

// waitText says which lane can start a request next, and what that waits for.
func waitText(lanes []lane.Status) string {
	var next lane.Status
	for _, l := range lanes {
		switch {
		case l.Closed != nil:
		case next.Name == "", !l.Until.IsZero() && (next.Until.IsZero() || l.Until.Before(next.Until)):
			next = l
		}
	}
	if next.Waits == "" {
		return ""
	}
	s := fmt.Sprintf("%s of %s", next.Waits, next.Name)
	if !next.Until.IsZero() {
		s += fmt.Sprintf(", next in %.0fs", max(0, time.Until(next.Until).Seconds()))
	}
	return s
}
