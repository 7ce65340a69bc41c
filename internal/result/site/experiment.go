package site

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/store"
)

var noConditions export.Where

// An experiment has the pages of one, below its folder.
type experiment struct {
	Source
	stored        store.Experiment
	title, folder string
	job           *job.Job
	query         *query.Experiment
	report        *query.Report
	document      *document.Document
	levels        []level
	chosen        []trial          // with pages of their own
	tasks         map[string]*task // by ID
	first         map[string]time.Time
}

// snapshot names the state of the store that was read.
func (x *experiment) snapshot() string { return x.report.Snapshot() }

// A level is a value of a factor that has a page.
type level struct{ factor, value string }

// factors are the factors whose levels have pages, as attempts name them, with the folders of the pages.
// Models always have pages.
var factors = []struct{ name, folder string }{
	{"model", "models"},
	{"variant", "variants"},
	{"fault_mix", "faults"},
	{"reliability", "reliability"},
	{"task_type", "types"},
	{"difficulty", "difficulty"},
	{"interface", "interfaces"},
	{"phrasing", "phrasings"},
}

func levelsOf(c *assay.Cell) map[string]string {
	return map[string]string{
		"model": c.Model, "variant": c.Variant, "fault_mix": c.Faults,
		"reliability": assay.FormatReliability(c.Reliability), "task_type": c.TaskType,
		"difficulty": c.Difficulty, "interface": c.Interface, "phrasing": c.Phrasing,
	}
}

// pageOf returns the address of a level's page within its experiment's folder, without its ending.
func pageOf(factor, value string) string {
	for _, f := range factors {
		if f.name == factor {
			return f.folder + "/" + slug(value)
		}
	}
	return ""
}

// A trial is an attempt that has, or could have, a page.
type trial struct {
	id     assay.TrialID
	number int
	cell   assay.Cell
	level  assay.Level
	cause  string
	turns  int
	page   bool
}

func (t *trial) address() string { return fmt.Sprintf("trials/%s-%d.html", t.id, t.number) }

// A task has the trials at it.
type task struct {
	id, kind, difficulty string
	text                 string
	trials               []trial
}

// publish writes the pages of the experiment.
func (x *experiment) publish(ctx context.Context, s *Site, out *output) error {
	x.report = x.report.Lasting()
	if err := x.read(ctx, s.Transcripts); err != nil {
		return err
	}
	x.findLevels()
	var err error
	if x.document, err = x.report.Document(ctx, 0); err != nil {
		return err
	}
	d := x.linked(x.document)
	d.Title = "Experiment " + x.title
	d.Sections = append(d.Sections, x.levelList(), x.chosenList(), x.taskList())
	d.Sections = slices.DeleteFunc(d.Sections, func(s document.Section) bool { return s.ID == "" })
	d.Files = []document.Link{
		{Text: "JSON", Address: x.folder + "/report.json"},
		{Text: "Markdown", Address: x.folder + "/report.md"},
		{Text: "attempts as JSON lines", Address: x.folder + "/attempts.jsonl.gz"},
	}
	if err := out.page(x.folder+"/index.html", d, s.home()); err != nil {
		return err
	}
	if err := x.files(ctx, out); err != nil {
		return err
	}
	for _, l := range x.levels {
		if err := x.levelPage(ctx, s, out, l); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(x.tasks)) {
		if err := out.page(x.folder+"/tasks/"+slug(id)+".html", x.taskPage(x.tasks[id]), x.trail(s)...); err != nil {
			return err
		}
	}
	for i := range x.chosen {
		if err := x.trialPage(ctx, s, out, &x.chosen[i]); err != nil {
			return err
		}
	}
	return nil
}

// trail leads to the pages above those of the experiment.
func (x *experiment) trail(s *Site) []document.Link {
	return []document.Link{s.home(), {Text: x.title, Address: x.folder + "/index.html"}}
}

// read collects the outcomes by task, and chooses trials for pages: the one that the report names, and of
// each model the first success and the first failures.
func (x *experiment) read(ctx context.Context, failures int) error {
	x.tasks, x.first = make(map[string]*task), make(map[string]time.Time)
	failed, succeeded := make(map[string]int), make(map[string]int)
	for a, err := range x.report.Attempts(ctx) {
		if err != nil {
			return err
		}
		if at, ok := x.first[a.Model]; !ok || a.StartedAt.Before(at) {
			x.first[a.Model] = a.StartedAt
		}
		if !a.Settles() {
			continue
		}
		t := x.tasks[string(a.Task)]
		if t == nil {
			t = &task{id: string(a.Task), kind: a.TaskType, difficulty: a.Difficulty}
			x.tasks[t.id] = t
			t.text = x.taskText(ctx, &a)
		}
		row := trial{
			id: a.ID, number: a.Number, cell: a.Cell, level: a.Level, cause: a.Cause.Text(),
			turns: a.Outcome.Turns,
		}
		switch {
		case x.report.Example != nil && a.ID == x.report.Example.Trial:
			row.page = true
		case a.Level == assay.FullSuccess:
			succeeded[a.Model]++
			row.page = succeeded[a.Model] == 1
		default:
			failed[a.Model]++
			row.page = failed[a.Model] <= failures
		}
		if row.page {
			x.chosen = append(x.chosen, row)
		}
		t.trials = append(t.trials, row)
	}
	return nil
}

// taskText returns the description of an attempt's task, or says why there is none.
func (x *experiment) taskText(ctx context.Context, a *assay.Attempt) string {
	if x.job.Library.Meta().Private && !x.query.Reveal {
		return "The library is private."
	}
	t, err := x.job.Library.TaskOf(ctx, &a.Trial)
	if err != nil {
		return "The library no longer has this task as it was planned."
	}
	return t.Description
}

// findLevels lists the levels that have pages: those of models, and of factors with several.
func (x *experiment) findLevels() {
	values := make(map[string][]string)
	for t := range x.query.Trials {
		for factor, value := range levelsOf(&t.Cell) {
			if !slices.Contains(values[factor], value) {
				values[factor] = append(values[factor], value)
			}
		}
	}
	for _, f := range factors {
		all := values[f.name]
		if f.name != "model" && len(all) < 2 {
			continue
		}
		for _, v := range all {
			if v != "" { // of an empty level, `--where` would ask something else
				x.levels = append(x.levels, level{f.name, v})
			}
		}
	}
}

// levelPage writes the report of the trials of a level, as a page and as JSON.
func (x *experiment) levelPage(ctx context.Context, s *Site, out *output, l level) error {
	where, err := export.ParseWhere([]string{l.factor + "=" + l.value})
	if err != nil {
		return err
	}
	r, err := x.query.Only(where).Analyze(ctx, x.DB)
	if err != nil {
		return err
	}
	r = r.Lasting()
	full, err := r.Document(ctx, 0)
	if err != nil {
		return err
	}
	d := x.linked(full)
	d.Title = fmt.Sprintf("%s, %s %s", x.title, report.Readable(l.factor), report.Readable(l.value))
	d.Lead = fmt.Sprintf("Only trials with %s %s count here, and marks and p-values are adjusted for the comparisons "+
		"of this page alone: those of the experiment's page count.", report.Readable(l.factor), report.Readable(l.value))
	d.Facts = nil // the experiment's page has them
	page := x.folder + "/" + pageOf(l.factor, l.value)
	d.Files = []document.Link{{Text: "JSON", Address: page + ".json"}}
	if err := out.page(page+".html", d, x.trail(s)...); err != nil {
		return err
	}
	return out.json(page+".json", r)
}

// linked returns a document whose cells link to the pages of the experiment.
func (x *experiment) linked(d *document.Document) *document.Document {
	out := *d
	out.Sections = nil
	for _, s := range d.Sections {
		s.Table = x.link(s.Table)
		out.Sections = append(out.Sections, s)
	}
	if d.Overview != nil {
		s := *d.Overview
		s.Table = x.link(s.Table)
		out.Overview = &s
	}
	return &out
}

// link returns a table whose names of levels link to their pages.
func (x *experiment) link(t *document.Table) *document.Table {
	if t == nil {
		return nil
	}
	pages := make(map[level]string) // by head and text
	for _, l := range x.levels {
		address := x.folder + "/" + pageOf(l.factor, l.value) + ".html"
		pages[level{report.Readable(l.factor), l.value}] = address
		pages[level{report.Readable(l.factor), report.Readable(l.value)}] = address
	}
	linked := *t
	linked.Rows = nil
	for _, row := range t.Rows {
		row = slices.Clone(row)
		for i := range min(len(row), len(t.Columns)) {
			if row[i].Address == "" {
				row[i].Address = pages[level{t.Columns[i].Head, row[i].Text}]
			}
		}
		linked.Rows = append(linked.Rows, row)
	}
	return &linked
}

// levelList leads to the pages of levels.
func (x *experiment) levelList() document.Section {
	t := &document.Table{Columns: []document.Column{{Head: "factor", Names: true}, {Head: "level", Names: true}}}
	for _, l := range x.levels {
		t.Rows = append(t.Rows, []document.Cell{
			{Text: report.Readable(l.factor)},
			{Text: report.Readable(l.value), Address: x.folder + "/" + pageOf(l.factor, l.value) + ".html"},
		})
	}
	return document.Section{
		ID: "levels", Title: "Each level by itself", Table: t,
		Lead: "The same report of the trials with one model, plan, or other condition.",
	}
}

// trialTable lists trials.
func (x *experiment) trialTable(trials []trial) *document.Table {
	varies := func(factor string) bool {
		return slices.ContainsFunc(x.levels, func(l level) bool { return l.factor == factor })
	}
	type column struct {
		document.Column
		cell func(*trial) document.Cell
	}
	name := func(head string, of func(*trial) string) column {
		return column{document.Column{Head: head, Names: true}, func(t *trial) document.Cell {
			return document.Cell{Text: report.Readable(of(t))}
		}}
	}
	columns := []column{
		{document.Column{Head: "trial", Names: true}, func(t *trial) document.Cell {
			id := document.Cell{Text: string(t.id[:8])}
			if t.page {
				id.Address = x.folder + "/" + t.address()
			}
			return id
		}},
		name("model", func(t *trial) string { return t.cell.Model }),
	}
	for _, f := range factors[1:] {
		if varies(f.name) {
			columns = append(columns, name(report.Readable(f.name), func(t *trial) string { return levelsOf(&t.cell)[f.name] }))
		}
	}
	columns = append(columns,
		name("level of success", func(t *trial) string { return string(t.level) }),
		name("first went wrong", func(t *trial) string { return t.cause }),
		column{document.Column{Head: "turns"}, func(t *trial) document.Cell { return number(t.turns) }})
	t := &document.Table{Shown: 40}
	for _, c := range columns {
		t.Columns = append(t.Columns, c.Column)
	}
	for i := range trials {
		var row []document.Cell
		for _, c := range columns {
			row = append(row, c.cell(&trials[i]))
		}
		t.Rows = append(t.Rows, row)
	}
	return x.link(t)
}

// chosenList leads to the pages of trials.
func (x *experiment) chosenList() document.Section {
	if len(x.chosen) == 0 {
		return document.Section{}
	}
	return document.Section{
		ID: "trials", Title: "Transcripts", Table: x.trialTable(x.chosen),
		Lead: "Of each model the first trial with full success and the first others, and the one that the " +
			"first lines name.",
	}
}

// taskList leads to the pages of tasks.
func (x *experiment) taskList() document.Section {
	if len(x.tasks) == 0 {
		return document.Section{}
	}
	t := &document.Table{Shown: 40, Columns: []document.Column{
		{Head: "task", Names: true},
		{Head: "task type", Names: true},
		{Head: "difficulty", Names: true},
		{Head: "done"},
		{Head: "with full success"},
	}}
	for _, id := range slices.Sorted(maps.Keys(x.tasks)) {
		of := x.tasks[id]
		t.Rows = append(t.Rows, []document.Cell{
			{Text: id, Address: x.folder + "/tasks/" + slug(id) + ".html"},
			{Text: report.Readable(of.kind)},
			{Text: of.difficulty},
			number(len(of.trials)), number(of.successes()),
		})
	}
	return document.Section{ID: "tasks", Title: "Tasks", Table: x.link(t)}
}

func (t *task) successes() (n int) {
	for _, row := range t.trials {
		if row.level == assay.FullSuccess {
			n++
		}
	}
	return n
}

// taskPage shows a task and its outcomes.
func (x *experiment) taskPage(t *task) *document.Document {
	models := make(map[string][2]int) // trials, and those with full success
	for _, row := range t.trials {
		n := models[row.cell.Model]
		n[0]++
		if row.level == assay.FullSuccess {
			n[1]++
		}
		models[row.cell.Model] = n
	}
	table := &document.Table{Columns: []document.Column{
		{Head: "model", Names: true}, {Head: "done"}, {Head: "with full success"},
	}}
	for _, m := range slices.Sorted(maps.Keys(models)) {
		table.Rows = append(table.Rows, []document.Cell{{Text: m}, number(models[m][0]), number(models[m][1])})
	}
	return &document.Document{
		Title: "Task " + t.id, Lead: t.text,
		Sections: []document.Section{
			{ID: "models", Title: "By model", Table: x.link(table)},
			{ID: "trials", Title: "Trials", Table: x.trialTable(t.trials)},
		},
	}
}

// trialPage shows a trial with its transcript and how its score came about.
func (x *experiment) trialPage(ctx context.Context, s *Site, out *output, row *trial) error {
	t, err := query.FindTrial(ctx, x.DB, string(row.id), row.number, s.Reveal)
	if err != nil {
		return err
	}
	a := &t.Attempt
	d := &document.Document{
		Title: fmt.Sprintf("Trial %s of %s", a.ID[:8], a.Model),
		Lead:  fmt.Sprintf("Attempt %d at trial %s.", a.Number, a.ID),
		Sections: []document.Section{
			{ID: "conditions", Title: "Conditions", Verbatim: t.Conditions()},
			{ID: "verdict", Title: "Verdict", Verbatim: t.VerdictText()},
		},
	}
	if e, err := t.Explain(ctx, x.DB); err == nil && e != nil {
		d.Sections = append(d.Sections, document.Section{
			ID: "score", Title: "How the score came about", Verbatim: strings.Join(e.Text(), "\n"),
		})
	}
	if t.Transcript == nil {
		d.Lead += " " + report.Capital(t.NoTranscript) + "."
	} else {
		d.Episodes = []document.Episode{query.Episode(a, t.Transcript)}
	}
	trail := append(x.trail(s), document.Link{
		Text: "task " + string(a.Task), Address: x.folder + "/tasks/" + slug(string(a.Task)) + ".html",
	})
	return out.page(x.folder+"/"+row.address(), d, trail...)
}

func number(n int) document.Cell {
	return document.Cell{Text: fmt.Sprint(n), Value: new(float64(n))}
}

// files writes what the report's page shows as files.
func (x *experiment) files(ctx context.Context, out *output) error {
	if err := out.json(x.folder+"/report.json", x.report); err != nil {
		return err
	}
	if err := out.put(x.folder+"/report.md", x.document.WriteMarkdown); err != nil {
		return err
	}
	const name = "/attempts.jsonl.gz"
	origin := export.Origin{Program: x.query.Program, Snapshot: x.snapshot()}
	return out.put(x.folder+name, func(w io.Writer) error {
		_, err := export.Pack(w, name, export.JSONL, func(w io.Writer) (int, error) {
			return origin.Write(w, export.JSONL, x.report.Attempts(ctx))
		})
		return err
	})
}
