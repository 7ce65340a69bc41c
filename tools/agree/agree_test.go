package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain keeps what the tests find out from the user's cache.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "agree")
	if err == nil {
		err = os.Setenv("XDG_CACHE_HOME", dir)
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(dir) // of little size
	os.Exit(code)
}

// few is how many experiments the test draws. `make agree` draws 2,000.
const few = 24

// TestFiguresAgree compares the first screen, tables, JSON and HTML of drawn experiments with each
// other and with a second computation.
func TestFiguresAgree(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: recomputes whole experiments")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed, so nothing recomputes the figures")
	}
	n := few
	if err := agree(t.TempDir(), python, 1, n); err != nil {
		t.Error("the disagreements are above:", err)
	}
}

// TestDisagreementsAreFound changes a number, which has to be found.
func TestDisagreementsAreFound(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	dir := t.TempDir()
	s, err := drawOne(t.Context(), dir, newDraw(2))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	change := func(text, figure, other string) string { // one of such figures
		parts := strings.Split(text, figure)
		at := 1 + r.IntN(len(parts)-1)
		return strings.Join(parts[:at], figure) + other + strings.Join(parts[at:], figure)
	}
	report := func(from, to string) func(*sight) { // the first of such figures
		return func(s *sight) {
			edited := bytes.Replace(s.Report, []byte(from), []byte(to), 1)
			if bytes.Equal(edited, s.Report) {
				t.Errorf("the report has no %s", from)
			}
			s.Report = edited
		}
	}
	for name, edit := range map[string]func(*sight){
		"nothing": func(*sight) {},
		"text":    func(s *sight) { s.Text = change(s.Text, ".0 %", ".1 %") },
		"HTML":    func(s *sight) { s.HTML = change(s.HTML, ".0 %</span>", ".1 %</span>") },
		"export": func(s *sight) {
			s.Export[0] = bytes.Replace(s.Export[0], []byte(`"input_tokens":`), []byte(`"input_tokens":1`), 1)
		},
		"report":    report(`"done":`, `"done":1`),
		"headline":  report(`"Full success","text":"`, `"Full success","text":"1`),
		"loss":      report(`comparisons are taken together`, `comparisons are not taken together`),
		"needed":    report(`"clusters_needed":`, `"clusters_needed":1`),
		"replaced":  report(`"replaced":`, `"replaced":1`),
		"best":      report(`"best":false`, `"best":true`),
		"condition": report(`"condition":"the right plan`, `"condition":"no plan`),
		"picture":   report(`"name":"flawed plans","done":`, `"name":"flawed plans","done":1`),
		"power":     report(`"power":{"5":0`, `"power":{"5":0.1`),
	} {
		edited := *s
		edited.Export = append([]json.RawMessage{}, s.Export...)
		edit(&edited)
		line, err := json.Marshal(edited)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), python, "-B", "recompute.py")
		cmd.Stdin = bytes.NewReader(line)
		out, err := cmd.CombinedOutput()
		if found := err != nil; found != (name != "nothing") || strings.Contains(string(out), "crash") {
			t.Errorf("%s changed: %v\n%s", name, err, out)
		}
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
