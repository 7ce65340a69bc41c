package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/terminal"
	"github.com/assay-eval/assay/internal/store"
)

// liveState asks a run that is working for its state. It returns nil if the run does not answer,
// for example because it works on another machine.
func liveState(ctx context.Context, path string, run assay.RunID) *terminal.Progress {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := session.Send(ctx, path, session.Order{Do: "status"})
	if err != nil || r.Run == nil || r.Run.Run != run {
		return nil
	}
	return r.Run
}

// writeLive prints the figures of a run that is working, as its own view shows them.
func writeLive(p *process, s *terminal.Progress) {
	if s == nil {
		return
	}
	var b strings.Builder
	view := terminal.Plain{W: &b}
	progress := *s
	progress.Notes = nil
	view.Show(progress)
	for line := range strings.Lines(b.String()) {
		p.item("working: ", strings.TrimSpace(line))
	}
}

// watchRun shows the run that works on a store until it ends. On a terminal it redraws the run's
// view, and elsewhere it prints a line when a count has changed.
func watchRun(ctx context.Context, p *process, db *store.DB, path string) error {
	var view terminal.View = &terminal.Plain{W: p.out}
	redraws := p.terminal.Width > 0
	if redraws {
		view = terminal.New(p.out)
	}
	var last terminal.Progress
	var shown progressKey
	defer func() {
		if redraws {
			view.Close(last)
		}
	}()
	for {
		r, err := session.Send(ctx, path, session.Order{Do: "status"})
		switch {
		case errors.Is(err, session.ErrNoRun):
			// It is about to begin or to end if it holds the store's lock.
			if worker, err := db.Worker(); err != nil || worker == "" {
				return err
			}
		case err != nil:
			return err
		default:
			last = *r.Run
			if now := keyOf(&last); redraws || now != shown {
				shown = now
				view.Show(last)
			}
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A progressKey has the values whose changes make watch print a line of progress.
type progressKey struct {
	done, parked, skipped, alarms int
	stopping, paused              bool
}

func keyOf(s *terminal.Progress) progressKey {
	return progressKey{
		s.Done, s.Parked, s.Skipped, len(s.Attention), s.Stopping, !s.PausedSince.IsZero(),
	}
}

// endOfWatch prints the status after a run and returns its exit code.
func endOfWatch(ctx context.Context, p *process, db *store.DB, path string, chosen []store.Experiment) error {
	code := 0
	for _, e := range chosen {
		s, err := session.StatusOf(ctx, db, e)
		if err != nil {
			return err
		}
		writeStatus(p, assay.StorePath(path), s)
		if s.Pending+s.Parked > 0 {
			code = exitIncomplete
		}
	}
	if code == 0 {
		return nil
	}
	return &codedError{code: code}
}
