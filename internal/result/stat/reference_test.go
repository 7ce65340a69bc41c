package stat_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os/exec"
	"testing"

	"github.com/assay-eval/assay/internal/result/stat"
)

// comparedTasks are tasks as testdata/reference.py reads them.
type comparedTasks struct {
	Tasks      []stat.Matched
	BySequence bool
}

// TestPythonAgrees compares intervals, p-values and losses with a program in another language that
// computes them from their definitions: under one to three conditions, over tasks and sequences.
func TestPythonAgrees(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	r := rand.New(rand.NewPCG(3, 1))
	var all []comparedTasks
	for i := range 6 {
		u := urn{tasks: 10 + i, conditions: 1 + i%3, repeats: triple, mean: 1, task: 1, apart: .8}
		if i%2 > 0 {
			u.sequences, u.own = 6, .7
		}
		all = append(all, comparedTasks{u.draw(r), u.sequences > 0})
	}
	in, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "testdata/reference.py")
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []map[string]float64
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	for i, x := range all {
		c, l := stat.Compare(x.Tasks, x.BySequence), stat.Lost(x.Tasks, x.BySequence)
		got := map[string]float64{
			"low": c.Interval.Low, "high": c.Interval.High, "p": c.P,
			"lost": *l.Share, "lost_high": *l.High,
		}
		if l.Low != nil {
			got["lost_low"] = *l.Low
		}
		if len(got) != len(want[i]) {
			t.Errorf("%d: %v, want %v", i, got, want[i])
		}
		for name, x := range want[i] {
			if math.Abs(got[name]-x) > 1e-9 {
				t.Errorf("%d: %s is %.12f, want %.12f", i, name, got[name], x)
			}
		}
	}
}
