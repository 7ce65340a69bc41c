package terminal_test

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

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/terminal"
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

// crowd returns progress of many models, a third of which are done.
func crowd(n int) terminal.Progress {
	s := terminal.Progress{Elapsed: 60, Notes: []string{"one", "two"}}
	for i := range n {
		m := terminal.ModelState{Model: fmt.Sprintf("model-%02d", i), Counts: counts(10, 10, 0, 0)}
		if i%3 > 0 {
			m.Counts = counts(10, i%10, 0, 1)
			m.Left = &terminal.TimeLeft{Seconds: 60, Basis: terminal.ByPace}
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
				i, width, plain(terminal.Draw(s, width, 24)))
		}
	}
	golden.Assert(t, b.String(), "draw.txt")
}

func TestDrawManyModels(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, height := range []int{0, 18, 17, 12, 7, 3} {
		fmt.Fprintf(&b, "== height %d\n%s", height, plain(terminal.Draw(crowd(13), 80, height)))
	}
	golden.Assert(t, b.String(), "crowd.txt")
}

// paused returns progress of models that an endpoint has asked to wait.
func paused(n int) terminal.Progress {
	s := crowd(n)
	for i := range s.Models {
		s.Models[i].Retried = map[assay.FaultKind]int{assay.RateLimited: 12, assay.Timeout: 3}
		s.Models[i].Waits = fmt.Sprintf(`rate_limited of gateway/KEY_%d/m, next in 50s `+
			`("you have used the tokens of this minute, come back later")`, i)
	}
	return s
}

// TestDrawQuotesTheEndpoint checks that the live view has all that a model waits for, and once.
func TestDrawQuotesTheEndpoint(t *testing.T) {
	t.Parallel()
	s := paused(1)
	want := strings.ReplaceAll(s.Models[0].Waits, " ", "")
	for _, width := range []int{0, 60, 80, 120, 160, 170, 180, 200} {
		view := plain(terminal.Draw(s, width, 24))
		words := strings.Join(strings.Fields(view), "")
		if strings.Count(words, want) != 1 {
			t.Errorf("at width %d, the view does not have %s once:\n%s", width, want, view)
		}
	}
}

// TestViewsShowAgents checks that the terminal and the lines of a log show the states of agents.
func TestViewsShowAgents(t *testing.T) {
	t.Parallel()
	s := crowd(2)
	s.Models[1].Agents = map[assay.AgentState]int{
		assay.AgentCalling: 1, assay.AgentStarting: 2, assay.AgentAsking: 0,
	}
	const want = "2 starting, 1 calling"
	if view := plain(terminal.Draw(s, 80, 24)); !strings.Contains(view, "agents: model-01 "+want+"\n") {
		t.Errorf("the terminal shows\n%s", view)
	}
	var line strings.Builder
	(&terminal.Plain{W: &line}).Show(s)
	if !strings.Contains(line.String(), ", agents: "+want+",") {
		t.Errorf("the line is %s", line.String())
	}
	var object strings.Builder
	(&terminal.JSON{W: &object}).Show(s)
	if n := strings.Count(object.String(), `"agents":{`); n != 1 {
		t.Errorf("%d models of the object have agents, want 1: %s", n, object.String())
	}
}

// TestViewsSayThatAgentsStart checks that views have a sentence about the agents that a run waits
// for before its first request has ended.
func TestViewsSayThatAgentsStart(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		requests, thinking int
		want               string
	}{{0, 0, "3 agents are starting"}, {0, 1, "3 starting, 1 thinking"}, {1, 0, "3 starting"}} {
		s := crowd(2)
		for i := range s.Models {
			s.Models[i].Requests = tc.requests
			s.Models[i].Agents = map[assay.AgentState]int{assay.AgentStarting: 1 + i}
		}
		s.Models[1].Agents[assay.AgentThinking] = tc.thinking
		var line strings.Builder
		(&terminal.Plain{W: &line}).Show(s)
		if !strings.Contains(line.String(), tc.want) {
			t.Errorf("%+v: the line is %s", tc, line.String())
		}
		says := strings.Contains(plain(terminal.Draw(s, 80, 24)), "\n3 agents are starting\n")
		if sentence := tc.requests+tc.thinking == 0; says != sentence {
			t.Errorf("%+v: the terminal has the sentence: %v, want %v", tc, says, sentence)
		}
	}
}

// TestDrawPaused draws models that wait on terminals without room for all that they wait for.
func TestDrawPaused(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, size := range [][2]int{{200, 24}, {120, 24}, {80, 24}, {80, 14}, {80, 8}} {
		fmt.Fprintf(&b, "== %d × %d\n%s", size[0], size[1],
			plain(terminal.Draw(paused(5), size[0], size[1])))
	}
	golden.Assert(t, b.String(), "paused.txt")
}

// TestDrawFitsTerminal checks that no line is wider than the terminal, in
// columns rather than characters, and that the frame is not higher, whatever
// the progress contains.
func TestDrawFitsTerminal(t *testing.T) {
	t.Parallel()
	runes := rapid.SampledFrom([]rune("abc-/. 模型é\u0301👩\u200d🔬ﷺ"))
	name := rapid.StringOfN(runes, 1, 30, -1)
	rapid.Check(t, func(t *rapid.T) {
		s := crowd(rapid.IntRange(0, 40).Draw(t, "models"))
		for i := range s.Models {
			s.Models[i].Model = name.Draw(t, "name")
			s.Models[i].Waits = strings.Repeat(name.Draw(t, "waits")+" ", i)
			if rapid.Bool().Draw(t, "agent") {
				s.Models[i].Agents = map[assay.AgentState]int{assay.AgentAsking: i}
			}
		}
		s.Notes = rapid.SliceOfN(name, 0, 8).Draw(t, "notes")
		s.Stopping = rapid.Bool().Draw(t, "stopping")
		width := rapid.IntRange(1, 250).Draw(t, "width")
		height := rapid.IntRange(10, 60).Draw(t, "height")
		lines := strings.Split(terminal.Draw(s, width, height), "\n")
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
	term := terminal.New(s)
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

func frameLines(s terminal.Progress) []string {
	text := strings.TrimRight(plain(terminal.Draw(s, 80, 24)), "\n")
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
	tell(terminal.New(&bytes.Buffer{}))
	tell(terminal.New(broken{}))
	terminal.New(&bytes.Buffer{}).Close(terminal.Progress{}) // closed at once
	goleak.VerifyNone(t, before)
}

// TestTerminalShowsLastProgress checks that the last progress is drawn however
// short the run is.
func TestTerminalShowsLastProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScreen()
		terminal.New(s).Close(crowd(1))
		if diff := cmp.Diff(frameLines(crowd(1)), s.lines()); diff != "" {
			t.Errorf("screen (-want +got):\n%s", diff)
		}
	})
}

// TestTerminalClearsWaits checks that a frame replaces a longer one, whose lines stay empty.
func TestTerminalClearsWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScreen()
		term := terminal.New(s)
		for _, frame := range []terminal.Progress{crowd(2), paused(2), crowd(2), paused(3), crowd(1)} {
			term.Show(frame)
			time.Sleep(250 * time.Millisecond)
			synctest.Wait()
			if diff := cmp.Diff(frameLines(frame), s.lines()); diff != "" {
				t.Errorf("screen (-want +got):\n%s", diff)
			}
		}
		term.Close(crowd(1))
	})
}

func TestTerminalIsNotQueried(t *testing.T) {
	t.Parallel()
	env := []string{"HOME=/", "TERM=xterm-kitty", "WT_SESSION=1", "COLORTERM=truecolor"}
	got := terminal.WithoutQueries(env)
	want := []string{"HOME=/", "TERM=xterm-256color", "COLORTERM=truecolor", "SSH_TTY=assay"}
	if diff := cmp.Diff(want, got); diff != "" || env[1] != "TERM=xterm-kitty" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}
