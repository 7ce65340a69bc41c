package sections

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

func (a analysis) errorSection() *document.Section {
	e := a.Errors
	if !slices.ContainsFunc(e.Rows, func(r report.ErrorRow) bool { return r.Total > 0 }) {
		return nil
	}
	columns := []column[report.ErrorRow]{
		columnOf(label("model"), modelAndMainError),
		columnOf(figure("n"), func(r report.ErrorRow) document.Cell { return whole(r.Total) }),
	}
	for i, cause := range e.Causes {
		occurs := func(r report.ErrorRow) bool { return r.Cells[i].Count > 0 }
		if !slices.ContainsFunc(e.Rows, occurs) {
			continue
		}
		columns = append(columns, columnOf(figure(causeText(cause)), func(r report.ErrorRow) document.Cell {
			c := r.Cells[i]
			cell := rate(c.Rate, r.Total, c.Interval)
			cell.Hint = fmt.Sprintf("%d of %d; %s", c.Count, r.Total, cell.Hint)
			return cell
		}))
	}
	table, _ := tableBy(e.Rows, columns)
	return &document.Section{
		ID: "errors", Title: "Why trials failed", Chart: errorChart(e), Table: table,
		Notes: append([]string{
			"Cells are shares of the n outcomes that are not full successes, by the first thing that " +
				"went wrong and was not made good. The most frequent cause is below the model's name; " +
				"`assay failures` has an example of each.",
		}, a.averagedNote()...),
	}
}

// mainError returns the most frequent cause of a model that failed.
func mainError(r report.ErrorRow) report.ErrorCell {
	return slices.MaxFunc(r.Cells, func(a, b report.ErrorCell) int { return a.Count - b.Count })
}

// modelAndMainError shows a model above its most frequent cause.
func modelAndMainError(r report.ErrorRow) document.Cell {
	cell := text(r.Model)
	if r.Total > 0 {
		cell.Note = causeText(mainError(r).Cause)
	}
	return cell
}

func (a analysis) loopSection() *document.Section {
	var kinds []string
	episodes := 0
	for _, l := range a.Loops {
		kinds = append(kinds, fmt.Sprintf("%d %s", l.Episodes, report.Readable(string(l.Kind))))
		episodes += l.Episodes
	}
	if episodes == 0 {
		return nil
	}
	return &document.Section{ID: "loops", Title: "Loops", Lead: fmt.Sprintf(
		"%d of %d episodes got into a loop. By the kind of their first loop: %s.",
		episodes, a.Done, strings.Join(kinds, ", "))}
}

func (a analysis) tokenSection() *document.Section {
	if a.Done == 0 || len(a.Effort.All()) == 0 {
		return nil
	}
	return &document.Section{ID: "tokens", Title: "Tokens of an episode", Chart: a.tokenChart()}
}

func (a analysis) laneSection() *document.Section {
	if len(a.Lanes) == 0 {
		return nil
	}
	columns := slices.Concat(names("model", "lane", "run"),
		figures("requests", "occupancy", "busy"), names("waited for"))
	t := tableOf(columns, a.Lanes, func(l report.Lane) []document.Cell {
		var waited []string
		for _, reason := range slices.Sorted(maps.Keys(l.WaitedS)) {
			waited = append(waited, fmt.Sprintf("%s %.0f s", reason, l.WaitedS[reason]))
		}
		return []document.Cell{
			text(l.Model), text(l.Lane), text(shortHash(string(l.Run))), whole(l.Requests),
			points(l.Occupancy), decimal(l.UsedS, "%.0f s"), text(strings.Join(waited, ", ")),
		}
	})
	notes := []string{"Occupancy is the share of a lane's tightest limit that was used while " +
		"work was waiting."}
	latest := a.Lanes[len(a.Lanes)-1].Run
	for _, l := range a.Lanes {
		if l.Run == latest && l.Found != "" {
			notes = append(notes, l.Lane+": "+l.Found)
		}
	}
	return &document.Section{
		ID: "lanes", Title: "Endpoint utilisation", Chart: a.laneChart(), Table: t,
		Lead: speedText(a.Speed), Notes: notes,
	}
}

// minCompared is the shortest time in seconds that a run's time is compared with. If no limit
// binds, the shortest possible time is close to 0.
const minCompared = 0.1

// speedText compares the time of the latest run with its forecast and with the shortest possible
// time, and names each model's bottleneck.
func speedText(s *report.Speed) string {
	if s == nil {
		return ""
	}
	ratio := func(seconds float64) string {
		return fmt.Sprintf("%s (%.2f×)", Duration(seconds), s.WallS/seconds)
	}
	lines := []string{"The latest run took " + Duration(s.WallS)}
	if s.LeastS >= minCompared {
		lines[0] += "; fastest possible: " + ratio(s.LeastS)
	}
	if s.ForecastS >= minCompared {
		lines[0] += "; forecast: " + ratio(s.ForecastS)
	}
	lines[0] += "."
	for _, m := range s.Models {
		lines = append(lines, modelSpeedText(m))
	}
	return strings.Join(lines, "\n")
}

// modelSpeedText describes how busy a model's lanes were, and its bottleneck.
func modelSpeedText(m report.ModelSpeed) string {
	text := fmt.Sprintf("%s: %.0f %% of its lanes' time used", m.Model, 100*m.Used)
	if m.Lost >= 0.01 {
		text += fmt.Sprintf(", %.0f %% of it without a reply", 100*m.Lost)
	}
	if m.Bottleneck != "" {
		text += "; bottleneck: " + m.Bottleneck
	}
	if m.WaitedS > 0 {
		text += fmt.Sprintf(" (waited %s)", Duration(m.WaitedS))
	}
	return text
}

func (a analysis) repeatSection() *document.Section {
	if len(a.Repeats) == 0 {
		return nil
	}
	all := make(map[int]bool)
	for _, r := range a.Repeats {
		for _, p := range r.Passes {
			all[p.K] = true
		}
	}
	columns := []column[report.Repeat]{
		columnOf(label("model"), func(r report.Repeat) document.Cell { return text(r.Model) }),
		columnOf(figure("tasks"), func(r report.Repeat) document.Cell { return whole(r.Passes[0].Tasks) }),
	}
	for _, c := range []struct {
		name, hint string
		cell       func(stat.Passes) document.Cell
	}{
		{"pass@%d", "chance that one of %d trials succeeds", func(p stat.Passes) document.Cell {
			return rate(p.At, p.Tasks, p.AtInterval)
		}},
		{"pass^%d", "chance that all of %d trials succeed", func(p stat.Passes) document.Cell {
			return rate(p.Hat, p.Tasks, p.HatInterval)
		}},
	} {
		for _, k := range slices.Sorted(maps.Keys(all)) {
			head := document.Column{Head: fmt.Sprintf(c.name, k), Hint: fmt.Sprintf(c.hint, k)}
			columns = append(columns, columnOf(head, func(r report.Repeat) document.Cell {
				i := slices.IndexFunc(r.Passes, func(p stat.Passes) bool { return p.K == k })
				if i < 0 {
					return unknown
				}
				return c.cell(r.Passes[i])
			}))
		}
	}
	table, _ := tableBy(a.Repeats, append(columns,
		columnOf(document.Column{Head: "flips", Hint: "chance that two repeats end differently"},
			func(r report.Repeat) document.Cell {
				return rate(r.Noise.Flip, r.Noise.Repeated, r.Noise.FlipInterval)
			}),
		columnOf(document.Column{
			Head: "noise", Hint: "95 % of differences between two runs of one repeat stay within it, in points",
		}, func(r report.Repeat) document.Cell { return decimal(100*r.Noise.Limit, "± %.2f") })))
	return &document.Section{
		ID: "repeats", Title: "Repeats of a task", Table: table,
		Notes: append([]string{
			"pass@k is the unbiased estimate of the chance that at least one of k trials fully " +
				"succeeds (Chen et al., 2021). pass^k estimates the chance that all k do (Yao et " +
				"al., 2024). Both are means over the tasks with enough trials for every k, and a task's " +
				"value is the mean of its cells.",
			"Chance alone explains a difference between two runs that stays within the noise.",
		}, a.averagedNote()...),
	}
}

func otherSections(others []report.Other) (all []document.Section) {
	for i, o := range others {
		columns := append(names("model", "variant", "difficulty"),
			figures("reliability", "n", "full success", "95 % interval", "partial")...)
		all = append(all, document.Section{
			ID: fmt.Sprintf("other-%d", i+1), Title: "From another system: " + o.Name,
			Lead: o.Source + ". Another system reported these aggregates. They are not trials of " +
				"this experiment and are not counted anywhere else.",
			Table: tableOf(columns, o.Rows, otherRow),
			Notes: []string{o.Note, "Figures with * are corrected; see the import's report."},
		})
	}
	return all
}

func otherRow(r report.OtherRow) []document.Cell {
	n := whole(r.N)
	if r.Corrected {
		n.Text += " *"
		n.Hint = "corrected: the file counted outcomes twice"
	}
	full := rate(r.FullRate, r.N, r.Interval)
	full.Note = "" // the interval has a column
	partial := float64(r.Partial) / float64(max(1, r.N))
	return []document.Cell{
		text(r.Model), text(report.Readable(r.Variant)), text(report.Readable(r.Difficulty)),
		decimal(r.Reliability, "%g"), n, full,
		sorted(intervalText(r.Interval), r.Interval.Low),
		rate(partial, r.N, stat.Wilson(r.Partial, r.N, stat.Z95)),
	}
}
