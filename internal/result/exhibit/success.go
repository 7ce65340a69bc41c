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
	measured := a.has(func(r report.Row) bool { return r.BestMeasured > 0 })
	return &document.Section{
		ID: "success", Title: "Full success", Table: a.successTable(measured),
		Notes: a.successNotes(measured),
	}
}

func (a analysis) successTable(measured bool) *document.Table {
	variantOf := a.variantText()
	difficulties := differ(a.Rows, func(r report.Row) string { return r.Difficulty })
	faults := a.has(func(r report.Row) bool { return r.Faults > 0 })
	floors := a.has(func(r report.Row) bool { return r.Floor != nil })
	mixes := differ(a.Rows, func(r report.Row) string { return r.FaultMix })
	tools := document.Column{Head: "tools", Names: true, Hint: "their reliability"}
	return tableBy(a.Rows, []figureColumn[report.Row]{
		{label("model"), true, func(r report.Row) document.Cell { return text(r.Model) }},
		{label("variant"), true, func(r report.Row) document.Cell { return text(variantOf(r)) }},
		{label("difficulty"), difficulties, func(r report.Row) document.Cell {
			return text(report.Readable(r.Difficulty))
		}},
		{tools, true, func(r report.Row) document.Cell {
			return sorted(assay.FormatReliability(r.Reliability), r.Reliability)
		}},
		{label("faults of tools"), mixes, func(r report.Row) document.Cell {
			return text(report.MixName(r.FaultMix))
		}},
		{figure("done"), true, func(r report.Row) document.Cell {
			return sorted(fmt.Sprintf("%d/%d", r.Done, r.Planned), float64(r.Done))
		}},
		{figure("full success"), true, func(r report.Row) document.Cell {
			return withoutNote(rate(r.FullRate, r.Done, r.FullInterval))
		}},
		{figure("95 % interval"), true, intervalCell},
		{figure("floor"), floors, func(r report.Row) document.Cell {
			return optional(r.Floor, report.Percent)
		}},
		{figure("best"), measured, func(r report.Row) document.Cell {
			return optional(r.Best, report.Percent)
		}},
		{figure("% of best"), measured, ofBestCell},
		{figure("partial"), true, func(r report.Row) document.Cell {
			return rate(r.PartialRate, r.Done, r.PartialInterval)
		}},
		{figure("failure"), true, func(r report.Row) document.Cell {
			return rate(r.FailureRate, r.Done, r.FailureInterval)
		}},
		{figure("turns"), true, func(r report.Row) document.Cell {
			if r.Done == 0 {
				return unknown
			}
			return decimal(r.MeanTurns, "%.1f")
		}},
		{figure("faults"), faults, func(r report.Row) document.Cell { return whole(r.Faults) }},
	})
}

func ofBestCell(r report.Row) document.Cell {
	cell := optional(r.OfBest, report.Percent)
	if i := r.OfBestInterval; i != nil {
		cell.Note = fmt.Sprintf("%.0f–%.0f", 100*i.Low, 100*i.High)
		cell.Hint = "95 % interval " + intervalText(*i)
	}
	return cell
}

func (a analysis) has(is func(report.Row) bool) bool { return slices.ContainsFunc(a.Rows, is) }

func intervalCell(r report.Row) document.Cell {
	if r.Done == 0 {
		return unknown
	}
	cell := sorted(intervalText(r.FullInterval), r.FullInterval.Low)
	cell.Hint = fmt.Sprintf("design effect %.2f", r.DesignEffect)
	return cell
}

func (a analysis) successNotes(measured bool) []string {
	var notes []string
	if len(a.Averaged) > 0 {
		notes = append(notes, "Rates average over "+report.ReadableList(a.Averaged)+".")
	}
	notes = append(notes, a.coverageNotes()...)
	if measured {
		notes = append(notes, "Best: the ideal agent's mean chance of full success. "+
			"% of best: success rate ÷ the ideal agent's rate, with the interval of the rate "+
			"divided likewise.")
	}
	if a.has(func(r report.Row) bool { return r.BestMeasured > 0 && r.BestMeasured < r.Done }) {
		notes = append(notes,
			"Both leave out trials whose setting has another ceiling, such as a limit on tokens, "+
				"and those that older rules judged.")
	}
	if a.has(func(r report.Row) bool { return report.Simulated(r.Model) }) {
		notes = append(notes, simulatedNote)
	}
	if a.has(func(r report.Row) bool { return r.Model == "sim/optimal" }) {
		notes = append(notes, optimalNote)
	}
	notes = append(notes, a.pooledNotes()...)
	notes = append(notes, leftOutNotes(a.LeftOut)...)
	if a.Population.Tasks > 0 {
		notes = append(notes, populationNote(a.Population))
	}
	return append(notes, "Intervals are Wilson's, wider where trials repeat within tasks. "+
		"A fault is never a failure.")
}

const (
	simulatedNote = "Models named sim/… are simulated reference agents, not language models."
	optimalNote   = "sim/optimal plays the ideal agent for the steps in its prompt, so it only " +
		"reaches \"best\" with a correct plan (variant optimal). Without a plan it guesses the " +
		"steps, and with a flawed plan it follows the flaw; both can give 0 %."
)

// faults counts the attempts that ended in faults.
func (a analysis) faults() (n int) {
	for _, r := range a.Rows {
		n += r.Faults
	}
	return n
}

func (a analysis) coverageNotes() []string {
	if a.Done == a.Planned {
		return nil
	}
	note := fmt.Sprintf("Coverage is %d of %d trials", a.Done, a.Planned)
	if a.Skipped > 0 {
		note += fmt.Sprintf("; a stop rule gave up %d", a.Skipped)
	}
	if pending := a.Planned - a.Done - a.Skipped; pending > 0 {
		note += fmt.Sprintf("; %d are %s", pending, report.Left(a.faults()))
	}
	return []string{note + ". Rates cover finished trials only."}
}

// pooledNotes warns about outcomes that were made with different prompts or rules.
func (a analysis) pooledNotes() []string {
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
	if n := len(a.Templates); n > 1 {
		notes = append(notes, fmt.Sprintf("Outcomes of %d wordings of the prompts are pooled: %s. "+
			"Compare them with care.", n, list(a.Templates, shortHash)))
	}
	if n := len(a.ScoreVersions); n > 1 {
		same := func(name string) string { return name }
		notes = append(notes, fmt.Sprintf("Outcomes judged by %d versions of the rules are "+
			"pooled: %s. `assay store rescore` applies today's rules to all.", n,
			list(a.ScoreVersions, same)))
	}
	return notes
}

func (a analysis) mainSection() *document.Section {
	if len(a.Main) == 0 {
		return nil
	}
	return metricsSection("main-metrics", "Main metrics", a.Main, a.averagedNote()...)
}

func metricsSection(id, title string, all []report.Metrics, notes ...string) *document.Section {
	return &document.Section{
		ID: id, Title: title, Table: metricsTable(all),
		Notes: append([]string{
			"Weighted counts a partial success as half a full one. Tools covered is the mean " +
				"share of the required tools that succeeded.",
		}, notes...),
	}
}

func metricsTable(all []report.Metrics) *document.Table {
	columns := append(names("model"), figures("n", "full or partial", "full", "partial", "failure",
		"weighted", "turns", "tools covered", "order correct")...)
	return tableOf(columns, all, func(m report.Metrics) []document.Cell {
		row := []document.Cell{
			text(m.Model), whole(m.Done), rateOf(m.Success, m.Done), rateOf(m.Full, m.Done),
			rateOf(m.Partial, m.Done), rateOf(m.Failure, m.Done), points(m.Weighted),
			decimal(m.MeanTurns, "%.1f"), points(m.ToolCoverage), rateOf(m.Ordered, m.Done),
		}
		if m.Done == 0 {
			row = append(row[:2], slices.Repeat([]document.Cell{unknown}, len(columns)-2)...)
		}
		return row
	})
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
		{faultMix, differ(a.Rows, func(r report.Row) string { return r.FaultMix })},
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
func (a analysis) variantText() func(report.Row) string {
	if severities(a.Rows) < 2 {
		return func(r report.Row) string { return r.Variant }
	}
	return func(r report.Row) string { return report.PromptKey(r.Variant, r.Severity) }
}
