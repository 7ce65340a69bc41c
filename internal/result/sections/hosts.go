package sections

import (
	"fmt"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
)

// Hosts lays out how the hosts of a model differ from the first of them.
func Hosts(h *report.Hosts) *document.Document {
	d := &document.Document{Sections: []document.Section{hostSection(h), differenceSection(h)}}
	var names []string
	for _, p := range h.Against {
		names = append(names, p.B)
		d.Summary = append(d.Summary, document.Point{Label: p.B, Text: hostText(h, p)})
	}
	d.Title = fmt.Sprintf("Hosts: %s against %s", strings.Join(names, ", "), h.All[0].Name)
	for _, s := range h.All {
		d.Summary = append(d.Summary, retries(s)...)
	}
	d.Warnings = comparisonWarnings(h.Unread, h.All, h.Incomplete...)
	return d
}

func hostText(h *report.Hosts, p report.Paired) string {
	text := fmt.Sprintf("%s %s on %s, with 95 %% confidence between %s points",
		report.Capital(scored(p.Difference)), p.A, assay.Counted(p.Tasks, "task"),
		signed("%+.1f and %+.1f", 100*p.Interval.Low, 100*p.Interval.High))
	switch {
	case len(h.Incomplete) > 0:
		return text + " so far."
	case p.Significant():
		return fmt.Sprintf("%s, which is significant (%s).", text, named("q", p.Q))
	}
	return fmt.Sprintf("%s. No difference is shown (%s). %s.", text, named("q", p.Q),
		foundText(p.Comparison))
}

func hostSection(h *report.Hosts) document.Section {
	columns := append(names("host"), figures("trials", "full success", "faults", "median trial",
		"95 % within", "dollars a trial")...)
	return document.Section{
		ID: "hosts", Title: "Hosts",
		Notes: []string{"Faults are attempts without an outcome. Trials are timed without queues."},
		Table: tableOf(columns, h.All, func(s report.Side) []document.Cell {
			return []document.Cell{
				text(s.Name), whole(s.Trials), points(float64(s.Full) / float64(s.Trials)),
				whole(s.Faults), decimal(s.Median, "%.2f s"), decimal(s.P95, "%.2f s"),
				dollars(s.Each(), s.AtLeast(), "%.5f"),
			}
		}),
	}
}

func differenceSection(h *report.Hosts) document.Section {
	return document.Section{
		ID: "success", Title: "Full success on the same tasks",
		Table: pairedTable(h.Against, []string{"A", "B"}, func(p report.Paired) []string {
			return []string{p.A, p.B}
		}),
		Notes: []string{
			methodNote(h.Against[0].Method) + " " + weightNote, populationNote(h.Population),
		},
	}
}
