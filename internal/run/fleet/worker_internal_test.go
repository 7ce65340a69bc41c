package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
)

// What compresses makes channels when it is first used, which would belong to the bubble of one test.
func init() {
	_ = compressor().EncodeAll([]byte("message"), nil)
	_ = decompressor()
}

// A direct network carries messages without a fault, until it is cut.
type direct struct {
	answer      func(ctx context.Context, call string, body []byte) []byte
	cut         atomic.Bool
	assignments chan string // nil delivers no assignments
}

func (d *direct) Offer(_ context.Context, assignment string) error {
	if d.assignments != nil {
		d.assignments <- assignment
	}
	return nil
}

func (d *direct) Close() error { return nil }

func (d *direct) Serve(
	answer func(ctx context.Context, call string, body []byte) []byte,
) (func(), error) {
	d.answer = answer
	return func() {}, nil
}

func (d *direct) Call(ctx context.Context, call string, body []byte) ([]byte, error) {
	if d.cut.Load() {
		return nil, errors.New("cut off")
	}
	return d.answer(ctx, call, body), nil
}

func (d *direct) Take(ctx context.Context, _ int) ([]Delivery, error) {
	select {
	case id := <-d.assignments:
		return []Delivery{doneTicket(id)}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// coordinate starts a coordinator of the run r, with a lease of ten seconds.
func coordinate(t *testing.T, net Hub) *Coordinator {
	t.Helper()
	d, err := NewCoordinator(net, CoordinatorOptions{Lease: 10 * time.Second, Job: Job{Run: "r"}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

type doneTicket string

func (t doneTicket) Assignment() string { return string(t) }
func (t doneTicket) Done() error        { return nil }

// TestOtherVersionIsRefused checks that a worker of another version goes, and gives the reason.
func TestOtherVersionIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		net := new(direct)
		coordinator, err := NewCoordinator(net, CoordinatorOptions{Program: "v1.2.0"})
		if err != nil {
			t.Fatal(err)
		}
		defer coordinator.Close()
		err = NewWorker(net, WorkerOptions{Name: "w", Program: "v1.3.0", Slots: 1}).Run(t.Context())
		var refused *RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "v1.3.0") ||
			!strings.Contains(err.Error(), "v1.2.0") || !strings.Contains(err.Error(), "hint:") {
			t.Errorf("the worker ends with %v", err)
		}
		if coordinator.Slots() != 0 {
			t.Error("the coordinator counts on the worker")
		}
	})
}

// TestOnceWorkerGoesWithoutAWord cuts a worker off that is to go with its run. It cannot hear the
// end of the run, and goes all the same.
func TestOnceWorkerGoesWithoutAWord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		net := new(direct)
		coordinator := coordinate(t, net)
		time.AfterFunc(5*time.Second, func() {
			if coordinator.Slots() != 3 {
				t.Errorf("the coordinator counts on %d slots, want 3", coordinator.Slots())
			}
			net.cut.Store(true)
		})
		began := time.Now()
		err := NewWorker(net, WorkerOptions{
			Name: "w", Slots: 3, Once: true, Say: func(string) {},
		}).Run(t.Context())
		if took := time.Since(began); err != nil || took > 5*time.Minute {
			t.Errorf("the worker goes after %v with %v", took, err)
		}
		if coordinator.Slots() != 0 {
			t.Error("the coordinator counts on a worker of which nothing is heard")
		}
		coordinator.Close()
	})
}

// TestHeldAssignmentIsNotBegunTwice checks that an assignment goes to another worker only after a
// lease of silence, and that messages with an older token are refused then.
func TestHeldAssignmentIsNotBegunTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		coordinator := coordinate(t, new(direct))
		for _, w := range []string{"a", "b"} {
			coordinator.hello(&hello{Worker: w, Name: w, Slots: 1})
		}
		ctx, cancel := context.WithCancel(t.Context())
		go coordinator.Run(ctx, nil, &assay.Trial{ID: "t"}, &assay.Task{})
		synctest.Wait()
		var id string
		for id = range coordinator.assignments {
		}
		first := coordinator.begin(&begin{Worker: "a", Assignment: id, Try: "a-1"})
		again := coordinator.begin(&begin{Worker: "a", Assignment: id, Try: "a-1"})
		if first.Over || again.Token != first.Token {
			t.Errorf("tokens %s and %s of one delivery", first.Token, again.Token)
		}
		time.Sleep(9 * time.Second)
		coordinator.beat(&beat{Worker: "a", Run: "r", Assignments: []held{{id, first.Token}}})
		time.Sleep(9 * time.Second)
		if b := coordinator.begin(&begin{Worker: "b", Assignment: id, Try: "b-1"}); !b.Over {
			t.Error("an assignment is begun by two workers")
		}
		time.Sleep(2 * time.Second)
		second := coordinator.begin(&begin{Worker: "b", Assignment: id, Try: "b-2"})
		if second.Over || second.Token == first.Token {
			t.Errorf("token %s after token %s", second.Token, first.Token)
		}
		r := coordinator.beat(&beat{Worker: "a", Run: "r", Assignments: []held{{id, first.Token}}})
		if len(r.Over) != 1 {
			t.Error("the first worker is not told that it has lost the assignment")
		}
		cancel()
		synctest.Wait()
		coordinator.Conclude("t")
		coordinator.Close()
	})
}

// TestAttemptThatBringsWorkersDown loses one worker after the other. An attempt that they were working on
// ends in a fault, and one that waited for its model, or whose workers took their leave, does not.
func TestAttemptThatBringsWorkersDown(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]bool{"works": true, "waits": false, "leaves": false} {
		synctest.Test(t, func(t *testing.T) {
			coordinator := coordinate(t, new(direct))
			ctx, cancel := context.WithCancel(t.Context())
			var ended atomic.Bool
			go func() {
				coordinator.Run(ctx, hungProvider{}, &assay.Trial{ID: "t"}, &assay.Task{})
				ended.Store(true)
			}()
			synctest.Wait()
			var id string
			for id = range coordinator.assignments {
			}
			for i := range maxLost + 1 {
				name := strconv.Itoa(i)
				coordinator.hello(&hello{Worker: name, Name: name, Slots: 1})
				b := coordinator.begin(&begin{Worker: name, Assignment: id, Try: name})
				switch what {
				case "waits":
					go coordinator.chat(ctx, &chat{held: held{id, b.Token}})
				case "leaves":
					coordinator.bye(&beat{Worker: name})
				}
				time.Sleep(11 * time.Second)
			}
			synctest.Wait()
			if got := ended.Load(); got != want {
				t.Errorf("an attempt that %s when its workers are lost ended: %v, want %v", what, got, want)
			}
			cancel()
			synctest.Wait()
			coordinator.Conclude("t")
			coordinator.Close()
		})
	}
}

// A hungProvider answers when its caller gives up.
type hungProvider struct{}

func (hungProvider) Chat(ctx context.Context, _ *assay.Request) (*assay.Response, error) {
	<-ctx.Done()
	return new(assay.Response), context.Cause(ctx)
}

// TestLostAssignmentsAreOfferedWithinALease lets workers with twenty assignments each fall
// silent at random moments. Each assignment is offered again within a lease of the last word of its
// worker, and not much sooner.
func TestLostAssignmentsAreOfferedWithinALease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lease, workers, each = 10 * time.Second, 50, 20
		random := rand.New(rand.NewPCG(1, 2))
		net := &direct{assignments: make(chan string, 10*workers*each)}
		coordinator := coordinate(t, net)
		ctx, cancel := context.WithCancel(t.Context())
		var trials []assay.TrialID
		for i := range workers * each {
			trials = append(trials, assay.TrialID(strconv.Itoa(i)))
			go coordinator.Run(ctx, nil, &assay.Trial{ID: trials[i]}, &assay.Task{})
		}
		heard := make(map[string]time.Time, workers*each) // the last word by assignment
		var mu sync.Mutex
		var lives sync.WaitGroup
		for i := range workers {
			name, beats := strconv.Itoa(i), 1+random.IntN(30)
			coordinator.hello(&hello{Worker: name, Name: name, Slots: each})
			var assignments []held
			for range each {
				id := <-net.assignments
				assignments = append(assignments, held{id, coordinator.begin(&begin{name, id, "try"}).Token})
			}
			pause := time.Duration(random.Int64N(int64(time.Second)))
			lives.Go(func() {
				for range beats {
					time.Sleep(pause)
					coordinator.beat(&beat{Worker: name, Run: "r", Assignments: assignments})
				}
				mu.Lock()
				defer mu.Unlock()
				for _, h := range assignments {
					heard[h.Assignment] = time.Now()
				}
			})
		}
		offered := make(map[string]bool, workers*each)
		for len(offered) < workers*each {
			id := <-net.assignments
			mu.Lock()
			silent := time.Since(heard[id])
			mu.Unlock()
			if !offered[id] && (silent > lease || silent < lease*9/10) {
				t.Errorf("assignment %s is offered again %v after the last word", id, silent)
			}
			offered[id] = true
		}
		lives.Wait()
		cancel()
		synctest.Wait()
		for _, id := range trials {
			coordinator.Conclude(id)
		}
		coordinator.Close()
	})
}

// A funcRunner carries out attempts with a function, and a funcProvider answers with one.
type (
	funcRunner   func(assay.Provider, *assay.Attempt) *assay.Transcript
	funcProvider func(assay.Request) assay.Response
)

func (f funcRunner) Run(
	_ context.Context, p assay.Provider, trial *assay.Trial, _ *assay.Task,
) (*assay.Attempt, *assay.Transcript) {
	a := &assay.Attempt{Trial: *trial, FinishedAt: time.Now()}
	a.Level = assay.FullSuccess
	return a, f(p, a)
}

func (f funcProvider) Chat(_ context.Context, r *assay.Request) (*assay.Response, error) {
	return new(f(*r)), nil
}

// TestWhatCannotBeSentIsAFault lets an attempt and a reply have invalid raw JSON. Repeating a
// message that cannot be written does not help: the attempt ends in a fault with the reason.
func TestWhatCannotBeSentIsAFault(t *testing.T) {
	t.Parallel()
	broken := []byte("{")
	for name, test := range map[string]struct {
		run   funcRunner
		reply assay.Response
	}{
		"result": {run: func(assay.Provider, *assay.Attempt) *assay.Transcript {
			return &assay.Transcript{State: broken}
		}},
		"reply": {
			run: func(p assay.Provider, a *assay.Attempt) *assay.Transcript {
				_, err := p.Chat(context.Background(), &assay.Request{})
				if f := assay.AsFault(err); f != nil {
					a.Level, a.FaultKind, a.FaultDetail = "", f.Kind, f.Error()
				}
				return &assay.Transcript{}
			},
			reply: assay.Response{Message: assay.Message{State: &assay.State{Data: broken}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := &direct{assignments: make(chan string, 10)}
				coordinator := coordinate(t, net)
				w := NewWorker(net, WorkerOptions{Name: "w", Slots: 1, Once: true, Say: func(string) {}})
				w.runner = func(string) runner { return test.run }
				working := make(chan error, 1)
				go func() { working <- w.Run(t.Context()) }()
				a, _ := coordinator.Run(t.Context(), funcProvider(func(assay.Request) assay.Response {
					return test.reply
				}), &assay.Trial{ID: "t"}, &assay.Task{})
				if a.FaultKind != assay.Harness || !strings.Contains(a.FaultDetail, "JSON") {
					t.Errorf("the attempt has fault %q: %s", a.FaultKind, a.FaultDetail)
				}
				coordinator.Conclude("t")
				coordinator.Close()
				if err := <-working; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestLostWorkerMakesRoom checks the fate of a worker that was lost: its result still counts as its
// own while no other worker has begun the assignment, a new worker may have its name, and it is
// forgotten after a while.
func TestLostWorkerMakesRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		net := &direct{assignments: make(chan string, 10)}
		coordinator := coordinate(t, net)
		names := func() string {
			var all []string
			for _, w := range coordinator.Workers() {
				all = append(all, fmt.Sprintf("%s lost=%t done=%d", w.Name, w.Lost, w.Done))
			}
			return strings.Join(all, ", ")
		}
		coordinator.hello(&hello{Worker: "first", Name: "w", Slots: 1})
		ended := make(chan *assay.Attempt, 1)
		go func() {
			a, _ := coordinator.Run(t.Context(), nil, &assay.Trial{ID: "t"}, &assay.Task{})
			ended <- a
		}()
		id := <-net.assignments
		b := coordinator.begin(&begin{Worker: "first", Assignment: id, Try: "1"})
		time.Sleep(15 * time.Second)
		if got := names(); got != "w lost=true done=0" || !coordinator.Waits() {
			t.Errorf("workers after a lease of silence: %s; an assignment waits: %t", got, coordinator.Waits())
		}
		a, _ := funcRunner(func(assay.Provider, *assay.Attempt) *assay.Transcript {
			return nil
		}).Run(t.Context(), nil, &b.Trial, nil)
		go coordinator.result(t.Context(), &attemptResult{held: held{id, b.Token}, Attempt: *a})
		if a := <-ended; a.Worker != "w" || !a.Settles() {
			t.Errorf("the attempt is of worker %q, with fault %q", a.Worker, a.FaultKind)
		}
		if got := names(); got != "w lost=true done=1" {
			t.Errorf("workers after the result: %s", got)
		}
		coordinator.hello(&hello{Worker: "second", Name: "w", Slots: 1})
		coordinator.hello(&hello{Worker: "third", Name: "w", Slots: 1})
		if got := names(); got != "w lost=false done=0, w-2 lost=false done=0" {
			t.Errorf("workers after two more have come: %s", got)
		}
		time.Sleep(2 * aloneFor * 10 * time.Second)
		if got := names(); got != "" {
			t.Errorf("workers long after the last word: %s", got)
		}
		coordinator.Conclude("t")
		coordinator.Close()
	})
}
