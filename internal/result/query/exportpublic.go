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
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/atomicfile"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/publish"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/store"
)

// A publisher writes results for public collections, with the figures of reports.
type publisher struct {
	*Export
	files    *atomicfile.Set
	manifest *export.Manifest
}

// A published experiment has its results by model, in the order of its report.
type published struct {
	scope   *scope // of the trials that the figures are about
	results []*publish.Results
	models  []string // of the results
}

// public writes a directory for a public collection: what write makes of the selected experiments.
func (e *Export) public(
	ctx context.Context, m *export.Manifest, write func(context.Context, *publisher, []published) error,
) (err error) {
	for _, err := range m.Counts.Count(e.Selection.Attempts(ctx)) {
		if err != nil {
			return err
		}
	}
	p := &publisher{Export: e, files: atomicfile.New(io.Discard), manifest: m}
	defer func() { err = errors.Join(err, p.files.Close()) }()
	all, err := p.experiments(ctx)
	if err != nil {
		return err
	}
	if err := write(ctx, p, all); err != nil {
		return err
	}
	part, err := p.files.Open(e.manifestPath())
	if err != nil {
		return err
	}
	m.Missing = e.Selection.Missing()
	if err := m.Write(part); err != nil {
		return err
	}
	return p.files.Commit()
}

// experiments returns the selected experiments with their results. Forks are left out: their successes are
// no rate of anything.
func (p *publisher) experiments(ctx context.Context) (all []published, err error) {
	s := p.Selection
	stored, err := s.db.Experiments(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range stored {
		_, forks := plan.ForkedFrom(e.Name)
		if s.scope != nil && e.Name != s.scope.experiment || forks || !s.Where.HasExperiment(e.Name) {
			continue
		}
		x, err := p.experiment(ctx, e)
		var lost *planError
		if errors.As(err, &lost) && s.scope == nil && ctx.Err() == nil {
			p.warn("experiment %s is left out: %s", e.Name, assay.Brief(err.Error()))
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("experiment %s: %w", e.Name, err)
		}
		all = append(all, x)
	}
	return all, nil
}

// A planError is the reason why an experiment has no figures.
type planError struct{ error }

func (e *planError) Error() string {
	return "it cannot be planned again, so it has no figures: " + e.error.Error()
}

func (e *planError) Unwrap() error { return e.error }

func (p *publisher) experiment(ctx context.Context, e store.Experiment) (out published, err error) {
	j, err := job.Reopen(ctx, p.Selection.db, e)
	if err != nil {
		return out, &planError{err}
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	x, err := Plan(ctx, p.Selection.db, j, e, p.Selection.Where)
	if err != nil {
		return out, err
	}
	x.Program, x.Store, x.Reveal, x.Snapshot = p.Program, p.Store, p.Selection.Reveal, p.Selection.Snapshot
	r, err := x.Analyze(ctx, p.Selection.db)
	if err != nil {
		return out, err
	}
	out.scope = &scope{experiment: e.Name, planned: make(map[assay.TrialID]bool)}
	for t := range x.Trials {
		out.scope.planned[t.ID] = true
	}
	programs, err := x.programs(ctx, p.Selection.db)
	if err != nil {
		return out, err
	}
	meta := j.Library.Meta()
	about := publish.Experiment{
		Name: e.Name, World: j.Experiment.World, Library: meta.Name, Digest: meta.Digest,
		Builtin: j.Experiment.Library == plan.BuiltinLibrary, Cluster: r.Population.Cluster,
		Snapshot: p.Selection.Snapshot, Where: p.Selection.Where.Conditions(), Program: p.Program,
	}
	byModel := make(map[string]*publish.Results)
	for _, row := range r.Rows.All() {
		if byModel[row.Model] == nil {
			results := publish.New(about, p.model(j.Experiment, row.Model, programs[row.Model]), r.Rows.All())
			byModel[row.Model] = results
			out.results, out.models = append(out.results, results), append(out.models, row.Model)
		}
	}
	for a, err := range p.Selection.in(ctx, out.scope) {
		if err != nil {
			return out, err
		}
		if err := byModel[a.Model].Add(&a); err != nil {
			return out, err
		}
	}
	return out, nil
}

// model says who is behind the name of a model.
func (p *publisher) model(e *plan.Experiment, name string, programs []report.Program) publish.Model {
	m := publish.Model{Name: name, Base: e.Base(name), Programs: make(map[assay.RunID]map[string]string)}
	if use, ok := e.Agents[m.Base]; ok {
		m.Agent, m.Base = m.Base, use.Model
	}
	for _, of := range programs {
		m.Programs[of.Run] = of.Files
	}
	m.PublicName = p.Names[m.Base]
	return m
}

// write adds a file below the output directory to the export.
func (p *publisher) write(name string, t export.Table, content func(io.Writer) (records int, err error)) error {
	path := filepath.Join(p.Output, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	part, err := p.files.Open(path)
	if err != nil {
		return err
	}
	digest := export.NewDigest(part)
	n, err := content(digest)
	if err != nil {
		return err
	}
	p.manifest.Files = append(p.manifest.Files, digest.File(p.manifestPath(), path, p.Format, t, n))
	return nil
}

// writeEEE writes a record and its samples for each experiment and model with an outcome.
func writeEEE(ctx context.Context, p *publisher, all []published) (err error) {
	if err := p.prepare(); err != nil {
		return err
	}
	libraries := NewLibraries(p.Selection.db)
	defer func() { err = errors.Join(err, libraries.Close()) }()
	for _, x := range all {
		for i, r := range x.results {
			if r.Empty() {
				p.warn("%s has no outcome in %s, so it has no record", x.models[i], x.scope.experiment)
				continue
			}
			if r.Unknown() {
				p.warn("the developer of %s is unknown, and the store of Every Eval Ever takes no such record\n"+
					"hint: --providers names a file in which the model has a developer, or a hub", x.models[i])
			}
			record, samples := r.Paths()
			if err := p.write(samples, export.TrialTable, func(w io.Writer) (int, error) {
				return r.WriteSamples(w, p.samples(ctx, libraries, x.models[i], x.scope))
			}); err != nil {
				return err
			}
			if err := p.write(record, export.RecordTable, func(w io.Writer) (int, error) { return 1, r.WriteRecord(w) }); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *publisher) samples(
	ctx context.Context, libraries *Libraries, model string, in *scope,
) iter.Seq2[publish.Sample, error] {
	return func(yield func(publish.Sample, error) bool) {
		for s, err := range p.Selection.transcriptsIn(ctx, model, in) {
			sample := publish.Sample{Attempt: s.Attempt, Transcript: s.Transcript}
			if err == nil && !p.Selection.Hides(&s.Attempt) {
				if task, _, failed := libraries.Task(ctx, &s.Attempt); failed == nil {
					sample.Task = task
				}
			}
			if !yield(sample, err) {
				return
			}
		}
	}
}

// writeHub writes the evaluation results of each model that has a repository on the Hub, and the tasks of the
// datasets that they name. It refuses results that are not complete, or not the only ones.
func writeHub(_ context.Context, p *publisher, all []published) error {
	entries, err := p.entries(all)
	if err == nil {
		err = p.prepare()
	}
	if err != nil {
		return err
	}
	tasks := make(map[string][]string)
	for _, hub := range slices.Sorted(maps.Keys(entries)) {
		for _, e := range entries[hub] {
			tasks[e.Dataset] = append(tasks[e.Dataset], e.Task)
		}
		if err := p.write(hub+"/.eval_results/assay.yaml", export.RecordTable, func(w io.Writer) (int, error) {
			return len(entries[hub]), publish.WriteEntries(w, entries[hub])
		}); err != nil {
			return err
		}
	}
	for _, dataset := range slices.Sorted(maps.Keys(tasks)) {
		slices.Sort(tasks[dataset])
		names := slices.Compact(tasks[dataset])
		if err := p.write("datasets/"+dataset+"/eval.yaml", export.RecordTable, func(w io.Writer) (int, error) {
			return len(names), publish.WriteBenchmark(w, dataset, names)
		}); err != nil {
			return err
		}
	}
	return nil
}

// entries returns the evaluation results by repositories of the Hub.
func (p *publisher) entries(all []published) (map[string][]publish.Entry, error) {
	entries := make(map[string][]publish.Entry)
	from := make(map[[3]string]string) // what an entry is from, by repository, dataset and task
	var short, without []string
	for _, x := range all {
		for i, r := range x.results {
			who := x.models[i] + " in " + x.scope.experiment
			if r.HubName() == "" {
				without = append(without, who)
				continue
			}
			short = append(short, r.Lacking()...)
			for _, e := range r.Entries() {
				if e.Dataset == "" {
					return nil, fmt.Errorf("%s has other tasks than the built-in ones, of which no dataset on the Hub is known\n"+
						"hint: --experiment chooses an experiment with library: builtin", x.scope.experiment)
				}
				key := [3]string{r.HubName(), e.Dataset, e.Task}
				if other := from[key]; other != "" {
					return nil, fmt.Errorf("%s and %s are both results of %s at %s, and the Hub shows one\n"+
						"hint: choose with --experiment, or --where model=NAME", other, who, r.HubName(), e.Task)
				}
				from[key] = who
				entries[r.HubName()] = append(entries[r.HubName()], e)
			}
		}
	}
	if len(short) > 0 {
		return nil, fmt.Errorf("fewer than %.0f %% of the trials are done, and those that are missing may be the hard ones: %s\n"+
			"hint: `assay run` goes on, or leave them out, for example with --where model!=NAME",
			100*report.Enough, strings.Join(short, "; "))
	}
	const reason = "because the providers file names no hub for the model, or an agent is evaluated: "
	switch {
	case len(without) > 0 && len(entries) == 0:
		return nil, fmt.Errorf("there is nothing to write, %s%s\n"+
			"hint: --providers names a file in which the model has a hub, such as hub: openai/gpt-oss-20b", reason,
			strings.Join(without, ", "))
	case len(without) > 0:
		p.warn("left out, %s%s", reason, strings.Join(without, ", "))
	}
	return entries, nil
}

func (p *publisher) warn(format string, args ...any) { p.Selection.warn(fmt.Sprintf(format, args...)) }
