package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/document"
)

// nothing stands in a cell for what is not known.
const nothing = "–"

// WriteText writes the tables for a reader, each with the notes that it needs:
// the main table, those of the parts where they show more than the main table,
// and those of errors, loops and the pilot's definitions where there are any.
func (t *Table) WriteText(w io.Writer) error {
	sections := []string{t.main()}
	for _, p := range t.Parts {
		if len(t.Parts) == 1 && (len(p.Levels) < 2 || p.Factor == variant || p.Factor == reliability) || len(p.Rows) == 0 {
			continue // there is nothing that the main table does not show
		}
		sections = append(sections, p.text())
		if p.Factor == taskType && len(p.Metrics) > 0 {
			sections = append(sections, p.metricsText())
		}
	}
	for _, s := range []string{t.Errors.text(), t.loopText(), t.Pilot.text()} {
		if s != "" {
			sections = append(sections, s)
		}
	}
	_, err := fmt.Fprintln(w, strings.Join(sections, "\n\n"))
	return err
}

// main has columns for the best possible and for faults when there are any.
func (t *Table) main() string {
	measured := slices.ContainsFunc(t.Rows, func(r Row) bool { return r.BestMeasured > 0 })
	faults := slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Faults > 0 })
	heads := []string{"model", "variant", "reli-\nability", "done", "full\nsuccess", "95 %\ninterval"}
	if measured {
		heads = append(heads, "best", "of best")
	}
	heads = append(heads, "partial", "turns")
	if faults {
		heads = append(heads, "faults")
	}
	tab := document.NewScreenTable(2, heads...)
	name := t.variantText()
	for _, r := range t.Rows {
		row := []string{r.Model, name(r), assay.FormatReliability(r.Reliability), fmt.Sprintf("%d/%d", r.Done, r.Planned)}
		row = append(row, ifAny(r.Done, percent(r.FullRate),
			fmt.Sprintf("%.1f – %s", 100*r.FullInterval.Low, percent(r.FullInterval.High)))...)
		if measured {
			row = append(row, percentOr(r.Best), percentOr(r.OfBest))
		}
		row = append(row, ifAny(r.Done, percent(r.PartialRate), fmt.Sprintf("%.1f", r.MeanTurns))...)
		if faults {
			row = append(row, fmt.Sprint(r.Faults))
		}
		tab.Row(row...)
	}
	return section("", tab, t.notes(measured))
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
		notes = append(notes, "Rates average over "+strings.Join(t.Averaged, ", ")+".")
	}
	if t.Done < t.Planned {
		notes = append(notes, fmt.Sprintf("Coverage is %d of %d trials; the rest is owed and counts nowhere.", t.Done, t.Planned))
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

func section(title string, tab *document.TextTable, notes []string) string {
	text := fmt.Sprintf("%s\n\n%s", tab, strings.Join(notes, "\n"))
	if title == "" {
		return text
	}
	return title + "\n\n" + text
}

// ifAny returns the cells, or as many empty ones without any n.
func ifAny(n int, cells ...string) []string {
	if n == 0 {
		return slices.Repeat([]string{nothing}, len(cells))
	}
	return cells
}

func cellText(c *PivotCell) string {
	if c == nil || c.Done == 0 {
		return nothing
	}
	return rateText(c.Rate, c.Done)
}

func rateText(rate float64, n int) string { return fmt.Sprintf("%s (%d)", percent(rate), n) }

func percent(p float64) string { return fmt.Sprintf("%.1f %%", 100*p) }

func percentOr(p *float64) string {
	if p == nil {
		return nothing
	}
	return percent(*p)
}

func decimals(v *float64) string {
	if v == nil {
		return nothing
	}
	return fmt.Sprintf("%.3f", *v)
}

// readable is a name as a person would write it.
func readable(name string) string {
	if name == "" {
		return "none"
	}
	return strings.ReplaceAll(strings.TrimPrefix(name, flawedPrefix), "_", " ")
}

// headText breaks a long head in two, at the space that leaves the shortest
// lines.
func headText(text string) string {
	best, width := text, len(text)
	for i, r := range text {
		if w := max(i, len(text)-i-1); r == ' ' && w < width && len(text) > 10 {
			best, width = text[:i]+"\n"+text[i+1:], w
		}
	}
	return best
}
