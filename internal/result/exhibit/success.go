package exhibit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
)

func (a analysis) successSection() *document.Section {
	if len(a.Rows) == 0 {
		return nil
	}
	return new(table{a.Table}.successSection(false))
}

// A successColumn shows one figure of a row. It is left out if no row needs it.
type successColumn struct {
	document.Column
	wanted bool
	cell   func(report.Row) document.Cell
}

// successSection shows the main table. A brief one has a line for each row: it leaves out
// failures, which follow from the rest, and the intervals of partial successes.
func (t table) successSection(brief bool) document.Section {
	measured := t.has(func(r report.Row) bool { return r.BestMeasured > 0 })
	tab := &document.Table{Rows: make([][]document.Cell, len(t.Rows))}
	for _, c := range t.successColumns(brief, measured) {
		if !c.wanted {
			continue
		}
		tab.Columns = append(tab.Columns, c.Column)
		for i, r := range t.Rows {
			tab.Rows[i] = append(tab.Rows[i], c.cell(r))
		}
	}
	return document.Section{
		ID: "success", Title: "Full success", Table: tab, Notes: t.successNotes(measured),
	}
}

func (t table) successColumns(brief, measured bool) []successColumn {
	variantOf := t.variantText()
	figure := func(head string, wanted bool, cell func(report.Row) document.Cell) successColumn {
		return successColumn{document.Column{Head: head}, wanted, cell}
	}
	label := func(head string, wanted bool, cell func(report.Row) string) successColumn {
		return successColumn{
			document.Column{Head: head, Names: true},
			wanted,
			func(r report.Row) document.Cell { return text(cell(r)) },
		}
	}
	tools := document.Column{Head: "tools", Names: true, Hint: "their reliability"}
	return []successColumn{
		label("model", true, func(r report.Row) string { return r.Model }),
		label("variant", true, variantOf),
		label("difficulty", differ(t.Rows, func(r report.Row) string { return r.Difficulty }),
			func(r report.Row) string { return report.Readable(r.Difficulty) }),
		{tools, true, func(r report.Row) document.Cell {
			return document.Cell{
				Text:  assay.FormatReliability(r.Reliability),
				Value: &r.Reliability,
			}
		}},
		figure("done", true, func(r report.Row) document.Cell {
			return document.Cell{
				Text:  fmt.Sprintf("%d/%d", r.Done, r.Planned),
				Value: new(float64(r.Done)),
			}
		}),
		figure("full success", true, func(r report.Row) document.Cell {
			return withoutNote(rate(r.FullRate, r.Done, r.FullInterval))
		}),
		figure("95 % interval", true, intervalCell),
		figure("best", measured, func(r report.Row) document.Cell {
			return optional(r.Best, report.Percent)
		}),
		figure("% of best", measured, func(r report.Row) document.Cell {
			return optional(r.OfBest, report.Percent)
		}),
		figure("partial", true, func(r report.Row) document.Cell {
			partial := rate(r.PartialRate, r.Done, r.PartialInterval)
			if brief {
				return withoutNote(partial)
			}
			return partial
		}),
		figure("failure", !brief, func(r report.Row) document.Cell {
			return rate(r.FailureRate, r.Done, r.FailureInterval)
		}),
		figure("turns", true, func(r report.Row) document.Cell {
			return ifDone(r.Done, func() document.Cell { return decimal(r.MeanTurns, "%.1f") })
		}),
		figure("faults", t.has(func(r report.Row) bool { return r.Faults > 0 }),
			func(r report.Row) document.Cell { return whole(r.Faults) }),
	}
}

func (t table) has(is func(report.Row) bool) bool { return slices.ContainsFunc(t.Rows, is) }

func intervalCell(r report.Row) document.Cell {
	return ifDone(r.Done, func() document.Cell {
		return document.Cell{
			Text: intervalText(r.FullInterval), Value: &r.FullInterval.Low,
			Hint: fmt.Sprintf("design effect %.2f", r.DesignEffect),
		}
	})
}

func (t table) successNotes(measured bool) []string {
	var notes []string
	if len(t.Averaged) > 0 {
		notes = append(notes, "Rates average over "+report.ReadableList(t.Averaged)+".")
	}
	notes = append(notes, t.coverageNotes()...)
	if measured {
		notes = append(notes, "Best: the ideal agent's mean chance of full success. "+
			"% of best: success rate ÷ the ideal agent's rate.")
	}
	if t.has(func(r report.Row) bool { return r.BestMeasured > 0 && r.BestMeasured < r.Done }) {
		notes = append(
			notes,
			"Both leave out trials that older rules judged, which did not measure it.",
		)
	}
	if t.has(func(r report.Row) bool { return report.Simulated(r.Model) }) {
		notes = append(notes, simulatedNote)
	}
	if t.has(func(r report.Row) bool { return r.Model == "sim/optimal" }) {
		notes = append(notes, optimalNote)
	}
	notes = append(notes, t.pooledNotes()...)
	notes = append(notes, leftOutNotes(t.LeftOut)...)
	return append(notes, "Intervals are Wilson's, wider where trials repeat within tasks. "+
		"A fault is never a failure.")
}

const (
	simulatedNote = "Models named sim/… are simulated reference agents, not language models."
	optimalNote   = "sim/optimal plays the ideal agent for the steps in its prompt, so it only " +
		"reaches \"best\" with a correct plan (variant optimal). Without a plan it guesses the " +
		"steps, and with a flawed plan it follows the flaw; both can give 0 %."
)

func (t table) coverageNotes() []string {
	if t.Done == t.Planned {
		return nil
	}
	note := fmt.Sprintf("Coverage is %d of %d trials", t.Done, t.Planned)
	if t.Skipped > 0 {
		note += fmt.Sprintf("; a stop rule gave up %d", t.Skipped)
	}
	if pending := t.Planned - t.Done - t.Skipped; pending > 0 {
		note += fmt.Sprintf("; %d are pending", pending)
	}
	return []string{note + ". Rates cover finished trials only."}
}

// pooledNotes warns about outcomes that were made with different prompts or rules.
func (t table) pooledNotes() []string {
	list := func(names []string, text func(string) string) string {
		var texts []string
		for _, n := range names {
			if n = text(n); n == "" {
				n = "an unknown one"
			}
			texts = append(texts, n)
		}
		return strings.Join(texts, ", ")
	}
	var notes []string
	if n := len(t.Templates); n > 1 {
		notes = append(notes, fmt.Sprintf("Outcomes of %d wordings of the prompts are pooled: %s. "+
			"Compare them with care.", n, list(t.Templates, shortHash)))
	}
	if n := len(t.ScoreVersions); n > 1 {
		same := func(name string) string { return name }
		notes = append(
			notes,
			fmt.Sprintf("Outcomes judged by %d versions of the rules are pooled: %s. "+
				"`assay rescore` applies today's rules to all.", n, list(t.ScoreVersions, same)),
		)
	}
	return notes
}

func (a analysis) mainSection() *document.Section {
	if len(a.Main) == 0 {
		return nil
	}
	return &document.Section{
		ID: "main-metrics", Title: "Main metrics", Table: metricsTable(a.Main),
		Notes: append([]string{
			"Weighted counts a partial success as half a full one. Tools covered is the mean " +
				"share of the required tools that succeeded.",
		}, a.averagedNote()...),
	}
}

func metricsTable(all []report.Metrics) *document.Table {
	t := &document.Table{Columns: append(names("model"), figures("n", "full or partial", "full",
		"partial", "failure", "weighted", "turns", "tools covered", "order correct")...)}
	for _, m := range all {
		share := func(s report.Share) document.Cell { return rate(s.Rate, m.Done, s.Interval) }
		if m.Done == 0 {
			row := slices.Repeat([]document.Cell{unknown}, len(t.Columns))
			row[0], row[1] = text(m.Model), whole(0)
			t.Rows = append(t.Rows, row)
			continue
		}
		t.Rows = append(t.Rows, []document.Cell{
			text(m.Model), whole(m.Done), share(m.Success), share(m.Full), share(m.Partial),
			share(m.Failure), points(m.Weighted), decimal(m.MeanTurns, "%.1f"),
			points(m.ToolCoverage), share(m.Ordered),
		})
	}
	return t
}

// averagedNote names the factors that a table by model averages over.
func (a analysis) averagedNote() []string {
	averaged := slices.Clone(a.Averaged)
	for _, f := range []struct {
		name   string
		varies bool
	}{
		{variant, differ(a.Rows, func(r report.Row) string { return r.Variant })},
		{severity, severities(a.Rows) > 1},
		{difficulty, differ(a.Rows, func(r report.Row) string { return r.Difficulty })},
		{reliability, differ(a.Rows, func(r report.Row) string {
			return assay.FormatReliability(r.Reliability)
		})},
	} {
		if f.varies && !slices.Contains(averaged, f.name) {
			averaged = append(averaged, f.name)
		}
	}
	if len(averaged) == 0 {
		return nil
	}
	return []string{"Rates average over " + report.ReadableList(averaged) +
		". Compare only models run under the same conditions."}
}

// differ reports whether not all values are the same.
func differ[T any](all []T, of func(T) string) bool {
	return slices.ContainsFunc(all, func(v T) bool { return of(v) != of(all[0]) })
}

// severities counts the severities of flawed variants.
func severities(rows []report.Row) int {
	seen := make(map[string]bool)
	for _, r := range rows {
		if report.IsFlawed(r.Variant) {
			seen[r.Severity] = true
		}
	}
	return len(seen)
}

// variantText returns a function that names a row's variant. The name has the severity if
// there are several.
func (t table) variantText() func(report.Row) string {
	if severities(t.Rows) < 2 {
		return func(r report.Row) string { return r.Variant }
	}
	return func(r report.Row) string { return report.PromptKey(r.Variant, r.Severity) }
}
