package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/engine"
	"github.com/assay-eval/assay/internal/run/runlog"
)

// What is kept of older logs.
const (
	keepLogs     = 30 * 24 * time.Hour
	keepLogBytes = 1 << 30
)

var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// noLogs as --log-dir writes none.
const noLogs = "none"

// allTrials as --debug-trials captures each.
const allTrials = "all"

// checkDebugTrials refuses what no trial's ID begins with.
func checkDebugTrials(prefixes []string) error {
	for _, p := range prefixes {
		if p != allTrials && (p == "" || strings.Trim(p, "0123456789abcdef") != "") {
			return usageError("--debug-trials %q: IDs of trials are hex digits\nhint: give the beginning of an ID that `assay status` or an export names, or all", p)
		}
	}
	return nil
}

// openLog begins the log of the run. A run does without one rather than not at all.
func (s *session) openLog() {
	dir := s.flags.logDir
	switch dir {
	case noLogs:
		return
	case "":
		dir = s.flags.store + ".logs"
	}
	opts := runlog.Options{
		Experiment: s.Experiment.Name, Level: logLevels[s.flags.logLevel], Keep: runlog.Keep{Age: keepLogs, Bytes: keepLogBytes},
		Secrets: s.pools.Secrets, Failed: func(err error) { s.meter.Note("the log of this run has ended: " + err.Error()) },
	}
	if prefixes := s.flags.debugTrials; len(prefixes) > 0 {
		opts.Trials = func(id assay.TrialID) bool {
			return slices.ContainsFunc(prefixes, func(p string) bool { return p == allTrials || strings.HasPrefix(string(id), p) })
		}
	}
	log, err := runlog.Open(dir, s.id, s.started, opts)
	if err != nil {
		if s.displayMode() == "none" { // which shows no notes
			fmt.Fprintln(s.process.err, "assay: this run has no log: "+err.Error())
		}
		s.meter.Note("this run has no log: " + err.Error())
		return
	}
	s.runlog = log
	s.log = log.Logger()
	s.log.Info("run begins", "run", s.id, "experiment", s.Experiment.Name, "store", filepath.Base(s.flags.store), "program", version(),
		"host", hostName(), "planned", s.Planned(), "models", s.Experiment.Models, "world", s.Experiment.World, "seed", s.Experiment.Seed)
	for _, model := range s.Experiment.Models {
		for _, c := range s.pools.Configs[model] {
			s.log.Info("lane", "model", model, "lane", c.Name, "orders", c.Orders, "limits", fmt.Sprintf("%+v", c.Limits))
		}
	}
}

// closeLog says how the run ended and closes its log.
func (s *session) closeLog(done map[string]any, err error) {
	var attrs []any
	for _, name := range []string{"planned", "done", "pending", "parked", "faults", "requests", "tokens", "cost_usd", "wall_s"} {
		attrs = append(attrs, name, done[name])
	}
	if err != nil {
		s.log.Error("run ends with an error", append(attrs, "error", err.Error())...)
	} else {
		s.log.Info("run ends", attrs...)
	}
	if err := s.runlog.Close(); err != nil {
		s.meter.Note("the log of this run is not whole: " + err.Error())
	}
}

// note tells the user, and the log.
func (s *session) note(text string) {
	s.meter.Note(text)
	s.log.Warn(text)
}

// logExchange logs a request.
func (s *session) logExchange(x lane.Exchange) {
	if x.Fault == nil {
		s.log.Debug("request", "model", x.Model, "lane", x.Lane, "input_tokens", x.Usage.InputTokens, "output_tokens", x.Usage.OutputTokens)
		return
	}
	level := slog.LevelWarn
	if x.Fault.Kind == assay.Interrupted {
		level = slog.LevelDebug
	}
	s.log.Log(context.Background(), level, "request failed", "model", x.Model, "lane", x.Lane, "fault", x.Fault.Kind, "detail", x.Fault.Error())
}

// logEvent logs what became of a trial. What nobody will try again in this run, and
// what was our own mistake, is an error.
func (s *session) logEvent(e engine.Event) {
	if e.Kind == engine.ModelClosed {
		s.log.Error("model closed", "model", e.Model, "reason", e.Err.Error())
		return
	}
	a := e.Attempt
	if a == nil {
		return
	}
	attrs := []any{"trial", a.ID, "attempt", a.Number, "model", a.Model, "variant", a.Variant, "task", a.Task, "lane", a.Lane}
	switch e.Kind {
	case engine.Settled:
		s.log.Debug("trial settled", append(attrs, "level", a.Level, "ended", a.Ended, "error_category", a.ErrorCategory, "turns", a.Outcome.Turns,
			"tool_calls", a.ToolCalls, "requests", a.Requests, "working_ms", a.WorkingMS, "queued_ms", a.QueuedMS)...)
	case engine.Faulted, engine.Parked, engine.Dropped:
		level, what := slog.LevelWarn, "attempt faulted"
		if e.Kind == engine.Parked {
			level, what = slog.LevelError, "trial parked"
		}
		if a.FaultKind == assay.Harness {
			level = slog.LevelError
		}
		s.log.Log(context.Background(), level, what, append(attrs, "fault", a.FaultKind, "detail", a.FaultDetail)...)
	}
}

// save stores an attempt, and then tells the log.
func (s *session) save(ctx context.Context, a *assay.Attempt, t *assay.Transcript) error {
	err := s.db.Save(ctx, a, t)
	switch {
	case err == nil:
		s.runlog.Episode(a.ID, a.Number, t, a)
	case !errors.Is(err, context.Canceled):
		s.log.Error("attempt not saved", "trial", a.ID, "error", err.Error())
	}
	return err
}
