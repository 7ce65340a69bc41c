package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

func TestSaveNumbersAttempts(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	attempts := []*assay.Attempt{fault(1), fault(2), fault(1), outcome(1), fault(1), outcome(2)}
	save(t, db, attempts...)
	var numbers []int
	for _, a := range attempts {
		numbers = append(numbers, a.Number)
	}
	if diff := cmp.Diff([]int{1, 1, 2, 3, 4, 2}, numbers); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
	must(t, db.Close())
	db = open(t, path)
	begin(t, db, "r2")
	another := fault(1)
	another.Run = "r2"
	save(t, db, another)
	if another.Number != 5 {
		t.Errorf("number after reopening = %d, want 5", another.Number)
	}
}

func TestSaveKeepsEveryField(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	settled, faulted := outcome(1), fault(2)
	settled.OrderCorrect, faulted.Parked = true, true
	temperature, topP, tokens := 0.5, 0.25, 99
	settled.Sampling = assay.Sampling{
		Temperature: &temperature, TopP: &topP, MaxTokens: &tokens, Seed: pointer(int64(-7)),
		Effort: "high", Thinking: &tokens, ToolChoice: "required", Extra: `{"top_k":40}`,
		Headers: `{"X-A":"b"}`, Revision: "v1",
	}
	think(settled)
	settled.Calls, settled.Tokens, settled.USD = 10, 50_000, 0.125
	settled.SeveralCalls, settled.Loops = assay.RefuseSeveral, "repeat=stop"
	settled.Faults = "after=1"
	settled.Interface = "mild"
	settled.Phrasing = assay.Casual
	settled.Persistence, settled.Burst = 0.25, 0.5
	settled.AgentModel, settled.AgentTimeout, settled.Unmetered = "m", "10m0s", true
	settled.Worker, settled.UserModel, settled.AsksConfidence, settled.Sandbox = "w", "u", true, assay.InRoom
	settled.ModelFaults, settled.ModelFaultsMet, settled.ModelFaultsRecovered = "cut=0.5", 2, 1
	settled.FaultsDelivered, settled.FaultsDetected, settled.FaultsRecovered, settled.FaultsRepeated = 4, 3, 2, 1
	settled.Security, settled.Harm = assay.Broken, assay.MediumHarm
	settled.UserRequests, settled.UserInputTokens, settled.UserOutputTokens = 1, 2, 3
	settled.UserUnpricedTokens, settled.UserCostUSD = 4, 0.5
	settled.JudgedBy, settled.Verdict, settled.JudgePrompt, settled.JudgedAlone = "j", assay.Fail, "p", true
	settled.JudgeRequests, settled.JudgeInputTokens, settled.JudgeOutputTokens = 5, 6, 7
	settled.JudgeUnpricedTokens, settled.JudgeCostUSD = 8, 0.25
	settled.Stop, settled.Cause = assay.Answered, assay.WrongTool
	settled.Trial = assay.NewTrial(settled.Cell,
		assay.TaskRef{ID: settled.Task, Digest: settled.TaskDigest}, settled.Setting, 2025, 1).
		Forked(assay.ForkPoint{Trial: settled.ID, Attempt: 3, Call: 4, Fault: assay.FaultAfter}, true, 2)
	settled.Confidence, settled.ConfidenceCostUSD = pointer(.75), .5
	settled.ConfidenceInputTokens, settled.ConfidenceOutputTokens = 5, 6
	settled.UncertainTokens, settled.UnpricedTokens = 3, 4
	faulted.Round = 1
	settled.Pilot = pilot()
	save(t, db, settled, faulted)
	// By hand, because they are not stored.
	settled.Superseded, settled.Repriced = true, assay.Repriced{
		PriceList: "p", SavedCostUSD: new(1.), SavedUserCostUSD: new(1.),
	}
	if unset := zeroes(reflect.ValueOf(*settled), reflect.ValueOf(*faulted)); len(unset) > 0 {
		t.Fatalf("this test sets no value for the fields %v", unset)
	}
	settled.Superseded, settled.Repriced = false, assay.Repriced{}
	if diff := cmp.Diff([]assay.Attempt{*settled, *faulted},
		all(t, db, store.Filter{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// zeroes names the fields that are zero in both structs.
func zeroes(a, b reflect.Value) (names []string) {
	if a.Kind() == reflect.Pointer && !a.IsNil() {
		return zeroes(a.Elem(), reflect.Zero(a.Type().Elem()))
	}
	if a.Kind() != reflect.Struct || a.Type() == reflect.TypeFor[time.Time]() {
		return nil
	}
	for i := range a.NumField() {
		field := a.Type().Field(i)
		if field.Tag.Get("json") == "-" {
			continue // it is never stored
		}
		if a.Field(i).IsZero() && b.Field(i).IsZero() {
			names = append(names, field.Name)
		}
		names = append(names, zeroes(a.Field(i), b.Field(i))...)
	}
	return names
}

func TestSaveRoundTripProperty(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	rapid.Check(t, func(r *rapid.T) {
		want := drawAttempt(r)
		script := transcript(rapid.Int().Draw(r, "i"))
		script.Messages[0].Content = rapid.String().Draw(r, "content")
		err := db.Save(t.Context(), want, script)
		if errors.Is(err, store.ErrSettled) { // drawn before
			return
		}
		must(r, err)
		got := all(t, db, store.Filter{Trial: want.ID})
		if diff := cmp.Diff(*want, got[len(got)-1]); diff != "" {
			r.Fatalf("-want +got:\n%s", diff)
		}
		gotScript, err := db.Transcript(t.Context(), want.ID, want.Number)
		if diff := cmp.Diff(*script, gotScript); diff != "" || err != nil {
			r.Fatalf("transcript: %v (-want +got):\n%s", err, diff)
		}
	})
}

// TestInterruptedAttemptsOnlyCost checks that only readers who ask for costs see an attempt that was
// interrupted, and that its trial stays open.
func TestInterruptedAttemptsOnlyCost(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	stopped, settled := fault(1), outcome(1)
	stopped.FaultKind, stopped.CostUSD = assay.Interrupted, 0.25
	save(t, db, stopped, settled)
	if diff := cmp.Diff([]assay.Attempt{*settled}, all(t, db, store.Filter{})); diff != "" {
		t.Errorf("without costs (-want +got):\n%s", diff)
	}
	if n := len(all(t, db, store.Filter{OnlyFaults: true})); n != 0 {
		t.Errorf("%d faults, want none", n)
	}
	both := []assay.Attempt{*stopped, *settled}
	if diff := cmp.Diff(both, all(t, db, store.Filter{All: true})); diff != "" {
		t.Errorf("with costs (-want +got):\n%s", diff)
	}
	if settled.Number != 2 {
		t.Errorf("the outcome is attempt %d, want 2", settled.Number)
	}
	profile, err := db.Profile(t.Context())
	if err != nil || len(profile) != 1 || profile[0].Attempts != 1 || profile[0].Faulted != 0 {
		t.Errorf("Profile() = %+v, %v", profile, err)
	}
}

func TestSaveAcceptsEveryKnownWord(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	for i, kind := range assay.FaultKinds {
		a := fault(i)
		a.FaultKind = kind
		save(t, db, a)
	}
	for i, level := range assay.Levels {
		for j, end := range assay.Ends {
			a := outcome(100 + 10*i + j)
			a.Level, a.Ended = level, end
			save(t, db, a)
		}
	}
	for i, kind := range assay.LoopKinds {
		a := outcome(200 + i)
		a.Loop = kind
		save(t, db, a)
	}
}

// bad has changes that make an attempt invalid.
var bad = map[string]func(*assay.Attempt){
	"level and fault":      func(a *assay.Attempt) { a.FaultKind = assay.Timeout },
	"neither":              func(a *assay.Attempt) { a.Level = "" },
	"unknown level":        func(a *assay.Attempt) { a.Level = "good" },
	"unknown fault":        func(a *assay.Attempt) { a.Level, a.FaultKind = "", "bad_luck" },
	"unknown end":          func(a *assay.Attempt) { a.Ended = "bored" },
	"fault with an end":    func(a *assay.Attempt) { a.Level, a.FaultKind = "", assay.Timeout },
	"outcome without end":  func(a *assay.Attempt) { a.Ended = "" },
	"negative token limit": func(a *assay.Attempt) { a.Tokens = -1 },
	"cost limit infinite":  func(a *assay.Attempt) { a.USD = math.Inf(1) },
	"coverage above 1":     func(a *assay.Attempt) { a.Coverage = 1.5 },
	"coverage below 0":     func(a *assay.Attempt) { a.Coverage = -0.1 },
	"coverage no number":   func(a *assay.Attempt) { a.Coverage = math.NaN() },
	"reliability percent":  func(a *assay.Attempt) { a.Reliability = 80 },
	"cost no number":       func(a *assay.Attempt) { a.CostUSD = math.NaN() },
	"cost infinite":        func(a *assay.Attempt) { a.CostUSD = math.Inf(1) },
	"persistence 1":        func(a *assay.Attempt) { a.Persistence = 1 },
	"burst below 0":        func(a *assay.Attempt) { a.Burst = -0.1 },
	"burst no number":      func(a *assay.Attempt) { a.Burst = math.NaN() },
	"adherence above 1":    func(a *assay.Attempt) { a.Adherence = 1.5 },
	"given adherence -1":   func(a *assay.Attempt) { a.GivenAdherence = pointer(-1.) },
	"own plan above 1":     func(a *assay.Attempt) { a.PlannedAdherence = pointer(1.5) },
	"given adherence NaN":  func(a *assay.Attempt) { a.GivenAdherence = pointer(math.NaN()) },
	"efficiency above 1":   func(a *assay.Attempt) { a.Efficiency = 1.5 },
	"precision above 1":    func(a *assay.Attempt) { a.Precision = 1.5 },
	"negative effects":     func(a *assay.Attempt) { a.UnwantedEffects = -1 },
	"unknown harm":         func(a *assay.Attempt) { a.UnwantedEffects, a.Harm = 1, "severe" },
	"harm without effects": func(a *assay.Attempt) { a.UnwantedEffects, a.Harm = 0, assay.LowHarm },
	"negative schedule":    func(a *assay.Attempt) { a.FaultsScheduled = -1 },
	"negative faults met":  func(a *assay.Attempt) { a.FaultsMet = -1 },
	"negative call limit":  func(a *assay.Attempt) { a.Calls = -1 },
	"best no number":       func(a *assay.Attempt) { a.Best = math.NaN() },
	"unknown loop":         func(a *assay.Attempt) { a.Loop = "spiral" },
	"loop without turn":    func(a *assay.Attempt) { a.LoopTurn = 0 },
	"turn without loop":    func(a *assay.Attempt) { a.Loop = "" },
	"loop before turn 1":   func(a *assay.Attempt) { a.LoopTurn = -1 },
	"unknown pilot level":  func(a *assay.Attempt) { a.Pilot = pilot(); a.Pilot.Paper = "good" },
	"pilot no number":      func(a *assay.Attempt) { a.Pilot = pilot(); a.Pilot.Phase2Score = math.NaN() },
	"negative mistakes":    func(a *assay.Attempt) { a.Mistakes = -1 },
	"negative failures":    func(a *assay.Attempt) { a.Failures = -1 },
	"negative recovered":   func(a *assay.Attempt) { a.Recovered = -1 },
	"negative wasted":      func(a *assay.Attempt) { a.Wasted = -1 },
	"negative extra":       func(a *assay.Attempt) { a.Extra = -1 },
	"negative turns":       func(a *assay.Attempt) { a.Outcome.Turns = -1 },
	"negative tokens":      func(a *assay.Attempt) { a.InputTokens = -1 },
	"parked outcome":       func(a *assay.Attempt) { a.Parked = true },
	"no model":             func(a *assay.Attempt) { a.Model = "" },
	"no trial":             func(a *assay.Attempt) { a.ID = "" },
	"short trial":          func(a *assay.Attempt) { a.ID = "00" },
	"upper-case trial":     func(a *assay.Attempt) { a.ID = "AABBCCDDEEFF00112233445566778899" },
	"other experiment":     func(a *assay.Attempt) { a.Experiment = "f" },
	"year 10000": func(a *assay.Attempt) {
		a.FinishedAt = year10000
	},
	"seed beyond int64":    func(a *assay.Attempt) { a.Seed = math.MaxUint64 },
	"sampling no number":   func(a *assay.Attempt) { v := math.NaN(); a.Sampling.Temperature = &v },
	"transcript no number": func(*assay.Attempt) {},
}

func TestSaveRefusesBadAttempts(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	for name, spoil := range bad {
		a, script := outcome(1), transcript(1)
		spoil(a)
		if name == "transcript no number" {
			script.Calls[0].Luck = math.NaN()
		}
		if err := db.Save(t.Context(), a, script); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: Save() = %v, want ErrInvalid", name, err)
		}
	}
	a := outcome(1)
	a.Run = "r9"
	if err := db.Save(t.Context(), a, nil); !errors.Is(err, store.ErrUnknownRun) {
		t.Errorf("unknown run: Save() = %v, want ErrUnknownRun", err)
	}
	if _, err := db.FindTrial(t.Context(),
		string(outcome(1).ID)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a refused attempt left a trial: FindTrial() = %v", err)
	}
	save(t, db, outcome(1))
}

func TestRefusedAttemptsDoNotAffectTheirBatch(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	const n = 400
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			a := outcome(i)
			if i%4 == 0 {
				a.Parked = true // only the schema refuses this, inside the batch
			}
			err := db.Save(t.Context(), a, transcript(i))
			if refused := errors.Is(err, store.ErrInvalid); refused != (i%4 == 0) || err != nil &&
				!refused {
				t.Errorf("attempt %d: Save() = %v", i, err)
			}
		})
	}
	wg.Wait()
	if got := len(all(t, db, store.Filter{})); got != n*3/4 {
		t.Errorf("%d attempts are stored, want %d", got, n*3/4)
	}
}

func TestGroupCommitIsExact(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	goroutines, trials := 64, 40
	if testing.Short() {
		goroutines, trials = 16, 10
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	settled := map[assay.TrialID]int{}
	numbers := map[string]bool{}
	for g := range goroutines {
		wg.Go(func() {
			for i := range trials {
				// All of them save attempts at the same trials, and one settles each.
				a := fault(i)
				if g%2 == 0 {
					a = outcome(i)
				}
				err := db.Save(t.Context(), a, transcript(i))
				mu.Lock()
				switch {
				case err == nil && a.Settles():
					settled[a.ID]++
					fallthrough
				case err == nil:
					key := fmt.Sprint(a.ID, a.Number)
					if numbers[key] {
						t.Errorf("%s was assigned twice", key)
					}
					numbers[key] = true
				case !errors.Is(err, store.ErrSettled):
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for id, n := range settled {
		if n != 1 {
			t.Errorf("trial %s was settled %d times", id, n)
		}
	}
	if len(settled) != trials {
		t.Errorf("%d trials are settled, want %d", len(settled), trials)
	}
	must(t, db.Close())
	got := all(t, openReadOnly(t, path), store.Filter{})
	if want := trials * (goroutines/2 + 1); len(got) != want || len(numbers) != want {
		t.Errorf("%d attempts are stored and %d were acknowledged, want %d",
			len(got), len(numbers), want)
	}
	next := map[assay.TrialID]int{}
	for _, a := range got {
		if next[a.ID]++; a.Number != next[a.ID] {
			t.Fatalf("trial %s: attempt %d follows %d", a.ID, a.Number, next[a.ID]-1)
		}
	}
}

func TestSaveStopsWaitingWhenContextEnds(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	cause := errors.New("had enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for i := range 50 {
		if err := db.Save(ctx, outcome(i), nil); err != nil && !errors.Is(err, cause) {
			t.Errorf("Save() = %v, want nil or %v", err, cause)
		}
	}
}

func TestSaveWhileReading(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	save(t, db, outcome(0), outcome(1))
	other := openReadOnly(t, path)
	for _, reader := range []*store.DB{db, other} {
		before := len(all(t, reader, store.Filter{}))
		seen := 0
		for a, err := range reader.Attempts(t.Context(), store.Filter{}) {
			must(t, err)
			seen++
			save(t, db, outcome(100*before+seen))
			if _, err := reader.Transcript(t.Context(), a.ID, 1); err != nil {
				t.Error(err)
			}
		}
		if seen != before {
			t.Errorf("the loop saw %d attempts, want the %d from before it", seen, before)
		}
	}
	if got := len(all(t, other, store.Filter{})); got != 8 {
		t.Errorf("%d attempts, want 8", got)
	}
}

func TestReadOnlyStoreRefusesWrites(t *testing.T) {
	t.Parallel()
	_, path := create(t)
	db := openReadOnly(t, path)
	for name, err := range map[string]error{
		"Save":     db.Save(t.Context(), outcome(1), transcript(1)),
		"BeginRun": db.BeginRun(t.Context(), experiment("e"), store.Run{ID: "r2"}),
		"EndRun":   db.EndRun(t.Context(), "r1", nil),
		"Rescore": db.Rescore(t.Context(),
			[]store.Rescored{{Trial: outcome(1).ID, Number: 1, Outcome: outcome(1).Outcome}}),
		"Classify": db.Classify(t.Context(), store.Classification{Trial: outcome(1).ID, Number: 1}),
		"Log":      db.Log(t.Context(), store.Control{Run: "r1", Command: []byte("{}")}),
	} {
		if !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("%s() = %v, want ErrReadOnly", name, err)
		}
	}
}

func TestCloseSavesQueuedAttempts(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	saved := 0
	for i := range 200 {
		wg.Go(func() {
			err := db.Save(t.Context(), outcome(i), nil)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				saved++
			case !errors.Is(err, store.ErrClosed):
				t.Error(err)
			}
		})
	}
	for range 3 {
		wg.Go(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := db.Save(t.Context(), outcome(999), nil); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Save after Close = %v, want ErrClosed", err)
	}
	if left := neighbours(t, path); strings.Join(left, " ") != "assay.db assay.db.lock" {
		t.Errorf("files after Close: %v", left)
	}
	if got := len(all(t, openReadOnly(t, path), store.Filter{})); got != saved {
		t.Errorf("%d attempts are stored, %d were acknowledged", got, saved)
	}
}
