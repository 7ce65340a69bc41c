package own_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBFCLAttackers lets a model choose names and values that are Python. The adapter of BFCL carries
// none of it out, and gives a reward only to the agent that solves the task.
func TestBFCLAttackers(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no Python")
	}
	cmd := exec.CommandContext(t.Context(), python, "-B", "testdata/bfcl_attack.py", examples,
		filepath.Join(t.TempDir(), "mark"))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var results map[string][2]any
	if err := json.Unmarshal(out, &results); err != nil || len(results) < 8 {
		t.Fatalf("%v: %s", err, out)
	}
	for attack, r := range results {
		want := 0.0
		if attack == "honest" {
			want = 1
		}
		if r[0] != want || r[1] != false {
			t.Errorf("%s: the reward is %v, code was carried out: %v", attack, r[0], r[1])
		}
	}
}
