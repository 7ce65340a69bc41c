package engine_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/engine"
)

// bench is a run whose attempts take virtual time and end as the test wants.
type bench struct {
	mu       sync.Mutex
	attempts map[assay.TrialID]int
	saved    []assay.Attempt
	inFlight int
	most     int

	took   time.Duration
	ending time.Duration // of an attempt that was cancelled
	fault  func(id assay.TrialID, attempt int) assay.FaultKind
	save   func(*assay.Attempt) error
	events []engine.Event

	skip     func(*assay.Trial) string
	waits    func(*assay.Trial) bool
	wake     <-chan struct{}
	commands <-chan engine.Command
}

func (b *bench) attempt(
	ctx context.Context, trial *assay.Trial,
) (*assay.Attempt, *assay.Transcript) {
	b.mu.Lock()
	b.attempts[trial.ID]++
	n := b.attempts[trial.ID]
	b.inFlight++
	b.most = max(b.most, b.inFlight)
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.inFlight--
		b.mu.Unlock()
	}()
	a := &assay.Attempt{Trial: *trial}
	select {
	case <-time.After(b.took):
	case <-ctx.Done():
		time.Sleep(b.ending)
		a.FaultKind = assay.Interrupted
		return a, nil
	}
	if b.fault != nil {
		a.FaultKind = b.fault(trial.ID, n)
	}
	if a.FaultKind == "" {
		a.Level = assay.FullSuccess
	}
	return a, nil
}

func (b *bench) run(
	ctx context.Context, stop <-chan struct{}, models ...engine.Model,
) (engine.Summary, error) {
	b.attempts = make(map[assay.TrialID]int)
	return engine.Run(ctx, stop, engine.Config{
		Models: models, Attempt: b.attempt,
		Save: func(_ context.Context, a *assay.Attempt, _ *assay.Transcript) error {
			if b.save != nil {
				if err := b.save(a); err != nil {
					return err
				}
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.saved = append(b.saved, *a)
			return nil
		},
		Event: func(e engine.Event) { b.events = append(b.events, e) },
		Skip:  b.skip, Waits: b.waits, Wake: b.wake, Commands: b.commands,
	})
}

func (b *bench) count(kind engine.EventKind) int {
	n := 0
	for _, e := range b.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// model returns a model with n trials and room for width episodes at once.
func model(name string, n, width int) engine.Model {
	free := make(chan struct{}, width)
	return engine.Model{
		Name: name, Pending: trials(name, n),
		Admit: func(ctx context.Context) (context.Context, func(), bool) {
			select {
			case free <- struct{}{}:
				return ctx, func() { <-free }, true
			default:
				return ctx, nil, false
			}
		},
		Most:   func() int { return 2 * width },
		Closed: func() error { return nil },
	}
}

func trials(model string, n int) iter.Seq[assay.Trial] {
	return func(yield func(assay.Trial) bool) {
		for i := range n {
			trial := assay.Trial{
				ID:   assay.TrialID(fmt.Sprintf("%s-%d", model, i)),
				Cell: assay.Cell{Model: model},
			}
			if !yield(trial) {
				return
			}
		}
	}
}

// TestModelsDoNotWaitForEachOther checks that each model uses its full width,
// and that the run takes as long as its slowest model.
func TestModelsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{took: time.Second}
		start := time.Now()
		sum, err := b.run(t.Context(), nil, model("a", 100, 10), model("b", 30, 1))
		if err != nil || sum.Settled != 130 {
			t.Fatalf("summary %+v, error %v", sum, err)
		}
		if got, want := time.Since(start), 30*time.Second; got != want {
			t.Errorf("the run took %v, want %v", got, want)
		}
		if b.most != 11 {
			t.Errorf("%d attempts at once at most, want 11", b.most)
		}
		started, settled := b.count(engine.Started), b.count(engine.Settled)
		if started != 130 || settled != 130 {
			t.Errorf("%d started and %d settled events, want 130", started, settled)
		}
	})
}

// TestFaultedTrialIsRetriedLast checks that a faulted trial is retried after
// all others and parked after three attempts.
func TestFaultedTrialIsRetriedLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{took: time.Second, fault: func(id assay.TrialID, n int) assay.FaultKind {
			switch {
			case id == "a-0", id == "a-1" && n == 1:
				return assay.Server
			}
			return ""
		}}
		sum, err := b.run(t.Context(), nil, model("a", 4, 1))
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, a := range b.saved {
			order = append(order,
				fmt.Sprintf("%s %s%s parked=%v", a.ID, a.Level, a.FaultKind, a.Parked))
		}
		want := []string{
			"a-0 server parked=false", "a-1 server parked=false", "a-2 full_success parked=false",
			"a-3 full_success parked=false",
			"a-0 server parked=false", "a-1 full_success parked=false", "a-0 server parked=true",
		}
		if diff := cmp.Diff(want, order); diff != "" {
			t.Errorf("attempts in order (-want +got):\n%s", diff)
		}
		if sum.Settled != 3 || sum.Faulted != 4 || sum.Parked != 1 {
			t.Errorf("summary %+v", sum)
		}
	})
}

// TestSoftStopFinishesAttempts checks that attempts in flight finish and are saved, and that no
// attempt starts.
func TestSoftStopFinishesAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{took: time.Second}
		stop := make(chan struct{})
		time.AfterFunc(2500*time.Millisecond, func() { close(stop) })
		start := time.Now()
		sum, err := b.run(t.Context(), stop, model("a", 1000, 4))
		if err != nil || !sum.Stopped || sum.Settled != 12 || len(b.saved) != 12 {
			t.Errorf("summary %+v, %d saved, error %v; want 12 settled and stopped", sum,
				len(b.saved), err)
		}
		if got := time.Since(start); got != 3*time.Second {
			t.Errorf("the run took %v, want 3s", got)
		}
	})
}

// TestHardStopDropsAttempts checks that attempts in flight are dropped at once
// without being saved, and that finished ones stay.
func TestHardStopDropsAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{took: time.Second}
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		start := time.Now()
		sum, err := b.run(ctx, nil, model("a", 1000, 4))
		if err != nil || sum.Settled != 8 || len(b.saved) != 8 || b.count(engine.Dropped) != 4 {
			t.Errorf("summary %+v, %d saved, %d dropped, error %v", sum, len(b.saved),
				b.count(engine.Dropped), err)
		}
		if got := time.Since(start); got != 2500*time.Millisecond {
			t.Errorf("the run took %v, want 2.5s", got)
		}
	})
}

// TestSaveErrorStopsTheRun checks that a full disk cancels attempts in flight,
// keeps new ones from starting, and is the error that Run returns.
func TestSaveErrorStopsTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("disk full")
		b := &bench{took: time.Second}
		b.save = func(a *assay.Attempt) error {
			if strings.HasSuffix(string(a.ID), "-5") {
				return full
			}
			return nil
		}
		sum, err := b.run(t.Context(), nil, model("a", 1000, 2))
		if !errors.Is(err, full) {
			t.Errorf("error %v, want %v", err, full)
		}
		if sum.Settled < 4 || sum.Settled > 6 || sum.Settled != len(b.saved) {
			t.Errorf("%d settled, %d saved; want the same, about five", sum.Settled, len(b.saved))
		}
	})
}

// TestPanicStopsTheRun checks that a panic ends the run with an error that has
// the stack, and that the trial stays pending.
func TestPanicStopsTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{took: time.Second, fault: func(id assay.TrialID, _ int) assay.FaultKind {
			if id == "a-2" {
				panic("boom")
			}
			return ""
		}}
		_, err := b.run(t.Context(), nil, model("a", 10, 1))
		for _, want := range []string{"boom", "trial a-2", "engine_test.go"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want it to contain %q", err, want)
			}
		}
		if slices.ContainsFunc(b.saved, func(a assay.Attempt) bool { return a.ID == "a-2" }) {
			t.Error("the trial that panicked was saved")
		}
	})
}

// TestPanicLetsOthersFinish checks that no trial starts after a panic, and that attempts in flight
// end as usual and are saved, because they are paid for.
func TestPanicLetsOthersFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{took: time.Second, fault: func(id assay.TrialID, _ int) assay.FaultKind {
			if id == "a-0" {
				time.Sleep(time.Second / 2)
				panic("boom")
			}
			return ""
		}}
		sum, err := b.run(t.Context(), nil, model("a", 10, 4))
		if err == nil || sum.Settled != 6 || len(b.saved) != 6 || len(b.attempts) != 7 {
			t.Errorf("summary %+v, %d saved, %d began, error %v, want six others saved",
				sum, len(b.saved), len(b.attempts), err)
		}
		for _, e := range b.events {
			if e.Kind == engine.Dropped && e.Err == nil {
				t.Errorf("%s was dropped", e.Trial.ID)
			}
		}
	})
}

// TestClosedModelLeavesItsTrialsPending checks that the other models go on.
func TestClosedModelLeavesItsTrialsPending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{took: time.Second}
		dead := errors.New("key refused")
		m := model("a", 100, 2)
		start := time.Now()
		m.Closed = func() error {
			if time.Since(start) >= 3*time.Second {
				return dead
			}
			return nil
		}
		sum, err := b.run(t.Context(), nil, m, model("b", 20, 1))
		if err != nil || !errors.Is(sum.Closed["a"], dead) || sum.Settled != 6+20 ||
			b.count(engine.ModelClosed) != 1 {
			t.Errorf("summary %+v, %d closed events, error %v", sum, b.count(engine.ModelClosed),
				err)
		}
	})
}

// TestPendingIsReadAsNeeded checks that a million pending trials are not made
// before they can run.
func TestPendingIsReadAsNeeded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{took: time.Second}
		made := 0
		m := model("a", 0, 3)
		m.Pending = func(yield func(assay.Trial) bool) {
			for trial := range trials("a", 1_000_000) {
				made++
				if !yield(trial) {
					return
				}
			}
		}
		stop := make(chan struct{})
		time.AfterFunc(1500*time.Millisecond, func() { close(stop) })
		if _, err := b.run(t.Context(), stop, m); err != nil {
			t.Fatal(err)
		}
		if made != 7 {
			t.Errorf("%d trials were made, want 6 and one more", made)
		}
	})
}

// TestWakeStartsWaitingTrials checks that trials start on a wake-up if no attempt is in flight and
// the model gets room only after a minute.
func TestWakeStartsWaitingTrials(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{}, 1)
		b := &bench{took: time.Second, wake: wake}
		m := model("a", 3, 1)
		start, admit := time.Now(), m.Admit
		m.Admit = func(ctx context.Context) (context.Context, func(), bool) {
			if time.Since(start) < time.Minute {
				return ctx, nil, false
			}
			return admit(ctx)
		}
		exhausted := time.Duration(0)
		m.Exhausted = func() { exhausted = time.Since(start) }
		time.AfterFunc(30*time.Second, func() { wake <- struct{}{} }) // too early
		time.AfterFunc(time.Minute, func() { wake <- struct{}{} })
		sum, err := b.run(t.Context(), nil, m)
		if err != nil || sum.Settled != 3 || time.Since(start) != 63*time.Second {
			t.Errorf("summary %+v after %v, error %v", sum, time.Since(start), err)
		}
		if exhausted != 62*time.Second {
			t.Errorf("exhausted after %v, want 62s, when the last trial started", exhausted)
		}
	})
}

// TestSkippedTrialStaysPending checks that a skipped trial neither runs nor is
// saved, and is counted with its reason.
func TestSkippedTrialStaysPending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{took: time.Second}
		settled := 0
		b.skip = func(*assay.Trial) string {
			if settled = b.count(engine.Settled); settled >= 5 {
				return "budget"
			}
			return ""
		}
		sum, err := b.run(t.Context(), nil, model("a", 100, 1))
		if err != nil || sum.Settled != 5 || sum.Skipped["budget"] != 95 ||
			b.count(engine.Skipped) != 95 || len(b.saved) != 5 {
			t.Errorf("summary %+v, %d saved, error %v", sum, len(b.saved), err)
		}
	})
}

// TestTrialsWaitForOthers checks that trials which wait for the end of others do not run beside them, and
// run in the end.
func TestTrialsWaitForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{took: time.Second}
		flying := func() int {
			return b.count(engine.Started) - b.count(engine.Settled)
		}
		most := 0
		b.waits = func(*assay.Trial) bool {
			most = max(most, flying())
			return flying() >= 2
		}
		sum, err := b.run(t.Context(), nil, model("a", 20, 8), model("b", 20, 8))
		if err != nil || sum.Settled != 40 || most != 2 {
			t.Errorf("summary %+v, error %v, %d in flight", sum, err, most)
		}
	})
}

// TestCommandsCancelAndRequeue checks that cancelled trials stop or do not
// start, and that requeued ones run again, including parked ones.
func TestCommandsCancelAndRequeue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		commands := make(chan engine.Command)
		b := &bench{
			took: time.Second, commands: commands,
			fault: func(id assay.TrialID, n int) assay.FaultKind {
				if id == "a-1" && n <= engine.MaxAttempts {
					return assay.Server
				}
				return ""
			},
		}
		is := func(ids ...assay.TrialID) func(*assay.Trial) bool {
			return func(trial *assay.Trial) bool { return slices.Contains(ids, trial.ID) }
		}
		do := func(cancel bool, match func(*assay.Trial) bool) int {
			done := make(chan int, 1)
			commands <- engine.Command{Cancel: cancel, Match: match, Done: done}
			return <-done
		}
		go func() {
			time.Sleep(500 * time.Millisecond)
			if n := do(true, is("a-0", "a-7")); n != 1 {
				t.Errorf("%d trials in flight were cancelled, want 1", n)
			}
			time.Sleep(12 * time.Second) // a-7 was skipped and a-1 parked
			if n := do(false, is("a-1", "a-7")); n != 2 {
				t.Errorf("%d trials are back in the queue, want 2", n)
			}
		}()
		sum, err := b.run(t.Context(), nil, model("a", 9, 1), model("b", 20, 1))
		if err != nil || sum.Settled != 8+20 || sum.Parked != 0 {
			t.Errorf("summary %+v, error %v", sum, err)
		}
		if n := b.attempts["a-0"]; n != 1 {
			t.Errorf("the cancelled trial had %d attempts, want 1", n)
		}
		if n := b.attempts["a-7"]; n != 1 {
			t.Errorf("the trial that was cancelled and requeued had %d attempts, want 1", n)
		}
	})
}

// TestRequeueReachesWhatIsEnding requeues a trial while its cancelled attempt still ends.
func TestRequeueReachesWhatIsEnding(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		commands := make(chan engine.Command)
		b := &bench{took: 10 * time.Second, ending: 3 * time.Second, commands: commands}
		go func() {
			for at, cancel := range []bool{true, false} {
				time.Sleep(time.Second)
				done := make(chan int, 1)
				commands <- engine.Command{
					Cancel: cancel, Match: func(*assay.Trial) bool { return true }, Done: done,
				}
				if n := <-done; n != 4 {
					t.Errorf("command %d was for %d trials, want 4", at+1, n)
				}
			}
		}()
		sum, err := b.run(t.Context(), nil, model("a", 4, 4))
		if err != nil || sum.Settled != 4 || sum.Cancelled != 0 {
			t.Errorf("summary %+v, error %v", sum, err)
		}
	})
}

// TestEveryTrialIsCountedOnce checks for any commands that a summary counts each trial by what
// happened to it last.
func TestEveryTrialIsCountedOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		type order struct {
			after  time.Duration
			cancel bool
			of     int // trials whose number is a multiple
		}
		orders := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) order {
			return order{
				time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond,
				rapid.Bool().Draw(t, "cancel"), rapid.IntRange(1, 4).Draw(t, "of"),
			}
		}), 0, 6).Draw(rt, "orders")
		synctest.Test(t, func(t *testing.T) {
			commands, over := make(chan engine.Command), make(chan struct{})
			b := &bench{
				took: time.Second, commands: commands,
				fault: func(id assay.TrialID, n int) assay.FaultKind {
					if strings.HasSuffix(string(id), "1") && n <= 4 {
						return assay.Server
					}
					return ""
				},
			}
			var people sync.WaitGroup
			people.Go(func() {
				for _, o := range orders {
					time.Sleep(o.after)
					match := func(trial *assay.Trial) bool {
						var n int
						_, err := fmt.Sscanf(string(trial.ID), "a-%d", &n)
						return err == nil && n%o.of == 0
					}
					select {
					case commands <- engine.Command{Cancel: o.cancel, Match: match, Done: make(chan int, 1)}:
					case <-over:
						return
					}
				}
			})
			sum, err := b.run(t.Context(), nil, model("a", 20, 3))
			close(over)
			people.Wait()
			if err != nil {
				rt.Fatal(err)
			}
			latest, counts := make(map[assay.TrialID]engine.EventKind), make(map[engine.EventKind]int)
			for _, e := range b.events {
				if e.Attempt != nil {
					latest[e.Attempt.ID] = e.Kind
				} else {
					latest[e.Trial.ID] = e.Kind
				}
			}
			for _, kind := range latest {
				counts[kind]++
			}
			if len(latest) != 20 || sum.Settled != counts[engine.Settled] ||
				sum.Parked != counts[engine.Parked] || sum.Skipped["cancelled"] != counts[engine.Skipped] ||
				sum.Cancelled != counts[engine.Skipped]+counts[engine.Dropped] {
				rt.Errorf("summary %+v, want settled, parked, skipped and cancelled as in %v", sum, counts)
			}
		})
	})
}
