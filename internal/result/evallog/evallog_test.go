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
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/evallog"
	"gotest.tools/v3/golden"
)

// TestGolden shows a whole log.
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
	if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, ".eval") || strings.Count(got, "_") != 3 {
		t.Errorf("Name() = %s, want %s….eval", got, want)
	}
	other := meta
	other.Model = "acme_large" // which reads the same in a name
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
		t.Errorf("what is chosen of which state is not told apart: %q", slices.Sorted(maps.Keys(names)))
	}
	long, longer := meta, meta
	long.Experiment, long.Model = strings.Repeat("é", 300), strings.Repeat("m", 400)
	longer.Experiment, longer.Model = long.Experiment, long.Model+"m"
	if a, b := evallog.Name(long), evallog.Name(longer); len(a) > 240 || a == b {
		t.Errorf("%d bytes, for both models: %v", len(a), a == b)
	}
}

// TestSampling: the header has the parameters that all attempts share, faults too, and
// a turn has those of its own.
func TestSampling(t *testing.T) {
	cold, warm := 0.0, 0.7
	for name, c := range map[string]struct {
		sampling [2]assay.Sampling
		want     string
	}{
		"none":     {[2]assay.Sampling{}, `{}`},
		"the same": {[2]assay.Sampling{{Temperature: &cold}, {Temperature: new(float64)}}, `{"temperature":0}`},
		"others":   {[2]assay.Sampling{{Temperature: &cold}, {Temperature: &warm}}, `{}`},
		"of one":   {[2]assay.Sampling{{Temperature: &warm}, {}}, `{}`},
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
			for i, s := range slices.Backward(a.samples(t)) { // faults come last
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

// TestLaws draws experiments whose attempts lie as a store may have saved them.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawExperiment(t)
		var b, again bytes.Buffer
		n, err := evallog.Write(&b, meta, stream(in...))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := evallog.Write(&again, meta, stream(in...)); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
			t.Fatalf("the same input gave other bytes, %v", err)
		}
		want := expect(in)
		if n != len(want) {
			t.Fatalf("Write() = %d, want %d", n, len(want))
		}
		checkLaws(t, b.Bytes(), in, want)
	})
}

func checkLaws(t *rapid.T, data []byte, in []evallog.Sample, want map[assay.TrialID]expected) {
	a := unzip(t, data)
	samples := a.samples(t)
	if len(samples) != len(want) {
		t.Fatalf("%d samples of %d trials", len(samples), len(want))
	}
	values := make(map[string][]float64)
	scored := 0
	for _, s := range samples {
		w := want[s.Metadata.Trial]
		got := expected{attempt: s.Metadata.Attempt, value: s.Scores["assay"].Value}
		if s.Error != nil {
			got.error = s.Error.Message
		}
		for _, r := range s.Retries {
			got.retries = append(got.retries, r.Message)
		}
		if diff := cmp.Diff(w, got, cmp.AllowUnexported(expected{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("trial %s (-want +got):\n%s", s.Metadata.Trial, diff)
		}
		if w.value != "" {
			scored++
			values[s.ID] = append(values[s.ID], map[string]float64{"C": 1, "P": 0.5}[w.value])
		}
	}
	checkSummaries(t, a, samples)
	checkHeader(t, a.header(t), in, samples, scored, values)
}

// checkSummaries asks for a row for each sample, in its order.
func checkSummaries(t *rapid.T, a archive, samples []logSample) {
	var rows []logSummary
	a.read(t, "summaries.json", &rows)
	var want []logSummary
	for _, s := range samples {
		row := logSummary{ID: s.ID, Epoch: s.Epoch, Retries: len(s.Retries), Scores: map[string]struct{ Value string }{}}
		for name, v := range s.Scores {
			row.Scores[name] = struct{ Value string }{v.Value}
		}
		if s.Error != nil {
			row.Error = s.Error.Message
		}
		want = append(want, row)
	}
	if diff := cmp.Diff(want, rows, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("summaries (-want +got):\n%s", diff)
	}
}

func checkHeader(t *rapid.T, h logHeader, in []evallog.Sample, samples []logSample, scored int, values map[string][]float64) {
	ids, epochs := map[string]bool{}, 1
	for _, s := range samples {
		ids[s.ID], epochs = true, max(epochs, s.Epoch)
	}
	if d := h.Eval.Dataset; d.Samples != len(ids) || len(d.IDs) != len(ids) || h.Eval.Config.Epochs != epochs {
		t.Fatalf("dataset %+v of %d epochs, want %d samples and %d epochs", d, h.Eval.Config.Epochs, len(ids), epochs)
	}
	if h.Results.Total != len(samples) || h.Results.Completed != scored {
		t.Fatalf("results %+v, want %d of %d", h.Results, scored, len(samples))
	}
	usage := h.Stats.Usage[meta.Model]
	tokens := 0
	for _, s := range in {
		tokens += s.Attempt.InputTokens + s.Attempt.OutputTokens
	}
	if usage.Total != tokens {
		t.Fatalf("%d tokens, want %d", usage.Total, tokens)
	}
	if want := map[bool]string{true: "success", false: "error"}[scored > 0 || len(samples) == 0]; h.Status != want {
		t.Fatalf("status %s, want %s", h.Status, want)
	}
	if len(values) == 0 {
		return
	}
	var means []float64
	for _, v := range values {
		means = append(means, mean(v))
	}
	m := mean(means)
	squares := 0.0
	for _, v := range means {
		squares += (v - m) * (v - m)
	}
	se := 0.0
	if n := float64(len(means)); n > 1 {
		se = math.Sqrt(squares/(n-1)) / math.Sqrt(n)
	}
	got := h.Results.Scores[0]
	if got.Scored != len(values) || math.Abs(got.Metrics["accuracy"].Value-m) > 1e-9 || math.Abs(got.Metrics["stderr"].Value-se) > 1e-9 {
		t.Fatalf("scores %+v, want accuracy %v and stderr %v over %d", got, m, se, len(values))
	}
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// expected is what a trial's sample has to say.
type expected struct {
	attempt int
	value   string
	error   string
	retries []string
}

// expect reduces attempts to samples in the simplest way.
func expect(in []evallog.Sample) map[assay.TrialID]expected {
	all := make(map[assay.TrialID]expected)
	for _, s := range in {
		a := s.Attempt
		e := all[a.ID]
		if e.error != "" {
			e.retries = append(slices.Clip(e.retries), e.error)
		}
		e.attempt, e.error = a.Number, ""
		if a.Settles() {
			e.value = map[assay.Level]string{assay.FullSuccess: "C", assay.PartialSuccess: "P", assay.Failure: "I"}[a.Level]
		} else {
			e.error = strings.TrimSuffix(string(a.FaultKind)+": "+a.FaultDetail, ": ")
		}
		all[a.ID] = e
	}
	return all
}

// drawExperiment draws trials with some faults and perhaps an outcome each, and
// lets their attempts come in any order that keeps those of a trial.
func drawExperiment(t *rapid.T) []evallog.Sample {
	var queues [][]evallog.Sample
	for task := range rapid.IntRange(0, 4).Draw(t, "tasks") {
		for repeat := range rapid.IntRange(1, 3).Draw(t, "repeats") {
			trial := newTrial(task, repeat+1, rapid.SampledFrom([]string{"optimal", "flawed"}).Draw(t, "variant"))
			var q []evallog.Sample
			for n := range rapid.IntRange(0, 2).Draw(t, "faults") {
				q = append(q, evallog.Sample{Attempt: fault(trial, n+1, rapid.SampledFrom(assay.FaultKinds).Draw(t, "kind"), fmt.Sprint("fault ", n))})
			}
			if rapid.Bool().Draw(t, "settles") {
				q = append(q, evallog.Sample{Attempt: settled(trial, len(q)+1, rapid.SampledFrom(assay.Levels).Draw(t, "level")), Transcript: transcript()})
			}
			if len(q) > 0 {
				queues = append(queues, q)
			}
		}
	}
	var in []evallog.Sample
	for len(queues) > 0 {
		i := rapid.IntRange(0, len(queues)-1).Draw(t, "next")
		in = append(in, queues[i][0])
		if queues[i] = queues[i][1:]; len(queues[i]) == 0 {
			queues = slices.Delete(queues, i, i+1)
		}
	}
	return in
}

func TestStatus(t *testing.T) {
	good, bad := settled(newTrial(1, 1, "optimal"), 1, assay.Failure), fault(newTrial(2, 1, "optimal"), 1, assay.Auth, "no key")
	for name, c := range map[string]struct {
		planned int
		in      []assay.Attempt
		want    string
		total   int
		says    string
	}{
		"all there":                {2, []assay.Attempt{good, bad}, "success", 2, ""},
		"plan not known":           {0, []assay.Attempt{good}, "success", 1, ""},
		"some are pending":         {3, []assay.Attempt{good, bad}, "cancelled", 3, ""},
		"faults only":              {1, []assay.Attempt{bad}, "error", 1, "every trial ended in a fault, the latest in auth: no key"},
		"faults, and some pending": {2, []assay.Attempt{bad}, "error", 2, "no trial of this log has an outcome; the latest fault is auth: no key"},
		"faults that were chosen":  {0, []assay.Attempt{bad}, "error", 1, "no trial of this log has an outcome; the latest fault is auth: no key"},
		"nothing":                  {0, nil, "success", 0, ""},
		"nothing, planned":         {5, nil, "cancelled", 5, ""},
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
				t.Errorf("status %s of %d trials, want %s of %d", h.Status, h.Results.Total, c.want, c.total)
			}
			if got := h.Error != nil; got != (c.want == "error") || got && h.Error.Message != c.says {
				t.Errorf("error %+v with status %s", h.Error, h.Status)
			}
		})
	}
}

// TestEpochs: trials that differ in repeat are one sample, those that differ in
// anything else that is measured are others, and no trial takes another's place.
func TestEpochs(t *testing.T) {
	base := newTrial(1, 1, "optimal")
	turns, digest, odd := base, base, base
	turns.Setting.Turns, turns.ID = 20, "aa"
	digest.TaskDigest, digest.ID = "other", "bb"
	odd.Task, odd.ID = "../simple 001", "cc"
	seed := assay.NewTrial(base.Cell, assay.TaskRef{ID: base.Task, Digest: base.TaskDigest}, base.Setting, 2, 1)
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
			t.Errorf("id %q is no file name", s.ID)
		}
	}
	first := got[base.ID]
	if !strings.HasPrefix(first.ID, "simple-001.easy.optimal.r0.9.") || first.Epoch != 1 {
		t.Errorf("the first trial is %s of epoch %d", first.ID, first.Epoch)
	}
	if s := got[in[1].Attempt.ID]; s.ID != first.ID || s.Epoch != 2 {
		t.Errorf("its repeat is %s of epoch %d", s.ID, s.Epoch)
	}
	if s := got["dd"]; s.ID != first.ID || s.Epoch != 3 {
		t.Errorf("the trial of another seed is %s of epoch %d", s.ID, s.Epoch)
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

// TestNamesAcrossModels: the logs of two models can be joined.
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
		t.Errorf("one sample is %s and %s", ids[0], ids[1])
	}
}

func TestSampleWithoutTranscript(t *testing.T) {
	a := settled(newTrial(7, 1, "optimal"), 1, assay.PartialSuccess)
	_, data := write(t, meta, evallog.Sample{Attempt: a})
	s := unzip(t, data).samples(t)[0]
	if len(s.Messages) != 0 || s.Input != "simple-007" || s.Scores["assay"].Value != "P" {
		t.Errorf("sample %+v", s)
	}
	if s.Scores["assay"].Explanation != "partial_success; ended: turn_limit; error category: max_turns" || s.Scores["assay"].Answer != "fetch" {
		t.Errorf("score %+v", s.Scores["assay"])
	}
	if s.Limit == nil || s.Limit.Type != "custom" || s.Limit.Limit != 10 || s.Limit.Reason != "turn_limit" {
		t.Errorf("limit %+v", s.Limit)
	}
	_, data = write(t, meta, evallog.Sample{Attempt: a, Transcript: transcript()})
	if s := unzip(t, data).samples(t)[0]; s.Input != "Fetch it, then store it." {
		t.Errorf("input %q without a task", s.Input)
	}
}

// TestEvents: a turn has the messages before it, a native call its answer.
func TestEvents(t *testing.T) {
	tr := transcript()
	_, data := write(t, meta, evallog.Sample{Attempt: settled(newTrial(1, 1, "optimal"), 1, assay.FullSuccess), Transcript: tr})
	s := unzip(t, data).samples(t)[0]
	type event struct {
		Event  string
		Start  float64  `json:"working_start"`
		Range  [][2]int `json:"input_refs"`
		ID     string
		Result string
	}
	var got []event
	if err := json.Unmarshal(s.Events, &got); err != nil {
		t.Fatal(err)
	}
	want := []event{
		{"model", 0, [][2]int{{0, 2}}, "", ""},
		{"tool", 0.5, nil, "c1", `{"success":true}`},
		{"tool", 0.5, nil, "c2", `{"refused":"no JSON"}`},
		{"model", 0.5, [][2]int{{0, 5}}, "", ""},
		{"model", 0.5, [][2]int{{0, 7}}, "", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if len(s.Pool.Messages) != len(s.Messages) {
		t.Errorf("%d messages to refer to, want %d", len(s.Pool.Messages), len(s.Messages))
	}
}

func TestWriteRefuses(t *testing.T) {
	trial := newTrial(1, 1, "optimal")
	good := evallog.Sample{Attempt: settled(trial, 2, assay.Failure)}
	other, both, infinite := settled(trial, 1, assay.Failure), settled(trial, 1, assay.Failure), settled(newTrial(2, 1, "optimal"), 1, assay.Failure)
	other.Model, both.FaultKind, infinite.CostUSD = "acme/small", assay.Timeout, math.Inf(1)
	strange := &assay.Transcript{Messages: []assay.Message{{Role: "developer"}}}
	for name, c := range map[string]struct {
		in   iter.Seq2[evallog.Sample, error]
		want string
		n    int
	}{
		"another model":     {stream(evallog.Sample{Attempt: other}), "acme/small", 0},
		"level and fault":   {stream(evallog.Sample{Attempt: both}), "both set", 0},
		"settled twice":     {stream(good, good), "settled", 1},
		"fault afterwards":  {stream(good, evallog.Sample{Attempt: fault(trial, 3, assay.Auth, "")}), "settled", 1},
		"infinite cost":     {stream(good, evallog.Sample{Attempt: infinite}), "unsupported value", 1},
		"a role":            {stream(evallog.Sample{Attempt: good.Attempt, Transcript: strange}), "developer", 0},
		"error of sequence": {failing(good), "broken", 1},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := evallog.Write(io.Discard, meta, c.in)
			if err == nil || !strings.Contains(err.Error(), c.want) || n != c.n {
				t.Errorf("Write() = %d, %v, want %d and an error with %q", n, err, c.n, c.want)
			}
		})
	}
	if _, err := evallog.Write(io.Discard, meta, failing()); !errors.Is(err, errBroken) {
		t.Errorf("Write() = %v, want it to wrap %v", err, errBroken)
	}
}

// brokenWriter takes n bytes.
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
		if _, err := evallog.Write(&brokenWriter{n}, meta, stream(small()...)); !errors.Is(err, errBroken) {
			t.Errorf("after %d bytes Write() = %v, want %v", n, err, errBroken)
		}
	}
}

// TestWriteKeepsNoTranscripts writes 50 MB of them.
func TestWriteKeepsNoTranscripts(t *testing.T) {
	const trials, size, most = 500, 100 << 10, 16 << 20
	text := strings.Repeat("what was said ", size/14)
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	in := func(yield func(evallog.Sample, error) bool) {
		for i := range trials {
			tr := transcript()
			tr.Messages[1].Content = text
			if !yield(evallog.Sample{Attempt: settled(newTrial(i, 1, "optimal"), 1, assay.FullSuccess), Transcript: tr}, nil) {
				return
			}
			if i%100 == 99 {
				runtime.GC()
				runtime.ReadMemStats(&now)
				if grown := int64(now.HeapAlloc) - int64(before.HeapAlloc); grown > most {
					t.Errorf("after %d trials the heap has grown by %d bytes, want at most %d", i+1, grown, most)
				}
			}
		}
	}
	if n, err := evallog.Write(io.Discard, meta, in); n != trials || err != nil {
		t.Fatalf("Write() = %d, %v", n, err)
	}
}

// FuzzArguments: whatever a model writes as arguments, the log stays readable
// and the text is in it, as arguments or as what is wrong with them.
func FuzzArguments(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tr := &assay.Transcript{Messages: []assay.Message{
			{Role: assay.User, Content: text},
			{Role: assay.Assistant, Content: text, Reasoning: text, Calls: []assay.ToolCall{{ID: text, Name: text, Arguments: text}}},
		}}
		_, data := write(t, meta, evallog.Sample{Attempt: settled(newTrial(1, 1, "optimal"), 1, assay.Failure), Transcript: tr})
		a := unzip(t, data)
		s := a.samples(t)[0]
		if d := deepest(a.files["samples/"+s.ID+"_epoch_1.json"]); d > 200 {
			t.Fatalf("%q makes a file of %d levels", text, d)
		}
		var m struct {
			Calls []struct {
				Arguments map[string]any
				Wrong     string `json:"parse_error"`
			} `json:"tool_calls"`
		}
		if err := json.Unmarshal(s.Messages[1], &m); err != nil || len(m.Calls) != 1 || m.Calls[0].Arguments == nil {
			t.Fatalf("call %+v of %q, %v", m, text, err)
		}
		if raw := s.Messages[1]; aloneHalf.Match(bytes.ToLower(raw)) {
			t.Fatalf("%q leaves half a surrogate pair in %s", text, raw)
		}
		var want map[string]any
		plain := strings.ToValidUTF8(text, "\uFFFD")
		switch c := m.Calls[0]; {
		case c.Wrong != "":
			if !strings.Contains(c.Wrong, plain) || len(c.Arguments) != 0 {
				t.Fatalf("the error of %q is %q, with arguments %v", text, c.Wrong, c.Arguments)
			}
		case text != "":
			if err := json.Unmarshal([]byte(plain), &want); err != nil || !reflect.DeepEqual(want, c.Arguments) {
				t.Fatalf("arguments of %q are %v (%v)", text, c.Arguments, err)
			}
		}
	})
}

// deepest is how many levels JSON has.
func deepest(text []byte) (most int) {
	level := 0
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.Token()
		if err != nil {
			return most
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			level++
			most = max(most, level)
		case json.Delim(']'), json.Delim('}'):
			level--
		}
	}
}

// aloneHalf finds an escaped surrogate: whatever Go has encoded has none.
var aloneHalf = regexp.MustCompile(`(^|[^\\])(\\\\)*\\ud[89a-f]`)

// hostile are arguments that would make a careless log unreadable.
var hostile = []string{
	"", " ", "{}", "null", "[]", `"text"`, `{"a":1}`, `{"a":`, `{"a":1}{"b":2}`, "{\"a\":\"\xff\"}", `{"a":"\ud800"}`, `{"a":"\uD83D\uDE00", "n": 9007199254740993}`,
	`{"a":` + strings.Repeat("9", 5000) + `}`, `{"a":1e999}`, `{"a":1,"a":2}`, `{"a":NaN}`,
	`{"a":` + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + `}`,
	`{"a":` + strings.Repeat("[", 90) + strings.Repeat("]", 90) + `}`,
}

func BenchmarkWrite(b *testing.B) {
	tr := transcript()
	for range 4 {
		tr.Messages = append(tr.Messages, transcript().Messages...)
	}
	in := func(yield func(evallog.Sample, error) bool) {
		for i := range b.N {
			if !yield(evallog.Sample{Attempt: settled(newTrial(i, 1, "optimal"), 1, assay.FullSuccess), Transcript: tr}, nil) {
				return
			}
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	if _, err := evallog.Write(io.Discard, meta, in); err != nil {
		b.Fatal(err)
	}
}
