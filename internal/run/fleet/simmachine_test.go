package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/assay-eval/assay"
)

// machine is a place where workers live and die, until everything is done.
func (w *world) machine(place int, everything <-chan struct{}) {
	for n := 1; ; n++ {
		name := fmt.Sprintf("w%d.%d", place, n)
		ctx, kill := context.WithCancel(context.Background())
		link := &simLink{world: w, place: place, name: name, dead: ctx.Done()}
		worker := NewWorker(link, WorkerOptions{
			ID: name, Name: name, Program: "v1", Slots: simSlots, Drain: everything,
			Say: func(string) {},
		})
		skew := time.Duration(w.dice("clock "+name).Int64N(int64(48*time.Hour))) - 24*time.Hour
		running := &simRunner{world: w, worker: name, skew: skew}
		worker.runner = func(string) runner { return running }
		d := w.dice("life of " + name)
		if d.IntN(3) > 0 {
			timer := time.AfterFunc(time.Duration(d.Int64N(int64(simTrouble))), func() {
				if !w.isCalm() {
					w.happened("worker killed")
					kill()
				}
			})
			defer timer.Stop()
		}
		if err := worker.Run(ctx); err != nil {
			w.t.Errorf("worker %s: %v", name, err)
		}
		kill()
		select {
		case <-everything:
			return
		case <-time.After(time.Duration(d.Int64N(int64(20 * time.Second)))):
		}
	}
}

// A simRunner carries out attempts on a worker whose clock is wrong.
type simRunner struct {
	*world
	worker string
	skew   time.Duration
	flying atomicMost
}

func (r *simRunner) Run(
	ctx context.Context, provider assay.Provider, trial *assay.Trial, _ *assay.Task,
) (*assay.Attempt, *assay.Transcript) {
	if n := r.flying.add(1); n > simSlots {
		r.t.Errorf("worker %s has %d attempts, but %d slots", r.worker, n, simSlots)
	}
	defer r.flying.add(-1)
	a := &assay.Attempt{Trial: *trial, StartedAt: time.Now().Add(r.skew)}
	err := r.turns(ctx, provider, trial, a)
	a.FinishedAt = time.Now().Add(r.skew)
	if f := assay.AsFault(err); f != nil {
		a.FaultKind, a.FaultDetail = f.Kind, f.Error()
	} else {
		a.Level = verdictOf(trial)
	}
	return a, &assay.Transcript{}
}

func (r *simRunner) turns(
	ctx context.Context, provider assay.Provider, trial *assay.Trial, a *assay.Attempt,
) error {
	for turn := range turnsOf(trial) {
		text := fmt.Sprint(trial.ID, " ", turn, " ", r.worker, " ", a.StartedAt.UnixNano())
		a.Requests++
		resp, err := provider.Chat(ctx, &assay.Request{
			Model: "m", Messages: []assay.Message{{Role: assay.User, Content: text}},
		})
		if err != nil {
			return err
		}
		if resp.Message.Content != "re: "+text {
			r.t.Errorf("the reply to %q is %q", text, resp.Message.Content)
		}
		d := r.dice("tool " + text)
		select {
		case <-time.After(time.Duration(d.Int64N(int64(3 * time.Second)))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
