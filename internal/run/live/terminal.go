package live

import (
	"io"
	"os"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// Terminal redraws a table in place. It reads no input, so Ctrl-C stays a
// signal, and what it drew last stays on the screen.
type Terminal struct {
	program *tea.Program
	done    chan struct{} // closed when the program has ended
}

// The size of a terminal that does not tell its own.
const usualWidth, usualHeight = 80, 24

// NewTerminal takes the part of the screen below the cursor. It draws on what
// is no terminal too.
func NewTerminal(w io.Writer) *Terminal {
	t := &Terminal{
		program: tea.NewProgram(screen{width: usualWidth, height: usualHeight},
			tea.WithInput(nil), tea.WithOutput(w), tea.WithoutSignalHandler(), tea.WithFPS(10),
			tea.WithEnvironment(unasked(os.Environ())), tea.WithWindowSize(usualWidth, usualHeight), tea.WithFilter(sized)),
		done: make(chan struct{}),
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

// unasked returns the environment without what makes bubbletea ask the
// terminal which modes it has. Nobody here would read the answer: it would
// stand on the screen, and be typed into the shell after the run. Over SSH
// bubbletea does not ask, but for the terminals that it knows by name.
func unasked(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, "WT_SESSION=") })
	for i, v := range env {
		for _, known := range []string{"ghostty", "wezterm", "alacritty", "kitty", "rio"} {
			if strings.HasPrefix(v, "TERM=") && strings.Contains(v, known) {
				env[i] = "TERM=xterm-256color" // which all of them understand
			}
		}
	}
	return append(env, "SSH_TTY=assay")
}

// sized gives a terminal without a size the usual one.
func sized(_ tea.Model, msg tea.Msg) tea.Msg {
	if size, ok := msg.(tea.WindowSizeMsg); ok && (size.Width <= 0 || size.Height <= 0) {
		return tea.WindowSizeMsg{Width: usualWidth, Height: usualHeight}
	}
	return msg
}

// screen is the bubbletea model: the last snapshot and the size.
type screen struct {
	snapshot      Snapshot
	width, height int
}

func (s screen) Init() tea.Cmd { return nil }

func (s screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case Snapshot:
		s.snapshot = m
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	}
	return s, nil
}

func (s screen) View() tea.View {
	v := tea.NewView(draw(s.snapshot, s.width, s.height))
	v.DisableBracketedPasteMode = true // nothing is read
	return v
}
