package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/run/engine"
)

const (
	beatEvery = time.Second
	// callLimit is the time for one answer. The coordinator answers within longPoll.
	callLimit = longPoll + 5*time.Second
	// beatLimit is the time for the answer to a beat.
	beatLimit = 3 * time.Second
)

// WorkerOptions configure a worker.
type WorkerOptions struct {
	// ID is unique to each worker. It is random if it is empty.
	ID      string
	Name    string
	Program string
	// Slots is the largest number of attempts at a time.
	Slots int
	// Drain, when closed, lets the worker finish its assignments and then go.
	Drain <-chan struct{}
	// Once makes the worker go when the run has ended, instead of waiting for the next one.
	Once bool
	// Say informs people about events.
	Say func(text string)
	// Dir replaces the directories of agents and of servers of tools, unless it is empty.
	Dir string
	// Agents is where foreign agents run, if it is not this machine.
	Agents bridge.Place
}

// A Worker carries out the attempts of runs.
type Worker struct {
	link    Link
	options WorkerOptions
	id      string
	begun   atomic.Int64              // assignments so far
	runner  func(model string) runner // replaces the runners of a job in tests
}

// NewWorker returns a worker.
func NewWorker(link Link, o WorkerOptions) *Worker {
	return &Worker{link: link, options: o, id: cmp.Or(o.ID, rand.Text())}
}

// RefusedError is the answer of a run that this worker cannot work for.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return e.Reason }

// A callError means that a call has failed and will fail again.
type callError struct{ error }

func (e callError) Unwrap() error { return e.error }

// isHopeless reports whether a call would fail again.
func isHopeless(err error) bool {
	var hopeless callError
	return errors.As(err, &hopeless)
}

// Why a worker ends the attempts of a session.
var (
	errOver  = errors.New("the attempt is over")
	errAlone = errors.New("the run has been out of reach for too long")
)

// Run works for one run after the other, until the worker is drained. When ctx ends, it gives its
// attempts back. It fails if a run refuses it.
func (w *Worker) Run(ctx context.Context) error {
	var lease time.Duration // of the latest run
	for {
		waiting, cancel := context.WithCancel(ctx)
		if w.options.Once && lease > 0 { // the run may have ended unheard
			waiting, cancel = context.WithTimeout(ctx, aloneFor*lease)
		}
		welcome, err := w.hello(waiting)
		gone := waiting.Err() != nil
		cancel()
		if err != nil {
			if w.leaving() || gone {
				return nil
			}
			return err
		}
		lease = welcome.Lease
		more, err := w.session(ctx, welcome)
		if err != nil || !more {
			return err
		}
	}
}

func (w *Worker) leaving() bool {
	select {
	case <-w.options.Drain:
		return true
	default:
		return false
	}
}

// hello introduces the worker to a run. It waits until there is one. It fails if ctx ends, or if
// the run cannot be understood.
func (w *Worker) hello(ctx context.Context) (*welcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-w.options.Drain:
			cancel()
		case <-ctx.Done():
		}
	}()
	said := false
	for {
		var r welcome
		err := w.call(ctx, callLimit, callHello, &hello{
			Worker: w.id, Name: w.options.Name, Program: w.options.Program, Slots: w.options.Slots,
		}, &r)
		switch {
		case err == nil && r.Refused != "":
			return nil, &RefusedError{r.Refused}
		case err == nil:
			return &r, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case isHopeless(err):
			return nil, fmt.Errorf("a run answers what cannot be read: %w\n"+
				"hint: the same version of Assay belongs on both machines", err)
		}
		if !said {
			w.options.Say("waiting for a run: " + err.Error())
			said = true
		}
		sleep(ctx, beatEvery)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// call makes a call once. Its error is a [callError] if the message cannot be written or answered.
func (w *Worker) call(
	ctx context.Context, limit time.Duration, call string, in, out any,
) error {
	b, err := encode(in)
	if err != nil {
		return callError{err}
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if b, err = w.link.Call(ctx, call, b); err != nil {
		return err
	}
	if err = decode(b, out); err != nil {
		return callError{err}
	}
	return nil
}

// insist makes a call until it is answered or ctx ends. If no answer comes for as long as a
// worker waits for its run, the network may be unable to carry the message, and the error is a
// [callError], too.
func (s *session) insist(ctx context.Context, call string, in, out any) error {
	began := time.Now()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := s.call(ctx, callLimit, call, in, out)
		switch {
		case err == nil || ctx.Err() != nil || isHopeless(err):
			return err
		case time.Since(began) > aloneFor*s.lease:
			return callError{fmt.Errorf("no answer in %v: %w", aloneFor*s.lease, err)}
		}
		sleep(ctx, pause)
	}
}

// A runner carries out attempts on this machine.
type runner interface {
	Run(
		ctx context.Context, provider assay.Provider, trial *assay.Trial, task *assay.Task,
	) (*assay.Attempt, *assay.Transcript)
}

// A session is the work for one run.
type session struct {
	*Worker
	job     *Job
	lease   time.Duration
	bare    *episode.Runner
	agents  map[string]runner
	tasks   *lru.Cache[string, *assay.Task] // by digest
	bridge  *bridge.Bridge                  // nil without agents
	ctx     context.Context                 // ends with the session
	end     context.CancelCauseFunc
	free    chan struct{} // a value for each free slot
	leave   chan struct{} // closed when no more assignments are taken
	pending sync.WaitGroup
	still   *engine.StillWatch

	mu      sync.Mutex
	running map[held]context.CancelCauseFunc
	left    bool // leave is closed
	ended   bool // the run is over
	done    int
}

// session works for a run until it ends or the worker goes. It returns true if the worker should
// wait for another run.
func (w *Worker) session(ctx context.Context, hi *welcome) (again bool, err error) {
	s := &session{
		Worker: w, job: &hi.Job, lease: hi.Lease, agents: make(map[string]runner),
		free: make(chan struct{}, w.options.Slots), leave: make(chan struct{}),
		running: make(map[held]context.CancelCauseFunc), still: engine.NewStillWatch(w.options.Say),
	}
	tasks, err := lru.New[string, *assay.Task](knownTasks)
	if err != nil {
		return false, err
	}
	s.tasks = tasks
	for range w.options.Slots {
		s.free <- struct{}{}
	}
	s.ctx, s.end = context.WithCancelCause(ctx)
	defer s.end(nil)
	closeAgents, err := s.open()
	if err != nil {
		s.bye(ctx)
		return false, err
	}
	w.options.Say(fmt.Sprintf("works on %s, up to %d attempts at once", s.job.Experiment,
		w.options.Slots))
	var beats sync.WaitGroup
	beating, stopBeats := context.WithCancel(context.WithoutCancel(ctx))
	beats.Go(func() { s.beats(beating) })
	beats.Go(func() { s.still.Run(beating) })
	s.takeAssignments()
	s.pending.Wait()
	stopBeats()
	beats.Wait()
	err = closeAgents()

	s.mu.Lock()
	again = s.ended && !w.options.Once || context.Cause(s.ctx) == errAlone
	ended, done := s.ended, s.done
	s.mu.Unlock()
	if !ended && context.Cause(s.ctx) != errAlone {
		s.bye(context.WithoutCancel(ctx))
	}
	w.options.Say(fmt.Sprintf("has carried out %d attempts of %s", done, s.job.Experiment))
	return again && !w.leaving() && ctx.Err() == nil, err
}

// bye informs the coordinator that the worker goes. If the message is lost, the coordinator notices
// the silence.
func (s *session) bye(ctx context.Context) {
	_ = s.call(ctx, beatLimit, callBye, &beat{Worker: s.id, Run: s.job.Run}, new(beatReply))
}

// takeAssignments starts attempts as slots get free, until the worker leaves or the session ends.
func (s *session) takeAssignments() {
	taking, cancel := context.WithCancel(s.ctx)
	defer cancel()
	go func() {
		select {
		case <-s.options.Drain:
			s.leaves()
		case <-s.leave:
		case <-taking.Done():
		}
	}()
	go func() {
		select {
		case <-s.leave:
			cancel()
		case <-taking.Done():
		}
	}()
	for {
		n := s.slots(taking)
		if n == 0 {
			return
		}
		deliveries, err := s.link.Take(taking, n)
		for range n - len(deliveries) {
			s.free <- struct{}{}
		}
		for _, t := range deliveries {
			try := fmt.Sprint(s.id, "-", s.begun.Add(1))
			s.pending.Go(func() { s.carryOut(t, try) })
		}
		if err != nil {
			sleep(taking, beatEvery)
		}
	}
}

// slots waits for a free slot and takes all there are. It returns 0 if ctx ends.
func (s *session) slots(ctx context.Context) (n int) {
	select {
	case <-s.free:
		n = 1
	case <-ctx.Done():
		return 0
	}
	for {
		select {
		case <-s.free:
			n++
		default:
			return n
		}
	}
}

// leaves makes the worker take no more assignments.
func (s *session) leaves() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.left {
		s.left = true
		close(s.leave)
	}
}

// carryOut carries out an assignment, and gives its slot back when the attempt has ended.
func (s *session) carryOut(t Delivery, try string) {
	slot := sync.OnceFunc(func() { s.free <- struct{}{} })
	defer slot()
	var b begun
	err := s.insist(s.ctx, callBegin,
		&begin{Worker: s.id, Assignment: t.Assignment(), Try: try}, &b)
	if err != nil && !isHopeless(err) {
		return // it is delivered again
	}
	_ = t.Done() // otherwise it is delivered again and refused
	var task *assay.Task
	if err == nil && !b.Over {
		task, err = s.task(&b)
	}
	if err != nil {
		s.options.Say("cannot begin an attempt: " + err.Error()) // the coordinator offers it again
	}
	if err != nil || b.Over {
		return
	}
	h := held{t.Assignment(), b.Token}
	ctx, cancel := context.WithCancelCause(s.ctx)
	defer cancel(nil)
	s.mu.Lock()
	s.running[h] = cancel
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.running, h)
	}()
	run := s.runnerOf(b.Trial.Model)
	if s.job.User {
		run = s.bridge.WithUser(run)
	}
	began := time.Now()
	a, transcript := run.Run(ctx, &provider{session: s, held: h, over: cancel}, &b.Trial, task)
	s.still.Excuse(a, transcript, began, s.job.Agents[b.Trial.Model].Timeout)
	slot()
	if ctx.Err() == nil {
		s.hand(ctx, &attemptResult{h, *a, *transcript, transcript.Spans})
	}
}

// A begun is a [beginning] as a worker reads it. Attempts share tasks, and a task is parsed once.
type begun struct {
	beginning
	Task json.RawMessage
}

// knownTasks is how many tasks a worker keeps. A task has a few kilobytes.
const knownTasks = 512

// task returns the task of an attempt. It must not be changed.
func (s *session) task(b *begun) (*assay.Task, error) {
	if known, ok := s.tasks.Get(b.Trial.TaskDigest); ok {
		return known, nil
	}
	task := new(assay.Task)
	if err := json.Unmarshal(b.Task, task); err != nil {
		return nil, fmt.Errorf("read the task: %w", err)
	}
	if b.Trial.TaskDigest != "" {
		s.tasks.Add(b.Trial.TaskDigest, task)
	}
	return task, nil
}

func (s *session) runnerOf(model string) runner {
	switch agent, ok := s.agents[model]; {
	case s.runner != nil:
		return s.runner(model)
	case ok:
		return agent
	}
	return s.bare
}

// hand gives a result to the coordinator until it may be forgotten. In place of one that cannot be
// sent, it gives the reason.
func (s *session) hand(ctx context.Context, r *attemptResult) {
	replaced := false
	for ctx.Err() == nil {
		var receipt receipt
		err := s.insist(ctx, callResult, r, &receipt)
		switch {
		case isHopeless(err) && replaced:
			s.options.Say("cannot send a result: " + err.Error())
			return // the coordinator offers the assignment again
		case isHopeless(err):
			a := lost(&r.Attempt.Trial, r.Attempt.StartedAt, &assay.Fault{
				Kind: assay.Harness, Detail: "the result cannot be sent: " + err.Error(),
			})
			r, replaced = &attemptResult{held: r.held, Attempt: *a}, true
		case err == nil && receipt.Over:
			s.mu.Lock()
			s.done++
			s.mu.Unlock()
			return
		}
	}
}
