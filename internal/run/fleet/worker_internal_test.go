package fleet

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
)

// A direct network carries messages without a fault, until it is cut.
type direct struct {
	answer func(ctx context.Context, call string, body []byte) []byte
	cut    atomic.Bool
}

func (d *direct) Offer(context.Context, string) error { return nil }
func (d *direct) Close() error                        { return nil }

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

func (d *direct) Take(ctx context.Context, _ int) ([]Ticket, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestOtherVersionIsRefused checks that a worker of another version goes, and says why.
func TestOtherVersionIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		net := new(direct)
		desk, err := NewDesk(net, DeskOptions{Program: "v1.2.0"})
		if err != nil {
			t.Fatal(err)
		}
		defer desk.Close()
		err = NewWorker(net, WorkerOptions{Name: "w", Program: "v1.3.0", Slots: 1}).Run(t.Context())
		var refused *RefusedError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "v1.3.0") ||
			!strings.Contains(err.Error(), "v1.2.0") || !strings.Contains(err.Error(), "hint:") {
			t.Errorf("the worker ends with %v", err)
		}
		if desk.Slots() != 0 {
			t.Error("the desk counts on the worker")
		}
	})
}

// TestOnceWorkerGoesWithoutAWord cuts a worker off that is to go with its run. It cannot hear the
// end of the run, and goes all the same.
func TestOnceWorkerGoesWithoutAWord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		net := new(direct)
		desk, err := NewDesk(net, DeskOptions{Lease: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(5*time.Second, func() {
			if desk.Slots() != 3 {
				t.Errorf("the desk counts on %d slots, want 3", desk.Slots())
			}
			net.cut.Store(true)
		})
		began := time.Now()
		err = NewWorker(net, WorkerOptions{
			Name: "w", Slots: 3, Once: true, Say: func(string) {},
		}).Run(t.Context())
		if took := time.Since(began); err != nil || took > 5*time.Minute {
			t.Errorf("the worker goes after %v with %v", took, err)
		}
		if desk.Slots() != 0 {
			t.Error("the desk counts on a worker of which nothing is heard")
		}
		desk.Close()
	})
}

// TestHeldOrderIsNotBegunTwice checks that an order goes to another worker only after a lease of
// silence, and that messages with an older token are refused then.
func TestHeldOrderIsNotBegunTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		desk, err := NewDesk(new(direct), DeskOptions{Lease: 10 * time.Second, Job: Job{Run: "r"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range []string{"a", "b"} {
			desk.hello(&hello{Worker: w, Name: w, Slots: 1})
		}
		ctx, cancel := context.WithCancel(t.Context())
		go desk.Run(ctx, nil, &assay.Trial{ID: "t"}, &assay.Task{})
		synctest.Wait()
		var id string
		for id = range desk.orders {
		}
		first := desk.begin(&begin{Worker: "a", Order: id, Try: "a-1"})
		again := desk.begin(&begin{Worker: "a", Order: id, Try: "a-1"})
		if first.Over || again.Token != first.Token {
			t.Errorf("tokens %d and %d of one delivery", first.Token, again.Token)
		}
		time.Sleep(9 * time.Second)
		desk.beat(&beat{Worker: "a", Run: "r", Orders: []held{{id, first.Token}}})
		time.Sleep(9 * time.Second)
		if b := desk.begin(&begin{Worker: "b", Order: id, Try: "b-1"}); !b.Over {
			t.Error("an order is begun by two workers")
		}
		time.Sleep(2 * time.Second)
		second := desk.begin(&begin{Worker: "b", Order: id, Try: "b-2"})
		if second.Over || second.Token <= first.Token {
			t.Errorf("token %d after token %d", second.Token, first.Token)
		}
		r := desk.beat(&beat{Worker: "a", Run: "r", Orders: []held{{id, first.Token}}})
		if len(r.Over) != 1 {
			t.Error("the first worker is not told that it has lost the order")
		}
		cancel()
		synctest.Wait()
		desk.Conclude("t")
		desk.Close()
	})
}
