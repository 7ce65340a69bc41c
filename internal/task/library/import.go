package library

import (
	"cmp"
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

// ErrNothingKept means that an import found no task that could be kept.
var ErrNothingKept = errors.New("no usable tasks")

// ImportOptions are the inputs and the output of [Import].
type ImportOptions struct {
	// Tasks is the JSON or YAML file with the tasks.
	Tasks string
	// Tools is the JSON tool registry; empty for the built-in tools.
	Tools string
	// Out is the library file to write.
	Out string
	// Force replaces Out if it exists.
	Force bool
	// Difficulty applies to tasks without one. It is one of the five difficulties or a mixture;
	// empty for "easy".
	Difficulty string
	// Name is the library's name; empty for Out's base name without its extension.
	Name string
	// Created is the library's creation time. Zero is not recorded.
	Created time.Time
	// Solvable reports whether some policy can fully solve a task with the required tools in the
	// default setting of experiments. Import counts the insoluble tasks. Nil skips that.
	Solvable func(catalog *assay.Catalog, required []string) bool
}

// Import converts a JSON library to a library file. It excludes tasks that no agent could carry
// out; the report gives the reasons. There are three outcomes:
//
//  1. Import writes the library and returns the report and nil.
//  2. No task is usable. Import returns the report and an error that wraps [ErrNothingKept].
//  3. Import returns another error, for example the position of broken JSON.
//
// It writes a file only in the first case.
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
	if IsTaskFile(opts.Tasks) {
		return importOwn(ctx, opts)
	}
	im, err := newImporter(opts)
	if err != nil {
		return Report{}, err
	}

	source := "import of " + filepath.Base(opts.Tasks)
	if opts.Tools != "" {
		source += " with the tools of " + filepath.Base(opts.Tools)
	}
	meta := Meta{Name: opts.Name, Source: source, Created: opts.Created}
	tasks := func(yield func(assay.Task, error) bool) {
		im.tasks(ctx)(yield)
		meta.Source += im.report.workflows()
	}
	err = create(ctx, opts.Out, &meta, im.catalog, tasks)
	report := im.finished()
	switch {
	case errors.Is(err, errNoTasks):
		return report, fmt.Errorf("import %s: %w\n"+
			"hint: see the findings; check that the tool registry belongs to these tasks",
			opts.Tasks, ErrNothingKept)
	case ctx.Err() != nil:
		return Report{}, err
	case err != nil:
		return Report{}, fmt.Errorf("write library %s: %w", opts.Out, err)
	}
	report.Out, report.Library = opts.Out, meta
	return report, nil
}

func (o ImportOptions) check() error {
	if o.Tasks == "" || o.Out == "" {
		err := errors.New("import: the task file and the output file are required")
		return assay.WithHint(err, assay.HintImportTasks)
	}
	if !slices.Contains(difficulties, o.Difficulty) {
		return fmt.Errorf("import: unknown difficulty %q%s\nhint: choose one of %s", o.Difficulty,
			suggest(o.Difficulty, difficulties), strings.Join(difficulties, ", "))
	}
	out, err := os.Stat(o.Out)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	if out.IsDir() {
		return fmt.Errorf("import: %s is a directory\nhint: name a file inside it", o.Out)
	}
	for _, in := range []string{o.Tasks, o.Tools} {
		if st, err := os.Stat(in); err == nil && os.SameFile(st, out) {
			return fmt.Errorf("import: %s is both input and output\n"+
				"hint: write the library to another file", o.Out)
		}
	}
	if !o.Force {
		return fmt.Errorf("%s already exists\n"+
			"hint: choose another file, or replace it with --force", o.Out)
	}
	return nil
}

// An importer checks the tasks of one file.
type importer struct {
	opts    ImportOptions
	file    *taskFile
	catalog *assay.Catalog
	report  Report
	seen    map[TaskKey]bool
	doubts  *doubts
}

// newImporter reads the file of tasks, and the tools that these may require.
func newImporter(opts ImportOptions) (*importer, error) {
	tools, unused := Tools(), fieldCounts{}
	var err error
	if opts.Tools != "" {
		if tools, unused, err = readRegistry(opts.Tools); err != nil {
			return nil, err
		}
	}
	im := &importer{opts: opts, catalog: assay.NewCatalog(tools), seen: make(map[TaskKey]bool)}
	if im.file, err = openTaskFile(opts.Tasks); err != nil {
		return nil, err
	}
	im.doubts = newDoubts(im)
	im.report.Counts, im.report.Findings = []Count{}, []Finding{}
	im.report.Unused = make(fieldCounts)
	im.report.UnusedOfTools, im.report.UnusedOfFile = unused, im.file.others
	return im, nil
}

// tasks yields the tasks to keep. An error comes last.
func (im *importer) tasks(ctx context.Context) iter.Seq2[assay.Task, error] {
	return func(yield func(assay.Task, error) bool) {
		for e := range im.file.entries {
			if ctx.Err() != nil {
				yield(assay.Task{}, fmt.Errorf("import %s: %w", im.opts.Tasks, context.Cause(ctx)))
				return
			}
			im.report.Read++
			t := e.task(im.opts.Difficulty)
			if !im.keeps(e, t) {
				im.report.Excluded++
				continue
			}
			im.doubts.add(&t)
			im.report.count(t)
			im.report.leaveOut(e)
			if !yield(t, nil) {
				return
			}
		}
	}
}

// keeps records the problems of a task and reports whether the library can keep it.
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
		note(Malformed, func() string {
			return fmt.Sprintf("line %d: %s", e.line,
				cmp.Or(e.malformed, `add an "id" or "instance_id"`))
		})
		return false
	}
	if !slices.Contains(assay.TaskTypes, t.Type) {
		note(UnknownType, func() string { return unknownType(t.Type) })
	}
	if !slices.Contains(difficulties, t.Difficulty) {
		note(InvalidDifficulty, func() string { return notOneOf(t.Difficulty, difficulties) })
	}
	if key := (TaskKey{t.ID, t.Difficulty}); im.seen[key] {
		note(DuplicateID, func() string {
			return "another task has this ID at difficulty " + t.Difficulty + "; rename one of them"
		})
	} else {
		im.seen[key] = true
	}
	if t.Description == "" {
		note(EmptyDescription, func() string { return `describe the task in "description"` })
	}
	im.checkRequired(t, note)
	if keep {
		im.checkOrder(t, note)
		im.checkDoubts(e, t, note)
	}
	return keep
}

func unknownType(typ string) string {
	text := notOneOf(typ, assay.TaskTypes)
	if typ == "file_processing" {
		text += "; use basic_task, the later name of this type"
	}
	return text
}

func notOneOf(word string, valid []string) string {
	return fmt.Sprintf("%q is not one of %s%s",
		word, strings.Join(valid, ", "), suggest(word, valid))
}

type noter = func(kind FindingKind, detail func() string)

// checkRequired records required tools that are missing, unknown or repeated.
func (im *importer) checkRequired(t assay.Task, note noter) {
	if len(t.Required) == 0 {
		note(NoRequiredTools, func() string {
			return `list at least one tool in "required_tools"`
		})
	}
	unknown, twice := "", ""
	for i, name := range t.Required {
		if _, ok := im.catalog.Tool(name); !ok {
			unknown = cmp.Or(unknown, fmt.Sprintf("%q is not in the tool registry%s",
				name, suggest(name, im.catalog.Names())))
		}
		if slices.Contains(t.Required[:i], name) {
			twice = cmp.Or(twice, name+" is listed twice; remove one")
		}
	}
	if unknown != "" {
		note(UnknownTool, func() string { return unknown })
	}
	if twice != "" {
		note(DuplicateTool, func() string { return twice })
	}
}

// checkOrder records dependencies that are not required before their tool.
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
			first = cmp.Or(first, fmt.Sprintf("%s needs %s, which %s", name, d, where))
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

// checkDoubts records a difficulty that other fields contradict, and a task that no policy solves.
func (im *importer) checkDoubts(e entry, t assay.Task, note noter) {
	if e.clash != "" {
		note(DifficultyClash, func() string { return e.clash })
	}
	if !im.doubts.solves(&t) {
		note(Unsolvable, func() string {
			return "requires " + strings.Join(t.Required, ", ")
		})
	}
}

// finished returns the sorted report.
func (im *importer) finished() Report {
	im.doubts.report(&im.report)
	r := im.report
	sortCounts(r.Counts)
	slices.SortFunc(r.Findings, func(a, b Finding) int {
		return slices.Index(findingKinds, a.Kind) - slices.Index(findingKinds, b.Kind)
	})
	return r
}
