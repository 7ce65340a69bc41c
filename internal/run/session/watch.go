package session

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// stallAfter is the time without a finished request after which a note explains the stall. The wait
// doubles after each note.
const stallAfter = time.Minute

// watch explains in notes that requests or the store are stalled, until ctx ends.
func (s *Session) watch(ctx context.Context) {
	next, nextLock := stallAfter, lockedAfter
	every(ctx, time.Second, func() {
		if since := s.locked(); since.IsZero() {
			nextLock = lockedAfter
		} else if time.Since(since) >= nextLock {
			nextLock *= 2
			s.note(s.lockText(time.Now()))
		}
		switch idle := s.meter.idle(time.Now()); {
		case idle < stallAfter:
			next = stallAfter
		case idle >= next:
			next *= 2
			s.note(s.stall(time.Now(), idle))
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

// stall lists requests in flight and everything that waits.
func (s *Session) stall(now time.Time, idle time.Duration) string {
	since := func(t time.Time) time.Duration { return now.Sub(t).Round(time.Second) }
	var parts []string
	for _, model := range s.Experiment.Asked() {
		lanes, waiting := s.pools.ByModel[model].Status()
		for _, l := range lanes {
			if l.InFlight > 0 {
				parts = append(parts, fmt.Sprintf("%s has %d in flight, the oldest for %s",
					l.Name, l.InFlight, since(l.Oldest)))
			}
		}
		switch why := waitText(lanes); {
		case waiting.Requests > 0:
			parts = append(parts, fmt.Sprintf("%s has %d waiting for the %s, the first for %s",
				model, waiting.Requests, cmp.Or(why, "next free lane"), since(waiting.Since)))
		case why != "":
			parts = append(parts, fmt.Sprintf("trials of %s wait for the %s", model, why))
		}
		if agents := terminal.AgentsAre(s.agentStates(model)); agents != "" {
			parts = append(parts, model+": "+agents)
		}
	}
	if len(parts) == 0 {
		parts = []string{"results are being saved or tasks read, because no request is " +
			"in flight or waiting"}
	}
	return fmt.Sprintf("no request has finished for %s: %s",
		idle.Round(time.Second), strings.Join(parts, "; "))
}

// waitText finds the lane that can start a request next. It names the limit that this lane waits
// for, and when the request is expected to start.
func waitText(lanes []lane.Status) string {
	var next lane.Status
	for _, l := range lanes {
		sooner := !l.Until.IsZero() && (next.Until.IsZero() || l.Until.Before(next.Until))
		if l.Closed == nil && (next.Name == "" || sooner) {
			next = l
		}
	}
	if next.Waits == "" {
		return ""
	}
	text := job.WaitName(next.Waits, next.Name)
	if !next.Until.IsZero() {
		text += fmt.Sprintf(", next in %.0fs", max(0, time.Until(next.Until).Seconds()))
	}
	if next.Words != "" {
		text += fmt.Sprintf(" (%.200q)", next.Words)
	}
	return text
}
