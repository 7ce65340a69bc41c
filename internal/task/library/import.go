package library

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// ErrNothingKept is in the chain of the error of an import that found no task
// to keep.
var ErrNothingKept = errors.New("no task can be kept")

// ImportOptions say what [Import] reads and writes.
type ImportOptions struct {
	// Tasks is the JSON file with the tasks.
	Tasks string
	// Tools is the JSON tool registry; empty for the built-in tools.
	Tools string
	// Out is the library file to write.
	Out string
	// Force replaces Out if it exists.
	Force bool
	// Difficulty is that of tasks which state none: one of the five or a
	// mixture of them; empty for "easy".
	Difficulty string
	// Name is the library's; empty for Out's base name without extension.
	Name string
	// Created is when the library is made; zero is not recorded.
	Created time.Time
}

// Import makes a library file of a foreign JSON library. The tasks are read
// as a stream, and those that no agent could carry out are left out; the
// report tells which and why. It has three outcomes:
//
//  1. the library is written: the report and nil;
//  2. no task can be kept: the report and an error with [ErrNothingKept];
//  3. another error, such as broken JSON with its place.
//
// In the latter two nothing is written.
func Import(ctx context.Context, opts ImportOptions) (Report, error) {
	if opts.Difficulty == "" {
		opts.Difficulty = "easy"
	}
	if opts.Name == "" {
		opts.Name = strings.TrimSuffix(filepath.Base(opts.Out), filepath.Ext(opts.Out))
	}
	if err := opts.check(); err != nil {
		return Report{}, err
	}
	im, err := newImporter(opts)
	if err != nil {
		return Report{}, err
	}
	source := "import of " + filepath.Base(opts.Tasks)
	if opts.Tools != "" {
		source += " with the tools of " + filepath.Base(opts.Tools)
	}
	meta, err := create(ctx, opts.Out, Meta{Name: opts.Name, Source: source, Created: opts.Created}, im.catalog.All(), im.tasks(ctx))
	report := im.finished()
	switch {
	case errors.Is(err, errNoTasks):
		return report, fmt.Errorf("import %s: %w\nhint: the findings say why; does the tool registry belong to these tasks?", opts.Tasks, ErrNothingKept)
	case im.readErr != nil:
		return Report{}, im.readErr
	case err != nil:
		return Report{}, fmt.Errorf("write library %s: %w", opts.Out, err)
	}
	report.Out, report.Library = opts.Out, meta
	return report, nil
}

func (o ImportOptions) check() error {
	if o.Tasks == "" || o.Out == "" {
		return errors.New("import: both the file to read and the library to write have to be named\nhint: `assay library import FILE --tools REGISTRY -o OUT.db`")
	}
	if !slices.Contains(difficulties, o.Difficulty) {
		return fmt.Errorf("import: no difficulty %q%s\nhint: valid are %s", o.Difficulty, suggest(o.Difficulty, difficulties), strings.Join(difficulties, ", "))
	}
	out, err := os.Stat(o.Out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	if out.IsDir() {
		return fmt.Errorf("import: %s is a directory\nhint: name a file in it", o.Out)
	}
	for _, in := range []string{o.Tasks, o.Tools} {
		if st, err := os.Stat(in); err == nil && os.SameFile(st, out) {
			return fmt.Errorf("import: %s would be overwritten, but it is read\nhint: write the library to another file", o.Out)
		}
	}
	if !o.Force {
		return fmt.Errorf("import: %s exists already\nhint: choose another file, or replace it with --force", o.Out)
	}
	return nil
}

// An importer sorts the tasks of one file.
type importer struct {
	opts    ImportOptions
	catalog *assay.Catalog
	report  Report
	seen    map[wording]bool
	readErr error // why the tasks ended early
}

// A wording is what has to be unique in a library.
type wording struct {
	id         assay.TaskID
	difficulty string
}

// newImporter reads the tools that the tasks may require.
func newImporter(opts ImportOptions) (*importer, error) {
	tools := Tools()
	if opts.Tools != "" {
		var err error
		if tools, err = readRegistry(opts.Tools); err != nil {
			return nil, err
		}
	}
	im := &importer{opts: opts, catalog: assay.NewCatalog(tools), seen: make(map[wording]bool)}
	im.report.Counts, im.report.Findings = []Count{}, []Finding{}
	return im, nil
}

// tasks yields the tasks to keep, and an error last if there is one.
func (im *importer) tasks(ctx context.Context) iter.Seq2[assay.Task, error] {
	return func(yield func(assay.Task, error) bool) {
		for e, err := range taskEntries(im.opts.Tasks) {
			if err == nil && ctx.Err() != nil {
				err = fmt.Errorf("import %s: %w", im.opts.Tasks, context.Cause(ctx))
			}
			if err != nil {
				im.readErr = err
				yield(assay.Task{}, err)
				return
			}
			im.report.Read++
			t := e.task(im.opts.Difficulty)
			if !im.keeps(e, t) {
				im.report.Excluded++
				continue
			}
			im.report.count(t)
			if !yield(t, nil) {
				return
			}
		}
	}
}

// keeps notes what is odd about a task and reports whether it can stay.
func (im *importer) keeps(e entry, t assay.Task) bool {
	label := string(t.ID)
	if label == "" {
		label = fmt.Sprintf("#%d", e.number)
	}
	keep := true
	note := func(kind FindingKind, detail func() string) {
		im.report.add(kind, label, detail)
		keep = keep && !kind.Excludes()
	}
	if e.malformed != "" || t.ID == "" {
		note(Malformed, func() string { return im.place(e) })
		return false
	}
	if !slices.Contains(assay.TaskTypes, t.Type) {
		note(UnknownType, func() string { return unknownType(t.Type) })
	}
	if !slices.Contains(difficulties, t.Difficulty) {
		note(InvalidDifficulty, func() string {
			return fmt.Sprintf("%q%s; valid are %s", t.Difficulty, suggest(t.Difficulty, difficulties), strings.Join(difficulties, ", "))
		})
	}
	if key := (wording{t.ID, t.Difficulty}); im.seen[key] {
		note(DuplicateID, func() string { return "a second task of this ID at difficulty " + t.Difficulty })
	} else {
		im.seen[key] = true
	}
	if t.Description == "" {
		note(EmptyDescription, func() string { return "nothing tells the agent what to do" })
	}
	im.checkRequired(t, note)
	if keep {
		im.checkOrder(t, note)
	}
	return keep
}

// place says what is wrong with an entry's shape and on which line it starts.
func (im *importer) place(e entry) string {
	why := e.malformed
	if why == "" {
		why = "it has neither id nor instance_id"
	}
	if p, err := locate(im.opts.Tasks, e.offset); err == nil {
		return fmt.Sprintf("line %d: %s", p.line, why)
	}
	return why
}

func unknownType(typ string) string {
	hint := suggest(typ, assay.TaskTypes)
	if typ == "file_processing" {
		hint = "; such tasks were later called basic_task"
	}
	return fmt.Sprintf("%q%s; valid are %s", typ, hint, strings.Join(assay.TaskTypes, ", "))
}

type noter = func(kind FindingKind, detail func() string)

// checkRequired notes required tools that are missing, unknown or repeated.
func (im *importer) checkRequired(t assay.Task, note noter) {
	if len(t.Required) == 0 {
		note(NoRequiredTools, func() string { return "nothing would have to succeed" })
	}
	unknown, twice := "", ""
	for i, name := range t.Required {
		if _, ok := im.catalog.Tool(name); !ok {
			unknown = firstOf(unknown, fmt.Sprintf("%q%s", name, suggest(name, im.catalog.Names())))
		}
		if slices.Contains(t.Required[:i], name) {
			twice = firstOf(twice, name)
		}
	}
	if unknown != "" {
		note(UnknownTool, func() string { return unknown })
	}
	if twice != "" {
		note(DuplicateTool, func() string { return twice })
	}
}

// checkOrder notes dependencies that are not required before their tool.
func (im *importer) checkOrder(t assay.Task, note noter) {
	gaps, later, first := 0, 0, ""
	for i, name := range t.Required {
		tool, _ := im.catalog.Tool(name)
		for _, d := range tool.Dependencies {
			if slices.Contains(t.Required[:i], d) {
				continue
			}
			gaps++
			where := "is not in the list"
			if slices.Contains(t.Required[i:], d) {
				later++
				where = "comes later"
			}
			first = firstOf(first, fmt.Sprintf("%s needs %s, which %s", name, d, where))
		}
	}
	if gaps == 0 {
		return
	}
	note(DependencyOrder, func() string { return first })
	g := &im.report.Gaps
	g.Tasks++
	g.Gaps += gaps
	g.LaterGaps += later
	if later > 0 {
		g.LaterTasks++
	}
}

// finished returns the report in its order.
func (im *importer) finished() Report {
	r := im.report
	sortCounts(r.Counts)
	slices.SortFunc(r.Findings, func(a, b Finding) int {
		return slices.Index(findingKinds, a.Kind) - slices.Index(findingKinds, b.Kind)
	})
	return r
}
