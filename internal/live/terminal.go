package live

import (
	"fmt"
	"io"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
)

// Terminal redraws a table in place. It reads no input, so Ctrl-C stays a
// signal.
type Terminal struct {
	program *tea.Program
	done    chan struct{}
}

// NewTerminal takes the part of the screen below the cursor.
func NewTerminal(w io.Writer) *Terminal {
	t := &Terminal{
		program: tea.NewProgram(screen{}, tea.WithInput(nil), tea.WithOutput(w), tea.WithoutSignalHandler(), tea.WithFPS(10)),
		done:    make(chan struct{}),
	}
	go func() {
		defer close(t.done)
		// A terminal that cannot be drawn on is no reason to stop a run.
		_, _ = t.program.Run()
	}()
	return t
}

// Show implements [View].
func (t *Terminal) Show(s Snapshot) { t.program.Send(s) }

// Close implements [View].
func (t *Terminal) Close(last Snapshot) {
	t.program.Send(last)
	t.program.Quit()
	<-t.done
}

// screen is the bubbletea model: the last snapshot and the width.
type screen struct {
	snapshot Snapshot
	width    int
}

func (s screen) Init() tea.Cmd { return nil }

func (s screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case Snapshot:
		s.snapshot = m
	case tea.WindowSizeMsg:
		s.width = m.Width
	}
	return s, nil
}

func (s screen) View() tea.View { return tea.NewView(draw(s.snapshot, s.width)) }

var (
	dim  = lipgloss.NewStyle().Faint(true)
	bold = lipgloss.NewStyle().Bold(true)
	warn = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
)

// shownNotes is how many notes, the latest, stand below the table.
const shownNotes = 5

// draw renders a snapshot for a terminal of that width; 0 means unknown.
func draw(s Snapshot, width int) string {
	if len(s.Models) == 0 {
		return ""
	}
	t := table.New().Border(lipgloss.HiddenBorder()).
		BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).BorderColumn(false).BorderHeader(false).
		Headers("model", "", "done", "in flight", "tokens/min", "left", "waiting for", "faults").
		StyleFunc(func(row, col int) lipgloss.Style {
			style := lipgloss.NewStyle().PaddingRight(2)
			switch {
			case row == table.HeaderRow:
				style = style.Faint(true)
			case col == 7:
				style = style.Foreground(lipgloss.Yellow)
			}
			if col >= 2 && col <= 5 {
				style = style.Align(lipgloss.Right)
			}
			return style
		})
	for _, m := range s.Models {
		t.Row(m.Name, bar(m, 16), fmt.Sprintf("%d/%d", m.Done, m.Planned), fmt.Sprint(m.InFlight),
			count(m.TokensPerMinute), left(m), waiting(m), troubles(m))
	}
	total := s.Total()
	head := bold.Render(fmt.Sprintf("%d of %d trials done", total.Done, total.Planned)) + dim.Render("  "+clock(s.Elapsed))
	if s.Stopping {
		head += warn.Render("  stopping: waiting for episodes in flight, Ctrl-C again aborts them")
	}
	text := head + "\n" + t.String()
	for _, note := range s.Notes[max(0, len(s.Notes)-shownNotes):] {
		text += "\n" + warn.Render("note: ") + strings.ReplaceAll(note, "\n", " ")
	}
	return fit(text, width) + "\n"
}

// fit cuts lines at the terminal's width, so that none wraps.
func fit(text string, width int) string {
	if width <= 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = lipgloss.NewStyle().MaxWidth(width).Render(l)
	}
	return strings.Join(lines, "\n")
}

func bar(m ModelState, width int) string {
	if m.Planned == 0 {
		return ""
	}
	full := min(width, m.Done*width/m.Planned)
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

func left(m ModelState) string {
	switch {
	case m.Owed() == 0:
		return "–"
	case m.Left > 0:
		return clock(m.Left)
	}
	return "?"
}

func waiting(m ModelState) string {
	switch {
	case m.Closed != "":
		return "closed"
	case m.Waits != "":
		return m.Waits
	}
	return "–"
}

func troubles(m ModelState) string {
	s := faults(m.Faults)
	if m.Parked > 0 {
		if s != "" {
			s += ", "
		}
		s += fmt.Sprintf("%d parked", m.Parked)
	}
	return s
}
