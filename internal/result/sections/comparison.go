package sections

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

// fewestRows is how many conditions and flips are shown before the rest is folded.
// Significant differences are always shown.
const fewestRows = 10

// incompleteTitle is the title of the warning that a comparison has no verdict.
const incompleteTitle = "Too few trials are done for a verdict"

// An EpisodeKey names an attempt as a [report.Flip] does: by its trial, and by its number if a later
// outcome superseded it.
type EpisodeKey struct {
	Trial   assay.TrialID
	Attempt int
}

// Comparison lays out a comparison of two sides. Flips link to the episodes of their trials, whose
// IDs are given.
func Comparison(
	figures *report.Comparison, episodes map[EpisodeKey]string,
) *document.Document {
	c := comparison{figures}
	d := &document.Document{
		Title: c.A.Name + " against " + c.B.Name, Summary: c.summary(), Chart: c.chart(),
	}
	d.Warnings = comparisonWarnings(c.Unread, []report.Side{c.A, c.B}, c.Incomplete())
	whole := report.Paired{Condition: "all", Comparison: c.Whole, Q: c.Whole.P}
	d.Sections = append(d.Sections, document.Section{
		ID: "whole", Title: "All conditions together", Notes: c.notes(),
		Table: conditionTable([]report.Paired{whole}),
	})
	if c.Compliance != nil {
		d.Sections = append(d.Sections, document.Section{
			ID: "compliance", Title: "Compliance", Table: conditionTable([]report.Paired{*c.Compliance}),
			Lead: "The shares of trials without an effect that the task did not ask for or forbids. " +
				"`assay report --details` has how bad such effects are.",
		})
	}
	if len(c.Cells) > 1 {
		d.Sections = append(d.Sections, c.conditionSection())
	}
	if len(c.Flips) > 0 {
		d.Sections = append(d.Sections, c.flipSection(episodes))
	}
	return d
}

// comparisonWarnings says what is missing from a comparison, and which of its judges may be wrong. Empty
// reasons do not count.
func comparisonWarnings(
	unread int, sides []report.Side, incomplete ...string,
) (all []document.Warning) {
	if unread > 0 {
		all = append(all, document.Warning{
			Title: report.DamagedTitle,
			Text:  "What cannot be read is on neither side. " + report.DamagedHelp,
			Where: []string{fmt.Sprintf("%d attempts cannot be read or proved", unread)},
		})
	}
	var judges []string
	for _, s := range sides {
		for _, model := range s.Uncompared {
			judges = append(judges, s.Name+": "+model)
		}
	}
	if len(judges) > 0 {
		all = append(all, document.Warning{
			Title: report.UncomparedTitle, Text: report.UncomparedText, Where: judges,
		})
	}
	var where []string
	for _, why := range incomplete {
		if why != "" {
			where = append(where, report.Capital(why))
		}
	}
	if len(where) > 0 {
		all = append(all, document.Warning{
			Title: incompleteTitle,
			Text: "What is missing may be what takes longest, so the rest is not a sample. " +
				"Run it before you compare.",
			Where: where,
		})
	}
	return all
}

func conditionTable(cells []report.Paired) *document.Table {
	return pairedTable(cells, []string{"condition"}, func(p report.Paired) []string {
		return []string{p.Condition}
	})
}

func (c comparison) conditionSection() document.Section {
	t := conditionTable(c.Cells)
	t.Shown = max(fewestRows, significant(c.Cells))
	return document.Section{
		ID: "conditions", Title: "By condition", Table: t,
		Lead: "Significant differences come first, then the largest.",
		Notes: []string{
			fmt.Sprintf("%d of %d conditions differ significantly: q, which is adjusted for all "+
				"of them, is below .05 (Benjamini and Hochberg).", significant(c.Cells), len(c.Cells)),
		},
	}
}

func (c comparison) flipSection(episodes map[EpisodeKey]string) document.Section {
	columns := append(names("condition", "task"), figures("trial of A", "A", "trial of B", "B")...)
	link := func(id assay.TrialID, attempt int) document.Cell {
		cell := document.Cell{
			Text: string(id[:min(12, len(id))]), Episode: episodes[EpisodeKey{id, attempt}],
		}
		if attempt > 0 {
			cell.Text += fmt.Sprintf(" --attempt %d", attempt)
		}
		return cell
	}
	t := tableOf(columns, c.Flips, func(f report.Flip) []document.Cell {
		return []document.Cell{
			text(f.Condition), text(string(f.Task)),
			link(f.A, f.AttemptA), text(outcomeText(f.LevelA, f.CauseA)),
			link(f.B, f.AttemptB), text(outcomeText(f.LevelB, f.CauseB)),
		}
	})
	t.Shown = fewestRows
	s := document.Section{
		ID: "flips", Title: "Trials that flipped", Table: t,
		Lead: fmt.Sprintf("%s fully succeeded only in %s, and %d only in %s. `assay show` prints "+
			"a trial.", assay.Counted(c.Worse, "trial"), c.A.Name, c.Better, c.B.Name),
	}
	if n := c.Worse + c.Better; n > len(c.Flips) {
		s.Notes = []string{fmt.Sprintf("The first %d of %d.", len(c.Flips), n)}
	}
	return s
}

func outcomeText(l assay.Level, c assay.Cause) string {
	if c == "" {
		return report.Readable(string(l))
	}
	return report.Readable(string(l)) + ": " + c.Text()
}

// summary begins with the verdict.
func (c comparison) summary() []document.Point {
	points := []document.Point{{Label: "Verdict", Text: c.verdict()}}
	if len(c.Cells) > 1 {
		points = append(points, document.Point{Label: "Where", Text: c.whereText()})
	}
	if p := c.Compliance; p != nil {
		points = append(points, document.Point{Label: "Compliance", Text: fmt.Sprintf("No effect that nobody asked "+
			"for: %s of the trials of %s, %s of those of %s (%s).", report.Percent(p.RateA), c.A.Name,
			report.Percent(p.RateB), c.B.Name, named("p", p.P))})
	}
	if text := c.differText(); text != "" {
		points = append(points, document.Point{Label: "What differs", Text: text})
	}
	return append(points, append(retries(c.A), retries(c.B)...)...)
}

// retries says which outcomes count of trials that were worked on again.
func retries(s report.Side) (points []document.Point) {
	add := func(text string) { points = append(points, document.Point{Label: "Retries", Text: text}) }
	if first := s.Replayed - s.Late; first > 0 {
		add(fmt.Sprintf("%s of %s were worked on again. Their first outcomes count here, because "+
			"a choice by outcome would favour it.", assay.Counted(first, "trial"), s.Name))
	}
	if s.Replays > 0 {
		points = append(points, document.Point{Label: "Replays", Text: fmt.Sprintf("%s of %s are left out, because "+
			"they share their luck with trials that count.", assay.Counted(s.Replays, "replay"), s.Name)})
	}
	if s.Late > 0 {
		add(fmt.Sprintf("%s lacks the first outcomes of %s, which were worked on again. Later outcomes "+
			"count instead, which favours %s if trials were repeated because they failed.", s.Name,
			assay.Counted(s.Late, "trial"), s.Name))
	}
	return points
}

// whereText names the condition with the largest difference.
func (c comparison) whereText() string {
	top := c.Cells[0]
	if top.Difference == 0 {
		return fmt.Sprintf("None of %d conditions differs.", len(c.Cells))
	}
	n := significant(c.Cells)
	count := fmt.Sprintf("%d of %d conditions differ significantly.", n, len(c.Cells))
	if n == 0 {
		count = fmt.Sprintf("None of %d conditions differs significantly on its own.", len(c.Cells))
	}
	count += " " + c.unevenText()
	return fmt.Sprintf("%s The largest difference: %s, where %s %s %s on %s.", count, top.Condition,
		c.B.Name, scored(top.Difference), c.A.Name, assay.Counted(top.Tasks, "task"))
}

// unevenText describes whether the difference depends on the condition.
func (c comparison) unevenText() string {
	chance := named("p", c.Whole.PConditions)
	if report.Uneven(c.Whole) {
		return fmt.Sprintf("The difference depends on the condition (%s), so their mean hides "+
			"something.", chance)
	}
	return fmt.Sprintf("Chance explains how much they vary (%s).", chance)
}

func (c comparison) verdict() string {
	w := c.Whole
	text := fmt.Sprintf("%s %s %s on %s", c.B.Name, scored(w.Difference), c.A.Name,
		assay.Counted(w.Tasks, "task"))
	if why := c.Incomplete(); why != "" {
		return fmt.Sprintf("None, because %s. %s so far.", why, text)
	}
	if c.Shared > 0 && c.Shared == c.A.Matched && c.Shared == c.B.Matched {
		return fmt.Sprintf("None, because the %s in common are the same on both sides.", assay.Counted(c.Shared, "trial"))
	}
	chance := named("p", w.P)
	if (report.Paired{Comparison: w, Q: w.P}).Significant() {
		return fmt.Sprintf("%s, which is significant (%s).", text, chance)
	}
	if w.Difference != 0 && lacksClusters(w) == "" {
		text += fmt.Sprintf(", which is too close to call (%s)", chance)
	}
	return fmt.Sprintf("%s. %s.", text, foundText(w))
}

// foundText is the power of a comparison.
func foundText(w stat.Comparison) string {
	if text := lacksClusters(w); text != "" {
		return text
	}
	if w.Detectable == 1 {
		return "Such data find no difference"
	}
	least := fmt.Sprintf("%.0f", 100*w.Detectable)
	if least == "5" || least == "10" { // the others are of exactly so many
		least = fmt.Sprintf("%.1f", 100*w.Detectable)
	}
	return fmt.Sprintf("Such data find a difference of 5 points in %.0f of 100 cases, of 10 points "+
		"in %.0f, and of %s points in 80", 100*w.Power.At5, 100*w.Power.At10, least)
}

// lacksClusters says why no number of tasks like these shows a difference, or "".
func lacksClusters(w stat.Comparison) string {
	switch {
	case w.Clusters > 1 || w.Tasks == 0:
		return ""
	case w.Tasks == 1:
		return "One task cannot show a difference: more tasks can"
	}
	return fmt.Sprintf("All %d tasks need the same sequence of tools, so they count as one observation, "+
		"and more of them show no difference: tasks of other sequences can, or `--cluster task`, "+
		"which is about further tasks of this sequence", w.Tasks)
}

func (c comparison) differText() string {
	text := ""
	for _, d := range c.Differ {
		text += fmt.Sprintf("%s: %s and %s. ", report.Capital(report.Readable(d.Factor)),
			cmp.Or(d.A, "none"), cmp.Or(d.B, "none"))
	}
	if len(c.Differ) > 1 {
		text += "The figures cannot show which of these makes the difference."
	}
	return strings.TrimSpace(text)
}

func (c comparison) notes() []string {
	notes := []string{
		fmt.Sprintf("Matched by task and condition: %d of the %d settled trials of %s, and %d of "+
			"the %d of %s.", c.A.Matched, c.A.Trials, c.A.Name, c.B.Matched, c.B.Trials, c.B.Name),
		methodNote(c.Whole.Method) + " " + weightNote,
		populationNote(c.Population),
	}
	if !c.SameLuck {
		notes = append(notes, "The sides met different luck, trial by trial, because their seeds "+
			"or worlds differ.")
	}
	if c.Unlike > 0 {
		notes = append(notes, fmt.Sprintf("%d tasks have the same name on both sides but "+
			"different texts. They are not compared.", c.Unlike))
	}
	if c.Shared > 0 {
		notes = append(notes, fmt.Sprintf("%d trials belong to both sides, so they cannot differ.",
			c.Shared))
	}
	return notes
}
