// Package site publishes what stores found as a static site: pages and files that any web server, or a
// reader's disk, can show without Assay.
//
// It owns which pages there are, their addresses and links, and that a second publication changes only
// the files whose content has changed. Package query finds the results, report computes the figures,
// sections words them, and document writes the pages.
package site

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/store"
)

// A Source has experiments of a store.
type Source struct {
	DB          *store.DB
	Path        string
	Experiments []store.Experiment
}

// A Site is what is published.
type Site struct {
	Title   string
	Sources []Source
	// Program is the version of the program.
	Program string
	// Transcripts is the number of failed trials of each model that get a page with their transcript.
	Transcripts int
	// Reveal shows the texts of private libraries.
	Reveal bool
	// Say hears which experiment is being published, and Warn what is left out. Both may be nil.
	Say, Warn func(string)
}

// Changes counts the files of a site, and those that a publication wrote and removed.
type Changes struct {
	Files   int `json:"files"`
	Written int `json:"written"`
	Removed int `json:"removed"`
}

// Publish writes the site into a directory, which is empty, missing, or holds a site.
func (s *Site) Publish(ctx context.Context, dir string) (c Changes, err error) {
	out, err := openOutput(dir)
	if err != nil {
		return c, err
	}
	m := manifest{Program: s.Program}
	var all []*experiment
	defer func() {
		for _, x := range all {
			err = errors.Join(err, x.job.Close())
		}
	}()
	for _, src := range s.Sources {
		for _, e := range src.Experiments {
			x, err := s.open(ctx, src, e)
			if err != nil {
				return c, err
			}
			if x == nil {
				continue
			}
			all = append(all, x)
		}
	}
	if len(all) == 0 {
		return c, errors.New("there is no experiment to publish\nhint: `assay run` runs one")
	}
	if err := out.begin(); err != nil {
		return c, err
	}
	nameApart(all)
	for _, x := range all {
		s.say("publish " + x.title)
		if err := x.publish(ctx, s, out); err != nil {
			return c, fmt.Errorf("publish experiment %s: %w", x.title, err)
		}
		m.Sources = append(m.Sources, source{x.stored.Name, filepath.Base(x.Path), x.snapshot()})
	}
	if err := s.front(ctx, out, all); err != nil {
		return c, err
	}
	for name, text := range document.Assets() {
		if err := out.put("assets/"+name, func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		}); err != nil {
			return c, err
		}
	}
	if err := out.finish(m); err != nil {
		return c, err
	}
	return Changes{len(out.new) + 1, out.written, out.removed}, nil
}

func (s *Site) say(text string) {
	if s.Say != nil {
		s.Say(text)
	}
}

// open plans an experiment again and computes its figures. It returns nil for an experiment that cannot be
// shown, with a warning.
func (s *Site) open(ctx context.Context, src Source, e store.Experiment) (*experiment, error) {
	j, err := job.Reopen(ctx, src.DB, e)
	if err != nil && ctx.Err() == nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		s.Warn(fmt.Sprintf("experiment %s is left out, because it cannot be planned again: %s", e.Name, reason))
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	x := &experiment{Source: src, stored: e, job: j, title: e.Name}
	if j.Experiment.Forks != nil {
		s.Warn(fmt.Sprintf("experiment %s has forks of another one, which `assay report` shows", e.Name))
		return nil, j.Close()
	}
	if x.query, err = query.Plan(ctx, src.DB, j, e, noConditions); err == nil {
		x.query.Program, x.query.Store = s.Program, filepath.Base(src.Path)
		x.query.Reveal, x.query.Undated = s.Reveal, true
		if x.report, err = x.query.Analyze(ctx, src.DB); err == nil {
			x.query.Snapshot = x.report.Snapshot()
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("experiment %s: %w", e.Name, err), j.Close())
	}
	return x, nil
}

// nameApart gives experiments of one name in several stores different titles.
func nameApart(all []*experiment) {
	named := make(map[string]int)
	for _, x := range all {
		named[x.stored.Name]++
	}
	for _, x := range all {
		if named[x.stored.Name] > 1 {
			x.title = fmt.Sprintf("%s (%s)", x.stored.Name, filepath.Base(x.Path))
		}
	}
	slices.SortStableFunc(all, func(a, b *experiment) int { return cmp.Compare(a.title, b.title) })
	taken := make(map[string]int)
	for _, x := range all {
		if taken[x.title]++; taken[x.title] > 1 {
			x.title = fmt.Sprintf("%s %d", x.title, taken[x.title])
		}
		x.folder = slug(x.title)
	}
}

// A standing of leaderboard.json is a model's row on the first page.
type standing struct {
	Experiment string `json:"experiment"`
	Snapshot   string `json:"snapshot"`
	Condition  string `json:"condition"`
	Page       string `json:"page"`
	report.Standing
}

// front writes the pages about all experiments.
func (s *Site) front(ctx context.Context, out *output, all []*experiment) error {
	d := &document.Document{
		Title: s.Title,
		Lead: "Each model carried out the same tasks as the others of its experiment. A name leads to its " +
			"figures, trials and transcripts.",
		Files:    []document.Link{{Text: "JSON", Address: "leaderboard.json"}},
		Sections: []document.Section{experimentList(all)},
	}
	var board []standing
	for _, x := range all {
		section := document.Section{
			ID: anchor(x), Title: x.title, Lead: x.report.Headline[0].Label + " " + x.report.Headline[0].Text + ".",
		}
		if o := x.document.Overview; o != nil {
			section.Chart, section.Table, section.Notes = o.Chart, x.link(o.Table), o.Notes
		}
		if titles := x.warnings(); len(titles) > 0 {
			section.Notes = append(slices.Clip(section.Notes), fmt.Sprintf("Warnings, which the page of %s explains: %s.",
				x.title, strings.Join(titles, "; ")))
		}
		d.Sections = append(d.Sections, section)
		for _, st := range x.report.Standings {
			board = append(board, standing{
				x.title, x.snapshot(), x.report.Condition, x.folder + "/" + pageOf("model", st.Model) + ".html", st,
			})
		}
	}
	others := []document.Cell{{Text: "method, versions and digests", Address: "method.html"}}
	if t := trends(all); t != nil {
		others = append(others, document.Cell{Text: "trends over revisions", Address: "trends.html"})
		if err := out.page("trends.html", t, s.home()); err != nil {
			return err
		}
	}
	list := document.Section{ID: "about", Title: "About these results", Table: &document.Table{
		Columns: []document.Column{{Head: "further pages", Names: true}},
	}}
	for _, o := range others {
		list.Table.Rows = append(list.Table.Rows, []document.Cell{o})
	}
	d.Sections = append(d.Sections, list)
	about, err := method(ctx, all)
	if err != nil {
		return err
	}
	if err := out.page("method.html", about, s.home()); err != nil {
		return err
	}
	if err := out.json("leaderboard.json", board); err != nil {
		return err
	}
	return out.page("index.html", d)
}

// warnings returns the titles of the warnings about an experiment's figures.
func (x *experiment) warnings() (titles []string) {
	for _, w := range x.document.Warnings {
		titles = append(titles, w.Title)
	}
	return titles
}

// anchor is the ID of an experiment's section on pages about all of them.
func anchor(x *experiment) string { return "of-" + strings.ReplaceAll(x.folder, ".", "-") }

// home leads to the first page.
func (s *Site) home() document.Link { return document.Link{Text: s.Title, Address: "index.html"} }

// experimentList leads to the pages of experiments.
func experimentList(all []*experiment) document.Section {
	t := &document.Table{Columns: []document.Column{
		{Head: "experiment", Names: true},
		{Head: "models"},
		{Head: "done"},
		{Head: "planned"},
		{Head: "warnings"},
		{Head: "latest run", Names: true},
	}}
	for _, x := range all {
		t.Rows = append(t.Rows, []document.Cell{
			{Text: x.title, Address: x.folder + "/index.html"},
			number(len(x.job.Experiment.Models)),
			number(x.report.Done), number(x.report.Planned), number(len(x.document.Warnings)),
			{Text: x.stored.UpdatedAt.UTC().Format("2006-01-02")},
		})
	}
	return document.Section{ID: "experiments", Title: "Experiments", Table: t}
}

// page writes a document as a page below others. Addresses in it are relative to the site's first page.
func (o *output) page(name string, d *document.Document, trail ...document.Link) error {
	up := strings.Repeat("../", strings.Count(name, "/"))
	moved := *d
	moved.Trail, moved.Files = lifted(trail, up), lifted(d.Files, up)
	moved.Sections = nil
	lift := func(s document.Section) document.Section {
		if s.Table == nil {
			return s
		}
		t := *s.Table
		t.Rows = nil
		for _, row := range s.Table.Rows {
			row = slices.Clone(row)
			for i := range row {
				if row[i].Address != "" {
					row[i].Address = up + row[i].Address
				}
			}
			t.Rows = append(t.Rows, row)
		}
		s.Table = &t
		return s
	}
	for _, s := range d.Sections {
		moved.Sections = append(moved.Sections, lift(s))
	}
	if d.Overview != nil {
		moved.Overview = new(lift(*d.Overview))
	}
	return o.put(name, func(w io.Writer) error { return moved.WritePage(w, up+"assets") })
}

func lifted(links []document.Link, up string) []document.Link {
	links = slices.Clone(links)
	for i := range links {
		links[i].Address = up + links[i].Address
	}
	return links
}

// json writes figures as a file.
func (o *output) json(name string, figures any) error {
	return o.put(name, func(w io.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		return e.Encode(figures)
	})
}
