package terminal

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
)

var (
	dim   = lipgloss.NewStyle().Faint(true)
	bold  = lipgloss.NewStyle().Bold(true)
	warn  = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	alert = lipgloss.NewStyle().Foreground(lipgloss.Red)
)

// shownNotes is the number of notes, latest ones, shown below the table. Below them are at most
// shownWaits lines with waits and shownAgents lines with the states of agents.
const shownNotes, shownWaits, shownAgents = 5, 6, 6

// shownAttention is how many lines about the user's attention take the place of notes.
const shownAttention = 3

// draw renders progress for a terminal of the given size; 0 means unknown. No
// line is wider than the terminal, and the lines, including the empty one after
// the last newline, fit its height, unless it is only a few lines tall.
func draw(s Progress, width, height int) string {
	if len(s.Models) == 0 {
		return ""
	}
	lines := []string{head(s)}
	alarms := attentionLines(s.Attention)
	said := func(note string) bool {
		return slices.ContainsFunc(s.Attention, func(a Attention) bool { return a.Text == note })
	}
	unsaid := slices.DeleteFunc(slices.Clone(s.Notes), said)
	notes := alarms
	for _, note := range unsaid[max(0, len(unsaid)-shownNotes+len(alarms)):] {
		notes = append(notes, warn.Render("note: ")+note)
	}
	table := rows(s, s.Models, width)
	waits := append(cutWaits(s.Models, table[1:], width), agentLines(s)...)
	if w := WorkersText(s.Workers); w != "" {
		waits = append(waits, dim.Render("workers: ")+w)
	}
	if room := height - len(notes) - 3; height > 0 {
		waits = waits[:max(0, min(len(waits), max(2, room-len(s.Models)), room-2))]
		table = shortened(s, table, width, room-len(waits))
	}
	lines = append(lines, table...)
	lines = append(lines, notes...)
	lines = append(lines, waits...)
	for i, l := range lines {
		lines[i] = cut(l, width)
	}
	return strings.Join(lines, "\n") + "\n"
}

// shortened leaves out models if a table has more of them than there is room for.
func shortened(s Progress, table []string, width, room int) []string {
	models := s.Models
	if len(models) <= room {
		return table
	}
	shown := urgent(models, max(1, room-1))
	more := fmt.Sprintf("and %d more models", len(models)-len(shown))
	return append(rows(s, shown, width), dim.Render(more))
}

// cutWaits returns lines with the waits that do not fit into the rows of their models, because they
// may end in the endpoint's own words.
func cutWaits(models []ModelState, rows []string, width int) (lines []string) {
	for i, m := range models {
		if !strings.Contains(cut(rows[i], width), m.Waits) {
			text := lipgloss.Wrap(warn.Render("waiting: ")+m.Model+" "+m.Waits, width, "")
			lines = append(lines, strings.Split(text, "\n")...)
		}
	}
	return lines[:min(len(lines), shownWaits)]
}

// agentLines returns a line for each model with agents at work.
func agentLines(s Progress) (lines []string) {
	if text := starting(s.Total()); text != "" {
		return []string{text}
	}
	for _, m := range s.Models {
		if text := AgentText(m.Agents); text != "" {
			lines = append(lines, dim.Render("agents: ")+m.Model+" "+text)
		}
	}
	return lines[:min(len(lines), shownAgents)]
}

// attentionLines returns lines about the most urgent things.
func attentionLines(all []Attention) (lines []string) {
	for i, a := range all {
		if i == shownAttention-1 && len(all) > shownAttention {
			more := fmt.Sprintf("and %d more: assay ctl status", len(all)-i)
			return append(lines, alert.Render("attention: ")+more)
		}
		lines = append(lines, alert.Render("attention: ")+a.String())
	}
	return lines
}

func head(s Progress) string {
	total := s.Total()
	text := bold.Render(fmt.Sprintf("%d of %d trials done", total.Done, total.Planned))
	text += dim.Render("  " + clock(s.Elapsed))
	if rate := successText(s.Models); len(s.Models) == 1 && rate != "" {
		text += "  success " + rate
	}
	if end := s.EndText(); end != "" {
		text += "  " + end
	}
	if s.Stopping {
		text += warn.Render("  stopping: Ctrl-C again aborts episodes in flight")
	}
	return text
}

// urgent returns n of the models in their order. It prefers models that have
// work to do to those that are closed or done.
func urgent(models []ModelState, n int) []ModelState {
	idle := func(m ModelState) bool { return m.Closed != "" || m.Pending == 0 && m.InFlight == 0 }
	working := 0
	for _, m := range models {
		if !idle(m) {
			working++
		}
	}
	spare := max(0, n-working) // places left for idle models
	var out []ModelState
	for _, m := range models {
		switch {
		case len(out) == n:
			return out
		case !idle(m):
			out = append(out, m)
		case spare > 0:
			out, spare = append(out, m), spare-1
		}
	}
	return out
}

// rows renders a table with a header and one line per model. The least
// important columns are on the right, where they may be cut off.
func rows(s Progress, models []ModelState, width int) []string {
	const faultColumn = 7
	barWidth := 16
	if width > 0 && width < 100 {
		barWidth = 8
	}
	t := table.New().Border(lipgloss.HiddenBorder()).
		BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).
		BorderColumn(false).BorderHeader(false).
		Headers("model", "", "done", "success", "in flight", "tokens/min", "left", "faults",
			"waiting for").
		StyleFunc(func(row, col int) lipgloss.Style {
			style := lipgloss.NewStyle().PaddingRight(2)
			switch {
			case row == table.HeaderRow:
				style = style.Faint(true)
			case col == faultColumn:
				style = style.Foreground(lipgloss.Yellow)
			}
			if col >= 2 && col <= 6 {
				style = style.Align(lipgloss.Right)
			}
			return style
		})
	for _, m := range models {
		t.Row(m.Model, bar(m, barWidth), fmt.Sprintf("%d/%d", m.Done, m.Planned),
			success(m), fmt.Sprint(m.InFlight), count(m.TokensPerMinute), left(m, s.PausedSince),
			troubles(m), waiting(m))
	}
	return strings.Split(t.String(), "\n")
}

// cut cuts a line at the width of the terminal.
func cut(line string, width int) string {
	if width == 0 {
		return line
	}
	return lipgloss.NewStyle().MaxWidth(width).Render(line)
}

func bar(m ModelState, width int) string {
	if m.Planned == 0 {
		return ""
	}
	full := min(width, m.Done*width/m.Planned)
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

func left(m ModelState, paused time.Time) string {
	switch l := m.Left; {
	case m.Unfinished() == 0 || m.Pending == 0 && m.Closed == "":
		return "–"
	case m.Closed != "":
		return "closed"
	case !paused.IsZero():
		return "paused"
	case l == nil:
		return "?"
	case l.Basis == ByPlan && l.High > l.Seconds:
		return "up to " + clock(l.High)
	case l.Basis == ByPlan:
		return "~" + clock(l.Seconds)
	default:
		return clock(l.Seconds)
	}
}

func success(m ModelState) string {
	if m.Done == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*float64(m.Full)/float64(m.Done))
}

// successText describes the rate of full success of each model, with its interval if there is one
// model, such as "41 % (36–46 %)". It is empty without outcomes.
func successText(models []ModelState) string {
	if len(models) == 1 && models[0].Success != nil {
		i := models[0].Success.Interval
		return fmt.Sprintf("%s (%.0f–%.0f %%)", success(models[0]), 100*i.Low, 100*i.High)
	}
	var rates []string
	for _, m := range models {
		if m.Success != nil {
			rates = append(rates, m.Model+" "+success(m))
		}
	}
	if more := len(rates) - maxRates; more > 0 {
		rates = append(rates[:maxRates], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(rates, ", ")
}

// maxRates is how many models a line names with their rates.
const maxRates = 4

// EndText describes when the run ends, such as "65m00s left". It is empty if that is unknown.
func (s *Progress) EndText() string {
	total := s.Total()
	switch l := total.Left; {
	case !s.PausedSince.IsZero():
		return "paused since " + s.PausedSince.Local().Format("15:04")
	case total.Pending == 0 || l == nil:
		return ""
	case l.Basis == ByPace:
		return clock(l.Seconds) + " left"
	case l.High <= l.Seconds:
		return "about " + clock(l.Seconds) + " left by the plan"
	case l.Low == 0:
		return "up to " + clock(l.High) + " left by the plan"
	default:
		return fmt.Sprintf("%s to %s left by the plan", clock(l.Low), clock(l.High))
	}
}

func waiting(m ModelState) string {
	if m.Waits == "" {
		return "–"
	}
	return m.Waits
}

// shownLoss is the share of lost time that views mention.
const shownLoss = 0.05

func lostText(m ModelState) string {
	return fmt.Sprintf("%.0f %% of the lanes' time without a reply", 100*m.Lost)
}

func troubles(m ModelState) string {
	words := []string{m.Brief()}
	if m.Parked > 0 {
		words = append(words, fmt.Sprintf("%d parked", m.Parked))
	}
	if m.Skipped > 0 {
		words = append(words, fmt.Sprintf("%d skipped", m.Skipped))
	}
	if m.Lost >= shownLoss {
		words = append(words, lostText(m))
	}
	return strings.TrimPrefix(strings.Join(words, ", "), ", ")
}
