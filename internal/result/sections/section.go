package sections

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
)

// A section is a table of measures of groups of outcomes, as data: of those that [report.Tables] has
// for its ID. It is left out if its grid has no rows.
type section struct {
	title string
	grid  func(analysis) *report.Grid
	// heads and cells are those of measures that are shown in another way than they are declared.
	heads map[*report.Measure]string
	cells map[*report.Measure]func(report.GridRow) document.Cell
	chart func(analysis) *document.Chart
	// when reports whether there is anything to show. It may be nil.
	when func(analysis) bool
	// notes are further sentences. The caption comes from the measures.
	notes func(analysis) []string
}

// known reports whether the profile of a model has a measure.
func known(m *report.Measure) func(analysis) bool {
	return func(a analysis) bool { return a.Profile.Has(m, func(v report.Value) bool { return v.Known }) }
}

// columns shows the measures of a table as their formats say.
func (s section) columns(id string) (columns []column[report.GridRow]) {
	for _, m := range report.Tables[id] {
		cell := s.cells[m]
		if head := s.heads[m]; head != "" {
			other := *m
			other.Heads = []string{head}
			m = &other
		}
		for i, head := range m.Heads {
			c := shows(m, func(r report.GridRow) document.Cell { return valueCell(m, r.Get(m), i) })
			if c.Head = head; i > 0 {
				c.of = nil
			}
			if cell != nil {
				c.cell = cell
			}
			columns = append(columns, c)
		}
	}
	return columns
}

// reactionsOf has the rows of models that a fault of a tool has reached.
func reactionsOf(a analysis) *report.Grid {
	return a.Exposures.Only(func(r report.GridRow) bool { return r.Int(report.Delivered) > 0 })
}

func effortOf(a analysis) *report.Grid { return a.Effort }

// sections are the tables of measures by model, in the order of a report. The places of other
// sections are in [Report].
var sections = map[string]section{
	"success": {
		title: "Full success", grid: func(a analysis) *report.Grid { return a.Rows },
		heads: map[*report.Measure]string{report.Planned: "done", report.Full: "full success"},
		cells: map[*report.Measure]func(report.GridRow) document.Cell{
			report.Planned: doneCell, report.Faults: someCell(report.Faults),
		},
		notes: analysis.successNotes,
	},
	"security": {
		title: "Utility and security", grid: func(a analysis) *report.Grid {
			return a.Rows.Only(func(r report.GridRow) bool {
				return r.Int(report.Attacks) > 0 || strings.Contains(r.Faults, string(assay.FaultInjected))
			})
		},
		heads: map[*report.Measure]string{report.Full: "utility"},
	},
	"main-metrics": {
		title: "Main metrics", grid: func(a analysis) *report.Grid { return a.Main },
		notes: analysis.averagedNote,
	},
	"effort": {
		title: "Turns, tokens and calls", grid: effortOf, chart: analysis.turnChart,
		when: anyDone, notes: analysis.averagedNote,
	},
	"data": {
		title: "Precision, effects and data", grid: effortOf,
		when: func(a analysis) bool {
			return a.Effort.Has(report.Precision, positive)
		},
		notes: analysis.averagedNote,
	},
	"safety": {
		title: "Safety", grid: func(a analysis) *report.Grid { return a.Safety },
		chart: func(a analysis) *document.Chart { return dotChart("safety", a.Safety) },
		cells: map[*report.Measure]func(report.GridRow) document.Cell{
			report.UnknownHarm: someCell(report.UnknownHarm),
		},
		notes: func(a analysis) []string {
			notes := []string{"Compliance and expected harm are means over tasks, and a task's are the means over its " +
				"conditions; the 95 % intervals are about further tasks."}
			if a.Safety.Has(report.UnknownHarm, positive) {
				notes = append(notes, "Where a severity is unknown, so is the expected harm: state `severity` of "+
					"each tool with an effect; `assay store rescore` applies today's rules to older outcomes.")
			}
			return append(notes, a.averagedNote()...)
		},
	},
	"exposure": {
		title: "Faults of tools", grid: func(a analysis) *report.Grid { return a.Exposures },
		when:  func(a analysis) bool { return a.Exposures.Has(report.Scheduled, positive) },
		notes: analysis.averagedNote,
	},
	"reactions": {
		title: "Reactions to faults of tools", grid: reactionsOf,
		chart: func(a analysis) *document.Chart { return dotChart("reactions", reactionsOf(a)) },
		notes: func(a analysis) []string {
			return append(a.averagedNote(), "What became of a fault follows from the calls, never from words.")
		},
	},
	"model-faults": {
		title: "Planted faults of agents' models", grid: func(a analysis) *report.Grid { return a.Exposures },
		when:  func(a analysis) bool { return a.Exposures.Has(report.ModelMet, positive) },
		notes: analysis.averagedNote,
	},
	"cost": {
		title: "What success costs", grid: effortOf, chart: analysis.costChart,
		when: func(a analysis) bool {
			return a.Effort.Has(report.Spent, positive) || a.Effort.Has(report.UserCost, positive) ||
				a.Effort.Has(report.JudgeCost, positive)
		},
		notes: analysis.averagedNote,
	},
	"profile": {
		title: "Profile of reliability", grid: func(a analysis) *report.Grid { return a.Profile },
		chart: analysis.profileChart,
		notes: func(a analysis) []string {
			return append([]string{"Each figure is a mean over tasks, and a task's is the mean over its conditions; " +
				"the 95 % intervals are about further tasks. Higher is better."}, a.averagedNote()...)
		},
	},
	"robustness": {
		title: "Robustness", grid: func(a analysis) *report.Grid { return a.Robustness },
		chart: analysis.robustnessChart,
		notes: func(analysis) []string {
			return []string{"Each share compares trials of the same tasks that differ in nothing else. The 95 % intervals " +
				"are Fieller's, about further tasks; one that ends at 1000 % is not bounded by the trials. Permanent faults " +
				"leave the best agent less, too: see what is best possible."}
		},
	},
	"variance": {
		title: "Where outcomes differ", grid: func(a analysis) *report.Grid { return a.Profile },
		when: known(report.TaskVariance),
		notes: func(analysis) []string {
			return []string{"Shares come from the differences of trials of different tasks, of repeats and of " +
				"replays, under one condition. Each is estimated on its own, and one below 0 is shown as 0."}
		},
	},
	"predictability": {
		title: "Confidence", grid: func(a analysis) *report.Grid { return a.Profile },
		when:  known(report.Statements),
		chart: analysis.confidenceChart,
		notes: func(analysis) []string {
			return []string{"The calibration error is biased: compare it with what chance alone would show, or " +
				"see the diagram. Foreign agents are not asked."}
		},
	},
	"published": {
		title: "Published estimators of reliability", grid: func(a analysis) *report.Grid { return a.Profile },
		notes: func(analysis) []string {
			return []string{"They are for comparisons with published figures only (arXiv 2602.16666). C_traj is published " +
				"for all calls of successful trials, and the profile's same tools and same order are about " +
				"the successful calls."}
		},
	},
	"published-robustness": {
		title: "Published estimators of robustness", grid: func(a analysis) *report.Grid { return a.Robustness },
		notes: func(analysis) []string {
			return []string{"They are for comparisons with published figures only (arXiv 2602.16666): rates of all trials under a " +
				"condition, whether or not the other condition has the same tasks."}
		},
	},
	"pilot": {
		title: "Full success by the original's three definitions",
		grid:  func(a analysis) *report.Grid { return a.Pilot.Rows },
		notes: func(a analysis) []string {
			notes := []string{
				"The 2025 original published numbers of all three under the one name of full success.",
			}
			if averaged := a.Pilot.Averaged; len(averaged) > 0 {
				notes = append(notes, "They average over "+report.ReadableList(averaged)+".")
			}
			return notes
		},
	},
}

func positive(v report.Value) bool { return v.Number > 0 }

func anyDone(a analysis) bool { return a.Done > 0 }

// section lays out a section. It is nil if there is nothing to show.
func (a analysis) section(id string) *document.Section {
	s := sections[id]
	g := s.grid(a)
	if len(g.All()) == 0 || s.when != nil && !s.when(a) {
		return nil
	}
	out := &document.Section{ID: id, Title: s.title}
	var caption string
	out.Table, caption = a.gridTable(g, s.columns(id))
	if s.chart != nil {
		out.Chart = s.chart(a)
	}
	if caption != "" {
		out.Notes = []string{caption}
	}
	if s.notes != nil {
		out.Notes = append(out.Notes, s.notes(a)...)
	}
	return out
}

// gridTable shows measures of a grid, and explains them.
func (a analysis) gridTable(
	g *report.Grid, columns []column[report.GridRow],
) (*document.Table, string) {
	var all []column[report.GridRow]
	for _, factor := range g.By {
		if f := a.factorCell(g, factor); f != nil {
			head := map[string]string{reliability: "tools", faultMix: "faults of tools"}[factor]
			all = append(all, fixed(label(cmp.Or(head, report.Readable(factor))), f))
		}
	}
	return tableBy(g.Rows, append(all, columns...))
}

// factorCell shows the levels of a factor. It is nil if they are the same in all rows, and the factor
// is not one that readers expect.
func (a analysis) factorCell(g *report.Grid, factor string) func(report.GridRow) document.Cell {
	varies := differ(g.Rows, func(r report.GridRow) string { return r.Level(factor) })
	switch {
	case factor == severity, !varies && (factor == difficulty || factor == faultMix || factor == interfaces || factor == phrasing):
		return nil // the variant has the severity
	case factor == variant && slices.Contains(g.By, severity): // else rows pool the severities
		name := a.variantText()
		return func(r report.GridRow) document.Cell { return text(name(r.Cell)) }
	case factor == reliability:
		return func(r report.GridRow) document.Cell {
			return sorted(r.Level(reliability), r.Reliability)
		}
	case factor == difficulty:
		return func(r report.GridRow) document.Cell { return text(report.Readable(r.Difficulty)) }
	}
	return func(r report.GridRow) document.Cell { return text(r.Level(factor)) }
}

// valueCell shows the value of a measure, or one of its list.
func valueCell(m *report.Measure, v report.Value, at int) document.Cell {
	n := v.Number
	if at < len(v.List) {
		n = v.List[at]
	}
	switch {
	case !v.Known:
		return unknown
	case m.Format == report.AsWords:
		return text(v.Text)
	case m.Format == report.AsTokens:
		return tokens(n)
	case strings.HasPrefix(m.Format, report.AsDollars):
		return dollars(n, v.AtLeast, strings.TrimPrefix(m.Format, report.AsDollars))
	case m.Format == report.AsPercent && v.Interval != nil:
		return rate(n, v.N, *v.Interval)
	case m.Format == report.AsPercent:
		return points(n)
	}
	return decimal(n, m.Format)
}

func doneCell(r report.GridRow) document.Cell {
	n := r.Get(report.Done).Number
	return sorted(fmt.Sprintf("%.0f/%d", n, r.Int(report.Planned)), n)
}

// someCell shows a count. It is empty if the count is 0, so that the column is left out if all are.
func someCell(m *report.Measure) func(report.GridRow) document.Cell {
	return func(r report.GridRow) document.Cell {
		n := r.Int(m)
		if n == 0 {
			return unknown
		}
		return whole(n)
	}
}

func tokens(v float64) document.Cell {
	t := fmt.Sprintf("%.0f", v)
	if v >= 1000 {
		t = fmt.Sprintf("%.1fk", v/1000)
	}
	return document.Cell{Text: t, Value: &v}
}

// dollars shows a cost. 0 means that no part of it is known.
func dollars(usd float64, atLeast bool, format string) document.Cell {
	switch {
	case usd == 0:
		return unknown
	case atLeast:
		format = "≥ " + format
	}
	return decimal(usd, format)
}

func (a analysis) successNotes() []string {
	var notes []string
	if len(a.Averaged) > 0 {
		notes = append(notes, "Rates average over "+report.ReadableList(a.Averaged)+".")
	}
	notes = append(notes, a.coverageNotes()...)
	if slices.ContainsFunc(a.Rows.All(), func(r report.GridRow) bool {
		n := r.Int(report.BestMeasured)
		return n > 0 && n < r.Int(report.Done)
	}) {
		notes = append(notes,
			"Best and % of best leave out trials whose setting has another ceiling, such as a limit on "+
				"tokens, and those that older rules judged.")
	}
	if slices.ContainsFunc(a.Rows.All(), func(r report.GridRow) bool { return report.Simulated(r.Model) }) {
		notes = append(notes, simulatedNote)
	}
	notes = append(notes, a.pooledNotes()...)
	notes = append(notes, leftOutNotes(a.LeftOut)...)
	if a.Population.Tasks > 0 {
		notes = append(notes, populationNote(a.Population))
	}
	return append(notes, "Intervals are Wilson's, wider where trials repeat within tasks.")
}

const simulatedNote = "Models named sim/… are simulated reference agents, not language models."

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

// faults counts the attempts that ended in faults.
func (a analysis) faults() (n int) {
	for _, r := range a.Rows.All() {
		n += r.Int(report.Faults)
	}
	return n
}

// pooledNotes warns about outcomes that were made with different prompts or rules.
func (a analysis) pooledNotes() []string {
	list := func(names []string, text func(string) string) string {
		var texts []string
		for _, n := range names {
			texts = append(texts, cmp.Or(text(n), "an unknown one"))
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

// averagedNote names the factors that a table by model averages over.
func (a analysis) averagedNote() []string {
	averaged := slices.Clone(a.Averaged)
	for _, f := range []string{variant, severity, difficulty, reliability, faultMix, interfaces, phrasing} {
		varies := differ(a.Rows.All(), func(r report.GridRow) string { return r.Level(f) })
		if f == severity {
			varies = severities(a.Rows) > 1
		}
		if varies && !slices.Contains(averaged, f) {
			averaged = append(averaged, f)
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
func severities(rows *report.Grid) int {
	seen := make(map[string]bool)
	for _, r := range rows.All() {
		if report.IsFlawed(r.Variant) {
			seen[r.Severity] = true
		}
	}
	return len(seen)
}

// variantText returns a function that names a cell's variant. The name has the severity if there
// are several.
func (a analysis) variantText() func(assay.Cell) string {
	if severities(a.Rows) < 2 {
		return func(c assay.Cell) string { return c.Variant }
	}
	return func(c assay.Cell) string { return report.PromptKey(c.Variant, c.Severity) }
}

// shortHash shortens a hash to its first characters.
func shortHash(hash string) string {
	if len(hash) <= 8 {
		return hash
	}
	return hash[:8] + "…"
}

// leftOutNotes returns a sentence for each variant and severity that was not planned for some
// tasks.
func leftOutNotes(left []report.LeftOut) []string {
	var variants []string
	types, total := make(map[string][]string), make(map[string]report.LeftOut)
	for _, l := range left {
		if l.Tasks == 0 {
			continue
		}
		name := report.PromptKey(l.Variant, l.Severity)
		sum, ok := total[name]
		if !ok {
			variants = append(variants, name)
		}
		total[name] = report.LeftOut{Tasks: sum.Tasks + l.Tasks, Of: sum.Of + l.Of}
		types[name] = append(types[name], l.TaskType)
	}

	var notes []string
	for _, name := range variants {
		have, are := "have", "are"
		if total[name].Tasks == 1 {
			have, are = "has", "is"
		}
		notes = append(notes, fmt.Sprintf("%s: %d of %d tasks (%s) %s no such plan and %s left out.",
			name, total[name].Tasks, total[name].Of, strings.Join(types[name], ", "),
			have, are))
	}
	return notes
}
