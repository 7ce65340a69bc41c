package score_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/assay1"
	"github.com/assay-eval/assay/internal/task/world/pilot"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

func trialIn(name string) *assay.Trial {
	return &assay.Trial{
		Cell:    assay.Cell{Reliability: .8},
		Setting: assay.Setting{World: name, Turns: 6},
	}
}

// TestJudgeFollowsWorld checks that the outcome follows the trial's world and includes its bound.
func TestJudgeFollowsWorld(t *testing.T) {
	t.Parallel()
	shape, tr := task("basic_task", "read", "shape"), transcript("read+ parse- parse+ shape+ !")
	judge, bounds := score.New(catalog), workflow.NewBounds(catalog)
	for _, d := range []*spec.Definition{&assay1.Definition, &pilot.Definition} {
		name := d.Name
		want := d.Verdict(catalog, shape, tr, nil)
		want.FaultsDelivered, want.FaultsDetected, want.FaultsRecovered = 1, 1, 1
		want.Stop, want.ScoreVersion = assay.Answered, d.ScoreVersion
		want.Best = bounds.Best(trialIn(name), shape.Required)
		got := judge.Outcome(trialIn(name), &shape, tr)
		got.FaultsScheduled, got.FaultsMet = 0, 0 // see TestExposure
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		if got.Level != assay.FullSuccess || got.Best <= 0 || got.Best >= 1 {
			t.Errorf("%s: level %s, best %v", name, got.Level, got.Best)
		}
		if v := score.Version(name); v != got.ScoreVersion || v == "" {
			t.Errorf("%s: outcome has version %q, Version() = %q", name, got.ScoreVersion, v)
		}
	}
	if v := score.Version("no such world"); v != "" {
		t.Errorf("version of an unknown world = %q, want an empty one", v)
	}
}

func TestUnknownWorldPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "no such world") {
			t.Errorf("recovered %q, want the world's name", text)
		}
	}()
	score.New(catalog).Outcome(trialIn("no such world"), &assay.Task{}, &assay.Transcript{})
}

func TestJudgeIsConcurrent(t *testing.T) {
	t.Parallel()
	judge := score.New(catalog)
	task, tr := task("basic_task", "read", "shape"), transcript("read+ parse- parse+ shape+ !")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			trial := trialIn(world.Simulated[i%2])
			if o := judge.Outcome(trial, &task, tr); o.Level != assay.FullSuccess {
				t.Errorf("%s: level %s", trial.World, o.Level)
			}
		})
	}
	wg.Wait()
}

// TestRightCalls plays the plan in each world with many seeds. No call is wasted, and every failure
// is due to bad luck or lack of time.
func TestRightCalls(t *testing.T) {
	t.Parallel()
	judge := score.New(catalog)
	levels := map[string]map[assay.Level]int{}
	for _, name := range world.Simulated {
		levels[name] = map[assay.Level]int{}
		for seed := range uint64(200) {
			trial, task := trialIn(name), task("basic_task", "read", "parse", "shape")
			trial.Seed, trial.Turns = seed, 5
			o := judge.Outcome(trial, &task, play(trial, &task))
			if o.Wasted != 0 || o.Mistakes != 0 || o.Efficiency != 1 {
				t.Fatalf("%s, seed %d: %+v", name, seed, o)
			}
			if !slices.Contains([]string{"", assay.CategoryOther, assay.CategoryMaxTurns}, o.ErrorCategory) {
				t.Fatalf("%s, seed %d: category %s", name, seed, o.ErrorCategory)
			}
			levels[name][o.Level]++
		}
		if len(levels[name]) != 3 {
			t.Errorf("%s: levels %v, want all three", name, levels[name])
		}
	}
}

// TestBestIsReached checks that the plan of assay-1 succeeds as often as Best predicts.
func TestBestIsReached(t *testing.T) {
	t.Parallel()
	judge := score.New(catalog)
	task, trial := task("basic_task", "read", "parse", "shape"), trialIn(world.Assay1Name)
	const n = 4000
	full, best := 0, 0.0
	for seed := range uint64(n) {
		trial.Seed = seed
		o := judge.Outcome(trial, &task, play(trial, &task))
		if best = o.Best; o.Level == assay.FullSuccess {
			full++
		}
	}
	if got, sigma := float64(full)/n, math.Sqrt(best*(1-best)/n); math.Abs(got-best) > 4*sigma {
		t.Errorf("rate of full success = %v, want the best possible %v ± %v", got, best, sigma)
	}
}

// play calls the required tools in order, one per turn and each until it succeeds.
func play(trial *assay.Trial, task *assay.Task) *assay.Transcript {
	w, tr := world.Begin(context.Background(), catalog, trial, task), &assay.Transcript{Ended: assay.TurnLimit}
	next := 0
	for turn := 1; turn <= trial.Turns; turn++ {
		tr.Turns = append(tr.Turns, assay.TurnRecord{})
		if next == len(task.Required) {
			claim := assay.Message{Role: assay.Assistant, Content: "TASK_COMPLETED"}
			tr.Messages = append(tr.Messages, claim)
			tr.Ended = assay.Finished
			break
		}
		if rec, err := w.Call(turn, task.Required[next], ""); err != nil {
			panic(err)
		} else if rec.OK {
			next++
		}
		if ended, stop := w.Stop(); stop {
			tr.Ended = ended
			break
		}
	}
	tr.Calls = w.Calls()
	return tr
}

// BenchmarkOutcome judges an episode of ten turns in one cell.
func BenchmarkOutcome(b *testing.B) {
	task := task("basic_task", "read", "shape", "writer")
	tr := transcript("read+ shape< parse- parse- parse+ shape- shape+ note+ writer- writer-")
	tr.Plan = []string{"read", "parse", "shape", "writer"}
	judge := score.New(catalog)
	for _, name := range world.Simulated {
		b.Run(name, func(b *testing.B) {
			trial := trialIn(name)
			for b.Loop() {
				judge.Outcome(trial, &task, tr)
			}
		})
	}
}

// judging is the signature of judgeAssay1 and judgePilot, which leave the best policy out.
type judging func(*assay.Catalog, assay.Task, *assay.Transcript) assay.Outcome

var judgeAssay1, judgePilot = judgeIn(world.Assay1Name), judgeIn(world.PilotName)

func judgeIn(name string) judging {
	return func(catalog *assay.Catalog, task assay.Task, tr *assay.Transcript) assay.Outcome {
		o := score.New(catalog).Outcome(trialIn(name), &task, tr)
		o.Best, o.FaultsScheduled, o.FaultsMet = 0, 0, 0
		return o
	}
}

// TestExposure checks the faults that a plan runs into, and those that an agent meets: all of them
// if it follows the plan, some if it gives up, and never a fault that is not scheduled.
func TestExposure(t *testing.T) {
	t.Parallel()
	judge, shape := score.New(catalog), task("basic_task", "read", "shape")
	scheduled := 0
	for seed := range uint64(200) {
		trial := trialIn(world.Assay1Name)
		trial.Seed, trial.Reliability, trial.Calls = seed, .6, 12
		trial.Faults = "after=0.5,before=0.5"
		w := world.Begin(context.Background(), catalog, trial, &shape)
		follow := func() assay.Outcome {
			return judge.Outcome(trial, &shape, &assay.Transcript{Calls: w.Calls()})
		}
		call := func(tool string) {
			args := workflow.Arguments(catalog, tool, shape.Inputs, w.Succeeded())
			if _, err := w.Call(1, tool, string(args)); err != nil {
				t.Fatal(err)
			}
		}
		start := follow()
		if start.FaultsMet != 0 {
			t.Fatalf("seed %d: %d faults are met without a call", seed, start.FaultsMet)
		}
		call("note") // its faults are not scheduled
		for _, tool := range []string{"read", "parse", "shape"} {
			for before := len(w.Succeeded()); len(w.Succeeded()) == before && len(w.Calls()) < 13; {
				call(tool)
			}
		}
		end := follow()
		scheduled += end.FaultsScheduled
		if end.FaultsMet != end.FaultsScheduled || end.FaultsScheduled != start.FaultsScheduled {
			t.Errorf("seed %d: %d of %d faults met, want all of %d", seed, end.FaultsMet,
				end.FaultsScheduled, start.FaultsScheduled)
		}
	}
	// At reliability .6 with half of the faults sparing, three steps meet 1.5 faults on average.
	if scheduled < 240 || scheduled > 360 {
		t.Errorf("%d faults are scheduled in 200 trials, want about 300", scheduled)
	}
}
