package evallog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/evallog"
	"gotest.tools/v3/golden"
)

// TestGolden compares a whole log with a golden file.
func TestGolden(t *testing.T) {
	n, data := write(t, meta, small()...)
	if n != 4 {
		t.Errorf("Write() = %d trials, want 4", n)
	}
	a := unzip(t, data)
	var b strings.Builder
	for _, name := range a.names {
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, a.files[name], "", "  "); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "== %s\n%s\n", name, &pretty)
	}
	golden.Assert(t, b.String(), "small.golden")
}

func TestName(t *testing.T) {
	const want = "2026-03-02T08-30-00-00-00_flaws_acme-large_"
	got := evallog.Name(meta)
	if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, ".eval") ||
		strings.Count(got, "_") != 3 {
		t.Errorf("Name() = %s, want %s….eval", got, want)
	}
	other := meta
	other.Model = "acme_large" // the same name after cleaning
	if evallog.Name(other) == got {
		t.Errorf("two models share the name %s", got)
	}
	names := map[string]bool{got: true}
	for _, where := range [][]string{{"a b"}, {"a", "b"}} {
		for _, snapshot := range []string{meta.Snapshot, "7-other"} {
			chosen := meta
			chosen.Snapshot, chosen.Filter = snapshot, struct{ Where []string }{where}
			names[evallog.Name(chosen)] = true
		}
	}
	if len(names) != 5 {
		t.Errorf("different filters or states share a name: %q", slices.Sorted(maps.Keys(names)))
	}
	long, longer := meta, meta
	long.Experiment, long.Model = strings.Repeat("é", 300), strings.Repeat("m", 400)
	longer.Experiment, longer.Model = long.Experiment, long.Model+"m"
	if a, b := evallog.Name(long), evallog.Name(longer); len(a) > 240 || a == b {
		t.Errorf("%d bytes, for both models: %v", len(a), a == b)
	}
}

// TestSampling checks that the header has the sampling parameters that all
// attempts share, including faults, and that each turn has its own.
func TestSampling(t *testing.T) {
	cold, warm := 0.0, 0.7
	for name, c := range map[string]struct {
		sampling [2]assay.Sampling
		want     string
	}{
		"none": {[2]assay.Sampling{}, `{}`},
		"the same": {
			[2]assay.Sampling{{Temperature: &cold}, {Temperature: new(float64)}},
			`{"temperature":0}`,
		},
		"others": {[2]assay.Sampling{{Temperature: &cold}, {Temperature: &warm}}, `{}`},
		"of one": {[2]assay.Sampling{{Temperature: &warm}, {}}, `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			var in []evallog.Sample
			for i, s := range c.sampling {
				trial := newTrial(i, 1, "optimal")
				trial.Sampling = s
				a := settled(trial, 1, assay.Failure)
				if i == 0 {
					a = fault(trial, 1, assay.Auth, "no key")
				}
				in = append(in, evallog.Sample{Attempt: a, Transcript: transcript()})
			}
			_, data := write(t, meta, in...)
			a := unzip(t, data)
			var h struct {
				Eval struct {
					Config json.RawMessage `json:"model_generate_config"`
				}
				Plan struct{ Config json.RawMessage }
			}
			a.read(t, "header.json", &h)
			if string(h.Eval.Config) != c.want || string(h.Plan.Config) != c.want {
				t.Errorf("config %s and %s, want %s", h.Eval.Config, h.Plan.Config, c.want)
			}
			for i, s := range slices.Backward(a.samples(t)) { // samples of faults come last
				var events []struct{ Config *assay.Sampling }
				if err := json.Unmarshal(s.Events, &events); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(&c.sampling[1-i], events[0].Config); diff != "" {
					t.Errorf("config of a turn (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestStatus(t *testing.T) {
	good := settled(newTrial(1, 1, "optimal"), 1, assay.Failure)
	bad := fault(newTrial(2, 1, "optimal"), 1, assay.Auth, "no key")
	for name, c := range map[string]struct {
		planned int
		in      []assay.Attempt
		want    string
		total   int
		says    string
	}{
		"all there":        {2, []assay.Attempt{good, bad}, "success", 2, ""},
		"plan not known":   {0, []assay.Attempt{good}, "success", 1, ""},
		"some are pending": {3, []assay.Attempt{good, bad}, "cancelled", 3, ""},
		"faults only": {
			1,
			[]assay.Attempt{bad},
			"error", 1,
			"every trial ended in a fault, the latest in auth: no key",
		},
		"faults, and some pending": {
			2,
			[]assay.Attempt{bad},
			"error", 2,
			"no trial of this log has an outcome; the latest fault is auth: no key",
		},
		"faults that were chosen": {
			0,
			[]assay.Attempt{bad},
			"error", 1,
			"no trial of this log has an outcome; the latest fault is auth: no key",
		},
		"nothing":          {0, nil, "success", 0, ""},
		"nothing, planned": {5, nil, "cancelled", 5, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := meta
			m.Planned = c.planned
			var in []evallog.Sample
			for _, a := range c.in {
				in = append(in, evallog.Sample{Attempt: a})
			}
			_, data := write(t, m, in...)
			h := unzip(t, data).header(t)
			if h.Status != c.want || h.Results.Total != c.total {
				t.Errorf("status %s of %d trials, want %s of %d",
					h.Status, h.Results.Total, c.want, c.total)
			}
			got := h.Error != nil
			if got != (c.want == "error") || got && h.Error.Message != c.says {
				t.Errorf("error %+v with status %s", h.Error, h.Status)
			}
		})
	}
}

// TestEpochsDifferOnlyInRepeat checks that trials that differ in repeat belong
// to one sample, that trials that differ in anything else measured belong to
// others, and that no trial replaces another.
func TestEpochsDifferOnlyInRepeat(t *testing.T) {
	base := newTrial(1, 1, "optimal")
	turns, digest, odd := base, base, base
	turns.Setting.Turns, turns.ID = 20, "aa"
	digest.TaskDigest, digest.ID = "other", "bb"
	odd.Task, odd.ID = "../simple 001", "cc"
	seed := assay.NewTrial(base.Cell,
		assay.TaskRef{ID: base.Task, Digest: base.TaskDigest}, base.Setting, 2, 1)
	seed.ID = "dd"
	var in []evallog.Sample
	for _, trial := range []assay.Trial{base, newTrial(1, 2, "optimal"), turns, digest, odd, seed} {
		in = append(in, evallog.Sample{Attempt: settled(trial, 1, assay.FullSuccess)})
	}
	_, data := write(t, meta, in...)
	a := unzip(t, data)
	got := make(map[assay.TrialID]logSample)
	for _, s := range a.samples(t) {
		got[s.Metadata.Trial] = s
		if strings.ContainsAny(s.ID, `/\ `) || strings.HasPrefix(s.ID, ".-simple") {
			t.Errorf("id %q is not a safe file name", s.ID)
		}
	}
	first := got[base.ID]
	if !strings.HasPrefix(first.ID, "simple-001.easy.optimal.r0.9.") || first.Epoch != 1 {
		t.Errorf("the first trial is sample %s, epoch %d", first.ID, first.Epoch)
	}
	if s := got[in[1].Attempt.ID]; s.ID != first.ID || s.Epoch != 2 {
		t.Errorf("its repeat is sample %s, epoch %d", s.ID, s.Epoch)
	}
	if s := got["dd"]; s.ID != first.ID || s.Epoch != 3 {
		t.Errorf("the trial with another seed is sample %s, epoch %d", s.ID, s.Epoch)
	}
	for _, id := range []assay.TrialID{"aa", "bb", "cc"} {
		if got[id].ID == first.ID {
			t.Errorf("trial %s is an epoch of another sample", id)
		}
	}
	if n := a.header(t).Eval.Dataset.Samples; n != 4 {
		t.Errorf("%d samples, want 4", n)
	}
}

// TestNamesAcrossModels checks that the logs of two models can be joined.
func TestNamesAcrossModels(t *testing.T) {
	m := meta
	var ids [2]string
	for i, model := range []string{"acme/large", "acme/small"} {
		m.Model = model
		trial := newTrial(1, 1, "flawed")
		trial.Model, trial.ID = model, assay.TrialID(model)
		_, data := write(t, m, evallog.Sample{Attempt: settled(trial, 1, assay.Failure)})
		ids[i] = unzip(t, data).samples(t)[0].ID
	}
	if ids[0] != ids[1] {
		t.Errorf("the same sample has the IDs %s and %s", ids[0], ids[1])
	}
}

func TestSampleWithoutTranscript(t *testing.T) {
	a := settled(newTrial(7, 1, "optimal"), 1, assay.PartialSuccess)
	_, data := write(t, meta, evallog.Sample{Attempt: a})
	s := unzip(t, data).samples(t)[0]
	if len(s.Messages) != 0 || s.Input != "simple-007" || s.Scores["assay"].Value != "P" {
		t.Errorf("sample %+v", s)
	}
	const explanation = "partial_success; ended: turn_limit; error category: max_turns"
	if s.Scores["assay"].Explanation != explanation || s.Scores["assay"].Answer != "fetch" {
		t.Errorf("score %+v", s.Scores["assay"])
	}
	if s.Limit == nil || s.Limit.Type != "custom" || s.Limit.Limit != 10 ||
		s.Limit.Reason != "turn_limit" {
		t.Errorf("limit %+v", s.Limit)
	}
	_, data = write(t, meta, evallog.Sample{Attempt: a, Transcript: transcript()})
	if s := unzip(t, data).samples(t)[0]; s.Input != "Fetch it, then store it." {
		t.Errorf("input %q without a task", s.Input)
	}
}

// TestInputIsThePrompt checks that the input has the plan that the model was shown.
func TestInputIsThePrompt(t *testing.T) {
	tr := transcript()
	tr.Messages[1].Content = "Fetch it, then store it.\n\nPlan: store, fetch"
	_, data := write(t, meta, evallog.Sample{
		Attempt:    settled(newTrial(1, 1, "flawed"), 1, assay.Failure),
		Transcript: tr, Task: task("simple-001"),
	})
	a := unzip(t, data)
	var rows []struct{ Input string }
	a.read(t, "summaries.json", &rows)
	if s := a.samples(t)[0]; s.Input != tr.Messages[1].Content || rows[0].Input != s.Input {
		t.Errorf("input %q, and %q in the summary", s.Input, rows[0].Input)
	}
}

// TestListsAreLists checks that lists without elements are not null, and that a fault's measures
// are.
func TestListsAreLists(t *testing.T) {
	idle := settled(newTrial(1, 1, "optimal"), 1, assay.Failure)
	idle.ExecutedTools = nil
	bad := fault(newTrial(2, 1, "optimal"), 1, assay.Auth, "no key")
	_, data := write(t, meta, evallog.Sample{Attempt: idle, Transcript: &assay.Transcript{}},
		evallog.Sample{Attempt: bad, Transcript: &assay.Transcript{}})
	a := unzip(t, data)
	got := make(map[assay.TrialID]map[string]any)
	for _, name := range a.names {
		if strings.HasPrefix(name, "samples/") {
			var s struct {
				Metadata map[string]any
				Scores   map[string]struct{ Metadata map[string]any }
			}
			a.read(t, name, &s)
			s.Metadata["score"] = s.Scores["assay"].Metadata["executed_tools"]
			got[assay.TrialID(s.Metadata["trial"].(string))] = s.Metadata
		}
	}
	for _, name := range []string{"executed_tools", "calls", "loop_records", "score"} {
		if _, ok := got[idle.ID][name].([]any); !ok {
			t.Errorf("%s of an outcome is %v", name, got[idle.ID][name])
		}
	}
	for _, name := range []string{"executed_tools", "coverage", "turns", "level"} {
		if v, ok := got[bad.ID][name]; v != nil || !ok {
			t.Errorf("%s of a fault is %v, want null", name, v)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	trial := newTrial(1, 1, "optimal")
	good := evallog.Sample{Attempt: settled(trial, 2, assay.Failure)}
	other, both, infinite := settled(trial, 1, assay.Failure), settled(trial, 1,
		assay.Failure), settled(newTrial(2, 1, "optimal"), 1, assay.Failure)
	other.Model, both.FaultKind, infinite.CostUSD = "acme/small", assay.Timeout, math.Inf(1)
	strange := &assay.Transcript{Messages: []assay.Message{{Role: "developer"}}}
	for name, c := range map[string]struct {
		in   iter.Seq2[evallog.Sample, error]
		want string
		n    int
	}{
		"another model":   {stream(evallog.Sample{Attempt: other}), "acme/small", 0},
		"level and fault": {stream(evallog.Sample{Attempt: both}), "both set", 0},
		"settled twice":   {stream(good, good), "settled", 1},
		"fault afterwards": {stream(good,
			evallog.Sample{Attempt: fault(trial, 3, assay.Auth, "")}), "settled", 1},
		"infinite cost": {
			stream(good, evallog.Sample{Attempt: infinite}),
			"unsupported value", 1,
		},
		"a role": {
			stream(evallog.Sample{Attempt: good.Attempt, Transcript: strange}),
			"developer", 0,
		},
		"error of sequence": {failing(good), "broken", 1},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := evallog.Write(io.Discard, meta, c.in)
			if err == nil || !strings.Contains(err.Error(), c.want) || n != c.n {
				t.Errorf("Write() = %d, %v, want %d and an error that contains %q",
					n, err, c.n, c.want)
			}
		})
	}
	if _, err := evallog.Write(io.Discard, meta, failing()); !errors.Is(err, errBroken) {
		t.Errorf("Write() = %v, want it to wrap %v", err, errBroken)
	}
}

// brokenWriter accepts n bytes.
type brokenWriter struct{ n int }

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.n -= len(p); w.n < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestWriteReportsItsWriter(t *testing.T) {
	_, data := write(t, meta, small()...)
	for _, n := range []int{0, 100, len(data) / 2, len(data) - 1} {
		if _, err := evallog.Write(&brokenWriter{n}, meta,
			stream(small()...)); !errors.Is(err, errBroken) {
			t.Errorf("after %d bytes Write() = %v, want %v", n, err, errBroken)
		}
	}
}

// TestWriteKeepsNoTranscripts writes 5 MB of transcripts.
func TestWriteKeepsNoTranscripts(t *testing.T) {
	const trials, size, most = 50, 100 << 10, 4 << 20
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	in := func(yield func(evallog.Sample, error) bool) {
		for i := range trials {
			tr := transcript()
			tr.Messages[1].Content = strings.Repeat("what was said ", size/14)
			if !yield(evallog.Sample{Attempt: settled(newTrial(i, 1, "optimal"), 1,
				assay.FullSuccess), Transcript: tr}, nil) {
				return
			}
			if i%10 == 9 {
				runtime.GC()
				runtime.GC() // pools keep buffers for one collection longer
				runtime.ReadMemStats(&now)
				if grown := int64(now.HeapAlloc) - int64(before.HeapAlloc); grown > most {
					t.Errorf("after %d trials the heap has grown by %d bytes, want at most %d",
						i+1, grown, most)
				}
			}
		}
	}
	if n, err := evallog.Write(io.Discard, meta, in); n != trials || err != nil {
		t.Fatalf("Write() = %d, %v", n, err)
	}
}
