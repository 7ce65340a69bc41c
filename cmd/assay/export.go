package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/evallog"
	"github.com/assay-eval/assay/internal/export"
	"github.com/assay-eval/assay/internal/legacy"
	"github.com/assay-eval/assay/internal/store"
)

// The formats of other systems, beside those of package export.
const (
	inspectFormat = "inspect"
	v3Format      = "v3"
	csv50Format   = "csv50"
)

var exportFormats = []string{string(export.JSONL), string(export.CSV), string(export.Parquet), inspectFormat, v3Format, csv50Format}

type exportFlags struct {
	store, format, output, calls string
	experiment, run              string
	snapshot, since              string
	where                        []string
}

func newExport(p *process) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write attempts for other programs: JSON lines, CSV, Parquet, Inspect, the original's",
		Long: `Export writes one record for each attempt, outcomes and faults alike: a record has
either a level or a fault. With --output a file is written whole or not at all, and a
manifest beside it, FILE.manifest.json, says which state of the store it is of, what
each column means, and the file's digest.

  jsonl, csv   text; the same fields
  parquet      typed; for pandas, Polars, DuckDB and others
  inspect      logs for the viewer of Inspect, one a model, into the directory that
               --output names
  v3, csv50    the master_database.json and the 50 columns of the 2025 original

A snapshot names a state of a store for ever: --snapshot exports that state again, and
--since what came after it.`,
		Example: `  assay export --format csv --output results.csv
  assay export --experiment quickstart | jq -r .level | sort | uniq -c
  assay export --format parquet --output results.parquet --calls calls.parquet
  assay export --where model=gpt-4o --where level=failure,partial_success
  assay export --since 1200-3f2a9c71d0aa --output new.jsonl
  assay export --format inspect --output logs`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if !slices.Contains(exportFormats, f.format) {
				_, err := export.ParseFormat(f.format)
				return usageError("%w", err)
			}
			where, err := export.ParseWhere(f.where)
			if err != nil {
				return usageError("--where: %w", err)
			}
			e := &exporter{process: p, flags: f, where: where}
			return e.run(cmd.Context())
		},
	}
	storeFlag(cmd, &f.store)
	flags := cmd.Flags()
	flags.StringVar(&f.format, "format", string(export.JSONL), strings.Join(exportFormats, ", "))
	flags.StringVarP(&f.output, "output", "o", "-", "the `file` to write; - is standard output")
	flags.StringVar(&f.calls, "calls", "", "write the tool calls of the attempts to this `file` too, in the same format")
	flags.StringVar(&f.experiment, "experiment", "", "only attempts made for this experiment")
	flags.StringVar(&f.run, "run", "", "only attempts of this run")
	flags.StringVar(&f.snapshot, "snapshot", "", "the state of the store to export; the present one by default")
	flags.StringVar(&f.since, "since", "", "only attempts that came after this snapshot")
	flags.StringArrayVar(&f.where, "where", nil, "only attempts with `FIELD=VALUE`, or FIELD!=VALUE; may be given several times")
	choice(cmd, "format", exportFormats...)
	return cmd
}

// An exporter carries out one export.
type exporter struct {
	process  *process
	flags    exportFlags
	where    export.Where
	db       *store.DB
	filter   store.Filter
	snapshot string
	// bare counts attempts without their transcripts, which cannot be read.
	bare int
}

func (e *exporter) run(ctx context.Context) (err error) {
	if e.db, err = e.process.openToRead(ctx, e.flags.store); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.db.Close()) }()
	if e.flags.experiment != "" {
		if _, err := chooseExperiments(ctx, e.db, []string{e.flags.experiment}); err != nil {
			return err
		}
	}
	e.snapshot = e.flags.snapshot
	if e.snapshot == "" {
		if e.snapshot, err = e.db.Snapshot(ctx); err != nil && !errors.Is(err, store.ErrDamaged) {
			return err
		}
	}
	e.filter = store.Filter{Experiment: e.flags.experiment, Run: assay.RunID(e.flags.run), Snapshot: e.snapshot, Since: e.flags.since}
	switch e.flags.format {
	case inspectFormat:
		err = e.inspect(ctx)
	case v3Format, csv50Format:
		err = e.legacy(ctx)
	default:
		err = e.table(ctx, export.Format(e.flags.format))
	}
	if err != nil {
		return err
	}
	var missing []string
	if n := e.db.Skipped(); n > 0 {
		missing = append(missing, unread(n)+", and the export lacks them")
	}
	if e.bare > 0 {
		missing = append(missing, counted(e.bare, "transcript")+" cannot be read, and what the export has of these attempts is without them")
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s\nhint: \"assay verify\" says more", strings.Join(missing, "; "))
	}
	return nil
}

// attempts streams the chosen attempts.
func (e *exporter) attempts(ctx context.Context) iter.Seq2[assay.Attempt, error] {
	return filtered(e.db.Attempts(ctx, e.filter), e.where)
}

// filtered passes on the attempts that where chooses, and errors.
func filtered(attempts iter.Seq2[assay.Attempt, error], where export.Where) iter.Seq2[assay.Attempt, error] {
	return func(yield func(assay.Attempt, error) bool) {
		for a, err := range attempts {
			if (err != nil || where.Has(&a)) && !yield(a, err) {
				return
			}
		}
	}
}

// transcripts streams the chosen attempts with their transcripts. One that is
// damaged is counted, and its attempt comes without.
func (e *exporter) transcripts(ctx context.Context, f store.Filter) iter.Seq2[store.Stored, error] {
	return func(yield func(store.Stored, error) bool) {
		for s, err := range e.db.Transcripts(ctx, f) {
			bare := err != nil && errors.Is(err, store.ErrDamaged) && s.Attempt.ID != ""
			if (err == nil || bare) && !e.where.Has(&s.Attempt) {
				continue
			}
			if bare {
				e.bare++
				err = nil
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// table writes attempts, and their calls, in one of our own formats.
func (e *exporter) table(ctx context.Context, format export.Format) error {
	m := export.Manifest{
		FormatVersion: export.Version, Program: version(), CreatedAt: time.Now().UTC(), Snapshot: e.snapshot,
		Store: filepath.Base(e.flags.store), Filter: e.flags.filter(), Columns: export.Describe(export.AttemptTable),
	}
	from := export.Origin{Program: version(), Snapshot: e.snapshot}
	n := 0
	err := toFile(e.process, e.flags.output, func(w io.Writer) (err error) {
		d := export.NewDigest(w)
		n, err = from.Write(d, format, m.Counts.Count(e.attempts(ctx)))
		m.Files = append(m.Files, d.File(e.flags.output, format, export.AttemptTable, n))
		return err
	})
	if err != nil {
		return err
	}
	if e.flags.calls != "" {
		err := toFile(e.process, e.flags.calls, func(w io.Writer) error {
			d := export.NewDigest(w)
			n, err := from.WriteCalls(d, format, e.calls(ctx))
			m.Files = append(m.Files, d.File(e.flags.calls, format, export.CallTable, n))
			return err
		})
		if err != nil {
			return err
		}
		m.Columns = append(m.Columns, export.Describe(export.CallTable)...)
	}
	if e.flags.output != "-" {
		if err := toFile(e.process, e.flags.output+".manifest.json", m.Write); err != nil {
			return err
		}
	}
	fmt.Fprintf(e.process.err, "%d attempts of snapshot %s\n", n, e.snapshot)
	return nil
}

// filter is what was chosen, for the manifest.
func (f *exportFlags) filter() map[string]string {
	chosen := make(map[string]string)
	for name, value := range map[string]string{
		"experiment": f.experiment, "run": f.run, "since": f.since, "where": strings.Join(f.where, " "),
	} {
		if value != "" {
			chosen[name] = value
		}
	}
	return chosen
}

func (e *exporter) calls(ctx context.Context) iter.Seq2[export.Call, error] {
	return func(yield func(export.Call, error) bool) {
		for s, err := range e.transcripts(ctx, e.filter) {
			if err != nil {
				yield(export.Call{}, err)
				return
			}
			if s.Transcript == nil {
				continue
			}
			for _, c := range export.CallsOf(&s.Attempt, s.Transcript) {
				if !yield(c, nil) {
					return
				}
			}
		}
	}
}

// legacy writes what the original wrote.
func (e *exporter) legacy(ctx context.Context) error {
	err := toFile(e.process, e.flags.output, func(w io.Writer) error {
		if e.flags.format == csv50Format {
			return legacy.WriteCSV(w, e.attempts(ctx))
		}
		return legacy.WriteV3(w, legacy.Meta{}, e.attempts(ctx))
	})
	var mixed *legacy.MixedError
	if errors.As(err, &mixed) {
		return fmt.Errorf("%w\nhint: choose with --where, such as --where %s=%s", err, mixed.Varies[0].Field, mixed.Varies[0].Values[0])
	}
	if err == nil {
		fmt.Fprintf(e.process.err, "snapshot %s\n", e.snapshot)
	}
	return err
}

// inspect writes a log for each experiment and model into a directory.
func (e *exporter) inspect(ctx context.Context) error {
	if e.flags.output == "-" {
		return usageError("Inspect's logs are several files\nhint: --output names a directory for them, such as --output logs")
	}
	if err := os.MkdirAll(e.flags.output, 0o755); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	type log struct{ experiment, model string }
	found := make(map[log]bool)
	var logs []log
	for a, err := range e.attempts(ctx) {
		if err != nil {
			return err
		}
		if l := (log{a.Experiment, a.Model}); !found[l] {
			found[l] = true
			logs = append(logs, l)
		}
	}
	tasks := newTaskBook(e.db)
	defer tasks.close()
	for _, l := range logs {
		meta := evallog.Meta{Experiment: l.experiment, Model: l.model, Snapshot: e.snapshot, Program: version(), Created: time.Now().UTC()}
		path := filepath.Join(e.flags.output, evallog.Name(meta))
		filter := e.filter
		filter.Experiment, filter.Model = l.experiment, l.model
		n := 0
		err := toFile(e.process, path, func(w io.Writer) (err error) {
			n, err = evallog.Write(w, meta, func(yield func(evallog.Sample, error) bool) {
				for s, err := range e.transcripts(ctx, filter) {
					sample := evallog.Sample{Attempt: s.Attempt, Transcript: s.Transcript}
					if err == nil {
						if task, _, failed := tasks.task(ctx, &s.Attempt); failed == nil {
							sample.Task = task
						}
					}
					if !yield(sample, err) {
						return
					}
				}
			})
			return err
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(e.process.err, "%s: %d trials\n", path, n)
	}
	fmt.Fprintf(e.process.err, "%d logs of snapshot %s; `inspect view --log-dir %s` shows them\n", len(logs), e.snapshot, e.flags.output)
	return nil
}

// toFile writes to standard output, or to a file that appears when it is whole
// and on disk. Renaming replaces a file at once on every system that Go has.
func toFile(p *process, path string, write func(io.Writer) error) (err error) {
	if path == "-" {
		return write(p.out)
	}
	if fi, err := os.Stat(filepath.Dir(path)); err != nil || !fi.IsDir() {
		return fmt.Errorf("write %s: there is no directory %s\nhint: create it, or name another place with --output", path, filepath.Dir(path))
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := write(f); err != nil {
		return errors.Join(err, f.Close())
	}
	// CreateTemp keeps files private; an export is for whoever may read the store.
	if err := errors.Join(f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
