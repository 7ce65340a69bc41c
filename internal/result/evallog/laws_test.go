package evallog_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/evallog"
)

// TestLaws draws experiments whose attempts are in an order that a store may
// have saved.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawExperiment(t)
		var b, again bytes.Buffer
		n, err := evallog.Write(&b, meta, stream(in...))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := evallog.Write(&again, meta, stream(in...)); err != nil ||
			!bytes.Equal(b.Bytes(), again.Bytes()) {
			t.Fatalf("the same input gave different bytes, %v", err)
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
		t.Fatalf("%d samples for %d trials", len(samples), len(want))
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
		if diff := cmp.Diff(w, got, cmp.AllowUnexported(expected{}),
			cmpopts.EquateEmpty()); diff != "" {
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

// checkSummaries checks that there is a row for each sample, in order.
func checkSummaries(t *rapid.T, a archive, samples []logSample) {
	var rows []logSummary
	a.read(t, "summaries.json", &rows)
	var want []logSummary
	for _, s := range samples {
		row := logSummary{
			ID: s.ID, Epoch: s.Epoch, Retries: len(s.Retries),
			Scores: map[string]struct{ Value string }{},
		}
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

func checkHeader(t *rapid.T, h logHeader, in []evallog.Sample, samples []logSample, scored int,
	values map[string][]float64,
) {
	ids, epochs := map[string]bool{}, 1
	for _, s := range samples {
		ids[s.ID], epochs = true, max(epochs, s.Epoch)
	}
	d := h.Eval.Dataset
	if d.Samples != len(ids) || len(d.IDs) != len(ids) || h.Eval.Config.Epochs != epochs {
		t.Fatalf("dataset %+v of %d epochs, want %d samples and %d epochs",
			d, h.Eval.Config.Epochs, len(ids), epochs)
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
	want := "error"
	if scored > 0 || len(samples) == 0 {
		want = "success"
	}
	if h.Status != want {
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
	se := clusteredError(values, m)
	got := h.Results.Scores[0]
	if got.Scored != len(values) || math.Abs(got.Metrics["accuracy"].Value-m) > 1e-9 ||
		math.Abs(got.Metrics["stderr"].Value-se) > 1e-9 {
		t.Fatalf("scores %+v, want accuracy %v and stderr %v over %d", got, m, se, len(values))
	}
}

// clusteredError is the standard error of a mean of items, clustered by the task at the beginning
// of their names: the products of the deviations of all pairs of items of a task.
func clusteredError(values map[string][]float64, m float64) float64 {
	variance, clusters := 0.0, map[string]bool{}
	for a, v := range values {
		task, _, _ := strings.Cut(a, ".")
		clusters[task] = true
		for b, w := range values {
			if strings.HasPrefix(b, task+".") {
				variance += (mean(v) - m) * (mean(w) - m)
			}
		}
	}
	c, n := float64(len(clusters)), float64(len(values))
	if c < 2 {
		return 0
	}
	return math.Sqrt(max(0, variance)*c/(c-1)) / n
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// expected is the wanted content of a trial's sample.
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
			e.value = map[assay.Level]string{
				assay.FullSuccess: "C", assay.PartialSuccess: "P", assay.Failure: "I",
			}[a.Level]
		} else {
			e.error = strings.TrimSuffix(string(a.FaultKind)+": "+a.FaultDetail, ": ")
		}
		all[a.ID] = e
	}
	return all
}

// drawExperiment draws trials with some faults and perhaps an outcome each.
// Their attempts are in any order that keeps the order within each trial.
func drawExperiment(t *rapid.T) []evallog.Sample {
	var queues [][]evallog.Sample
	for task := range rapid.IntRange(0, 4).Draw(t, "tasks") {
		for repeat := range rapid.IntRange(1, 3).Draw(t, "repeats") {
			variant := rapid.SampledFrom([]string{"optimal", "flawed"}).Draw(t, "variant")
			trial := newTrial(task, repeat+1, variant)
			var q []evallog.Sample
			for n := range rapid.IntRange(0, 2).Draw(t, "faults") {
				kind := rapid.SampledFrom(assay.FaultKinds).Draw(t, "kind")
				a := fault(trial, n+1, kind, fmt.Sprint("fault ", n))
				q = append(q, evallog.Sample{Attempt: a})
			}
			if rapid.Bool().Draw(t, "settles") {
				level := rapid.SampledFrom(assay.Levels).Draw(t, "level")
				a := settled(trial, len(q)+1, level)
				q = append(q, evallog.Sample{Attempt: a, Transcript: transcript()})
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
