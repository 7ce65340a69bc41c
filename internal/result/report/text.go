package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/assay-eval/assay/internal/result/document"
)

// nothing stands in a cell for what is not known.
const nothing = "–"

// WriteText writes the tables for a terminal: the main table, those
// of the parts where they show more than the main table, and those of errors, loops
// and the pilot's definitions where there are any.
func (t *Table) WriteText(w io.Writer, on document.Terminal) error {
	a := Analysis{Table: t}
	sections := []*document.Section{new(t.successSection(true))}
	for i, p := range t.Parts {
		if len(t.Parts) == 1 && (len(p.Levels) < 2 || p.Factor == variant || p.Factor == reliability) {
			continue // there is nothing that the main table does not show
		}
		sections = append(sections, a.partSections(i)...)
	}
	var d document.Document
	for _, s := range append(sections, a.errorSection(), a.loopSection(), a.pilotSection()) {
		if s != nil {
			d.Sections = append(d.Sections, *s)
		}
	}
	return d.WriteText(w, on)
}

// variantText names rows' variants, with the severity where flawed ones are
// there in several.
func (t *Table) variantText() func(Row) string {
	severities := make(map[string]bool)
	for _, r := range t.Rows {
		if isFlawed(r.Variant) {
			severities[r.Severity] = true
		}
	}
	return func(r Row) string {
		if len(severities) < 2 {
			return r.Variant
		}
		return gradedName(r.Variant, r.Severity)
	}
}

func (t *Table) notes(measured bool) []string {
	var notes []string
	if len(t.Averaged) > 0 {
		notes = append(notes, "Rates average over "+readableList(t.Averaged)+".")
	}
	if t.Done < t.Planned {
		note := fmt.Sprintf("Coverage is %d of %d trials", t.Done, t.Planned)
		if t.Skipped > 0 {
			note += fmt.Sprintf("; a stop rule gave up %d", t.Skipped)
		}
		if pending := t.Planned - t.Done - t.Skipped; pending > 0 {
			note += fmt.Sprintf("; %d are pending", pending)
		}
		notes = append(notes, note+". What is not done counts nowhere.")
	}
	if measured {
		notes = append(notes, "Best is the mean chance that the best policy has of full success; of best is the rate as a share of it.")
	}
	if slices.ContainsFunc(t.Rows, func(r Row) bool { return r.BestMeasured > 0 && r.BestMeasured < r.Done }) {
		notes = append(notes, "Both leave out trials that older rules judged, which did not measure it.")
	}
	notes = append(notes, t.pooledNotes()...)
	notes = append(notes, leftOutNotes(t.LeftOut)...)
	return append(notes, "Intervals are Wilson's, wider where trials repeat within tasks. A fault is never a failure.")
}

// pooledNotes tell of outcomes that came about in different ways.
func (t *Table) pooledNotes() []string {
	list := func(names []string, text func(string) string) string {
		var texts []string
		for _, n := range names {
			texts = append(texts, cmp.Or(text(n), "one not known"))
		}
		return strings.Join(texts, ", ")
	}
	whole := func(name string) string { return name }
	var notes []string
	if n := len(t.Templates); n > 1 {
		notes = append(notes, fmt.Sprintf("Outcomes of %d wordings of the prompts are pooled: %s; compare them with care.", n, list(t.Templates, shortHash)))
	}
	if n := len(t.ScoreVersions); n > 1 {
		notes = append(notes, fmt.Sprintf("Outcomes judged by %d rules are pooled: %s; `assay rescore` brings all to today's.", n, list(t.ScoreVersions, whole)))
	}
	return notes
}

// shortHash is enough of a hash to tell it from others.
func shortHash(hash string) string {
	if len(hash) <= 8 {
		return hash
	}
	return hash[:8] + "…"
}

// leftOutNotes has a line for each variant.
func leftOutNotes(left []LeftOut) []string {
	var variants []string
	types, total := make(map[string][]string), make(map[string]LeftOut)
	for _, l := range left {
		if l.Tasks == 0 {
			continue
		}
		sum, ok := total[l.Variant]
		if !ok {
			variants = append(variants, l.Variant)
		}
		total[l.Variant] = LeftOut{Tasks: sum.Tasks + l.Tasks, Of: sum.Of + l.Of}
		types[l.Variant] = append(types[l.Variant], l.TaskType)
	}
	var notes []string
	for _, name := range variants {
		verbs := [2]string{"have", "are"}
		if total[name].Tasks == 1 {
			verbs = [2]string{"has", "is"}
		}
		notes = append(notes, fmt.Sprintf("%s: %d of %d tasks of %s %s too few steps for it and %s left out.",
			name, total[name].Tasks, total[name].Of, strings.Join(types[name], ", "), verbs[0], verbs[1]))
	}
	return notes
}

func percent(p float64) string { return fmt.Sprintf("%.1f %%", 100*p) }

// readable is a name as a person would write it.
func readable(name string) string {
	if name == "" {
		return "none"
	}
	return strings.ReplaceAll(strings.TrimPrefix(name, flawedPrefix), "_", " ")
}
