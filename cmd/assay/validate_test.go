package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/validate"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
)

// validated is the output of `assay library validate --json`.
type validated struct {
	Library library.Meta     `json:"library"`
	Worlds  []validate.Proof `json:"worlds"`
}

// TestBuiltinLibraryIsSound checks that every task of the built-in library can be solved, as often
// as the planner computes, and not without any call.
func TestBuiltinLibraryIsSound(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: solves every built-in task")
	}
	text, err := program(t, "library", "validate", "--world", world.Assay1Name,
		"--json").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var got validated
	decode(t, string(text), &got)
	if len(got.Worlds) != 1 || got.Library.Name != "builtin" {
		t.Fatalf("%s", text)
	}
	pr := got.Worlds[0]
	want := 630 * len(validate.Difficulties)
	if pr.Tasks != want || pr.Unsolvable != 0 || !pr.Sound || len(pr.Failed)+len(pr.Null) != 0 {
		t.Errorf("%+v, want %d tasks", pr, want)
	}
	played := make(map[string]int)
	for _, g := range pr.Games {
		played[fmt.Sprint(g.Agent, g.Tools, g.Reliability)]++
		if g.Pays() || g.Tasks < 20 {
			t.Errorf("not doing the task: %s", &g)
		}
	}
	for _, agent := range sim.Gaming {
		for _, tools := range []string{assay.Discover, assay.Listed} {
			for _, reliability := range []float64{1, .9, .8, .6} {
				if played[fmt.Sprint(agent, tools, reliability)] != 1 {
					t.Errorf("%s does not play with tools %s at %v", agent, tools, reliability)
				}
			}
		}
	}
	// Over 5,040 episodes, the rate is within one point of the planner's.
	near := pr.Oracle > pr.Planned-0.01 && pr.Oracle < pr.Planned+0.01
	if pr.Planned < 0.95 || pr.Planned > 0.995 || !near || pr.Z == 0 {
		t.Errorf("oracle %.4f, planner %.4f, %.2f σ", pr.Oracle, pr.Planned, pr.Z)
	}
}

func TestSignalEndsValidate(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGINT
	var out, errs bytes.Buffer
	code := run([]string{"library", "validate"}, &process{
		in: strings.NewReader(""), out: &out, err: &errs, name: "assay", signals: signals,
	})
	interrupted := strings.HasPrefix(errs.String(), "assay: interrupted\n")
	if code != exitInterrupted || !interrupted || out.Len() > 0 {
		t.Errorf("exit code %d\n%s%s", code, errs.String(), out.String())
	}
}
