package session

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/engine"
	"github.com/assay-eval/assay/internal/run/runlog"
)

// LogOptions configure the log of a run.
type LogOptions struct {
	// Dir is the directory of all logs. If it is empty, there is no log.
	Dir   string
	Level slog.Level
	// Episodes selects the trials whose episodes are written next to the log. It may be nil.
	Episodes func(assay.TrialID) bool
}

// keepLogs is the age at which older logs are removed.
const keepLogs = 30 * 24 * time.Hour

// openLog opens the log of the run. A run continues without a log if that fails.
func (s *Session) openLog() {
	o := s.options.Log
	if o.Dir == "" {
		return
	}
	log, err := runlog.Open(o.Dir, s.id, s.started, runlog.Options{
		Experiment: s.Experiment.Name, Level: o.Level, Trials: o.Episodes,
		Age: keepLogs, Secrets: s.pools.Secrets,
	})
	if err != nil {
		reason := "this run has no log: " + err.Error()
		s.options.Display.NoLog(reason)
		s.meter.note(reason)
		return
	}

	s.runlog = log
	s.log = log.Logger()
	s.log.Info("run begins", "run", s.id, "experiment", s.Experiment.Name,
		"store", filepath.Base(s.options.Store),
		"program", s.options.Program, "host", s.options.Host,
		"planned", s.Planned(), "models", s.Experiment.Models,
		"world", s.Experiment.World, "seed", s.Experiment.Seed)
	for _, model := range s.Experiment.Asked() {
		for _, c := range s.pools.Configs[model] {
			s.log.Info("lane", "model", model, "lane", c.Name, "orders", c.Orders,
				"limits", fmt.Sprintf("%+v", c.Limits))
		}
	}
}

// closeLog logs the summary and closes the log.
func (s *Session) closeLog(sum *Summary) {
	attrs := []any{
		"planned", sum.Planned, "done", sum.Done, "pending", sum.Pending, "parked", sum.Parked,
		"faults", sum.Faulted, "requests", sum.Requests, "tokens", sum.Tokens,
		"cost_usd", sum.Cost, "wall_s", sum.Wall,
	}
	if len(sum.Unpriced) > 0 {
		attrs = append(attrs, "unpriced", sum.Unpriced)
	}
	if sum.Stillness != "" {
		attrs = append(attrs, "stillness", sum.Stillness)
	}
	if sum.Error != "" {
		s.log.Error("run ends with an error", append(attrs, "error", sum.Error)...)
	} else {
		s.log.Info("run ends", attrs...)
	}
	if err := s.runlog.Close(); err != nil {
		s.meter.note("the log of this run is incomplete: " + err.Error())
	}
}

// logExchange logs a request.
func (s *Session) logExchange(x lane.Exchange) {
	if x.Fault == nil {
		if !s.log.Enabled(context.Background(), slog.LevelDebug) {
			return
		}
		s.log.Debug("request", "model", x.Model, "lane", x.Lane,
			"input_tokens", x.InputTokens, "output_tokens", x.OutputTokens)
		return
	}
	if x.Closed {
		s.log.Error("lane closed", "model", x.Model, "lane", x.Lane, "detail", x.Fault.Error())
		s.note("lane " + x.Lane + " is closed for this run: " + strings.ReplaceAll(x.Fault.Error(), "\n", "; "))
	}
	level := slog.LevelWarn
	if x.Fault.Kind == assay.Interrupted {
		level = slog.LevelDebug
	}
	s.log.Log(context.Background(), level, "request failed", "model", x.Model, "lane", x.Lane,
		"fault", x.Fault.Kind, "detail", x.Fault.Error())
}

// logEvent logs the end of an attempt. Its level is error if the run will not try the trial
// again or if the fault is our own.
func (s *Session) logEvent(e engine.Event) {
	if e.Kind == engine.ModelClosed {
		s.log.Error("model closed", "model", e.Model, "reason", e.Err.Error())
		return
	}
	a := e.Attempt
	if a == nil {
		return
	}
	if e.Kind == engine.Settled && !s.log.Enabled(context.Background(), slog.LevelDebug) {
		return
	}
	attrs := []any{
		"trial", a.ID, "attempt", a.Number, "model", a.Model, "variant", a.Variant,
		"task", a.Task, "lane", a.Lane,
	}
	switch e.Kind {
	case engine.Settled:
		s.log.Debug("trial settled", append(attrs, "level", a.Level, "ended", a.Ended,
			"error_category", a.ErrorCategory, "turns", a.Outcome.Turns, "tool_calls", a.ToolCalls,
			"requests", a.Requests, "working_ms", a.WorkingMS, "queued_ms", a.QueuedMS)...)
	case engine.Faulted, engine.Parked, engine.Dropped:
		level, message := slog.LevelWarn, "attempt faulted"
		if e.Kind == engine.Parked {
			level, message = slog.LevelError, "trial parked"
		}
		if a.FaultKind == assay.Harness {
			level = slog.LevelError
		}
		attrs = append(attrs, "fault", a.FaultKind, "detail", a.FaultDetail)
		s.log.Log(context.Background(), level, message, attrs...)
	}
}
