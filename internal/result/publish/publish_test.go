package publish_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/publish"
	"github.com/assay-eval/assay/internal/result/report"
)

var about = publish.Experiment{
	Name: "first", World: "assay-1", Library: "builtin", Digest: "d1", Builtin: true, Cluster: "task",
	Snapshot: "9-abc", Program: "1.2.3",
}

// hostile is a text that is several lines to Python.
const hostile = "a\u2028b\u0085c\vd\x1ce\xff\"\\"

// measured returns the figures of a model with faults and every level, and its attempts.
func measured(t *testing.T, model string, agent string) (*report.Analysis, []publish.Sample) {
	t.Helper()
	var trials []assay.Trial
	var attempts []assay.Attempt
	var samples []publish.Sample
	warm := 0.5
	for task := range 7 {
		for repeat := range 3 {
			for _, reliability := range []float64{0.8, 1} {
				tr := assay.Trial{
					Cell: assay.Cell{
						Model: model, Variant: assay.Optimal, Difficulty: "easy", TaskType: assay.TaskTypes[task%2],
						Reliability: reliability,
					},
					Task: assay.TaskID(fmt.Sprint("task-", task)), Repeat: repeat, Seed: 7,
					Setting: assay.Setting{
						World: "assay-1", Protocol: "native", Turns: 15, Calls: 10, AgentModel: agent,
						Sampling: assay.Sampling{Effort: "high", Temperature: &warm, Revision: "r2"},
					},
				}
				id := sha256.Sum256(fmt.Appendf(nil, "%s-%d-%d-%g", model, task, repeat, reliability))
				tr.ID = assay.TrialID(hex.EncodeToString(id[:16]))
				trials = append(trials, tr)
				a := assay.Attempt{Trial: tr, Number: 1, Run: "01a0", Program: "1.0.0", Lane: "host/KEY/deployed"}
				a.FinishedAt = time.Unix(1_795_392_000+int64(task), 0)
				if task == 0 && repeat == 0 { // a fault, and nothing after it
					a.FaultKind = assay.Network
				} else {
					a.Level, a.Ended, a.ScoreVersion = assay.Levels[(task*repeat)%3], assay.Finished, "assay-1.7"
					a.Outcome.Turns, a.Best, a.ToolCalls, a.InputTokens = 2, .9, 1, 100
					a.RequiredTools, a.ServedModel = []string{"fetch"}, "m-1"
				}
				attempts = append(attempts, a)
				samples = append(samples, publish.Sample{Attempt: a, Transcript: conversation()})
			}
		}
	}
	samples[len(samples)-1].Transcript = nil
	a, err := report.Design{}.Analyze("first", slices.Values(trials), func(yield func(assay.Attempt, error) bool) {
		for _, a := range attempts {
			if !yield(a, nil) {
				return
			}
		}
	}, report.Beside{})
	if err != nil {
		t.Fatal(err)
	}
	return a, samples
}

func conversation() *assay.Transcript {
	return &assay.Transcript{Messages: []assay.Message{
		{Role: assay.System, Content: "Rules."},
		{Role: assay.User, Content: hostile},
		{Role: assay.Assistant, Reasoning: hostile, Calls: []assay.ToolCall{
			{ID: "c1", Name: "fetch", Arguments: `{"n":1,"text":"x","list":[1,"a"],"none":null}`},
			{ID: "c2", Name: "fetch", Arguments: `{"n":`},
			{ID: "c3", Name: "stop"},
		}},
		{Role: assay.ToolRole, CallID: "c1", Content: "one"},
		{Role: assay.Assistant, Content: "Done."},
	}}
}

// written writes results below a directory, and returns the record, its rows and its path.
func written(t *testing.T, dir string, x publish.Experiment, m publish.Model, a *report.Analysis, samples []publish.Sample) (
	*publish.Results, record, []row, string,
) {
	t.Helper()
	r := publish.New(x, m, a.Rows.All())
	for i := range samples {
		if err := r.Add(&samples[i].Attempt); err != nil {
			t.Fatal(err)
		}
	}
	path, rowsPath := r.Paths()
	var text, lines bytes.Buffer
	n, err := r.WriteSamples(&lines, all(samples))
	if err == nil {
		err = r.WriteRecord(&text)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{path: text.Bytes(), rowsPath: lines.Bytes()} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var got record
	strict(t, text.Bytes(), &got)
	var rows []row
	for line := range strings.Lines(lines.String()) {
		var r row
		strict(t, []byte(line), &r)
		rows = append(rows, r)
	}
	sum := sha256.Sum256(lines.Bytes())
	d := got.Detailed
	if d.Path != rowsPath || d.Checksum != hex.EncodeToString(sum[:]) || d.Rows != n || n != len(rows) {
		t.Errorf("the record describes its samples as %+v; there are %d", d, len(rows))
	}
	return r, got, rows, path
}

func all(samples []publish.Sample) iter.Seq2[publish.Sample, error] {
	return func(yield func(publish.Sample, error) bool) {
		for _, s := range samples {
			if !yield(s, nil) {
				return
			}
		}
	}
}

func strict(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// A record is what a reader of an EvaluationLog needs.
type record struct {
	Schema    string `json:"schema_version"`
	ID        string `json:"evaluation_id"`
	Evaluated string `json:"evaluation_timestamp"`
	Retrieved string `json:"retrieved_timestamp"`
	Source    struct {
		Type         string            `json:"source_type"`
		Organization string            `json:"source_organization_name"`
		Relationship string            `json:"evaluator_relationship"`
		Details      map[string]string `json:"additional_details"`
	} `json:"source_metadata"`
	Library struct{ Name, Version string } `json:"eval_library"`
	Model   struct {
		Name, ID, Developer string
		Platform            string            `json:"inference_platform"`
		Details             map[string]string `json:"additional_details"`
	} `json:"model_info"`
	Results []struct {
		ID     string `json:"evaluation_result_id"`
		Name   string `json:"evaluation_name"`
		Metric struct {
			ID         string         `json:"metric_id"`
			Parameters map[string]any `json:"metric_parameters"`
		} `json:"metric_config"`
		Score struct {
			Score       float64
			Details     map[string]string
			Uncertainty struct {
				Interval struct{ Lower, Upper float64 } `json:"confidence_interval"`
				N        int                            `json:"num_samples"`
			}
		} `json:"score_details"`
		Generation struct {
			Args struct {
				Temperature float64
				Agentic     struct {
					Details map[string]string `json:"additional_details"`
				} `json:"agentic_eval_config"`
			} `json:"generation_args"`
			Details map[string]string `json:"additional_details"`
		} `json:"generation_config"`
	} `json:"evaluation_results"`
	Detailed struct {
		Path     string `json:"file_path"`
		Checksum string
		Rows     int `json:"total_rows"`
	} `json:"detailed_evaluation_results"`
}

// A row is what a reader of an InstanceLevelEvaluationLog needs.
type row struct {
	EvaluationID string `json:"evaluation_id"`
	ModelID      string `json:"model_id"`
	Name         string `json:"evaluation_name"`
	ResultID     string `json:"evaluation_result_id"`
	SampleID     string `json:"sample_id"`
	Type         string `json:"interaction_type"`
	Input        struct {
		Raw       string
		Reference []string
	}
	Output     json.RawMessage
	Messages   []map[string]any
	Evaluation struct {
		Score     float64
		IsCorrect bool `json:"is_correct"`
	}
	Metadata map[string]string
}

// TestRecord checks that a record has the report's figures, that the scores of its samples have its score as
// their mean, and that no fault is among them.
func TestRecord(t *testing.T) {
	t.Parallel()
	a, samples := measured(t, "acme/m@high", "")
	model := publish.Model{Name: "acme/m@high", Base: "acme/m"}
	_, got, rows, path := written(t, t.TempDir(), about, model, a, samples)

	text, err := json.Marshal(a.Rows)
	if err != nil {
		t.Fatal(err)
	}
	var figures []struct {
		Reliability       float64
		Rate              float64                     `json:"full_success_rate"`
		IntervalOfFull    struct{ Low, High float64 } `json:"full_success_95"`
		Best              float64                     `json:"best_possible"`
		OfBest            float64                     `json:"of_best"`
		IntervalOfBest    struct{ Low, High float64 } `json:"of_best_95"`
		PartialRate       float64                     `json:"partial_success_rate"`
		IntervalOfPartial struct{ Low, High float64 } `json:"partial_success_95"`
		Planned, Faults   int
	}
	strict(t, text, &figures)
	if len(figures) != 2 || len(got.Results) != 6 {
		t.Fatalf("%d rows and %d results", len(figures), len(got.Results))
	}
	for i, r := range got.Results {
		f := figures[i/3]
		want := []float64{f.Rate, f.PartialRate, f.OfBest}[i%3]
		wide := [][2]float64{
			{f.IntervalOfFull.Low, f.IntervalOfFull.High},
			{f.IntervalOfPartial.Low, f.IntervalOfPartial.High},
			{f.IntervalOfBest.Low, f.IntervalOfBest.High},
		}[i%3]
		id := []string{"assay.full_success", "assay.partial_success", "assay.of_best"}[i%3]
		u := r.Score.Uncertainty
		if r.Score.Score != want || [2]float64{u.Interval.Lower, u.Interval.Upper} != wide || r.Metric.ID != id ||
			r.Metric.Parameters["reliability"] != f.Reliability || r.Score.Details["planned"] != fmt.Sprint(f.Planned) ||
			r.Score.Details["best_possible"] != fmt.Sprint(f.Best) || r.Score.Details["faults"] != fmt.Sprint(f.Faults) {
			t.Errorf("result %d is %+v, and the report has %+v", i, r, f)
		}
		if r.Generation.Args.Temperature != .5 || r.Generation.Details["effort"] != "high" ||
			r.Generation.Details["revision"] != "r2" || r.Generation.Details["turn_limit"] != "15" {
			t.Errorf("generation is %+v", r.Generation)
		}
		if i%3 > 0 {
			continue
		}
		n, sum := 0, 0.
		for _, row := range rows {
			if row.ResultID == r.ID && row.Name == r.Name {
				n, sum = n+1, sum+row.Evaluation.Score
			}
		}
		if n != u.N || n != f.Planned-1 || sum/float64(n) != r.Score.Score {
			t.Errorf("%d samples of %s have %g in sum, and the record has %g of %d", n, r.ID, sum, r.Score.Score, u.N)
		}
	}
	if want := (map[string]string{
		"experiment": "first", "snapshot": "9-abc", "planned": "42", "done": "40", "faults": "2",
	}); !cmp.Equal(want, got.Source.Details) {
		t.Errorf("source is %v", got.Source.Details)
	}
	seen := make(map[string]bool)
	for _, r := range rows {
		if r.EvaluationID != got.ID || r.ModelID != got.Model.ID || r.Type != "agentic" || r.Messages == nil ||
			r.Output != nil || r.Evaluation.IsCorrect != (r.Metadata["level"] == "full_success") ||
			seen[r.ResultID+" "+r.SampleID] || len(r.Input.Reference) != 1 {
			t.Errorf("row %+v", r)
		}
		seen[r.ResultID+" "+r.SampleID] = true
	}
	calls := rows[0].Messages[2]["tool_calls"].([]any)
	if diff := cmp.Diff([]any{
		map[string]any{"id": "c1", "name": "fetch", "arguments": map[string]any{
			"n": "1", "text": "x", "list": `[1,"a"]`, "none": "null",
		}},
		map[string]any{"id": "c2", "name": "fetch", "arguments": map[string]any{"written_arguments": `{"n":`}},
		map[string]any{"id": "c3", "name": "stop", "arguments": map[string]any{}},
	}, calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	m := got.Model
	if m.ID != "acme/m" || m.Name != "acme/m@high" || m.Developer != "acme" || m.Platform != "host" ||
		m.Details["model_availability"] != "unknown" || got.Library.Version != "1.0.0" ||
		got.Evaluated != "1795392006" || got.Retrieved != got.Evaluated {
		t.Errorf("the record is %+v", got)
	}
	if !regexp.MustCompile(`^data/assay-first/acme/m/[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.json$`).
		MatchString(path) {
		t.Errorf("its path is %s", path)
	}
}

// TestIdentities checks which model a record is about, and that its path follows from its content.
func TestIdentities(t *testing.T) {
	t.Parallel()
	a, samples := measured(t, "coder@high", "gpt-x")
	base := publish.Model{Name: "coder@high", Base: "gpt-x", Agent: "coder", Programs: map[assay.RunID]map[string]string{
		"01a0": {"a.py": "12"}, "another": {"a.py": "34"},
	}}
	paths := make(map[string]bool)
	for _, c := range []struct {
		change   func(*publish.Experiment, *publish.Model)
		id, path string
	}{
		{func(*publish.Experiment, *publish.Model) {}, "gpt-x", "data/assay-first/unknown/gpt-x"},
		{func(x *publish.Experiment, _ *publish.Model) { x.Snapshot = "10-abc" }, "gpt-x", "data/assay-first/unknown/gpt-x"},
		{func(_ *publish.Experiment, m *publish.Model) { m.Developer = "acme" }, "acme/gpt-x", "data/assay-first/acme/gpt-x"},
		{
			func(x *publish.Experiment, m *publish.Model) {
				x.Name, m.PublicName = "a/b:c", plan.PublicName{Developer: "x", Hub: "org/con.1"}
			},
			"org/con.1", "data/assay-a_b_c/org/con.1_",
		},
	} {
		x, m := about, base
		c.change(&x, &m)
		r, got, _, path := written(t, t.TempDir(), x, m, a, samples)
		_, _, _, again := written(t, t.TempDir(), x, m, a, samples)
		if paths[path] || path != again || filepath.ToSlash(filepath.Dir(path)) != c.path || got.Model.ID != c.id {
			t.Errorf("%s is in %s and then in %s, want %s in %s", got.Model.ID, path, again, c.id, c.path)
		}
		if r.Unknown() != strings.Contains(c.path, "/unknown/") {
			t.Errorf("the developer of %s is unknown: %t", c.id, r.Unknown())
		}
		paths[path] = true
		if d := got.Results[0].Generation.Args.Agentic.Details; d["agent"] != "coder" || d["program a.py"] != "12" ||
			got.Model.Name != "gpt-x" || !strings.Contains(got.ID, "coder@high") {
			t.Errorf("the agent is %v, and the evaluation %s of %s", d, got.ID, got.Model.Name)
		}
	}
}

// TestHub checks the results for the Hub, and which are refused.
func TestHub(t *testing.T) {
	t.Parallel()
	a, samples := measured(t, "m", "")
	model := publish.Model{Name: "m", Base: "m", PublicName: plan.PublicName{Hub: "acme/m"}}
	r, record, _, _ := written(t, t.TempDir(), about, model, a, samples)
	if short := r.Lacking(); len(short) > 0 || r.HubName() != "acme/m" {
		t.Errorf("of %s, %v", r.HubName(), short)
	}
	few := publish.New(about, model, a.Rows.Only(func(r report.GridRow) bool { return false }).All())
	if !few.Empty() {
		t.Error("results without rows are not empty")
	}
	model.Agent = "coder"
	if name := publish.New(about, model, a.Rows.All()).HubName(); name != "" {
		t.Errorf("an agent's results are those of %s", name)
	}
	if dataset := (&publish.Experiment{World: "own"}).Dataset(); dataset != "" {
		t.Errorf("tasks that somebody wrote are in %s", dataset)
	}

	entries := r.Entries()
	for i, e := range entries {
		score := record.Results[3*i].Score
		if d := 100*score.Score - e.Value; d > .0005 || d < -.0005 || e.Dataset != "assay-eval/assay-1" ||
			e.Date != "2026-11-23" || !strings.Contains(e.Notes, "20 of 21 planned trials done") {
			t.Errorf("entry %+v, want %g", e, 100*score.Score)
		}
	}
}

// TestHubReads lets the Hub's own client read the results.
func TestHubReads(t *testing.T) {
	t.Parallel()
	python := stranger(t)
	a, samples := measured(t, "m", "")
	r, _, _, _ := written(t, t.TempDir(), about, publish.Model{Name: "m", Base: "m"}, a, samples)
	entries := r.Entries()
	entries[0].Notes = hostile[:7] + "\"'#: yes\n"
	var text bytes.Buffer
	if err := publish.WriteEntries(&text, entries); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), python, "-c", `
import json, sys, yaml
from huggingface_hub import parse_eval_result_entries as parse
entries = parse(yaml.safe_load(sys.argv[1]))
print(json.dumps([{"Dataset": e.dataset_id, "Task": e.task_id, "Value": e.value, "Date": e.date, "Notes": e.notes} for e in entries]))`,
		text.String()).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var read []publish.Entry
	strict(t, out, &read)
	if diff := cmp.Diff(entries, read); diff != "" || len(read) != 2 {
		t.Errorf("huggingface_hub reads (-want +got):\n%s", diff)
	}
}

// TestValidator lets the validator of Every Eval Ever judge records, without errors and warnings.
func TestValidator(t *testing.T) {
	t.Parallel()
	python := stranger(t)
	dir := t.TempDir()
	for _, m := range []publish.Model{
		{Name: "acme/m:free@high", Base: "acme/m:free"},
		{Name: "coder", Base: "gpt-x", Agent: "coder", PublicName: plan.PublicName{Developer: "acme"}},
		{Name: "m", Base: "m", PublicName: plan.PublicName{Developer: "else", Hub: "Acme/m"}},
	} {
		agent := ""
		if m.Agent != "" {
			agent = m.Base
		}
		a, samples := measured(t, m.Name, agent)
		x := about
		x.Builtin = m.Agent == ""
		written(t, dir, x, m, a, samples)
	}
	cmd := exec.CommandContext(t.Context(), python, "-m", "every_eval_ever", "validate", "data/*/*/*/*.json*")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "6 passed") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// stranger returns a Python that has the readers of both formats.
func stranger(t *testing.T) string {
	t.Helper()
	python := os.Getenv("ASSAY_PUBLISHED")
	if python == "" {
		t.Skip("ASSAY_PUBLISHED names no Python with every_eval_ever and huggingface_hub; make strangers does")
	}
	return python
}
