package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
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
			Adherence: 1. / 3, GivenAdherence: pointer(0.625), Mistakes: 1, Failures: 2,
			Recovered: 1, Wasted: 3, Efficiency: 2. / 3, Extra: 4,
			Loop: assay.ErrorLoop, LoopTurn: 5, Best: 0.87654321, ScoreVersion: "assay-1",
		},
		Requests: 11, Retried: map[assay.FaultKind]int{assay.RateLimited: 1},
		InputTokens: 20123, OutputTokens: 1234,
		CostUSD:  0.0068,
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

// drawAttempt returns an attempt that the store must accept.
func drawAttempt(t *rapid.T) *assay.Attempt {
	text := rapid.OneOf(rapid.String(),
		rapid.SampledFrom([]string{
			"", "\x00", "a\x00b", "'", "\"", "\xff\xfe", "2026-01-01", "12",
			"<&>\u2028",
		}))
	draw := func(name string) string { return text.Draw(t, name) }
	n := func(name string) int { return rapid.IntRange(0, 1<<53).Draw(t, name) }
	unit := func(name string) float64 { return rapid.Float64Range(0, 1).Draw(t, name) }
	at := func(name string) time.Time {
		return time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, name),
			rapid.Int64Range(0, 1e9-1).Draw(t, name+" ns")).UTC()
	}
	cell := assay.Cell{
		Model: "m" + draw("model"), Variant: draw("variant"),
		Severity: draw("severity"), Difficulty: draw("difficulty"), TaskType: draw("type"),
		Reliability: unit("reliability"), Faults: draw("faults"),
	}
	set := assay.Setting{
		World: draw("world"), Protocol: draw("protocol"), Tools: draw("tools"),
		Turns: n("turn limit"), Calls: n("call limit"),
		Tokens: n("token limit"), USD: rapid.Float64Range(0, 1e9).Draw(t, "cost limit"),
		SeveralCalls: draw("several"), Loops: draw("loops"),
		AgentModel: draw("agent model"), AgentTimeout: draw("agent timeout"),
		Persistence: rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "persistence"),
		Burst:       rapid.Float64Range(0, math.Nextafter(1, 0)).Draw(t, "burst"),
	}
	if rapid.Bool().Draw(t, "sampled") {
		temperature, tokens := unit("temperature"), n("tokens")
		set.Sampling = assay.Sampling{Temperature: &temperature, MaxTokens: &tokens}
	}
	a := &assay.Attempt{
		Trial: assay.NewTrial(cell,
			assay.TaskRef{ID: assay.TaskID(draw("task")), Digest: draw("digest")}, set,
			rapid.Int64().Draw(t, "seed"), n("repeat")),
		Experiment: "e", Run: "r1", Program: draw("program"), Templates: draw("templates"),
		Lane: draw("lane"), ServedModel: draw("served"),
		Outcome:  drawOutcome(t, text),
		Requests: n("requests"), InputTokens: n("in"), OutputTokens: n("out"), CachedTokens: n("cached"),
		CacheWriteTokens: n("written"), ReasoningTokens: n("reasoning"),
		Finish: draw("finish"), Truncated: n("truncated"), Deviations: draw("deviations"),
		Reported: draw("reported"),
		CostUSD:  rapid.Float64Range(0, 1e9).Draw(t, "cost"),
		QueuedMS: int64(n("queued")), WorkingMS: int64(n("working")), StartedAt: at("started"),
		FinishedAt: at("finished"),
	}
	a.Worker = draw("worker")
	a.UncertainTokens, a.UnpricedTokens = n("uncertain"), n("unpriced")
	if retried := rapid.MapOfN(rapid.SampledFrom(assay.FaultKinds), rapid.IntRange(0, 99), 0,
		3).Draw(t, "retried"); len(retried) > 0 {
		a.Retried = retried
	}
	if rapid.Bool().Draw(t, "settles") {
		return a
	}
	a.Level, a.Ended = "", ""
	a.FaultKind = rapid.SampledFrom(assay.FaultKinds).Draw(t, "fault")
	a.FaultDetail, a.Parked = draw("detail"), rapid.Bool().Draw(t, "parked")
	a.Unmetered = rapid.Bool().Draw(t, "unmetered")
	return a
}

// drawOutcome returns an outcome that the store must accept.
func drawOutcome(t *rapid.T, text *rapid.Generator[string]) assay.Outcome {
	list := func(name string) []string {
		if all := rapid.SliceOfN(rapid.String(), 0, 4).Draw(t, name); len(all) > 0 {
			return all
		}
		return nil
	}
	n := func(name string) int { return rapid.IntRange(0, 1<<53).Draw(t, name) }
	unit := func(name string) float64 { return rapid.Float64Range(0, 1).Draw(t, name) }
	level := func(name string) assay.Level { return rapid.SampledFrom(assay.Levels).Draw(t, name) }
	o := assay.Outcome{
		Level: level("level"), Ended: rapid.SampledFrom(ends).Draw(t, "ended"),
		ErrorCategory: text.Draw(t, "category"), Turns: n("turns"), ToolCalls: n("calls"),
		RequiredTools: list("required"), ExecutedTools: list("executed"),
		Coverage: unit("coverage"), OrderCorrect: rapid.Bool().Draw(t, "order"),
		Assisted:  n("assisted"),
		Adherence: unit("adherence"), Mistakes: n("mistakes"), Failures: n("failures"),
		Recovered: n("recovered"), FaultsScheduled: n("scheduled"), FaultsMet: n("met"),
		Wasted: n("wasted"), Efficiency: unit("efficiency"), Extra: n("extra"), Best: unit("best"),
		Precision: unit("precision"), UnwantedEffects: n("unwanted"), Broken: text.Draw(t, "broken"),
		ScoreVersion: text.Draw(t, "score"),
	}
	if rapid.Bool().Draw(t, "given") {
		o.GivenAdherence = pointer(unit("given adherence"))
	}
	if rapid.Bool().Draw(t, "looped") {
		o.Loop, o.LoopTurn = rapid.SampledFrom(assay.LoopKinds).Draw(t, "loop"), 1+n("loop turn")
	}
	if rapid.Bool().Draw(t, "pilot") {
		score := rapid.Float64Range(-1e9, 1e9)
		o.Pilot = &assay.PilotScores{
			Executor: level("executor"), Paper: level("paper"), Batch: level("batch"),
			WorkflowScore: score.Draw(t, "workflow"), Phase2Score: score.Draw(t, "phase 2"),
			QualityScore: score.Draw(t, "quality"), FinalScore: score.Draw(t, "final"),
		}
	}
	return o
}

var ends = []assay.Ended{
	assay.Finished, assay.TurnLimit, assay.FailureStreak, assay.CallLimit,
	assay.Loop, assay.TokenLimit, assay.CostLimit,
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
