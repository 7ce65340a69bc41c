package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/lane"
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

// watch looks after a run until ctx ends: it says what a run that stands still
// waits for, and stores what lanes have learned.
func (s *session) watch(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	said := stallAfter
	remembered := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		last := s.started
		if at := s.latest.Load(); at > 0 {
			last = time.Unix(0, at)
		}
		switch still := time.Since(last); {
		case still < stallAfter:
			said = stallAfter
		case still >= said:
			said *= 2
			s.meter.Note(s.stall(time.Now(), still))
		}
		if time.Since(remembered) >= rememberEvery {
			remembered = time.Now()
			if err := s.remember(ctx); err != nil {
				s.meter.Note("limits that were learned could not be stored: " + err.Error())
			}
		}
	}
}

// stall names every wait of a run in which nothing has finished for a while.
func (s *session) stall(now time.Time, still time.Duration) string {
	var parts []string
	for _, model := range s.experiment.Models {
		lanes, waiting := s.pools.byModel[model].Status()
		for _, l := range lanes {
			if l.InFlight > 0 {
				parts = append(parts, fmt.Sprintf("%d requests in flight on %s, the oldest for %s",
					l.InFlight, l.Name, now.Sub(l.Oldest).Round(time.Second)))
			}
		}
		switch why := waitText(lanes); {
		case waiting.Requests > 0:
			parts = append(parts, fmt.Sprintf("%d turns of %s wait for %s, the first for %s",
				waiting.Requests, model, orNothing(why), now.Sub(waiting.Since).Round(time.Second)))
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

// learnedLimits are those that lanes found out, in the order of the models.
func (s *session) learnedLimits() []store.LaneLimit {
	var all []store.LaneLimit
	now := time.Now().UTC()
	for _, model := range s.experiment.Models {
		lanes, _ := s.pools.byModel[model].Status()
		for _, l := range lanes {
			for _, b := range lane.Buckets {
				if n := *l.Learned.Of(b); n > 0 {
					all = append(all, store.LaneLimit{Lane: l.Name, Bucket: b, Value: n, At: now})
				}
			}
		}
	}
	return all
}

// remember stores the learned limits that the store does not know yet.
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
	for _, l := range s.learnedLimits() {
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
