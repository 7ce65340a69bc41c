//go:build !race

package validate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/task/library"
)

// TestLuckNamesTaskToolAndReason checks what is said about a tool whose repetition does harm after
// an answer was lost: nothing about other tasks and tools.
func TestLuckNamesTaskToolAndReason(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"t.star": "def look(state):\n    return state\n\ndef pay(state, euros):\n    state[\"paid\"] += euros\n    return state\n",
		"tools.yaml": `
file: t.star
tools:
  - {name: look, description: Looks., reliability: 0.9}
  - {name: pay, description: Pays., effect: pays, faults: {after: 1}, parameters: {euros: {type: integer}}}
`,
		"tasks.yaml": `
tools: tools.yaml
state: {paid: 0, stock: 7}
tasks:
  - id: pay
    prompt: Look, and pay 5 euros.
    judge: {calls: [{tool: pay, arguments: {euros: 5}}], state: {paid: 5}}
    plan: [{tool: look}, {tool: pay, arguments: {euros: 5}}]
  - id: count
    prompt: How many are in stock?
    judge: {calls: [{tool: look}], answer: ["7"]}
    plan: [{tool: look}]
    answer: There are 7.
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lib, err := library.OpenNamed(t.Context(), filepath.Join(dir, "tasks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	v := newValidator(lib, "own-1")
	v.rounds = 60
	if err := v.playAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	var lines []string
	proof := v.conclude()
	for _, f := range proof.Findings {
		if f.Doubt == LosesToLuck {
			lines = append(lines, f.String())
		}
	}
	if proof.Sound || len(lines) != 1 || !strings.HasPrefix(lines[0], "pay (easy): its own plan fails too often") {
		t.Fatalf("sound %v: %q", proof.Sound, lines)
	}
	for _, part := range []string{"of 60 episodes fail", "a call of pay happened", "(fault after)", "nothing changed that the task did not ask for"} {
		if !strings.Contains(lines[0], part) {
			t.Errorf("no %q in %s", part, lines[0])
		}
	}
}
