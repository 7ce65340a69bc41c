package terminal

import (
	"io"
	"os"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// Terminal redraws a table in place. It reads no input, so Ctrl-C stays a
// signal; whoever reads keys explains them in the footer. The last table stays
// on the screen, without a footer.
type Terminal struct {
	program *tea.Program
	done    chan struct{} // closed when the program has ended
}

// The size assumed for a terminal that does not report its own.
const defaultWidth, defaultHeight = 80, 24

// New returns a view that uses the screen below the cursor. It does not
// check whether w is a terminal.
func New(w io.Writer) *Terminal {
	t := &Terminal{
		program: tea.NewProgram(screen{width: defaultWidth, height: defaultHeight},
			tea.WithInput(nil), tea.WithOutput(w), tea.WithoutSignalHandler(), tea.WithFPS(10),
			tea.WithEnvironment(withoutQueries(os.Environ())),
			tea.WithWindowSize(defaultWidth, defaultHeight), tea.WithFilter(withSize)),
		done: make(chan struct{}),
	}
	go func() {
		defer close(t.done)
		// A run goes on even if its terminal cannot be drawn on.
		_, _ = t.program.Run()
	}()
	return t
}

// Show implements [View].
func (t *Terminal) Show(s Progress) { t.program.Send(s) }

// Footer shows a line below the table, or no line if the text is empty.
func (t *Terminal) Footer(text string) { t.program.Send(footer(text)) }

// Close implements [View].
func (t *Terminal) Close(last Progress) {
	t.program.Send(footer(""))
	t.program.Send(last)
	t.program.Quit()
	<-t.done
}

// withoutQueries changes the environment so that bubbletea does not ask the terminal which modes it
// supports. The answer would not be read, so it would appear on the screen and be typed into the
// shell after the run. Over SSH, bubbletea asks only terminals that it knows by name.
func withoutQueries(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, "WT_SESSION=")
	})
	for i, v := range env {
		for _, known := range []string{"ghostty", "wezterm", "alacritty", "kitty", "rio"} {
			if strings.HasPrefix(v, "TERM=") && strings.Contains(v, known) {
				env[i] = "TERM=xterm-256color" // all of them understand it
			}
		}
	}
	return append(env, "SSH_TTY=assay")
}

// withSize replaces a missing terminal size by the default.
func withSize(_ tea.Model, msg tea.Msg) tea.Msg {
	if size, ok := msg.(tea.WindowSizeMsg); ok && (size.Width <= 0 || size.Height <= 0) {
		return tea.WindowSizeMsg{Width: defaultWidth, Height: defaultHeight}
	}
	return msg
}

// screen is the bubbletea model. It holds the last progress and the size. A frame has at least as
// many lines as the earlier ones, because bubbletea would leave a part of them on the screen.
type screen struct {
	progress      Progress
	width, height int
	footer        footer
	frame         string
	lines         int // of the longest frame
}

type footer string

func (s screen) Init() tea.Cmd { return nil }

func (s screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case Progress:
		s.progress = m
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case footer:
		s.footer = m
	}
	s.frame = s.draw()
	lines := strings.Count(s.frame, "\n")
	s.lines = max(lines, min(s.lines, s.height-1))
	s.frame += strings.Repeat("\n", s.lines-lines)
	return s, nil
}

func (s screen) draw() string {
	if s.footer == "" {
		return draw(s.progress, s.width, s.height)
	}
	last := cut(dim.Render(string(s.footer)), s.width)
	return draw(s.progress, s.width, s.height-1) + last + "\n"
}

func (s screen) View() tea.View {
	v := tea.NewView(s.frame)
	v.DisableBracketedPasteMode = true // no input is read
	return v
}
