package evallog_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/evallog"
)

var morning = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

var meta = evallog.Meta{
	Experiment: "flaws", Model: "acme/large", Snapshot: "12-abc", Program: "1.2.3",
	Created: time.Date(2026, 3, 2, 8, 30, 0, 0, time.UTC),
}

// newTrial returns a trial of the task with the given number.
func newTrial(task, repeat int, variant string) assay.Trial {
	cell := assay.Cell{
		Model: meta.Model, Variant: variant, Difficulty: "easy",
		TaskType: "simple_task", Reliability: 0.9,
	}
	if variant == "flawed" {
		cell.Severity = "severe"
	}
	set := assay.Setting{World: "assay-1", Protocol: "native", Tools: "discover", Turns: 10}
	ref := assay.TaskRef{ID: assay.TaskID(fmt.Sprintf("simple-%03d", task)), Digest: "d"}
	return assay.NewTrial(cell, ref, set, 1, repeat)
}

// attempt returns the fields that every attempt at a trial has.
func attempt(trial assay.Trial, number int) assay.Attempt {
	return assay.Attempt{
		Trial: trial, Number: number, Experiment: meta.Experiment, Run: "run-1",
		Program: "1.2.3", Templates: "t1",
		Lane: "acme/key/large", ServedModel: "large-0301", Requests: 3,
		Spend: assay.NewSpend(assay.Usage{
			InputTokens: 100, OutputTokens: 20, CachedTokens: 64, CacheWriteTokens: 6,
			ReasoningTokens: 12,
		}, 0.25),
		WorkingMS: 1500, QueuedMS: 500, StartedAt: morning,
		FinishedAt: morning.Add(2 * time.Second),
	}
}

func settled(trial assay.Trial, number int, level assay.Level) assay.Attempt {
	a := attempt(trial, number)
	a.Outcome = assay.Outcome{
		Level: level, Ended: assay.Finished, Turns: 3, ToolCalls: 2,
		RequiredTools: []string{"fetch", "store"},
		ExecutedTools: []string{"fetch", "store"}, Coverage: 1, OrderCorrect: true, Adherence: 1,
		Efficiency: 1, Best: 0.99,
		ScoreVersion: "assay-1.1",
	}
	if level != assay.FullSuccess {
		a.Ended, a.ErrorCategory = assay.TurnLimit, "max_turns"
		a.ExecutedTools, a.Coverage, a.OrderCorrect = a.ExecutedTools[:1], 0.5, false
	}
	return a
}

func fault(trial assay.Trial, number int, kind assay.FaultKind, detail string) assay.Attempt {
	a := attempt(trial, number)
	a.FaultKind, a.FaultDetail = kind, detail
	return a
}

// transcript returns a short conversation with everything that a conversation
// can contain.
func transcript() *assay.Transcript {
	return &assay.Transcript{
		Messages: []assay.Message{
			{Role: assay.System, Content: "You carry out <workflows> & more."},
			{Role: assay.User, Content: "Fetch it, then store it."},
			{Role: assay.Assistant, Reasoning: "First fetch.", State: &assay.State{
				Origin: "chat api.example.com", Data: json.RawMessage(`{"reasoning_content":"First fetch."}`),
			}, Calls: []assay.ToolCall{
				{
					ID: "c1", Name: "tool_call",
					Arguments: `{"tool": "fetch", "arguments": {"n": 9007199254740993}}`,
				},
				{ID: "c2", Name: "tool_call", Arguments: `{"tool": "store"`},
			}},
			{Role: assay.ToolRole, CallID: "c1", Content: `{"success":true}`},
			{Role: assay.ToolRole, CallID: "c2", Content: `{"refused":"no JSON"}`},
			{Role: assay.Assistant, Content: "Done, I think."},
			{Role: assay.User, Content: "No action."},
			{Role: assay.Assistant, Content: "TASK_COMPLETED", Reasoning: "So be it."},
		},
		Calls: []assay.CallRecord{
			{
				Turn: 1, Tool: "fetch", Arguments: `{"n": 9007199254740993}`, OK: true,
				Output: `{"items":1}`, Chance: 0.9, Luck: 0.25,
			},
		},
		Turns: []assay.TurnRecord{
			{
				Lane: "acme/key/large", ServedModel: "large-0301",
				Usage: assay.Usage{
					InputTokens: 40, OutputTokens: 10, CachedTokens: 30, CacheWriteTokens: 3,
					ReasoningTokens: 6,
				},
				Finish: "tool_calls", Deviations: []string{"no temperature"},
				Reported: map[string]string{"reasoning_effort": "medium"}, WorkingMS: 500, Requests: 1,
			},
			{
				Lane: "acme/key/large", ServedModel: "large-0301",
				Usage: assay.Usage{InputTokens: 30, OutputTokens: 5}, Assisted: true, Requests: 1,
			},
			{
				Lane: "acme/key/large", ServedModel: "large-0302",
				Usage: assay.Usage{InputTokens: 30, OutputTokens: 5}, Finish: "length", Requests: 1,
			},
		},
		Plan:  []string{"fetch", "store"},
		Ended: assay.Finished,
	}
}

func task(id assay.TaskID) *assay.Task {
	return &assay.Task{
		ID: id, Type: "simple_task", Difficulty: "easy",
		Description: "Fetch it, then store it.", Required: []string{"fetch", "store"},
	}
}

func stream(samples ...evallog.Sample) iter.Seq2[evallog.Sample, error] {
	return func(yield func(evallog.Sample, error) bool) {
		for _, s := range samples {
			if !yield(s, nil) {
				return
			}
		}
	}
}

// An archive is the content of a zip, in order.
type archive struct {
	names []string
	files map[string]json.RawMessage
}

func write(t rapid.TB, meta evallog.Meta, samples ...evallog.Sample) (int, []byte) {
	t.Helper()
	var b bytes.Buffer
	n, err := evallog.Write(&b, meta, stream(samples...))
	if err != nil {
		t.Fatal(err)
	}
	return n, b.Bytes()
}

func unzip(t rapid.TB, data []byte) archive {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	a := archive{files: make(map[string]json.RawMessage)}
	for _, f := range z.File {
		if !f.Modified.Equal(meta.Created) {
			t.Errorf("%s was modified at %s, want %s", f.Name, f.Modified, meta.Created)
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil || !json.Valid(text) || !utf8.Valid(text) {
			t.Fatalf("%s is not JSON (%v): %s", f.Name, err, text)
		}
		if a.files[f.Name] != nil {
			t.Errorf("duplicate file %s", f.Name)
		}
		a.names, a.files[f.Name] = append(a.names, f.Name), text
	}
	return a
}

// The parts of a log as a reader sees them.
type (
	logHeader struct {
		Status string
		Error  *struct{ Message string }
		Eval   struct {
			Dataset struct {
				Samples int
				IDs     []string `json:"sample_ids"`
			}
			Config struct{ Epochs int }
		}
		Results struct {
			Total     int `json:"total_samples"`
			Completed int `json:"completed_samples"`
			Scores    []struct {
				Scored  int `json:"scored_samples"`
				Metrics map[string]struct{ Value float64 }
			}
		}
		Stats struct {
			Started   string `json:"started_at"`
			Completed string `json:"completed_at"`
			Usage     map[string]struct {
				Total int     `json:"total_tokens"`
				USD   float64 `json:"total_cost"`
			} `json:"model_usage"`
		}
	}
	logSample struct {
		ID       string
		Epoch    int
		Input    string
		Messages []json.RawMessage
		Events   json.RawMessage
		Pool     struct{ Messages []json.RawMessage } `json:"events_data"`
		Scores   map[string]struct{ Value, Answer, Explanation string }
		Error    *struct{ Message string }
		Retries  []struct{ Message string } `json:"error_retries"`
		Limit    *struct {
			Type   string
			Limit  float64
			Reason string
		}
		Metadata struct {
			Trial   assay.TrialID
			Attempt int
		}
	}
	logSummary struct {
		ID      string
		Epoch   int
		Scores  map[string]struct{ Value string }
		Error   string
		Retries int
	}
)

func (a archive) read(t rapid.TB, name string, to any) {
	t.Helper()
	text, ok := a.files[name]
	if !ok {
		t.Fatalf("no %s in %s", name, a.names)
	}
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func (a archive) header(t rapid.TB) (h logHeader) {
	t.Helper()
	a.read(t, "header.json", &h)
	return h
}

// samples returns the samples in order and checks their file names.
func (a archive) samples(t rapid.TB) (all []logSample) {
	t.Helper()
	for _, name := range a.names {
		if strings.HasPrefix(name, "samples/") {
			var s logSample
			a.read(t, name, &s)
			if want := fmt.Sprintf("samples/%s_epoch_%d.json", s.ID, s.Epoch); name != want {
				t.Errorf("sample %s, epoch %d is in %s", s.ID, s.Epoch, name)
			}
			all = append(all, s)
		}
	}
	return all
}

var errBroken = errors.New("broken")

func failing(samples ...evallog.Sample) iter.Seq2[evallog.Sample, error] {
	return func(yield func(evallog.Sample, error) bool) {
		for s, err := range stream(samples...) {
			if !yield(s, err) {
				return
			}
		}
		yield(evallog.Sample{}, errBroken)
	}
}

// small returns a log with each kind of sample.
func small() []evallog.Sample {
	done, retried, faulty, bare := newTrial(1, 1, "optimal"), newTrial(1, 2, "optimal"), newTrial(2,
		1, "flawed"), newTrial(3, 1, "baseline")
	full := settled(done, 1, assay.FullSuccess)
	full.Outcome.Turns = 3
	bare.Tokens = 120
	over := settled(bare, 1, assay.PartialSuccess)
	over.Ended = assay.TokenLimit
	cut := &assay.Transcript{Messages: transcript().Messages[:2]}
	return []evallog.Sample{
		{
			Attempt:    fault(retried, 1, assay.Timeout, "the trial's working time is used up"),
			Transcript: cut, Task: task("simple-001"),
		},
		{
			Attempt: fault(faulty, 1, assay.Server, "acme: server (HTTP 500)"), Transcript: cut,
			Task: task("simple-002"),
		},
		{Attempt: full, Transcript: transcript(), Task: task("simple-001")},
		{
			Attempt: settled(retried, 2, assay.Failure), Transcript: transcript(),
			Task: task("simple-001"),
		},
		{
			Attempt: fault(faulty, 2, assay.ContentFilter, ""), Transcript: cut,
			Task: task("simple-002"),
		},
		{Attempt: over},
	}
}
