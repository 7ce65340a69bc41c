package live_test

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/run/live"
	"gotest.tools/v3/golden"
)

var styles = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// plain removes styles and trailing spaces.
func plain(text string) string {
	lines := strings.Split(styles.ReplaceAllString(text, ""), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n")
}

// crowd returns a snapshot of many models, a third of which are done.
func crowd(n int) live.Snapshot {
	s := live.Snapshot{Elapsed: time.Minute, Notes: []string{"one", "two"}}
	for i := range n {
		m := live.ModelState{Name: fmt.Sprintf("model-%02d", i), Planned: 10, Done: 10}
		if i%3 > 0 {
			m.Done, m.InFlight, m.Left = i%10, 1, time.Minute
		}
		s.Models = append(s.Models, m)
	}
	return s
}

func TestDraw(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, width := range []int{0, 200, 120, 80, 40} {
		for i, s := range story() {
			fmt.Fprintf(&b, "== part %d of the story, width %d\n%s",
				i, width, plain(live.Draw(s, width, 24)))
		}
	}
	golden.Assert(t, b.String(), "draw.txt")
}

func TestDrawManyModels(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, height := range []int{0, 18, 17, 12, 7, 3} {
		fmt.Fprintf(&b, "== height %d\n%s", height, plain(live.Draw(crowd(13), 80, height)))
	}
	golden.Assert(t, b.String(), "crowd.txt")
}

// TestDrawQuotesTheEndpoint checks that the live view has all that a model waits for.
func TestDrawQuotesTheEndpoint(t *testing.T) {
	t.Parallel()
	const waits = `rate_limited of gw/K/m, next in 50s ("come back in a minute")`
	s := live.Snapshot{Models: []live.ModelState{{Name: "m", Planned: 1, Waits: waits}}}
	for _, width := range []int{0, 160} {
		if view := plain(live.Draw(s, width, 24)); !strings.Contains(view, waits) {
			t.Errorf("at width %d, the view lacks %s:\n%s", width, waits, view)
		}
	}
}

// TestDrawFitsTerminal checks that no line is wider than the terminal, in
// columns rather than characters, and that the frame is not higher, whatever
// the snapshot contains.
func TestDrawFitsTerminal(t *testing.T) {
	t.Parallel()
	runes := rapid.SampledFrom([]rune("abc-/. 模型é\u0301👩\u200d🔬ﷺ"))
	name := rapid.StringOfN(runes, 1, 30, -1)
	rapid.Check(t, func(t *rapid.T) {
		s := crowd(rapid.IntRange(0, 40).Draw(t, "models"))
		for i := range s.Models {
			s.Models[i].Name = name.Draw(t, "name")
			s.Models[i].Waits = name.Draw(t, "waits")
		}
		s.Notes = rapid.SliceOfN(name, 0, 8).Draw(t, "notes")
		s.Stopping = rapid.Bool().Draw(t, "stopping")
		width := rapid.IntRange(1, 250).Draw(t, "width")
		height := rapid.IntRange(10, 60).Draw(t, "height")
		lines := strings.Split(live.Draw(s, width, height), "\n")
		for _, l := range lines {
			if w := lipgloss.Width(l); w > width {
				t.Fatalf("a line of %d columns on a terminal of %d: %q", w, width, l)
			}
		}
		if len(lines) > height {
			t.Fatalf("%d lines on a terminal of %d", len(lines), height)
		}
	})
}

// TestTerminalLeavesTheLastFrame runs the program against a fake screen.
// Earlier text stays, frames replace each other, and the last frame remains
// when something else is written below.
func TestTerminalLeavesTheLastFrame(t *testing.T) {
	for _, name := range []string{
		"xterm-256color", "xterm", "screen-256color", "linux",
		"xterm-kitty", "alacritty", "xterm-ghostty",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TERM", name)
			t.Setenv("TMUX", "") // otherwise colour detection would run tmux
			synctest.Test(t, checkLastFrame)
		})
	}
}

func checkLastFrame(t *testing.T) {
	s := newScreen()
	fmt.Fprintln(s, "before")
	term := live.NewTerminal(s)
	for _, frame := range append(story(), crowd(9), crowd(19), crowd(30)) {
		term.Show(frame)
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		want := append([]string{"before"}, frameLines(frame)...)
		if diff := cmp.Diff(want, s.lines()); diff != "" {
			t.Errorf("screen (-want +got):\n%s", diff)
		}
	}
	last := crowd(33)
	term.Close(last)
	fmt.Fprintln(s, "after")
	want := slices.Concat([]string{"before"}, frameLines(last), []string{"after"})
	if diff := cmp.Diff(want, s.lines()); diff != "" {
		t.Errorf("screen after Close (-want +got):\n%s", diff)
	}
	if len(s.unknown) > 0 {
		t.Errorf("unexpected escape sequences: %s", s.unknown)
	}
	if !s.modes["?25"] {
		t.Error("the cursor is still hidden")
	}
}

func frameLines(s live.Snapshot) []string {
	text := strings.TrimRight(plain(live.Draw(s, 80, 24)), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// broken is a terminal that is gone.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestTerminalLeavesNoGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	tell(live.NewTerminal(&bytes.Buffer{}))
	tell(live.NewTerminal(broken{}))
	live.NewTerminal(&bytes.Buffer{}).Close(live.Snapshot{}) // closed at once
	goleak.VerifyNone(t, before)
}

// TestTerminalShowsLastSnapshot checks that the last snapshot is drawn however
// short the run is.
func TestTerminalShowsLastSnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScreen()
		live.NewTerminal(s).Close(crowd(1))
		if diff := cmp.Diff(frameLines(crowd(1)), s.lines()); diff != "" {
			t.Errorf("screen (-want +got):\n%s", diff)
		}
	})
}

func TestTerminalIsNotQueried(t *testing.T) {
	t.Parallel()
	env := []string{"HOME=/", "TERM=xterm-kitty", "WT_SESSION=1", "COLORTERM=truecolor"}
	got := live.WithoutQueries(env)
	want := []string{"HOME=/", "TERM=xterm-256color", "COLORTERM=truecolor", "SSH_TTY=assay"}
	if diff := cmp.Diff(want, got); diff != "" || env[1] != "TERM=xterm-kitty" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}
