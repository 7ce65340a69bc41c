package site

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/sections"
)

// method says how each experiment was carried out, how to cite and to repeat it, and with which versions.
func method(ctx context.Context, all []*experiment) (*document.Document, error) {
	d := &document.Document{
		Title: "Method, versions and digests",
		Lead: "What was done, in sentences that can be quoted, and everything that is needed to do it again. " +
			"`assay repeat report.json` plans an experiment again and says what differs.",
	}
	for _, x := range all {
		t := &document.Table{Columns: []document.Column{{Head: "setting", Names: true}, {Head: "value", Names: true}}}
		c, err := x.report.Citation(ctx)
		if err != nil {
			return nil, err
		}
		for _, f := range x.document.Facts {
			t.Rows = append(t.Rows, []document.Cell{{Text: f.Name}, {Text: f.Value}})
		}
		d.Sections = append(d.Sections, document.Section{
			ID: anchor(x), Title: x.title, Lead: c.Method, Verbatim: c.BibTeX, Table: t,
		})
	}
	return d, nil
}

// trends compares the revisions of models, and experiments of one name in several stores. It returns nil
// if nothing has been run more than once.
func trends(all []*experiment) *document.Document {
	type series struct{ experiment, model string }
	type row struct {
		of *experiment
		sections.Revision
	}
	found := make(map[series][]row)
	var order []series
	for _, x := range all {
		for _, s := range x.report.Standings {
			key := series{x.stored.Name, x.job.Experiment.Unrevised(s.Model)}
			if found[key] == nil {
				order = append(order, key)
			}
			found[key] = append(found[key], row{x, sections.Revision{
				Standing: s, Revision: cmp.Or(x.job.Experiment.Levels[s.Model].Sampling.Revision, "none"),
				Experiment: x.title, Began: x.first[s.Model],
				Condition: x.report.Condition, Library: x.stored.Library.Digest,
			}})
		}
	}
	d := &document.Document{
		Title: "Trends over revisions",
		Lead: "Full success of the same model or agent at its revisions, from the first to the latest, each with its " +
			"own trials. `assay compare` tests whether two of them differ.",
	}
	for _, key := range order {
		rows := found[key]
		if len(rows) < 2 {
			continue
		}
		slices.SortStableFunc(rows, func(a, b row) int { return a.Began.Compare(b.Began) })
		var revisions []sections.Revision
		for _, r := range rows {
			revisions = append(revisions, r.Revision)
		}
		s := sections.Trend(fmt.Sprintf("series-%d", len(d.Sections)+1), key.model+", "+key.experiment, revisions)
		for i, r := range rows {
			for c := range s.Table.Rows[i] {
				switch s.Table.Columns[c].Head {
				case "revision":
					s.Table.Rows[i][c].Address = r.of.folder + "/" + pageOf("model", r.Model) + ".html"
				case "experiment":
					s.Table.Rows[i][c].Address = r.of.folder + "/index.html"
				}
			}
		}
		d.Sections = append(d.Sections, s)
	}
	if len(d.Sections) == 0 {
		return nil
	}
	return d
}
