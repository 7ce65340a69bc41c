package query

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/atif"
	"github.com/assay-eval/assay/internal/result/atomicfile"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/legacy"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/score"
)

// An Export writes the attempts of a selection as files that appear together with a manifest, or
// not at all. It has the format and the places of the files.
type Export struct {
	Selection *Selection
	Format    export.Format
	Output    string    // a file, a directory for formats of several files, or - for Stdout
	Calls     string    // the file for the tool calls, or ""
	Stdout    io.Writer // receives the output named -
	Store     string    // the path of the store
	Program   string    // the version of the program
	// Names are the public names of models, for the formats of public collections.
	Names map[string]plan.PublicName
}

// manifestSuffix is appended to the name of the first file to name the manifest. Formats of several files
// have a manifest named logsManifest in their directory.
const (
	manifestSuffix = ".manifest.json"
	logsManifest   = "manifest.json"
)

// Write writes the export and returns its manifest. Without an output file, the manifest is
// returned but not written. Records counts the records in the first file.
func (e *Export) Write(ctx context.Context) (m export.Manifest, records int, err error) {
	m = e.manifest()
	origin := export.Origin{Program: m.Program, Snapshot: m.Snapshot}
	contents := []content{{e.Output, export.AttemptTable, func(w io.Writer) (int, error) {
		return origin.Write(w, e.Format, m.Counts.Count(e.Selection.all().Attempts(ctx)))
	}}}
	switch {
	case e.Format == export.Inspect:
		err = e.logs(ctx, &m)
		return m, len(m.Files), err
	case e.Format == export.EEE:
		err = e.public(ctx, &m, writeEEE)
		return m, len(m.Files) / 2, err
	case e.Format == export.Hub:
		err = e.public(ctx, &m, writeHub)
		return m, len(m.Files), err
	case e.Format == export.ATIF:
		contents = []content{{e.Output, export.TrialTable, func(w io.Writer) (int, error) {
			for _, err := range m.Counts.Count(e.Selection.Attempts(ctx)) {
				if err != nil {
					return 0, err
				}
			}
			return atif.Write(w, e.trajectories(ctx, m.Counts.Outcomes == 0))
		}}}
	case e.Format == export.V3:
		contents = []content{{e.Output, export.TrialTable, func(w io.Writer) (int, error) {
			return legacy.WriteV3(w, m.Counts.Count(e.Selection.Attempts(ctx)))
		}}}
	case e.Calls != "":
		contents = append(contents, content{e.Calls, export.CallTable, func(w io.Writer) (int, error) {
			return origin.WriteCalls(w, e.Format, e.eachCall(ctx))
		}})
	}
	records, err = e.files(&m, contents...)
	return m, records, err
}

func (e *Export) manifest() export.Manifest {
	s := e.Selection
	filter := export.Filter{Run: s.Run, Since: s.Since, Where: s.Where.Conditions()}
	filter.Experiment = s.Experiment
	return export.Manifest{
		FormatVersion: export.Version,
		Program:       e.Program,
		CreatedAt:     time.Now().UTC(),
		Snapshot:      s.Snapshot,
		Store:         filepath.Base(e.Store),
		Filter:        filter,
		Files:         []export.File{},
		Columns:       []export.Column{},
	}
}

// A content becomes a file. Write returns the number of records that it wrote.
type content struct {
	name  string
	table export.Table
	write func(io.Writer) (int, error)
}

// trajectories yields outcomes with their transcripts, and faults if nothing else is selected: a reader may
// learn from what it gets.
func (e *Export) trajectories(ctx context.Context, faults bool) iter.Seq2[atif.Sample, error] {
	return func(yield func(atif.Sample, error) bool) {
		for s, err := range e.Selection.Transcripts(ctx) {
			if err == nil && !s.Attempt.Settles() && !faults {
				continue
			}
			if !yield(atif.Sample{Attempt: s.Attempt, Transcript: s.Transcript}, err) || err != nil {
				return
			}
		}
	}
}

func (e *Export) eachCall(ctx context.Context) iter.Seq2[export.Call, error] {
	return func(yield func(export.Call, error) bool) {
		libraries := NewLibraries(e.Selection.db)
		defer libraries.Close()
		for s, err := range e.Selection.all().Transcripts(ctx) {
			if err != nil {
				yield(export.Call{}, err)
				return
			}
			if s.Transcript == nil {
				continue
			}
			path := sync.OnceValue(func() []score.PathStep { return e.path(ctx, libraries, &s) })
			reaction := func(i int) string {
				if path := path(); path != nil && path[i].Reaction != nil {
					return path[i].Reaction.Text()
				}
				return ""
			}
			for _, c := range export.CallsOf(&s.Attempt, s.Transcript, reaction) {
				if !yield(c, nil) {
					return
				}
			}
		}
	}
}

// path returns how the calls of an attempt are explained, or nil if that is unknown or nobody may know.
func (e *Export) path(ctx context.Context, libraries *Libraries, s *store.Stored) []score.PathStep {
	if !s.Attempt.Settles() || e.Selection.Hides(&s.Attempt) || score.Version(s.Attempt.World) == "" {
		return nil
	}
	task, judge, err := libraries.Task(ctx, &s.Attempt)
	if err != nil { // an export is not about libraries, and does without one
		return nil
	}
	return judge.Explain(&s.Attempt.Trial, task, s.Transcript).Path
}

// files writes contents, and a manifest next to the first one that is a file. It returns the
// number of records of the first content.
func (e *Export) files(m *export.Manifest, contents ...content) (records int, err error) {
	d := atomicfile.New(e.Stdout)
	defer func() { err = errors.Join(err, d.Close()) }()

	parts := make([]*atomicfile.Part, len(contents))
	for i, c := range contents {
		if parts[i], err = d.Open(c.name); err != nil {
			return 0, err
		}
	}
	var manifest *atomicfile.Part
	if i := slices.IndexFunc(parts, (*atomicfile.Part).IsFile); i >= 0 {
		if manifest, err = d.Open(contents[i].name + manifestSuffix); err != nil {
			return 0, err
		}
	}

	for i, c := range contents {
		digest := export.NewDigest(parts[i])
		n, err := export.Pack(digest, c.name, e.Format, c.write)
		// A broken pipe ends the program silently, but not if that loses files.
		if errors.Is(err, syscall.EPIPE) && manifest != nil {
			return 0, fmt.Errorf("nothing was written: the reader of %s went away", c.name)
		}
		if err != nil {
			return 0, err
		}
		if i == 0 {
			records = n
		}
		if parts[i].IsFile() {
			m.Files = append(m.Files, digest.File(manifest.Name(), c.name, e.Format, c.table, n))
			m.Columns = append(m.Columns, export.Describe(c.table)...)
		}
	}

	m.Missing = e.Selection.Missing()
	if manifest != nil {
		if err := m.Write(manifest); err != nil {
			return 0, err
		}
	}
	return records, d.Commit()
}
