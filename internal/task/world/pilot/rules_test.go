package pilot_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/pilot"
)

func TestChance(t *testing.T) {
	t.Parallel()
	const ok, failed = true, false
	for _, tc := range []struct {
		name        string
		reliability float64
		deps        []pilot.Dependency
		recent      []bool
		want        float64
	}{
		{"plain", .8, nil, nil, .8},
		{"ceiling", 1, nil, nil, .95},
		{"floor", 0, nil, nil, .1},
		{"one missing", .8, []pilot.Dependency{pilot.Missing}, nil, .4},
		{"missing and broken", .8, []pilot.Dependency{pilot.Missing, pilot.Broken}, nil, .28},
		{"two failures do not count", .8, nil, []bool{failed, failed}, .8},
		{"three failures", .8, nil, []bool{failed, failed, failed}, .8 * .729},
		{"one of the last three", .8, nil, []bool{failed, failed, ok, failed, ok}, .8 * .9},
		{
			"floor applies last", .6,
			[]pilot.Dependency{pilot.Missing, pilot.Missing, pilot.Missing},
			nil, .1,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := pilot.Chance(tc.reliability, tc.deps, tc.recent)
			if math.Abs(got-tc.want) > 1e-12 {
				t.Errorf("chance = %v, want %v", got, tc.want)
			}
		})
	}
}

func catalog() *assay.Catalog {
	codes := []assay.ToolError{
		{Code: "TIMEOUT", Description: "too slow"},
		{Code: "INVALID_INPUT", Description: "bad"},
	}
	returns := []assay.Return{
		{Name: "success", Type: "boolean"},
		{Name: "errors", Type: "array"},
		{Name: "metadata", Type: "object"},
	}
	return assay.NewCatalog([]assay.Tool{
		{Name: "parse", Errors: codes, Returns: returns},
		{Name: "check", Errors: codes, Returns: returns, Dependencies: []string{"parse"}},
		{Name: "log"},
	})
}

func begin(seed uint64, reliability float64) *pilot.World {
	trial := assay.Trial{Cell: assay.Cell{Reliability: reliability}, Seed: seed}
	return pilot.New(catalog(), trial, nil)
}

// TestLuckIgnoresScheduling checks invariant 8: the k-th call of a tool has the same luck,
// regardless of other calls, their order and their reliability.
func TestLuckIgnoresScheduling(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		names := catalog().Names()
		calls := rapid.SliceOfN(rapid.SampledFrom(names), 0, 20).Draw(t, "calls")
		other := rapid.Permutation(calls).Draw(t, "permutation")
		luck := func(order []string, reliability float64) map[string][]float64 {
			w := begin(seed, reliability)
			seen := make(map[string][]float64)
			for _, name := range order {
				rec, err := w.Call(1, name, "")
				if err != nil {
					t.Fatal(err)
				}
				seen[name] = append(seen[name], rec.Luck)
			}
			return seen
		}
		if diff := cmp.Diff(luck(calls, .9), luck(other, .2)); diff != "" {
			t.Fatalf("order or reliability changes the luck:\n%s", diff)
		}
	})
}

func TestCallFollowsLuck(t *testing.T) {
	t.Parallel()
	sawOK, sawFailed := false, false
	for seed := range uint64(200) {
		w := begin(seed, .6)
		rec, err := w.Call(3, "check", `{"x":1}`)
		if err != nil {
			t.Fatal(err)
		}
		if rec.Chance != .3 || rec.OK != (rec.Luck < rec.Chance) || rec.Turn != 3 ||
			rec.Arguments != `{"x":1}` {
			t.Fatalf("record = %+v", rec)
		}
		if rec.OK {
			sawOK = true
			var out map[string]any
			if err := json.Unmarshal([]byte(rec.Output), &out); err != nil || len(out) != 3 ||
				out["success"] != true {
				t.Fatalf("output = %s (%v), want the three declared fields", rec.Output, err)
			}
			continue
		}
		sawFailed = true
		if rec.Code != "TIMEOUT" && rec.Code != "INVALID_INPUT" ||
			!strings.HasPrefix(rec.Error, rec.Code+": ") {
			t.Fatalf("failure %q %q does not have one of the tool's own codes", rec.Code, rec.Error)
		}
	}
	if !sawOK || !sawFailed {
		t.Errorf("saw success: %v, saw failure: %v; want both", sawOK, sawFailed)
	}
}

func TestUnknownToolUsesNoLuck(t *testing.T) {
	t.Parallel()
	w := begin(1, .8)
	if _, err := w.Call(1, "chec", ""); err == nil {
		t.Fatal("a call of an unknown tool succeeded")
	}
	if len(w.Calls()) != 0 {
		t.Errorf("calls = %v, want no calls", w.Calls())
	}
}

// TestBrokenDependencyLowersChance finds a trial in which a dependency fails after a success, and
// checks the chance of the next call.
func TestBrokenDependencyLowersChance(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		w := begin(seed, .8)
		first, _ := w.Call(1, "parse", "")
		second, _ := w.Call(2, "parse", "")
		if !first.OK || second.OK {
			continue
		}
		rec, _ := w.Call(3, "check", "")
		if want := .8 * .7; math.Abs(rec.Chance-want) > 1e-12 {
			t.Errorf("chance after a broken dependency = %v, want %v", rec.Chance, want)
		}
		return
	}
	t.Fatal("none of the seeds breaks a dependency")
}

// TestStopRules plays many episodes and derives each stop rule independently from the records.
func TestStopRules(t *testing.T) {
	t.Parallel()
	seen := map[assay.Ended]int{}
	for seed := range uint64(100) {
		for _, reliability := range []float64{0, .5, 1} {
			for _, tools := range [][]string{{"log"}, {"log", "parse"}, {"check"}} {
				seen[playToStop(t, begin(seed, reliability), tools)]++
			}
		}
	}
	for _, e := range []assay.Ended{assay.FailureStreak, assay.CallLimit, assay.Loop} {
		if seen[e] == 0 {
			t.Errorf("no episode ended by %s, so the test is too weak", e)
		}
	}
}

// playToStop calls the tools in turn until the world stops the episode, and returns why.
func playToStop(t *testing.T, w *pilot.World, tools []string) assay.Ended {
	t.Helper()
	for turn := 1; turn <= 60; turn++ {
		if _, err := w.Call(turn, tools[turn%len(tools)], ""); err != nil {
			t.Fatal(err)
		}
		ended, stop := w.Stop()
		if want := wantStop(w.Calls()); ended != want || stop != (want != "") {
			t.Fatalf("after %d calls Stop() = %q, %v; want %q", turn, ended, stop, want)
		}
		if stop {
			return ended
		}
	}
	return ""
}

func wantStop(calls []assay.CallRecord) assay.Ended {
	var good []string
	fails := 0
	for _, c := range calls {
		fails++
		if c.OK {
			good, fails = append(good, c.Tool), 0
		}
	}
	same := 0
	for i := len(good) - 1; i >= 0 && good[i] == good[len(good)-1]; i-- {
		same++
	}
	switch {
	case fails >= 5:
		return assay.FailureStreak
	case len(good) > 15:
		return assay.CallLimit
	case same >= 5:
		return assay.Loop
	}
	return ""
}
