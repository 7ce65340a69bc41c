package evallog_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/evallog"
)

// python returns a Python that has Inspect: ASSAY_PYTHON, or python3.
func python(t *testing.T) string {
	t.Helper()
	name := os.Getenv("ASSAY_PYTHON")
	if name == "" {
		name = "python3"
	}
	if out, err := exec.CommandContext(t.Context(), name, "-c",
		"import inspect_ai").CombinedOutput(); err != nil {
		t.Skipf("%s has no inspect_ai (%v); ASSAY_PYTHON names another Python: %s", name, err, out)
	}
	return name
}

// told is the output of testdata/read.py for a log.
type told struct {
	Version   string
	Status    string
	Total     int
	Completed int
	Metrics   map[string]float64
	Sampling  []assay.Sampling // for the log, its plan and each turn
	Filter    any
	Tokens    map[string]int
	Samples   []struct {
		ID      string
		Epoch   int
		Trial   assay.TrialID
		Score   string
		Error   string
		Retries []string
		Roles   []assay.Role
		Texts   []string
		Errors  []string
		Calls   [][]any
	}
}

// TestInspectReadsLogs reads logs with all of Inspect's readers, which have to
// agree, and lets Inspect recompute the metrics.
func TestInspectReadsLogs(t *testing.T) {
	name := python(t)
	wild := meta
	wild.Planned = 7
	var spoilt []evallog.Sample
	for i, text := range hostile {
		tr := transcript()
		tr.Messages[2].Calls[0].Arguments = text
		tr.Messages[5].Content = text
		spoilt = append(spoilt,
			evallog.Sample{
				Attempt:    settled(newTrial(i%4, 1+i/4, "optimal"), 1, assay.Levels[i%3]),
				Transcript: tr,
			})
	}
	warm, most := 0.7, 400
	sampled, filtered := small(), meta
	for i := range sampled {
		sampled[i].Attempt.Sampling = assay.Sampling{Temperature: &warm, MaxTokens: &most}
	}
	filtered.Filter = map[string]any{"where": []any{"level=failure"}}
	for _, c := range []struct {
		name string
		meta evallog.Meta
		in   []evallog.Sample
	}{
		{"small", meta, small()},
		{"sampled", filtered, sampled},
		{"hostile", meta, spoilt},
		{"clustered", meta, clustered()},
		{"pending", wild, small()},
		{"faults", meta, small()[:2]},
		{"nothing", meta, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, data := write(t, c.meta, c.in...)
			got := readWith(t, name, data)
			checkTold(t, got, data, c.in)
			for _, s := range got.Sampling {
				if len(c.in) > 0 && !reflect.DeepEqual(s, c.in[0].Attempt.Sampling) {
					t.Errorf("Inspect reads sampling %+v", s)
				}
			}
			if diff := cmp.Diff(c.meta.Filter, got.Filter); diff != "" {
				t.Errorf("filter (-want +got):\n%s", diff)
			}
		})
	}
}

// clustered returns outcomes that are alike within tasks, with a failed call each.
func clustered() (in []evallog.Sample) {
	tr := transcript()
	tr.Messages[3].Content = `{"success":false,"error":"TIMEOUT: too slow"}`
	for task := range 6 {
		for _, variant := range []string{"optimal", "flawed", "cot"} {
			a := settled(newTrial(task, 1, variant), 1, assay.Levels[task%3])
			in = append(in, evallog.Sample{Attempt: a, Transcript: tr})
		}
	}
	return in
}

func readWith(t *testing.T, python string, data []byte) (got told) {
	t.Helper()
	path := filepath.Join(t.TempDir(), evallog.Name(meta))
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "testdata/read.py", path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return got
}

func checkTold(t *testing.T, got told, data []byte, in []evallog.Sample) {
	t.Helper()
	t.Logf("inspect_ai %s: %s, %d of %d, %v",
		got.Version, got.Status, got.Completed, got.Total, got.Metrics)
	a := unzip(t, data)
	h, want := a.header(t), expect(in)
	if got.Status != h.Status || got.Total != h.Results.Total ||
		got.Completed != h.Results.Completed || len(got.Samples) != len(want) {
		t.Errorf("Inspect reads %s with %d samples, %d of %d, and we wrote %s with %d, %d of %d",
			got.Status, len(got.Samples),
			got.Completed, got.Total, h.Status, len(want), h.Results.Completed, h.Results.Total)
	}
	transcripts := make(map[assay.TrialID]*assay.Transcript)
	for _, s := range in {
		transcripts[s.Attempt.ID] = s.Transcript
	}
	for _, s := range got.Samples {
		w := want[s.Trial]
		w.attempt = 0
		if diff := cmp.Diff(w, expected{value: s.Score, error: s.Error, retries: s.Retries},
			cmp.AllowUnexported(expected{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("trial %s (-want +got):\n%s", s.Trial, diff)
		}
		tr := transcripts[s.Trial]
		if tr == nil {
			tr = &assay.Transcript{}
		}
		calls := 0
		var errors []string
		for i, m := range tr.Messages {
			if m.Role == assay.ToolRole {
				var answer struct{ Error, Refused string }
				_ = json.Unmarshal([]byte(m.Content), &answer) // a spoilt answer has no error
				errors = append(errors, answer.Error+answer.Refused)
			}
			calls += len(m.Calls)
			if i >= len(s.Roles) || s.Roles[i] != m.Role ||
				m.Reasoning == "" && s.Texts[i] != strings.ToValidUTF8(m.Content, "\uFFFD") {
				t.Errorf("message %d of trial %s is not %+v", i, s.Trial, m)
			}
		}
		if diff := cmp.Diff(errors, s.Errors, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("errors of trial %s (-want +got):\n%s", s.Trial, diff)
		}
		if len(s.Roles) != len(tr.Messages) || len(s.Calls) != calls {
			t.Errorf("trial %s has %d messages and %d calls, want %d and %d",
				s.Trial, len(s.Roles), len(s.Calls), len(tr.Messages), calls)
		}
	}
}
