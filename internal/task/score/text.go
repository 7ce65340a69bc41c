package score

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// lineWidth is the maximum width of a line, in columns.
const lineWidth = 110

// Text returns the explanation as lines to print.
func (e *Explanation) Text() []string {
	lines, head := append(e.Reason.lines(), "plan against path"), "required"
	if slices.ContainsFunc(e.Plan, func(s PlanStep) bool { return s.Optional }) {
		head = "the task's plan"
	}
	lines = append(lines, planLines(head, e.Plan)...)
	if len(e.Given) > 0 {
		lines = append(lines, "")
		lines = append(lines, planLines("as the plan was shown", e.Given)...)
	}
	lines = append(lines, "")
	lines = append(lines, e.pathLines()...)
	lines = append(lines, e.stateLines()...)
	lines = append(lines, "", "how the score came about (rules "+e.Outcome.ScoreVersion+")")
	var measures, rules [][]string
	for _, m := range e.Measures {
		measures = append(measures, []string{m.Name, m.Value, m.Because})
	}
	lines = append(lines, columns(measures, "")...)
	lines = append(lines, "")
	verdict := ""
	for _, r := range e.Rules {
		row := []string{r.Verdict, yesNo(r.Holds), r.Rule + ": " + r.Because}
		if r.Verdict == verdict {
			row[0] = ""
		}
		if verdict = r.Verdict; verdict == "verdict" {
			row[1], row[2] = "", r.Rule+", "+r.Because
		}
		rules = append(rules, row)
	}
	return append(lines, columns(rules, "")...)
}

// lines words a reason. A full success has none.
func (r *Reason) lines() []string {
	if r.Cause == "" {
		return nil
	}
	cause := r.Cause.Text() + ": " + r.Because
	if r.Turn > 0 {
		cause = fmt.Sprintf("%s in turn %d: %s", r.Cause.Text(), r.Turn, r.Because)
	}
	lines := columns([][]string{
		{"how it ended", r.Stop.Text()}, {"what went wrong", cause}, {"what was right", r.Right},
	}, "")
	return append(append([]string{"why it failed"}, lines...), "")
}

func planLines(head string, steps []PlanStep) []string {
	rows := [][]string{
		{"step", head, "tries", "by chance", "mistakes", "first success", "in order"},
	}
	for i, s := range steps {
		first := "never"
		if s.Call > 0 {
			first = fmt.Sprintf("turn %d, call %d", s.Turn, s.Call)
		}
		tool, order := s.Tool, yesNo(s.InOrder)
		if s.Optional {
			tool, order = tool+" (optional)", "-"
		}
		rows = append(rows, []string{
			strconv.Itoa(i + 1), tool, strconv.Itoa(s.Tries), strconv.Itoa(s.Failures),
			strconv.Itoa(s.Mistakes), first, order,
		})
	}
	return columns(rows, "rlrrrll")
}

func (e *Explanation) pathLines() []string {
	if len(e.Path) == 0 {
		return []string{"  no call was carried out"}
	}
	rows := [][]string{{"call", "turn", "tool", "step", "shown", "what it was"}}
	for i, s := range e.Path {
		rows = append(rows, []string{
			strconv.Itoa(i + 1), strconv.Itoa(s.Turn), s.Tool,
			ordinal(s.Step), ordinal(s.Given), s.describe(),
		})
	}
	align := "rrlrrl"
	if len(e.Given) == 0 {
		for i, row := range rows {
			rows[i] = append(row[:4:4], row[5])
		}
		align = "rrlrl"
	}
	return columns(rows, align)
}

// ordinal words an index as people count, from 1.
func ordinal(i int) string {
	if i < 0 {
		return "-"
	}
	return strconv.Itoa(i + 1)
}

// describe words a call.
func (s PathStep) describe() string {
	text := string(s.Mark)
	switch s.Mark {
	case Mistaken:
		text += ": " + s.Code
	case Unlucky:
		text += fmt.Sprintf(" (chance %.2f, luck %.2f)", s.Chance, s.Luck)
		if s.Wasted {
			text += ", and needless"
		}
		if s.Recovered {
			text += ", overcome later"
		}
	}
	if s.Fault != "" {
		text += ", fault " + string(s.Fault)
		if s.Reaction != nil {
			text += " (" + s.Reaction.Text() + ")"
		}
	}
	if s.Unwanted != "" {
		text += ", " + s.Unwanted
		if s.Harm != "" {
			text += " of " + string(s.Harm) + " severity"
		}
	}
	return text
}

// stateLines show, without cuts, the changes by the calls and the values that the judge asks for.
func (e *Explanation) stateLines() (lines []string) {
	if len(e.Changes) > 0 {
		lines = append(lines, "", "what the calls changed in the state")
	}
	for _, c := range e.Changes {
		lines = append(lines, pair(c.Path, "before", c.Before, "after", c.After)...)
	}
	if len(e.Wanted) > 0 {
		lines = append(lines, "", "what the judge wants of the state")
	}
	for _, v := range e.Wanted {
		name := "right"
		if !v.Right {
			name = "wrong"
		}
		lines = append(lines, pair(name+"  "+v.Path, "wanted", v.Wanted, "got", v.Got)...)
	}
	return lines
}

// pair shows two values, on one line if they are short.
func pair(head, nameA string, a json.RawMessage, nameB string, b json.RawMessage) []string {
	value := func(v json.RawMessage) string {
		if v == nil {
			return "nothing"
		}
		return string(v)
	}
	line := fmt.Sprintf("  %s: %s %s, %s %s", head, nameA, value(a), nameB, value(b))
	if utf8.RuneCountInString(line) <= lineWidth {
		return []string{line}
	}
	return []string{
		"  " + head + ":", "    " + nameA + " " + value(a), "    " + nameB + " " + value(b),
	}
}

// columns lays out rows. Each column is as wide as its widest cell, except for the last one, which
// is broken into lines. An r in align aligns a column to the right.
func columns(rows [][]string, align string) []string {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var lines []string
	for _, row := range rows {
		var b strings.Builder
		last := len(row) - 1
		for i, cell := range row[:last] {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			b.WriteString("  ")
			if i < len(align) && align[i] == 'r' {
				b.WriteString(pad + cell)
			} else {
				b.WriteString(cell + pad)
			}
		}
		b.WriteString("  ")
		indent := utf8.RuneCountInString(b.String())
		for i, part := range broken(row[last], max(lineWidth-indent, lineWidth/3)) {
			if i > 0 {
				b.WriteString("\n" + strings.Repeat(" ", indent))
			}
			b.WriteString(part)
		}
		for line := range strings.SplitSeq(b.String(), "\n") {
			lines = append(lines, strings.TrimRight(line, " "))
		}
	}
	return lines
}

// broken breaks a text between words into lines of at most width columns. A longer word gets its
// own line.
func broken(text string, width int) []string {
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case utf8.RuneCountInString(*last)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, word)
		default:
			*last += " " + word
		}
	}
	return lines
}
