package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// Plain writes a line per [Progress], for a file or a pipe, and each note once.
type Plain struct {
	W     io.Writer
	noted int // number of notes written
	// alarmed has the attention of the latest progress, by cause and remedy.
	alarmed map[[2]string]bool
}

// Show implements [View].
func (p *Plain) Show(s Progress) {
	for _, note := range s.Notes[p.noted:] {
		fmt.Fprintln(p.W, "note: "+note)
	}
	p.noted = len(s.Notes)
	p.alarm(s)
	fmt.Fprintln(p.W, line(s))
}

// alarm writes the attention that the latest progress did not have, unless a note has the same
// text. Its words may have changed.
func (p *Plain) alarm(s Progress) {
	known := p.alarmed
	p.alarmed = make(map[[2]string]bool)
	for _, a := range s.Attention {
		key := [2]string{a.Cause, a.Advice}
		if p.alarmed[key] = true; !known[key] && !slices.Contains(s.Notes, a.Text) {
			fmt.Fprintln(p.W, "attention: "+a.String())
		}
	}
}

// Close implements [View].
func (p *Plain) Close(last Progress) { p.Show(last) }

func line(s Progress) string {
	t := s.Total()
	line := fmt.Sprintf("%s  %d/%d done, %d in flight, %s tokens/min",
		clock(s.Elapsed), t.Done, t.Planned, t.InFlight, count(t.TokensPerMinute))
	if rates := successText(s.Models); rates != "" {
		line += ", success " + rates
	}
	if a := starting(t); a != "" {
		line += ", " + a
	} else if a := AgentText(t.Agents); a != "" {
		line += ", agents: " + a
	}
	if w := WorkersText(s.Workers); w != "" {
		line += ", workers: " + w
	}
	if f := t.Brief(); f != "" {
		line += ", faults: " + f
	}
	for _, m := range s.Models {
		if m.Lost >= shownLoss {
			line += ", " + m.Model + ": " + lostText(m)
		}
	}
	for _, aside := range []struct {
		who    string
		tokens int
		cost   float64
	}{{"user", s.UserTokens, s.UserCost}, {"judge", s.JudgeTokens, s.JudgeCost}} {
		if aside.tokens == 0 {
			continue
		}
		least := ""
		if len(s.Unpriced) > 0 {
			least = "at least "
		}
		line += fmt.Sprintf(", %s: %s tokens, %s%s", aside.who, count(float64(aside.tokens)), least,
			assay.CostText(aside.cost, 2))
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
	if end := s.EndText(); end != "" {
		line += ", " + end
	}
	return line
}

func waits(s Progress) string {
	var all []string
	for _, m := range s.Models {
		if m.Waits != "" {
			all = append(all, m.Model+" "+m.Waits)
		}
	}
	return strings.Join(all, "; ")
}
