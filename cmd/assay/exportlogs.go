package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/evallog"
	"github.com/assay-eval/assay/internal/result/export"
)

// inspect writes a log for each experiment and model into a directory.
func (e *exporter) inspect(ctx context.Context) (err error) {
	if err := e.prepare(e.flags.output); err != nil {
		return err
	}
	m := e.manifest()
	for _, err := range m.Counts.Count(e.attempts(ctx)) {
		if err != nil {
			return err
		}
	}
	l := &logWriter{exporter: e, delivery: &delivery{process: e.process}, manifest: &m, tasks: newTaskBook(e.db)}
	defer func() { err = errors.Join(err, l.tasks.close(), l.delivery.drop()) }()
	if err := l.all(ctx); err != nil {
		return err
	}
	beside, err := l.delivery.open(filepath.Join(e.flags.output, logsManifest))
	if err != nil {
		return err
	}
	m.Missing = e.missing()
	if err := m.Write(beside); err != nil {
		return err
	}
	if err := l.delivery.deliver(); err != nil {
		return err
	}
	for _, f := range m.Files {
		fmt.Fprintf(e.process.err, "%s: %s\n", filepath.Join(e.flags.output, f.Name), counted(f.Rows, "trial"))
	}
	if len(m.Files) > 0 {
		fmt.Fprintf(e.process.err, "`inspect view --log-dir %s` shows them\n", e.flags.output)
	}
	return e.tell(ctx, counted(len(m.Files), "log"), m.Counts)
}

// prepare makes a directory for logs. What others keep there stays as it is.
func (e *exporter) prepare(dir string) error {
	if err := spareStore(dir, filepath.Clean(dir)); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	path := filepath.Join(dir, logsManifest)
	if _, err := readManifest(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return lines(fmt.Errorf("%s is no manifest of an export that this program could replace: %w\nhint: name another directory", path, err))
	}
	if err := sweep(dir, ".eval"); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// logsManifest is the manifest's name in a directory of logs.
const logsManifest = "manifest.json"

// A logWriter writes Inspect's logs.
type logWriter struct {
	*exporter
	delivery *delivery
	manifest *export.Manifest
	tasks    *taskBook
}

// all writes the logs of --experiment, or of each experiment.
func (l *logWriter) all(ctx context.Context) error {
	if l.scope != nil {
		return l.logs(ctx, l.scope)
	}
	experiments, err := l.db.Experiments(ctx)
	if err != nil {
		return err
	}
	for _, x := range experiments {
		s, err := l.scopeOf(ctx, x)
		if err != nil {
			return err
		}
		if err := l.logs(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// logs writes the logs of an experiment, one for each model that has attempts.
func (l *logWriter) logs(ctx context.Context, s *scope) error {
	extra := make(map[string]map[assay.TrialID]bool) // trials beyond the plan, by model
	for a, err := range filtered(only(l.db.Attempts(ctx, l.filter), s.has), l.where) {
		if err != nil {
			return err
		}
		if extra[a.Model] == nil {
			extra[a.Model] = make(map[assay.TrialID]bool)
		}
		if !s.planned[a.ID] {
			extra[a.Model][a.ID] = true
		}
	}
	for _, model := range slices.Sorted(maps.Keys(extra)) {
		meta := evallog.Meta{Experiment: s.experiment, Model: model, Snapshot: l.snapshot, Program: version(), Created: l.manifest.CreatedAt}
		if f := l.manifest.Filter; f.Experiment != "" || l.narrowed() {
			meta.Filter = f
		}
		if s.planned != nil && !l.narrowed() {
			meta.Planned = s.models[model] + len(extra[model])
		}
		if err := l.log(ctx, meta, s); err != nil {
			return err
		}
	}
	return nil
}

func (l *logWriter) log(ctx context.Context, meta evallog.Meta, s *scope) error {
	name := filepath.Join(l.flags.output, evallog.Name(meta))
	f, err := l.delivery.open(name)
	if err != nil {
		return err
	}
	digest := export.NewDigest(f)
	n, err := evallog.Write(digest, meta, l.samples(ctx, meta.Model, s))
	if err != nil {
		return err
	}
	l.manifest.Files = append(l.manifest.Files, digest.File(filepath.Join(l.flags.output, logsManifest), name, l.format, export.TrialTable, n))
	return f.finish()
}

func (l *logWriter) samples(ctx context.Context, model string, in *scope) iter.Seq2[evallog.Sample, error] {
	filter := l.filter
	filter.Model = model
	return func(yield func(evallog.Sample, error) bool) {
		for s, err := range l.transcripts(ctx, filter, in) {
			sample := evallog.Sample{Attempt: s.Attempt, Transcript: s.Transcript}
			if err == nil {
				if task, _, failed := l.tasks.task(ctx, &s.Attempt); failed == nil {
					sample.Task = task
				}
			}
			if !yield(sample, err) {
				return
			}
		}
	}
}
