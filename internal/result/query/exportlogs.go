package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/atomicfile"
	"github.com/assay-eval/assay/internal/result/evallog"
	"github.com/assay-eval/assay/internal/result/export"
)

// logs writes a log of Inspect for each experiment and model into the output directory.
func (e *Export) logs(ctx context.Context, m *export.Manifest) (err error) {
	if err := e.prepare(); err != nil {
		return err
	}
	for _, err := range m.Counts.Count(e.Selection.Attempts(ctx)) {
		if err != nil {
			return err
		}
	}

	l := &logWriter{
		Export: e, files: atomicfile.New(io.Discard), manifest: m,
		libraries: NewLibraries(e.Selection.db),
	}
	defer func() { err = errors.Join(err, l.files.Close(), l.libraries.Close()) }()
	for scope, err := range e.Selection.scopes(ctx) {
		if err != nil {
			return err
		}
		if err := l.scope(ctx, scope); err != nil {
			return err
		}
	}

	part, err := l.files.Open(l.manifestPath())
	if err != nil {
		return err
	}
	m.Missing = e.Selection.Missing()
	if err := m.Write(part); err != nil {
		return err
	}
	return l.files.Commit()
}

// prepare creates the output directory. It leaves the files of others in it alone.
func (e *Export) prepare() error {
	dir := e.Output
	if err := atomicfile.RefuseStore(dir, filepath.Clean(dir)); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	path := e.manifestPath()
	if _, err := readManifest(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is not a manifest of an export, so it is not replaced: %w\n"+
			"hint: name another directory", path, err)
	}
	return nil
}

func (e *Export) manifestPath() string { return filepath.Join(e.Output, logsManifest) }

// A logWriter writes logs of Inspect.
type logWriter struct {
	*Export
	files     *atomicfile.Set
	manifest  *export.Manifest
	libraries *Libraries
}

// scope writes the logs of an experiment, one for each model that has attempts.
func (l *logWriter) scope(ctx context.Context, s *scope) error {
	unplanned := make(map[string]map[assay.TrialID]bool) // trials with attempts, by model
	for a, err := range l.Selection.in(ctx, s) {
		if err != nil {
			return err
		}
		if unplanned[a.Model] == nil {
			unplanned[a.Model] = make(map[assay.TrialID]bool)
		}
		if !s.planned[a.ID] {
			unplanned[a.Model][a.ID] = true
		}
	}

	for _, model := range slices.Sorted(maps.Keys(unplanned)) {
		meta := evallog.Meta{
			Experiment: s.experiment,
			Model:      model,
			Snapshot:   l.Selection.Snapshot,
			Program:    l.Program,
			Created:    l.manifest.CreatedAt,
		}
		if f := l.manifest.Filter; f.Experiment != "" || l.Selection.Narrowed() {
			meta.Filter = f
		}
		if s.planned != nil && !l.Selection.Narrowed() {
			meta.Planned = s.models[model] + len(unplanned[model])
		}
		if err := l.log(ctx, meta, s); err != nil {
			return err
		}
	}
	return nil
}

func (l *logWriter) log(ctx context.Context, meta evallog.Meta, s *scope) error {
	name := filepath.Join(l.Output, evallog.Name(meta))
	part, err := l.files.Open(name)
	if err != nil {
		return err
	}
	digest := export.NewDigest(part)
	n, err := evallog.Write(digest, meta, l.samples(ctx, meta.Model, s))
	if err != nil {
		return err
	}
	file := digest.File(l.manifestPath(), name, l.Format, export.TrialTable, n)
	l.manifest.Files = append(l.manifest.Files, file)
	return nil
}

func (l *logWriter) samples(
	ctx context.Context, model string, in *scope,
) iter.Seq2[evallog.Sample, error] {
	return func(yield func(evallog.Sample, error) bool) {
		for s, err := range l.Selection.transcriptsIn(ctx, model, in) {
			sample := evallog.Sample{Attempt: s.Attempt, Transcript: s.Transcript}
			if err == nil && !l.Selection.Hides(&s.Attempt) {
				if task, _, failed := l.libraries.Task(ctx, &s.Attempt); failed == nil {
					sample.Task = task
				}
			}
			if !yield(sample, err) {
				return
			}
		}
	}
}
