package live

import (
	"fmt"
	"io"
	"strings"
)

// Plain writes a line per snapshot, for a file or a pipe, and each note once.
type Plain struct {
	W     io.Writer
	noted int // number of notes written
}

// Show implements [View].
func (p *Plain) Show(s Snapshot) {
	for _, note := range s.Notes[p.noted:] {
		fmt.Fprintln(p.W, "note: "+note)
	}
	p.noted = len(s.Notes)
	fmt.Fprintln(p.W, line(s))
}

// Close implements [View].
func (p *Plain) Close(last Snapshot) { p.Show(last) }

func line(s Snapshot) string {
	t := s.Total()
	line := fmt.Sprintf("%s  %d/%d done, %d in flight, %s tokens/min",
		clock(s.Elapsed), t.Done, t.Planned, t.InFlight, count(t.TokensPerMinute))
	if a := AgentText(t.Agents); a != "" {
		line += ", agents: " + a
	}
	if f := faults(t.Faults); f != "" {
		line += ", faults: " + f
	}
	if t.Parked > 0 {
		line += fmt.Sprintf(", %d parked", t.Parked)
	}
	if t.Skipped > 0 {
		line += fmt.Sprintf(", %d skipped", t.Skipped)
	}
	if w := waits(s); w != "" {
		line += ", waiting: " + w
	}
	if t.Left > 0 && t.Pending() > 0 {
		line += ", about " + clock(t.Left) + " left"
	}
	return line
}

func waits(s Snapshot) string {
	var all []string
	for _, m := range s.Models {
		if m.Waits != "" {
			all = append(all, m.Name+" "+m.Waits)
		}
	}
	return strings.Join(all, "; ")
}
