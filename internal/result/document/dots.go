package document

import (
	"fmt"
	"math"
	"strings"

	"charm.land/lipgloss/v2"
)

// A Dot is a share of 1 with its interval, on a line of a plot of dots.
type Dot struct {
	// Group is the same for neighbours that belong together. It is shown once.
	Group, Label     string
	Value, Low, High float64
}

// dotWidth is the number of characters from 0 to 100 %.
const dotWidth = 51

// maxGroup is the width of the names beside a plot.
const maxGroup = 48

// axis is the scale above a plot.
const axis = "0          25           50          75          100 %"

// plot draws dots with their intervals for a terminal, such as
//
//	model  right plan   ·         ·   ├─●┤
func (p pen) plot(dots []Dot) string {
	groups, labels := 0, 0
	for _, d := range dots {
		groups = max(groups, lipgloss.Width(shortName(line(d.Group), maxGroup)))
		labels = max(labels, lipgloss.Width(line(d.Label)))
	}
	head := strings.Repeat(" ", groups+labels+2*gap)
	out := []string{head + axis}
	last := ""
	for _, d := range dots {
		group := shortName(line(d.Group), maxGroup)
		if group == last {
			group = ""
		} else {
			last = group
		}
		out = append(out, fmt.Sprintf("%s%s%s%s%s  %3.0f %%", pad(p.paint(bold, group), groups),
			strings.Repeat(" ", gap), pad(line(d.Label), labels), strings.Repeat(" ", gap),
			d.line(), 100*d.Value))
	}
	return strings.Join(out, "\n")
}

// line draws the dot and its interval.
func (d Dot) line() string {
	at := func(share float64) int {
		return int(math.Round(min(1, max(0, share)) * (dotWidth - 1)))
	}
	cells := []rune(strings.Repeat(" ", dotWidth))
	for _, share := range []float64{0, .25, .5, .75, 1} {
		cells[at(share)] = '·'
	}
	for i := at(d.Low); i <= at(d.High); i++ {
		cells[i] = '─'
	}
	cells[at(d.Value)] = '●'
	return string(cells)
}

// pad fills a text with spaces up to a width.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-lipgloss.Width(text)))
}
