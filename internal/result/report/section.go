package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/stat"
)

// Document lays the analysis out for people to read. Sections without figures are
// left out.
func (a *Analysis) Document() *document.Document {
	d := &document.Document{
		Title: "Experiment " + a.Experiment,
		Lead:  a.lead(),
	}
	for _, alarm := range a.Alarms {
		d.Alarms = append(d.Alarms, document.Alarm{Title: alarm.Title, Text: alarm.Text, Where: alarm.Where})
	}
	for _, s := range []*document.Section{
		a.successSection(), a.mainSection(), a.variantSection(), a.flawSection(), a.modelSection(), a.curveSection(),
		a.pivotSection(taskType, "By task type"), a.scaleSection(), a.errorSection(), a.loopSection(),
		a.effortSection(), a.tokenSection(), a.costSection(), a.repeatSection(), a.pilotSection(), a.laneSection(),
	} {
		if s != nil {
			d.Sections = append(d.Sections, *s)
		}
	}
	if len(a.Parts) > 1 {
		for i := range a.Parts {
			for _, s := range a.partSections(i) {
				d.Sections = append(d.Sections, *s)
			}
		}
	}
	d.Sections = append(d.Sections, a.otherSections()...)
	for _, f := range append(slices.Clone(a.Facts), a.origins()...) {
		d.Facts = append(d.Facts, document.Fact(f))
	}
	return d
}

// origins tell by which wordings and rules the outcomes came about.
func (a *Analysis) origins() (facts []Fact) {
	for _, f := range []struct {
		name   string
		values []string
	}{{"templates of outcomes", a.Templates}, {"rules of scoring", a.ScoreVersions}} {
		if text := strings.Join(slices.DeleteFunc(slices.Clone(f.values), func(v string) bool { return v == "" }), ", "); text != "" {
			facts = append(facts, Fact{f.name, text})
		}
	}
	return facts
}

func (a *Analysis) lead() string {
	text := fmt.Sprintf("%d of %d trials are done, over %d cells.", a.Done, a.Planned, len(a.Cells))
	switch n := len(a.Alarms); {
	case a.Done == 0:
		return text + " There is nothing to report yet."
	case n == 1:
		return text + " Read the alarm before the figures."
	case n > 1:
		return text + fmt.Sprintf(" Read the %d alarms before the figures.", n)
	}
	return text
}

func (a *Analysis) successSection() *document.Section {
	if len(a.Rows) == 0 {
		return nil
	}
	s := a.Table.successSection(false)
	s.Chart = a.successChart()
	return &s
}

// successSection has columns for the best possible and for faults when there are any.
// Brief, each row is a line: partial success is without its interval, and failure, which
// is the rest, is left out.
func (t *Table) successSection(brief bool) document.Section {
	measured := slices.ContainsFunc(t.Rows, func(r Row) bool { return r.BestMeasured > 0 })
	faults := slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Faults > 0 })
	hard := differ(t.Rows, func(r Row) string { return r.Difficulty })
	tab := &document.Table{Columns: names("model", "variant")}
	if hard {
		tab.Columns = append(tab.Columns, names("difficulty")...)
	}
	tab.Columns = append(tab.Columns, document.Column{Head: "tools", Names: true, Hint: "their reliability"})
	tab.Columns = append(tab.Columns, figures("done", "full success", "95 % interval")...)
	if measured {
		tab.Columns = append(tab.Columns, figures("best", "of best")...)
	}
	tab.Columns = append(tab.Columns, figures("partial")...)
	if !brief {
		tab.Columns = append(tab.Columns, figures("failure")...)
	}
	tab.Columns = append(tab.Columns, figures("turns")...)
	if faults {
		tab.Columns = append(tab.Columns, figures("faults")...)
	}
	name := t.variantText()
	for _, r := range t.Rows {
		full, partial := rate(r.FullRate, r.Done, r.FullInterval), rate(r.PartialRate, r.Done, r.PartialInterval)
		interval, turns := unknown, unknown
		if r.Done > 0 {
			full.Note = "" // which has a column
			interval = document.Cell{Text: intervalText(r.FullInterval), Value: &r.FullInterval.Low, Hint: fmt.Sprintf("design effect %.2f", r.DesignEffect)}
			turns = figure(r.MeanTurns, "%.1f")
		}
		row := []document.Cell{text(r.Model), text(name(r))}
		if hard {
			row = append(row, text(readable(r.Difficulty)))
		}
		row = append(row, document.Cell{Text: assay.FormatReliability(r.Reliability), Value: &r.Reliability},
			document.Cell{Text: fmt.Sprintf("%d/%d", r.Done, r.Planned), Value: new(float64(r.Done))}, full, interval)
		if measured {
			row = append(row, optional(r.Best, percent), optional(r.OfBest, percent))
		}
		if brief {
			partial.Note = ""
		}
		row = append(row, partial)
		if !brief {
			row = append(row, rate(r.FailureRate, r.Done, r.FailureInterval))
		}
		row = append(row, turns)
		if faults {
			row = append(row, whole(r.Faults))
		}
		tab.Rows = append(tab.Rows, row)
	}
	return document.Section{ID: "success", Title: "Full success", Table: tab, Notes: t.notes(measured)}
}

func (a *Analysis) mainSection() *document.Section {
	if len(a.Main) == 0 {
		return nil
	}
	t := &document.Table{Columns: append(names("model"), figures("n", "full or partial", "full", "partial", "failure", "weighted", "turns", "tools covered", "order correct")...)}
	for _, m := range a.Main {
		share := func(s Share) document.Cell { return rate(s.Rate, m.Done, s.Interval) }
		of := func(c document.Cell) document.Cell {
			if m.Done == 0 {
				return unknown
			}
			return c
		}
		t.Rows = append(t.Rows, []document.Cell{
			text(m.Model), whole(m.Done), share(m.Success), share(m.Full), share(m.Partial), share(m.Failure),
			of(points(m.Weighted)), of(figure(m.MeanTurns, "%.1f")), of(points(m.ToolCoverage)), share(m.Ordered),
		})
	}
	return &document.Section{ID: "main-metrics", Title: "Main metrics", Table: t, Notes: append([]string{
		"Weighted counts a partial success as half a full one. Tools covered is the mean share of the required tools that succeeded.",
	}, a.averagedNote()...)}
}

// averagedNote says what a table by model averages over.
func (a *Analysis) averagedNote() []string {
	averaged := slices.Clone(a.Averaged)
	for _, f := range []struct {
		name   string
		varies bool
	}{
		{variant, differ(a.Rows, func(r Row) string { return r.Variant })},
		{severity, differ(a.Rows, func(r Row) string { return gradedName(r.Variant, r.Severity) }) && severities(a.Rows) > 1},
		{difficulty, differ(a.Rows, func(r Row) string { return r.Difficulty })},
		{reliability, differ(a.Rows, func(r Row) string { return assay.FormatReliability(r.Reliability) })},
	} {
		if f.varies && !slices.Contains(averaged, f.name) {
			averaged = append(averaged, f.name)
		}
	}
	if len(averaged) == 0 {
		return nil
	}
	return []string{"Rates average over " + readableList(averaged) + "; models whose cells differ do not compare here."}
}

func readableList(names []string) string {
	var out []string
	for _, n := range names {
		out = append(out, readable(n))
	}
	return strings.Join(out, ", ")
}

func differ[T any](all []T, of func(T) string) bool {
	return slices.ContainsFunc(all, func(v T) bool { return of(v) != of(all[0]) })
}

func severities(rows []Row) int {
	seen := make(map[string]bool)
	for _, r := range rows {
		if isFlawed(r.Variant) {
			seen[r.Severity] = true
		}
	}
	return len(seen)
}

func (a *Analysis) pivot(factor string) *Pivot {
	for i := range a.Pivots {
		if a.Pivots[i].Factor == factor {
			return &a.Pivots[i]
		}
	}
	return nil
}

func (a *Analysis) pivotSection(factor, title string) *document.Section {
	p := a.pivot(factor)
	if p == nil {
		return nil
	}
	return &document.Section{ID: "by-" + strings.ReplaceAll(factor, "_", "-"), Title: title, Chart: p.chart(), Table: p.table(), Notes: p.notes()}
}

func (a *Analysis) variantSection() *document.Section {
	s := a.pivotSection(variant, "Variants")
	if s != nil {
		s.Lead = "How the same task is put to the model: alone, with advice, with its plan, with a flawed plan."
	}
	return s
}

// flawSection shows what each variant changes against the reference.
func (a *Analysis) flawSection() *document.Section {
	if len(a.Variants) == 0 {
		return nil
	}
	notes := pairedNotes(a.Variants)
	if alone := a.incomparable(); len(alone) > 0 {
		notes = append(notes, "Not compared, for no other variant of the model has tasks under the same conditions: "+strings.Join(alone, "; ")+".")
	}
	return &document.Section{
		ID: "variant-differences", Title: "What each variant changes",
		Lead:  fmt.Sprintf("Differences to %s on the same tasks, under the same conditions, in percentage points.", a.reference()),
		Chart: a.heatChart(), Notes: notes,
		Table: pairedTable(a.Variants, names("model", "A: variant", "B: against"), func(p Paired) []string { return []string{p.Model, readable(p.A), readable(p.B)} }),
	}
}

// reference is what variants are compared with.
func (a *Analysis) reference() string {
	if differ(a.Variants, func(p Paired) string { return p.B }) {
		return "the model's optimal plans or, without those, its first variant"
	}
	return readable(a.Variants[0].B)
}

// incomparable are the variants of models with several that no comparison has.
func (a *Analysis) incomparable() (alone []string) {
	for i, r := range a.Rows {
		name := a.variantText()(r)
		same := func(s Row) bool { return s.Model == r.Model && a.variantText()(s) == name }
		if slices.ContainsFunc(a.Rows[:i], same) || !slices.ContainsFunc(a.Rows, func(s Row) bool { return s.Model == r.Model && !same(s) }) {
			continue
		}
		if !slices.ContainsFunc(a.Variants, func(p Paired) bool { return p.Model == r.Model && (p.A == name || p.B == name) }) {
			alone = append(alone, r.Model+" "+readable(name))
		}
	}
	return alone
}

func (a *Analysis) modelSection() *document.Section {
	if len(a.Models) == 0 {
		return nil
	}
	return &document.Section{
		ID: "model-differences", Title: "Models against each other",
		Lead:  "Each two models on the tasks that both tried, under the same conditions.",
		Table: pairedTable(a.Models, names("A", "B"), func(p Paired) []string { return []string{p.A, p.B} }),
		Notes: pairedNotes(a.Models),
	}
}

// pairedTable begins with columns of names, which of fills.
func pairedTable(all []Paired, columns []document.Column, of func(Paired) []string) *document.Table {
	t := &document.Table{Columns: append(columns, []document.Column{
		{Head: "tasks", Hint: "that both sides tried"},
		{Head: "A"},
		{Head: "B"},
		{Head: "A − B", Hint: "in percentage points"},
		{Head: "95 % interval"},
		{Head: "A only", Hint: "tasks on which A did better"},
		{Head: "B only", Hint: "tasks on which B did better"},
		{Head: "h", Hint: "Cohen's effect size: 0.2 is small, 0.5 medium, 0.8 large"},
		{Head: "p"},
		{Head: "q", Hint: "p adjusted for all comparisons of the table (Benjamini–Hochberg)"},
		{Head: "detectable", Hint: "the least difference that this comparison would show in 80 of 100 repetitions"},
	}...)}
	for _, p := range all {
		d := figure(100*p.Difference, "%+.1f")
		switch {
		case p.Significant() && p.Difference > 0:
			d.Tone = document.Good
		case p.Significant():
			d.Tone = document.Bad
		}
		var row []document.Cell
		for _, name := range of(p) {
			row = append(row, text(name))
		}
		t.Rows = append(t.Rows, append(row, []document.Cell{
			whole(p.Tasks), points(p.RateA), points(p.RateB), d,
			{Text: fmt.Sprintf("%+.1f to %+.1f", 100*p.Interval.Low, 100*p.Interval.High), Value: &p.Interval.Low},
			whole(p.OnlyA), whole(p.OnlyB), figure(p.CohenH, "%+.2f"),
			{Text: chance(p.P), Value: &p.P},
			{Text: chance(p.Q), Value: &p.Q},
			{Text: fmt.Sprintf("%.1f", 100*p.Detectable), Value: &p.Detectable},
		}...))
	}
	return t
}

// methodNote says what tests made p.
func methodNote(methods ...string) string {
	note := "p is by " + strings.Join(methods, ", or by ") + "."
	if strings.Contains(note, " and ") {
		note += " Of two tests it is the larger."
	}
	return note
}

func pairedNotes(all []Paired) []string {
	methods, significant := make(map[string]bool), 0
	for _, p := range all {
		methods[p.Method] = true
		if p.Significant() {
			significant++
		}
	}
	return []string{
		fmt.Sprintf("%d of %d comparisons significant: q below .05, the share of false ones among them being held at 5 %% (Benjamini and Hochberg, 1995).", significant, len(all)),
		methodNote(slices.Sorted(maps.Keys(methods))...) + " Each task weighs the same. A only and B only count tasks on which one side did better.",
		"A task's rate is over all conditions that both sides have. The test decides what is significant, and the interval says how large the difference may be: near the limit they can disagree.",
	}
}

// curveSection shows success by reliability below the ceiling of the best policy.
func (a *Analysis) curveSection() *document.Section {
	p := a.byReliability
	if p == nil {
		return nil
	}
	s := &document.Section{
		ID: "by-reliability", Title: "Success by reliability of the tools", Chart: a.curveChart(), Table: p.table(), Notes: p.notes(),
		Lead: "Best possible is what the best policy reaches: no agent can do better on average.",
	}
	ceiling := slices.Repeat([]document.Cell{unknown}, len(s.Table.Columns))
	ceiling[0] = text("best possible")
	for i, l := range p.Levels {
		ceiling[i+1] = optional(a.bestAt(l), percent)
	}
	s.Table.Rows = append(s.Table.Rows, ceiling)
	return s
}

// bestAt is the mean chance of the best policy over the outcomes at a reliability.
func (a *Analysis) bestAt(level string) *float64 {
	sum, n := 0.0, 0
	for _, c := range a.Curves {
		for _, p := range c.Points {
			if p.Best != nil && assay.FormatReliability(p.Reliability) == level {
				sum, n = sum+*p.Best*float64(p.Done), n+p.Done
			}
		}
	}
	if n == 0 {
		return nil
	}
	return new(sum / float64(n))
}

// scaleSection shows difficulty by model, and what sizes tell.
func (a *Analysis) scaleSection() *document.Section {
	p := a.pivot(difficulty)
	if p == nil {
		return nil
	}
	s := a.pivotSection(difficulty, "By difficulty, and scale")
	p.addScale(s.Table)
	return s
}

// addScale adds what a table by difficulty tells of models of several sizes.
func (p *Pivot) addScale(t *document.Table) {
	if len(p.Metrics) != len(t.Rows) {
		return
	}
	t.Columns = append(t.Columns, []document.Column{
		{Head: "tools covered", Hint: "mean share of the required tools that succeeded"},
		{Head: "order correct", Hint: "outcomes in which all required tools succeeded in order"},
		{Head: "per √B", Hint: "percent of full success by the square root of the parameters in billions"},
	}...)
	for i, m := range p.Metrics {
		size := unknown
		if _, billions, ok := familyOf(m.Model); ok && m.Done > 0 {
			size = figure(100*m.Full.Rate/math.Sqrt(billions), "%.1f")
		}
		covered := unknown
		if m.Done > 0 {
			covered = points(m.ToolCoverage)
		}
		t.Rows[i] = append(t.Rows[i], covered, rate(m.Ordered.Rate, m.Done, m.Ordered.Interval), size)
	}
}

func (a *Analysis) errorSection() *document.Section {
	e := a.Errors
	if !slices.ContainsFunc(e.Rows, func(r ErrorRow) bool { return r.Total > 0 }) {
		return nil
	}
	t := &document.Table{Columns: append(names("model"), figures("n")...)}
	for _, c := range e.Categories {
		t.Columns = append(t.Columns, document.Column{Head: readable(c)})
	}
	t.Columns = append(t.Columns, names("main mode")...)
	for _, r := range e.Rows {
		row := []document.Cell{text(r.Model), whole(r.Total)}
		most, main := 0, nothing
		for _, c := range r.Cells {
			cell := rate(c.Rate, r.Total, c.Interval)
			cell.Hint = fmt.Sprintf("%d of %d; %s", c.Count, r.Total, cell.Hint)
			row = append(row, cell)
			if c.Count > most {
				most, main = c.Count, readable(c.Category)
			}
		}
		t.Rows = append(t.Rows, append(row, text(main)))
	}
	return &document.Section{
		ID: "errors", Title: "Why outcomes are not full success", Chart: e.chart(), Table: t,
		Notes: append([]string{"Cells are shares of the n outcomes that are not full success, each of which has one category."}, a.averagedNote()...),
	}
}

func (a *Analysis) loopSection() *document.Section {
	if t := a.loopText(); t != "" {
		return &document.Section{ID: "loops", Title: "Loops", Lead: strings.ToUpper(t[:1]) + t[1:]}
	}
	return nil
}

func (a *Analysis) effortSection() *document.Section {
	if a.Done == 0 {
		return nil
	}
	t := &document.Table{Columns: append(names("model"), figures("n", "turns ¼", "median", "¾", "tokens ¼", "median", "¾", "95 %", "calls", "wasted", "mistakes", "corrected", "seconds", "adherence", "to the plan given")...)}
	for _, s := range a.Spreads {
		if s.Done == 0 {
			continue
		}
		row := []document.Cell{text(s.Model), whole(s.Done)}
		for _, v := range s.TurnQuarts {
			row = append(row, figure(v, "%.0f"))
		}
		for _, v := range append(s.TokenQuarts[:], s.Token95) {
			row = append(row, tokens(v))
		}
		t.Rows = append(t.Rows, append(row, figure(s.CallsPer, "%.1f"), points(s.WastedShare), points(s.MistakeShare),
			rate(s.Assisted.Rate, s.Done, s.Assisted.Interval), figure(s.SecondsPer, "%.1f"), figure(s.Adherence, "%.2f"), optional(s.Given, func(v float64) string { return fmt.Sprintf("%.2f", v) })))
	}
	return &document.Section{
		ID: "effort", Title: "Turns, tokens and calls", Chart: a.turnChart(), Table: t,
		Notes: append([]string{
			"Of outcomes: a quarter of them took at most what ¼ says. Tokens are those of prompts and replies together, exact to 2.5 %; calls, seconds and adherence are means.",
			"Wasted and mistakes are shares of calls: those that the best policy would not have made with the same luck, and those that failed by the model's own error. Corrected is the share of outcomes with a correction.",
		}, a.averagedNote()...),
	}
}

func (a *Analysis) tokenSection() *document.Section {
	if a.Done == 0 {
		return nil
	}
	return &document.Section{ID: "tokens", Title: "Tokens of an episode", Chart: a.tokenChart()}
}

func tokens(v float64) document.Cell {
	t := fmt.Sprintf("%.0f", v)
	if v >= 1000 {
		t = fmt.Sprintf("%.1fk", v/1000)
	}
	return document.Cell{Text: t, Value: &v}
}

func (a *Analysis) costSection() *document.Section {
	if !slices.ContainsFunc(a.Spreads, func(s Spread) bool { return s.CostUSD > 0 }) {
		return nil
	}
	t := &document.Table{Columns: append(names("model"), figures("full success", "dollars", "per trial", "per full success")...)}
	for _, s := range a.Spreads {
		per := s.CostUSD / float64(max(1, s.Done))
		t.Rows = append(t.Rows, []document.Cell{
			text(s.Model), rate(s.Success.Rate, s.Done, s.Success.Interval), priced(s, figure(s.CostUSD, "%.2f")), priced(s, figure(per, "%.5f")),
			optional(s.CostPerFull, func(v float64) string { return fmt.Sprintf("%.5f", v) }),
		})
	}
	return &document.Section{
		ID: "cost", Title: "What success costs", Chart: a.costChart(), Table: t,
		Notes: append([]string{"Dollars are of all attempts, those that ended in faults too, at the prices of the providers file."}, a.averagedNote()...),
	}
}

// priced is a figure in dollars, if a model has a price.
func priced(s Spread, c document.Cell) document.Cell {
	if s.CostUSD == 0 {
		return unknown
	}
	return c
}

func (a *Analysis) repeatSection() *document.Section {
	if len(a.Repeats) == 0 {
		return nil
	}
	ks := make(map[int]bool)
	for _, r := range a.Repeats {
		for _, p := range r.Passes {
			ks[p.K] = true
		}
	}
	t := &document.Table{Columns: append(names("model"), figures("tasks")...)}
	order := slices.Sorted(maps.Keys(ks))
	for _, k := range order {
		t.Columns = append(t.Columns, document.Column{Head: fmt.Sprintf("pass@%d", k), Hint: "chance that at least one of so many trials succeeds"})
	}
	for _, k := range order {
		t.Columns = append(t.Columns, document.Column{Head: fmt.Sprintf("pass^%d", k), Hint: "chance that all of so many trials succeed"})
	}
	t.Columns = append(t.Columns, []document.Column{{Head: "flips", Hint: "chance that two repeats end differently"}, {Head: "noise", Hint: "what 95 % of differences between two runs of one repeat stay within, in points"}}...)
	for _, r := range a.Repeats {
		row := []document.Cell{text(r.Model), whole(r.Noise.Tasks)}
		at, hat := make(map[int]document.Cell), make(map[int]document.Cell)
		for _, p := range r.Passes {
			at[p.K], hat[p.K] = rate(p.At, p.Tasks, p.AtInterval), rate(p.Hat, p.Tasks, p.HatInterval)
		}
		for _, cells := range []map[int]document.Cell{at, hat} {
			for _, k := range order {
				c, ok := cells[k]
				if !ok {
					c = unknown
				}
				row = append(row, c)
			}
		}
		t.Rows = append(t.Rows, append(row, rate(r.Noise.Flip, r.Noise.Repeated, r.Noise.FlipInterval), figure(100*r.Noise.Limit, "± %.2f")))
	}
	return &document.Section{
		ID: "repeats", Title: "What repeats tell", Table: t,
		Notes: append([]string{
			"pass@k is the unbiased estimate of the chance that at least one of k trials fully succeeds (Chen et al., 2021), pass^k that all k do (Yao et al., 2024), as means over tasks, each of which is the mean of its cells. Only full success counts.",
			"A difference between two runs that stays within the noise is what chance alone makes.",
		}, a.averagedNote()...),
	}
}

func (a *Analysis) pilotSection() *document.Section {
	if len(a.Pilot.Rows) == 0 {
		return nil
	}
	t := &document.Table{Columns: append(names("model", "variant"), figures("n", "executor", "paper", "batch")...)}
	for _, r := range a.Pilot.Rows {
		row := []document.Cell{text(r.Model), text(readable(r.Variant)), whole(r.Done)}
		for _, s := range []Share{r.Executor, r.Paper, r.Batch} {
			row = append(row, rate(s.Rate, r.Done, s.Interval))
		}
		t.Rows = append(t.Rows, row)
	}
	return &document.Section{ID: "pilot", Title: "Full success by the original's three definitions", Table: t, Notes: a.Pilot.notes()}
}

func (a *Analysis) laneSection() *document.Section {
	if len(a.Lanes) == 0 {
		return nil
	}
	t := &document.Table{Columns: append(names("model", "lane", "run"), append(figures("requests", "occupancy", "busy"), names("waited for")...)...)}
	for _, l := range a.Lanes {
		var waited []string
		for _, what := range slices.Sorted(maps.Keys(l.WaitedS)) {
			waited = append(waited, fmt.Sprintf("%s %.0f s", what, l.WaitedS[what]))
		}
		t.Rows = append(t.Rows, []document.Cell{
			text(l.Model), text(l.Lane), text(shortHash(string(l.Run))), whole(l.Requests), points(l.Occupancy), figure(l.UsedS, "%.0f s"), text(strings.Join(waited, ", ")),
		})
	}
	return &document.Section{
		ID: "lanes", Title: "How full the lanes were", Chart: a.laneChart(), Table: t,
		Notes: []string{"Occupancy is the share of what a lane's tightest limit allowed, while there was something to do."},
	}
}

// partSections are the tables of one of the experiment's parts.
func (a *Analysis) partSections(i int) []*document.Section {
	p := &a.Parts[i]
	if len(p.Rows) == 0 {
		return nil
	}
	title := strings.TrimSpace("Part " + p.Name)
	s := &document.Section{
		ID: fmt.Sprintf("part-%d", i+1), Title: title, Lead: "Full success by " + readable(p.Factor) + ".", Chart: p.chart(), Table: p.table(), Notes: p.notes(),
	}
	if p.Factor == difficulty {
		p.addScale(s.Table)
	}
	if p.Factor != taskType || len(p.Metrics) == 0 {
		return []*document.Section{s}
	}
	sub := Analysis{Table: &Table{}, Main: p.Metrics}
	m := sub.mainSection()
	m.ID, m.Title = s.ID+"-metrics", title+": main metrics"
	return []*document.Section{s, m}
}

// OthersDocument lays out what other systems report, with nothing of our own.
func OthersDocument(others []Other) *document.Document {
	a := Analysis{Others: others}
	return &document.Document{
		Title: "Aggregates of other systems", Lead: "The store holds no experiment of its own.", Sections: a.otherSections(),
	}
}

func (a *Analysis) otherSections() (all []document.Section) {
	for i, o := range a.Others {
		t := &document.Table{Columns: append(names("model", "variant", "difficulty"), figures("reliability", "n", "full success", "95 % interval", "partial")...)}
		for _, r := range o.Rows {
			n := text(fmt.Sprint(r.N))
			n.Value = new(float64(r.N))
			if r.Corrected {
				n.Text += " *"
				n.Hint = "corrected: the file counted outcomes twice"
			}
			full := rate(r.FullRate, r.N, r.Interval)
			full.Note = "" // which has a column
			partial := float64(r.Partial) / float64(max(1, r.N))
			t.Rows = append(t.Rows, []document.Cell{
				text(r.Model), text(readable(r.Variant)), text(readable(r.Difficulty)), figure(r.Reliability, "%g"), n, full,
				{Text: intervalText(r.Interval), Value: &r.Interval.Low},
				rate(partial, r.N, stat.Wilson(r.Partial, r.N, stat.Z95)),
			})
		}
		all = append(all, document.Section{
			ID: fmt.Sprintf("other-%d", i+1), Title: "Of another system: " + o.Name,
			Lead: o.Source + ". These are aggregates that another system reported. They are no trials of this experiment and count nowhere else.", Table: t,
			Notes: []string{o.Note, "Figures with * are corrected; see the import's report."},
		})
	}
	return all
}
