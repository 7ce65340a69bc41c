package assay1_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/assay1"
)

// always is a mix of a single kind of fault.
func always(kind assay.ToolFault) string { return string(kind) + "=1" }

// seedWith returns a seed with which the first calls of a tool meet faults or not, in this order.
func seedWith(t *testing.T, tool string, faults ...bool) uint64 {
	t.Helper()
	for seed := range uint64(10000) {
		w := begin(seed, .5, assay.Setting{})
		if !slices.ContainsFunc(faults, func(want bool) bool {
			return mustCall(t, w, tool, readArgs).OK == want
		}) {
			return seed
		}
	}
	t.Fatal("there is no such seed")
	return 0
}

// TestKindsOfFaults calls a tool once without a fault, and then with one of each kind.
func TestKindsOfFaults(t *testing.T) {
	t.Parallel()
	seed := seedWith(t, "read", false, true)
	whole := mustCall(t, begin(seed, 1, assay.Setting{}), "read", readArgs)
	for kind, want := range map[assay.ToolFault]struct {
		ok, happened bool
		code         string
	}{
		assay.FaultAfter:      {false, true, "TIMEOUT"},
		assay.FaultSlow:       {true, true, ""},
		assay.FaultWrongShape: {true, true, ""},
		assay.FaultStale:      {true, false, ""},
		assay.FaultDown:       {false, false, "OUT_OF_SERVICE"},
		assay.FaultThrottled:  {false, false, "THROTTLED"},
		assay.FaultDrift:      {false, false, "PARAMETER_RENAMED"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := beginMixed(seed, .5, always(kind))
			first := mustCall(t, w, "read", readArgs)
			if !first.OK || first.Fault != "" || first.Output != whole.Output {
				t.Fatalf("the first call: %+v", first)
			}
			rec := mustCall(t, w, "read", `{"source":"inbox/a.csv","options":{"new":1}}`)
			if rec.Fault != kind || rec.OK != want.ok || rec.Code != want.code ||
				rec.Happened() != want.happened || rec.Met() != kind {
				t.Errorf("%+v, want %+v", rec, want)
			}
			times := 1
			if want.happened {
				times = 2
			}
			if got := w.Succeeded(); len(got) != times {
				t.Errorf("%q succeeded %d times, want %d", got, len(got), times)
			}
			var result map[string]any
			switch err := json.Unmarshal([]byte(rec.Output), &result); {
			case !want.ok:
				if rec.Output != "" || kind == assay.FaultAfter && !strings.Contains(rec.Error, "seconds") {
					t.Errorf("the lost answer is %q, with the error %q", rec.Output, rec.Error)
				}
			case err != nil:
				t.Error(err)
			case kind == assay.FaultStale && rec.Output != first.Output:
				t.Errorf("the stale answer is %s, want %s", rec.Output, first.Output)
			case kind == assay.FaultWrongShape && len(result) != 2:
				t.Errorf("the damaged answer is %s, want two of three fields", rec.Output)
			case kind == assay.FaultSlow &&
				(len(result) != 3 || rec.Seconds < 10 || rec.Seconds > 60):
				t.Errorf("the slow answer is %s after %d seconds", rec.Output, rec.Seconds)
			}
		})
	}
}

// TestFirstAnswerIsNeverStale checks that a call without an earlier answer does not happen and
// fails with a code of its tool.
func TestFirstAnswerIsNeverStale(t *testing.T) {
	t.Parallel()
	w := beginMixed(1, 0, always(assay.FaultStale))
	rec := mustCall(t, w, "read", readArgs)
	if rec.OK || rec.Fault != assay.FaultBefore || rec.Code == "" || len(w.Succeeded()) > 0 {
		t.Errorf("%+v", rec)
	}
}

// TestDriftKeepsTheResult checks that a call by the new name of a parameter has the result that it would
// have had by the old one, and that a call without arguments cannot drift.
func TestDriftKeepsTheResult(t *testing.T) {
	t.Parallel()
	w := beginMixed(seedWith(t, "read", true, false), .5, always(assay.FaultDrift))
	first := mustCall(t, w, "read", `{"source":"inbox/a.csv"}`)
	again := mustCall(t, w, "read", `{"source":"inbox/a.csv"}`)
	rec := mustCall(t, w, "read", `{"source_v2":"inbox/a.csv"}`)
	whole := mustCall(t, begin(1, 1, assay.Setting{}), "read", `{"source":"inbox/a.csv"}`)
	if first.Fault != assay.FaultDrift || first.Mistake || !again.Mistake || again.Code != "PARAMETER_RENAMED" ||
		!rec.OK || rec.Output != whole.Output || rec.Renamed != "source_v2" || rec.Arguments != `{"source":"inbox/a.csv"}` {
		t.Errorf("%+v\n%+v\n%+v, want the result %s", first, again, rec, whole.Output)
	}
	if rec := mustCall(t, beginMixed(1, 0, always(assay.FaultDrift)), "read", `{}`); rec.Fault == assay.FaultDrift {
		t.Errorf("%+v", rec)
	}
}

// TestLostAnswerLeavesItsResult checks that later calls can work on a result whose answer was lost.
func TestLostAnswerLeavesItsResult(t *testing.T) {
	t.Parallel()
	w := beginMixed(1, 0, always(assay.FaultAfter))
	mustCall(t, w, "read", readArgs)
	rec := mustCall(t, w, "check", `{"schema":{"ref":"inputs.schema"},"data":{"ref":"read"}}`)
	if rec.Mistake || !rec.Happened() {
		t.Errorf("%+v, want a call that happened", rec)
	}
}

// TestMixesHaveTheSameLuck checks that a mix decides only the kinds: luck, chances and error codes
// are the same as in a trial without a mix, unless a fault outlasts its call.
func TestMixesHaveTheSameLuck(t *testing.T) {
	t.Parallel()
	const mix = "after=0.2,before=0.4,slow=0.1,stale=0.2,wrong_shape=0.1"
	met := make(map[assay.ToolFault]int)
	for seed := range uint64(300) {
		lasting := assay.Setting{Persistence: .5, Burst: .2}
		plain := begin(seed, .6, lasting)
		mixed := beginIn(assay.Cell{Reliability: .6, Faults: mix}, seed, lasting)
		for range 6 {
			a, b := mustCall(t, plain, "read", readArgs), mustCall(t, mixed, "read", readArgs)
			if a.Luck != b.Luck || a.Chance != b.Chance || (a.Met() == "") != (b.Met() == "") {
				t.Fatalf("seed %d: %+v and %+v", seed, a, b)
			}
			met[b.Met()]++
		}
	}
	for _, kind := range assay.ToolFaults {
		// Only environments have attackers, and nobody reads answers here.
		if rule := kind.Rule(); met[kind] == 0 && !rule.Attacks && !rule.Rereads && !rule.Lasts() && !rule.Renames {
			t.Errorf("no call met the kind %s", kind)
		}
	}
}

// TestCarelessAgentPaysTwice judges an agent that sends again because the answer was lost, and one
// that finds out that it was sent.
func TestCarelessAgentPaysTwice(t *testing.T) {
	t.Parallel()
	task := assay.Task{
		Required: []string{"read", "check", "send"}, Inputs: json.RawMessage(kitchenInputs),
	}
	for calls, want := range map[int]assay.Level{1: assay.FullSuccess, 2: assay.PartialSuccess} {
		trial := &assay.Trial{Cell: assay.Cell{Faults: always(assay.FaultAfter)}}
		catalog := effective()
		w := assay1.New(catalog, trial, &task)
		mustCall(t, w, "read", readArgs)
		mustCall(t, w, "check", `{"schema":{"ref":"inputs.schema"},"data":{"ref":"read"}}`)
		for range calls {
			mustCall(t, w, "send", `{}`)
		}
		tr := &assay.Transcript{Calls: w.Calls(), Ended: assay.Finished}
		o := assay1.Verdict(catalog, task, tr, nil)
		if o.Level != want || o.UnwantedEffects != calls-1 || o.Failures != 0 {
			t.Errorf("sent %d times: %s with %d unwanted effects and %d failures, want %s",
				calls, o.Level, o.UnwantedEffects, o.Failures, want)
		}
	}
}

// effective returns the kitchen, in which send has an effect.
func effective() *assay.Catalog {
	tools := slices.Clone(kitchen().All())
	for i := range tools {
		if tools[i].Name == "send" {
			tools[i].Effect = "sends a message"
		}
	}
	return assay.NewCatalog(tools)
}
