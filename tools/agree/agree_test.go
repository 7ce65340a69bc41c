package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
	figure := func(name string) func(*sight) { return report(`"`+name+`":`, `"`+name+`":7.5,"other":`) }
	value := func(name string) func(*sight) {
		return report(`"`+name+`":{"value":`, `"`+name+`":{"value":7.5,"other":`)
	}
	export := func(from, to string) func(*sight) { // in the first line that has it
		return func(s *sight) {
			for i, line := range s.Export {
				if bytes.Contains(line, []byte(from)) {
					s.Export[i] = bytes.Replace(line, []byte(from), []byte(to), 1)
					return
				}
			}
			t.Errorf("the export has no %s", from)
		}
	}
	var in bytes.Buffer
	var names []string
	lines := json.NewEncoder(&in)
	// Each seed draws an experiment that has what is changed.
	for seed, edits := range map[uint64]map[string]func(*sight){
		2: {
			"nothing":   func(*sight) {},
			"text":      func(s *sight) { s.Text = change(s.Text, ".0 %", ".1 %") },
			"HTML":      func(s *sight) { s.HTML = change(s.HTML, ".0 %</span>", ".1 %</span>") },
			"export":    export(`"input_tokens":`, `"input_tokens":1`),
			"report":    figure("done"),
			"headline":  report(`"Full success","text":"`, `"Full success","text":"1`),
			"loss":      report(`comparisons are taken together`, `comparisons are not taken together`),
			"needed":    figure("clusters_needed"),
			"replaced":  figure("replaced"),
			"best":      report(`"best":false`, `"best":true`),
			"condition": report(`"condition":"the right plan`, `"condition":"no plan`),
			"picture":   report(`"name":"flawed plans","done":`, `"name":"flawed plans","done":1`),
			"power":     report(`"power":{"5":0`, `"power":{"5":0.1`),
			"replays":   value("consistency_replays"),
			"harm":      value("expected_harm"),
		},
		98: { // replays, confidence, and a part for each factor
			"nothing":        func(*sight) {},
			"task":           value("variance_task"),
			"luck":           value("variance_luck"),
			"model itself":   value("variance_model"),
			"Brier":          value("predictability_brier"),
			"overconfidence": value("overconfidence"),
			"discrimination": value("predictability_auroc"),
			"calibration":    figure("calibration_error"),
			"by chance":      figure("calibration_error_by_chance"),
			"diagram":        report(`"reliability_diagram":[{"confidence":`, `"reliability_diagram":[{"confidence":7.5,"other":`),
			"P_rc":           figure("published_predictability_risk"),
			"stated":         export(`"stated_confidence":0.`, `"stated_confidence":0.0`),
			"phrasings":      value("robustness_phrasing"),
			"interfaces":     value("robustness_interface"),
			"R_prompt":       figure("published_robustness_prompt"),
			"R_env":          figure("published_robustness_environment"),
			"reliability":    report(`"Reliability","text":"`, `"Reliability","text":"1`),
			"words":          report(`plain words`, `other words`),
		},
		83: { // failing tools of a class, and other phrasings with flawed plans
			"nothing":   func(*sight) {},
			"explicit":  value("robustness_explicit_permanent"),
			"tools":     value("robustness_tools"),
			"flaws":     value("robustness_flaws"),
			"R_fault":   figure("published_robustness_fault"),
			"reactions": figure("faults_detected"),
		},
		25: {
			"nothing":  func(*sight) {},
			"implicit": value("robustness_implicit_transient"),
		},
		519: { // tools of one's own
			"nothing": func(*sight) {},
			"stays":   value("robustness_implicit_permanent"),
		},
	} {
		s, err := drawOne(t.Context(), dir, newDraw(seed))
		if err != nil {
			t.Fatal(err)
		}
		for name, edit := range edits {
			edited := *s
			edited.Export = slices.Clone(s.Export)
			edit(&edited)
			edited.Seed = uint64(len(names)) // which Python prints
			names = append(names, name)
			if err := lines.Encode(edited); err != nil {
				t.Fatal(err)
			}
		}
	}
	cmd := exec.CommandContext(t.Context(), python, "-B", "recompute.py", "-v")
	cmd.Stdin = &in
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("nothing was found")
	}
	found := make(map[string]bool)
	for _, m := range regexp.MustCompile(`(?m)^seed (\d+): (\w*)`).FindAllStringSubmatch(string(out), -1) {
		found[m[1]] = true
		if m[2] == "crash" {
			t.Errorf("%s", out)
		}
	}
	for i, name := range names {
		if found[strconv.Itoa(i)] != (name != "nothing") {
			t.Errorf("%s was changed, and a disagreement was found: %v", name, name == "nothing")
		}
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
