package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

var epoch = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func experiment(name string) store.Experiment {
	return store.Experiment{
		Name:    name,
		Spec:    json.RawMessage(`{"name": "` + name + `"}`),
		Library: store.Library{Path: "lib.tasks", Name: "builtin", Digest: "d1"},
		Planned: 10,
	}
}

// create returns a new store with a run "r1" of experiment "e".
func create(t testing.TB) (*store.DB, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "assay.db")
	db := open(t, path)
	begin(t, db, "r1")
	return db, path
}

func open(t testing.TB, path string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), path)
	must(t, err)
	t.Cleanup(func() { db.Close() }) // harmless if the test has closed it
	return db
}

func openReadOnly(t testing.TB, path string) *store.DB {
	t.Helper()
	db, err := store.OpenReadOnly(t.Context(), path)
	must(t, err)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func begin(t testing.TB, db *store.DB, run assay.RunID) {
	t.Helper()
	must(t, db.BeginRun(t.Context(), experiment("e"),
		store.Run{ID: run, Program: "v1", Host: "h", PID: 7, StartedAt: epoch}))
}

// outcome returns an attempt that settles the i-th trial.
func outcome(i int) *assay.Attempt {
	tools := []string{
		"file_operations_reader", "data_processing_parser",
		"data_processing_transformer", "file_operations_writer",
	}
	return &assay.Attempt{
		Trial: assay.NewTrial(
			assay.Cell{
				Model: "qwen2.5-7b-instruct", Variant: "flawed_sequence_disorder",
				Severity: "severe", Difficulty: "easy", TaskType: "multi_stage_pipeline",
				Reliability: 0.8,
			},
			assay.TaskRef{
				ID:     assay.TaskID(fmt.Sprintf("task_%08d", i)),
				Digest: "0123456789abcdef0123456789abcdef",
			},
			assay.Setting{World: "assay-1", Protocol: "native", Tools: "required", Turns: 10}, 2025,
			1),
		Experiment: "e", Run: "r1", Program: "assay v0.1.0",
		Templates: "89abcdef0123456789abcdef01234567",
		Lane:      "azure-east/AZURE_KEY/DeepSeek-V3-0324-2", ServedModel: "DeepSeek-V3-0324",
		Outcome: assay.Outcome{
			Level: assay.PartialSuccess, Ended: assay.TurnLimit, ErrorCategory: "sequence_order",
			Turns: 10, ToolCalls: 9,
			RequiredTools: tools, ExecutedTools: append(tools[1:], tools...), Coverage: 0.75,
			Assisted:  1,
			Adherence: 1. / 3, GivenAdherence: pointer(0.625), PlannedAdherence: pointer(0.5), Mistakes: 1, Failures: 2,
			Recovered: 1, Wasted: 3, Efficiency: 2. / 3, Extra: 4,
			Loop: assay.ErrorLoop, LoopTurn: 5, Best: 0.87654321, ScoreVersion: "assay-1",
		},
		Requests: 11, Retried: map[assay.FaultKind]int{assay.RateLimited: 1},
		Spend:    assay.NewSpend(assay.Usage{InputTokens: 20123, OutputTokens: 1234}, 0.0068),
		QueuedMS: 1234, WorkingMS: 56789, StartedAt: epoch.Add(123456789),
		FinishedAt: epoch.Add(time.Minute + 987654321),
	}
}

// think fills in the fields that only formats since 7 hold.
func think(a *assay.Attempt) {
	a.CachedTokens, a.CacheWriteTokens, a.ReasoningTokens = 17000, 2000, 999
	a.Finish, a.Truncated = "tool_calls, length", 1
	a.Deviations, a.Reported = "no temperature", "reasoning_effort=medium"
	a.Precision, a.UnwantedEffects, a.Broken = 0.75, 2, "data_processing_parser"
	a.FaultsScheduled, a.FaultsMet = 3, 2
}

func pointer[T any](v T) *T { return &v }

// costing returns new costs of an attempt: so many dollars, and for its user twice as many.
func costing(a *assay.Attempt, usd float64) store.Cost {
	return store.Cost{
		Key: store.Key{Trial: a.ID, Number: a.Number}, At: epoch, Program: "assay v2", File: "prices.yaml",
		SHA256: strings.Repeat("ab", 32), Prices: json.RawMessage(`{"l":{"input":1,"output":2}}`),
		Dollars: store.Dollars{USD: usd, UserUSD: 2 * usd, Unpriced: 3},
	}
}

func pilot() *assay.PilotScores {
	return &assay.PilotScores{
		Executor: assay.FullSuccess, Paper: assay.PartialSuccess, Batch: assay.Failure,
		WorkflowScore: 0.92, Phase2Score: 0.1, QualityScore: 0.2, FinalScore: 0.3,
	}
}

// fault returns an attempt that leaves the i-th trial pending.
func fault(i int) *assay.Attempt {
	a := outcome(i)
	a.Outcome = assay.Outcome{}
	a.FaultKind, a.FaultDetail = assay.RateLimited, "too many requests"
	return a
}

func transcript(i int) *assay.Transcript {
	return &assay.Transcript{
		Messages: []assay.Message{
			{Role: assay.System, Content: "You carry out tasks with tools."},
			{Role: assay.User, Content: fmt.Sprint("task <", i, "> & more")},
			{
				Role: assay.Assistant, Reasoning: "first parse",
				Calls: []assay.ToolCall{{ID: "c1", Name: "parse", Arguments: `{"x":1}`}},
			},
			{Role: assay.ToolRole, CallID: "c1", Content: "ok"},
		},
		Calls: []assay.CallRecord{
			{Turn: 1, Tool: "parse", OK: true, Output: `{"y":2}`, Chance: 0.8, Luck: 0.25},
			{Turn: 1, Tool: "write", Code: "DEPENDENCY_ERROR", Error: "parse first", Mistake: true},
		},
		Turns: []assay.TurnRecord{{
			Lane: "l", ServedModel: "m",
			Usage: assay.Usage{InputTokens: 10, OutputTokens: 5}, WorkingMS: 3, Requests: 1,
		}},
		Plan: []string{"parse", "write"},
		Loops: []assay.LoopRecord{
			{Kind: assay.SearchLoop, Began: 1, Noticed: 3},
			{Kind: assay.RepeatLoop, Began: 2, Noticed: 4},
		},
		Ended: assay.Finished,
	}
}

func save(t testing.TB, db *store.DB, attempts ...*assay.Attempt) {
	t.Helper()
	for i, a := range attempts {
		must(t, db.Save(t.Context(), a, transcript(i)))
	}
}

func all(t testing.TB, db *store.DB, f store.Filter) (attempts []assay.Attempt) {
	t.Helper()
	for a, err := range db.Attempts(t.Context(), f) {
		must(t, err)
		attempts = append(attempts, a)
	}
	return attempts
}

func saveForEver(ctx context.Context, path string) error {
	db, err := store.Open(ctx, path)
	if err != nil {
		return err
	}
	run := assay.RunID(time.Now().Format(time.RFC3339Nano))
	if err := db.BeginRun(ctx, experiment("e"), store.Run{ID: run, StartedAt: epoch}); err != nil {
		return err
	}
	const savers = 8
	errs := make(chan error)
	for s := range savers {
		go func() {
			for i := 0; ; i++ {
				a := outcome(0)
				a.Run = run
				a.Trial = assay.NewTrial(assay.Cell{Model: string(run)}, assay.TaskRef{ID: "t"},
					assay.Setting{}, int64(s), i)
				// Each line is one call of write, so that a kill cannot cut it.
				fmt.Printf("begin %s\n", a.ID)
				if err := db.Save(ctx, a, longTranscript(i)); err != nil {
					errs <- err
					return
				}
				fmt.Printf("saved %s\n", a.ID)
			}
		}()
	}
	return <-errs
}

// year10000 has no RFC 3339 form.
var year10000 = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)

// drawFields draws the fields of a struct. It leaves words that the store knows, lists, maps and
// pointers.
func drawFields(t *rapid.T, to reflect.Value, text *rapid.Generator[string]) {
	for i := range to.NumField() {
		f, name := to.Field(i), to.Type().Field(i).Name
		switch {
		case f.Type() == reflect.TypeFor[time.Time]():
			f.Set(reflect.ValueOf(
				time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, name),
					rapid.Int64Range(0, 1e9-1).Draw(t, name+" ns")).UTC()))
		case f.Type() == reflect.TypeFor[string]():
			f.SetString(text.Draw(t, name))
		case f.CanInt():
			f.SetInt(rapid.Int64Range(0, 1<<53).Draw(t, name))
		case f.Kind() == reflect.Float64:
			f.SetFloat(rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, name))
		case f.Kind() == reflect.Bool:
			f.SetBool(rapid.Bool().Draw(t, name))
		case f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[assay.Sampling]():
			drawFields(t, f, text)
		}
	}
}

// drawAttempt returns an attempt that the store must accept.
func drawAttempt(t *rapid.T) *assay.Attempt {
	text := rapid.OneOf(rapid.String(),
		rapid.SampledFrom([]string{
			"", "\x00", "a\x00b", "'", "\"", "\xff\xfe", "2026-01-01", "12",
			"<&>\u2028",
		}))
	a := new(assay.Attempt)
	drawFields(t, reflect.ValueOf(a).Elem(), text)
	a.Model = "m" + a.Model
	if rapid.Bool().Draw(t, "sampled") {
		a.Sampling = assay.Sampling{Temperature: &a.Persistence, MaxTokens: &a.Calls}
	}
	a.Trial = assay.NewTrial(a.Cell,
		assay.TaskRef{ID: assay.TaskID(text.Draw(t, "task")), Digest: a.TaskDigest}, a.Setting,
		rapid.Int64().Draw(t, "seed"), a.Repeat)
	a.Number, a.Round, a.Experiment, a.Run, a.Parked = 0, 0, "e", "r1", false
	a.Superseded, a.Repriced = false, assay.Repriced{}
	if retried := rapid.MapOfN(rapid.SampledFrom(assay.FaultKinds), rapid.IntRange(0, 99), 0,
		3).Draw(t, "retried"); len(retried) > 0 {
		a.Retried = retried
	}
	a.Outcome = drawOutcome(t, text)
	if rapid.Bool().Draw(t, "settles") {
		return a
	}
	a.Level, a.Ended = "", ""
	a.FaultKind = rapid.SampledFrom(assay.FaultKinds).Filter(func(k assay.FaultKind) bool {
		return k != assay.Interrupted // see TestInterruptedAttemptsOnlyCost
	}).Draw(t, "fault")
	a.Parked = rapid.Bool().Draw(t, "parked")
	return a
}

// drawOutcome returns an outcome that the store must accept.
func drawOutcome(t *rapid.T, text *rapid.Generator[string]) (o assay.Outcome) {
	drawFields(t, reflect.ValueOf(&o).Elem(), text)
	level := func(name string) assay.Level { return rapid.SampledFrom(assay.Levels).Draw(t, name) }
	o.Level, o.Ended = level("level"), rapid.SampledFrom(assay.Ends).Draw(t, "ended")
	o.LoopTurn, o.Undecided = 0, ""
	for _, list := range []*[]string{&o.RequiredTools, &o.ExecutedTools} {
		if all := rapid.SliceOfN(rapid.String(), 0, 4).Draw(t, "tools"); len(all) > 0 {
			*list = all
		}
	}
	if rapid.Bool().Draw(t, "given") {
		o.GivenAdherence = pointer(rapid.Float64Range(0, 1).Draw(t, "given adherence"))
	}
	if rapid.Bool().Draw(t, "looped") {
		o.Loop = rapid.SampledFrom(assay.LoopKinds).Draw(t, "loop")
		o.LoopTurn = rapid.IntRange(1, 1<<53).Draw(t, "loop turn")
	}
	if rapid.Bool().Draw(t, "pilot") {
		o.Pilot = &assay.PilotScores{
			Executor: level("executor"), Paper: level("paper"), Batch: level("batch"),
		}
		drawFields(t, reflect.ValueOf(o.Pilot).Elem(), text)
	}
	return o
}

type fataler interface {
	Helper()
	Fatal(args ...any)
}

// must ends a test, or the check of a property, if there is an error.
func must(t fataler, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// remove deletes what a choice selects.
func remove(t testing.TB, db *store.DB, c store.Choice) {
	t.Helper()
	_, err := db.Delete(t.Context(), c, "v1")
	must(t, err)
}

// merge makes a store of others, which are not damaged.
func merge(t testing.TB, to string, from ...string) store.Copied {
	t.Helper()
	sum, err := store.Merge(t.Context(), to, from, quiet)
	must(t, err)
	return sum
}

// quiet is a report of progress that is not read.
func quiet(string, int, int) {}

func collectAll(t testing.TB, db *store.DB, f store.Filter) (n int, err error) {
	t.Helper()
	for _, err := range db.Attempts(t.Context(), f) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
