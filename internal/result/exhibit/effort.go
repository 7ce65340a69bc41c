package exhibit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
)

func (a analysis) errorSection() *document.Section {
	e := a.Errors
	if !slices.ContainsFunc(e.Rows, func(r report.ErrorRow) bool { return r.Total > 0 }) {
		return nil
	}
	columns := []figureColumn[report.ErrorRow]{
		{label("model"), true, modelAndMainError},
		{figure("n"), true, func(r report.ErrorRow) document.Cell { return whole(r.Total) }},
	}
	for i, cause := range e.Causes {
		occurs := func(r report.ErrorRow) bool { return r.Cells[i].Count > 0 }
		columns = append(columns, figureColumn[report.ErrorRow]{
			figure(causeText(cause)), slices.ContainsFunc(e.Rows, occurs),
			func(r report.ErrorRow) document.Cell { return errorCell(r.Cells[i], r.Total) },
		})
	}
	notes := []string{
		"Cells are shares of the n outcomes that are not full successes, by the first thing that " +
			"went wrong and was not made good. The most frequent cause is below the model's name; " +
			"`assay failures` has an example of each.",
	}
	return &document.Section{
		ID: "errors", Title: "Why trials failed", Chart: errorChart(e),
		Table: tableBy(e.Rows, columns), Notes: append(notes, a.averagedNote()...),
	}
}

func errorCell(c report.ErrorCell, n int) document.Cell {
	cell := rate(c.Rate, n, c.Interval)
	cell.Hint = fmt.Sprintf("%d of %d; %s", c.Count, n, cell.Hint)
	return cell
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
	if t := a.loopText(); t != "" {
		return &document.Section{ID: "loops", Title: "Loops", Lead: t}
	}
	return nil
}

func (a analysis) loopText() string {
	var kinds []string
	episodes := 0
	for _, l := range a.Loops {
		kinds = append(kinds, fmt.Sprintf("%d %s", l.Episodes, report.Readable(string(l.Kind))))
		episodes += l.Episodes
	}
	if episodes == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d episodes got into a loop. By the kind of their first loop: %s.",
		episodes, a.Done, strings.Join(kinds, ", "))
}

func (a analysis) effortSection() *document.Section {
	if a.Done == 0 || len(a.Spreads) == 0 {
		return nil
	}
	heads := figures("n", "turns ¼", "median", "¾", "tokens ¼", "median", "¾", "95 %", "calls",
		"wasted", "mistakes", "corrected", "seconds", "adherence", "to the plan given")
	played, _ := a.played()
	t := tableOf(append(names("model"), heads...), played, effortRow)
	return &document.Section{
		ID: "effort", Title: "Turns, tokens and calls", Chart: a.turnChart(), Table: t,
		Notes: append([]string{
			"A quarter of the outcomes took at most the value in column ¼. Tokens are those of " +
				"prompts and replies together, exact to 2.5 %. Calls, seconds and adherence are " +
				"means.",
			"Wasted and mistakes are shares of calls: those that the best policy would not have " +
				"made with the same luck, and those that failed by the model's own error. " +
				"Corrected is the share of outcomes with a correction.",
		}, a.averagedNote()...),
	}
}

func effortRow(s report.Spread) []document.Cell {
	row := []document.Cell{text(s.Model), whole(s.Done)}
	for _, v := range s.TurnQuarts {
		row = append(row, decimal(v, "%.0f"))
	}
	for _, v := range append(s.TokenQuarts[:], s.Token95) {
		row = append(row, tokens(v))
	}
	return append(row,
		decimal(s.CallsPer, "%.1f"), points(s.WastedShare), points(s.MistakeShare),
		rateOf(s.Assisted, s.Done), decimal(s.SecondsPer, "%.1f"),
		decimal(s.Adherence, "%.2f"), optional(s.Given, formatted("%.2f")))
}

// dataSection shows the effects of calls besides the required steps, in worlds that judge them.
func (a analysis) dataSection() *document.Section {
	if !slices.ContainsFunc(a.Spreads, func(s report.Spread) bool { return s.Precision > 0 }) {
		return nil
	}
	columns := append(names("model"),
		figures("n", "precision", "unwanted effects", "wrong data")...)
	t := tableOf(append(columns, names("most often at")...), a.Spreads,
		func(s report.Spread) []document.Cell {
			at := missing
			if s.BrokenAt != "" {
				at = s.BrokenAt
			}
			return []document.Cell{
				text(s.Model), whole(s.Done), decimal(s.Precision, "%.2f"),
				rateOf(s.Unwanted, s.Done), rateOf(s.Broken, s.Done), text(at),
			}
		})
	return &document.Section{
		ID: "data", Title: "Precision, effects and data", Table: t,
		Notes: append([]string{
			"Precision is the mean share of successful calls that brought the task forward. " +
				"Unwanted effects and wrong data are shares of outcomes: those in which a call " +
				"changed something that the task did not ask for, and those in which a required " +
				"tool first worked with data or values of another step, named with the tool.",
		}, a.averagedNote()...),
	}
}

// exposureSection shows how many of the scheduled faults of tools the models met.
func (a analysis) exposureSection() *document.Section {
	if len(a.Exposures) == 0 {
		return nil
	}
	heads := figures("n", "scheduled", "met", "share met")
	mixes := differ(a.Exposures, func(e report.Exposure) string { return e.FaultMix })
	labels := names("model")
	if mixes {
		labels = names("model", "faults of tools")
	}
	t := tableOf(append(labels, heads...), a.Exposures,
		func(e report.Exposure) []document.Cell {
			share := unknown
			if e.Scheduled > 0 {
				share = points(float64(e.Met) / float64(e.Scheduled))
			}
			cells := []document.Cell{text(e.Model)}
			if mixes {
				cells = append(cells, text(e.FaultMix))
			}
			return append(cells, whole(e.Done), whole(e.Scheduled), whole(e.Met), share)
		})
	return &document.Section{
		ID: "exposure", Title: "Faults of tools", Table: t,
		Notes: append([]string{
			"Scheduled are the faults that the luck of the trials has in the way of their plans, " +
				"which is the same for every model. Met are those that the model's calls came " +
				"to. A model that stops early meets fewer.",
		}, a.averagedNote()...),
	}
}

func (a analysis) tokenSection() *document.Section {
	if a.Done == 0 || len(a.Spreads) == 0 {
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

// dollars shows a cost. 0 means that no part of it is known.
func dollars(usd float64, unpriced int, format string) document.Cell {
	switch {
	case usd == 0:
		return unknown
	case unpriced > 0:
		format = "≥ " + format
	}
	return decimal(usd, format)
}

func (a analysis) costSection() *document.Section {
	costs := func(s report.Spread) bool { return s.CostUSD+s.UserCostUSD > 0 }
	users := slices.ContainsFunc(a.Spreads, func(s report.Spread) bool { return s.UserTokens > 0 })
	if !slices.ContainsFunc(a.Spreads, costs) {
		return nil
	}
	heads := figures("full success", "dollars", "per trial", "$ a success", "cached input",
		"thinking")
	notes := []string{
		"Dollars cover all attempts, including those that ended in faults, were interrupted, or are " +
			"at trials that are not done, at the prices in the providers file. Full success, per trial " +
			"and $ a success are about the trials of the table of models, and all attempts at their " +
			"tasks. ≥ means that some of the cost is unknown. Cached input is the share " +
			"of all input that was read from a cache, and thinking the share of all output, as far as " +
			"endpoints report them.",
	}
	if users {
		heads = append(heads, figures("user's dollars")...)
		notes = append(notes, "The user's dollars paid for the model behind the simulated user. They "+
			"are not among the dollars of the agent.")
	}
	row := func(s report.Spread) []document.Cell {
		success, perTrial, price := unknown, unknown, unknown
		if m := a.Standing(s.Model); m != nil {
			success, price = rateOf(m.Success, m.Common), priceCell(*m)
			perTrial = dollars(m.PerTrial, m.Unpriced, "%.5f")
		}
		cells := []document.Cell{
			text(s.Model), success,
			dollars(s.CostUSD, s.Unpriced, "%.2f"),
			perTrial, price,
			points(s.CachedShare), points(s.ReasoningShare),
		}
		if users {
			cells = append(cells, dollars(s.UserCostUSD, s.UserUnpriced, "%.2f"))
		}
		return cells
	}
	t := tableOf(append(names("model"), heads...), a.Spreads, row)
	return &document.Section{
		ID: "cost", Title: "What success costs", Chart: a.costChart(), Table: t,
		Notes: append(notes, a.averagedNote()...),
	}
}

func (a analysis) laneSection() *document.Section {
	if len(a.Lanes) == 0 {
		return nil
	}
	columns := slices.Concat(names("model", "lane", "run"),
		figures("requests", "occupancy", "busy"), names("waited for"))
	t := tableOf(columns, a.Lanes, func(l report.Lane) []document.Cell {
		return []document.Cell{
			text(l.Model), text(l.Lane), text(shortHash(string(l.Run))), whole(l.Requests),
			points(l.Occupancy), decimal(l.UsedS, "%.0f s"), text(waitedText(l)),
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

// leastCompared is the shortest time in seconds that a run's time is compared with. If no limit
// binds, the shortest possible time is close to 0.
const leastCompared = 0.1

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
	if s.LeastS >= leastCompared {
		lines[0] += "; fastest possible: " + ratio(s.LeastS)
	}
	if s.ForecastS >= leastCompared {
		lines[0] += "; forecast: " + ratio(s.ForecastS)
	}
	lines[0] += "."
	if n := s.SecondRequests; n > 0 {
		lines = append(lines, fmt.Sprintf("Second requests because replies were late: %d, of which %d "+
			"got a reply.", n, s.SecondReplies))
	}
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
