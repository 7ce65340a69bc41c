package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/protocol"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/terminal"
	"github.com/assay-eval/assay/internal/store"
)

// A planned is an experiment that worlds run.
type planned struct {
	models   [2]string
	variants string
	tasks    int // of each type
	stop     string
}

var plans = []planned{
	{[2]string{"sim/expert", "sim/obedient"}, "[baseline, optimal, flawed_missing_step]\nseverities: [severe]", 4, ""},
	{[2]string{"sim/expert", "sim/mute"}, "[baseline]", 12, ""},
	{[2]string{"sim/listed", "sim/batcher"}, "[optimal, flawed_missing_step]\nseverities: [severe]", 6, ""},
	{[2]string{"sim/obedient", "sim/listed"}, "[optimal]", 16, ""},
	{[2]string{"sim/optimal", "sim/expert"}, "[baseline, optimal]", 6, "stop: {hopeless: {after: 10, below: 0.9}}\n"},
	{[2]string{"sim/listed", "sim/obedient"}, "[baseline, optimal]", notes, ""}, // of tasks that a model judges
}

// judged is the last plan.
var judged = len(plans) - 1

// extras are what experiments of bare models may ask for besides. The first one is nothing.
var extras = []string{
	"",
	"confidence: ask\n",
	"confidence: ask\nreplays: 1\n",
	"interfaces: [plain, severe]\n",
	"phrasings: [plain, typed]\n",
	"failures: {kinds: {before: 0.4, after: 0.1, down: 0.1, throttled: 0.2, drift: 0.2}}\n",
}

const experimentName = "simulated"

// A world is an experiment with everything around it: endpoints, users and the machine. It lasts
// until all trials are done.
type world struct {
	shape
	t     *testing.T
	seed  uint64
	items []item
	names [2]string // of the models in the experiment
	crew  *crew     // nil without agents
	dir   string
	began time.Time
	ends  map[string]*endpoint
	clock *atomic.Int64 // nanoseconds since began, for the watchdog

	control  atomic.Pointer[listener]
	hub      atomic.Pointer[hub] // where workers find the run, or nil
	signals  chan os.Signal
	everyone sync.WaitGroup
	finished chan struct{}
	limits   stated

	mu      sync.Mutex // guards the fields below
	kills   []item     // still to come
	edges   map[string]int
	lives   int
	jumps   []jump
	asleep  chan struct{}            // closed when the machine is suspended
	current *life                    // whose disk may fail
	path    string                   // of the store of the process that runs
	shown   map[assay.TrialID]string // outcomes that were shown as done
	// cancelled has the models whose trials the user has cancelled, with the process that did it.
	cancelled map[string]int
	// pauses are those that a process obeyed, of all lanes at once.
	pauses []pause
	result result
}

// A result is what became of a world.
type result struct {
	Seed     uint64        `json:"seed"`
	Requests int           `json:"requests"`
	Virtual  time.Duration `json:"virtual"`
	CPU      time.Duration `json:"cpu"`
	Lives    int           `json:"lives"`
	Items    []string      `json:"items"`
	Story    []string      `json:"story,omitempty"`
	Wrong    []string      `json:"wrong,omitempty"`
}

// maxWrong is how many violations are kept.
const maxWrong = 20

// violated notes that a law is broken.
func (w *world) violated(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.result.Wrong) < maxWrong {
		w.result.Wrong = append(w.result.Wrong, fmt.Sprintf("%v: ", w.since())+fmt.Sprintf(format, args...))
	}
}

// tell adds to the story of the world.
func (w *world) tell(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.result.Story = append(w.result.Story, fmt.Sprintf("%v: ", w.since())+fmt.Sprintf(format, args...))
}

func (w *world) since() time.Duration { return time.Since(w.began).Round(time.Millisecond) }

// run lives a world with the items that are left of its seed's.
func (w *world) run() {
	synctest.Test(w.t, func(*testing.T) {
		w.began = time.Now()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w.finished = make(chan struct{})
		w.signals = make(chan os.Signal)
		w.asleep = make(chan struct{})
		defer ahead.Store(0)
		if err := w.live(ctx); err != nil {
			w.violated("the world ends: %v", err)
		}
		close(w.finished)
		w.everyone.Wait()
		w.result.Virtual = w.since()
	})
}

// tick tells the watchdog the time.
func (w *world) tick() {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	before := w.countWakes()
	before.asked = before.at
	for {
		select {
		case <-tick.C:
			w.clock.Store(int64(time.Since(w.began)))
			if time.Since(before.at) >= wakeSpan {
				before = w.checkWakes(before)
			}
		case <-w.finished:
			return
		}
	}
}

func env(name string) (string, bool) {
	return "secret-" + name, strings.HasPrefix(name, "KEY_")
}

// hireAgents prepares the agents of the world, if it has any.
func (w *world) hireAgents() {
	w.names = plans[w.plan].models
	if w.agent == "" {
		return
	}
	w.names[1] = agentName
	w.crew = newCrew(w.variant(), func() bool {
		return slices.ContainsFunc(w.items, func(i item) bool { return i.Kind == "agent" && i.during(time.Since(w.began)) })
	})
}

// open plans the experiment, as each process does.
func (w *world) open(ctx context.Context) (*job.Job, error) {
	e, err := plan.Load(filepath.Join(w.dir, "experiment.yaml"))
	if err != nil {
		return nil, err
	}
	return job.Open(ctx, e, 0)
}

func (w *world) live(ctx context.Context) error {
	j, err := w.open(ctx)
	if err != nil {
		return err
	}
	defer j.Close()
	w.settle()
	w.everyone.Go(w.tick)
	for n := range w.workers {
		w.everyone.Go(func() { w.work(n) })
	}
	for i := range w.items {
		w.everyone.Go(func() { w.happen(&w.items[i]) })
	}
	dir := filepath.Join(w.dir, "life"+w.countLife())
	for over := false; !over; {
		if w.since() > longest || w.lives > maxLives {
			return fmt.Errorf("after %d lives, trials are still not done", w.lives)
		}
		if dir, over, err = w.process(ctx, dir); err != nil {
			return err
		}
	}
	return w.checkEnd(ctx, filepath.Join(dir, "s.db"), j)
}

// A world that is not done by then never will be.
const (
	longest  = 60 * 24 * time.Hour
	maxLives = 1000 // people look again every ten minutes, and outages take two days
)

// settle makes the endpoints.
func (w *world) settle() {
	w.ends = make(map[string]*endpoint)
	for n, l := range w.lanes {
		d := newDice(w.seed, uint64(10+n))
		e := &endpoint{
			world: w, name: l.endpoint, seed: d.Uint64(),
			median: d.between(2*time.Second, 30*time.Second), sigma: .3 + .9*d.Float64(),
			silent: d.often(50), asked: make(map[uint64]int), lanes: make(map[string]*traffic),
		}
		e.hidden = hiddenLimiter(l.hidden, d)
		for i, p := range []string{"openai", "azure", "responses", "anthropic", "gemini"} {
			if p == w.protocol[l.endpoint] {
				e.dialect = protocol.Dialects("none")[i]
			}
		}
		w.ends[l.endpoint] = e
	}
}

// write writes the user's files.
func (w *world) write() error {
	p := plans[w.plan]
	extra := p.stop + extras[w.more]
	if w.plan == judged {
		extra += "library: tasks.yaml\n"
		if err := writeNotes(w.dir); err != nil {
			return err
		}
	} else {
		extra += "difficulties: [easy]\n"
	}
	if w.budget > 0 {
		extra += fmt.Sprintf("budget: {usd: %v}\n", w.budget)
	}
	text := fmt.Sprintf("name: %s\nseed: 7\nmodels: [%s, %s]\nvariants: %s\n"+
		"task_types: all\nreliabilities: [0.9, 0.7]\ntasks_per_type: %d\n"+
		"limits: {request: %v}\nsave: %s\nproviders: providers.yaml\n%s",
		experimentName, w.names[0], w.names[1], p.variants, p.tasks, w.request, w.save, extra)
	var providers strings.Builder
	providers.WriteString("providers:\n")
	paths := map[string]string{"openai": "/v1", "responses": "/v1", "anthropic": "/v1", "gemini": "/v1beta"}
	for _, l := range w.lanes {
		protocol := w.protocol[l.endpoint]
		fmt.Fprintf(&providers, "  %s:\n    protocol: %s\n    base_url: http://%s.sim%s\n    keys: [%s]\n    models:\n",
			l.endpoint, protocol, l.endpoint, paths[protocol], strings.Join(keys[l.endpoint], ", "))
		served := p.models[:]
		if w.plan == judged {
			served = append(slices.Clone(served), judgeName)
		}
		for _, m := range served {
			fmt.Fprintf(&providers, "      %s: {deployments: [%s], price: {input: %v, output: %v}, limits: {%s}}\n",
				m, strings.Replace(m, "/", "-", 1), priceInput, priceOutput, l.stated())
		}
	}
	if w.agent != "" {
		a := w.described()
		start := "url: " + a.URL
		if a.URL == "" {
			start = "command: [" + a.Command[0] + "]"
		}
		fmt.Fprintf(&providers, "agents:\n  %s: {%s, model: %s, timeout: %v, concurrency: %d}\n",
			a.Name, start, a.Model, a.Timeout, agentConcurrency)
	}
	return errors.Join(
		os.WriteFile(filepath.Join(w.dir, "experiment.yaml"), []byte(text), 0o644),
		os.WriteFile(filepath.Join(w.dir, "providers.yaml"), []byte(providers.String()), 0o644))
}

func (l laneShape) stated() string {
	var all []string
	for name, n := range map[string]int{"concurrency": l.concurrency, "rps": l.rps, "rpm": l.rpm, "rpd": l.rpd, "tpm": l.tpm} {
		if n > 0 {
			all = append(all, name+": "+strconv.Itoa(n))
		}
	}
	return strings.Join(all, ", ")
}

// process lives one life. It returns the directory of the next one.
func (w *world) process(ctx context.Context, dir string) (next string, over bool, err error) {
	w.restate()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := w.newLife(dir, cancel)
	path := filepath.Join(dir, "s.db")
	if err := w.makeDisk(l); err != nil {
		return dir, false, err
	}
	if l.disk != nil {
		defer l.disk.Forget()
	}
	db, err := store.Open(ctx, path)
	if l.endsByDisk(err) {
		return dir, false, nil
	}
	if err != nil {
		return dir, false, err
	}
	w.mu.Lock()
	w.path = path
	w.mu.Unlock()
	j, err := w.open(ctx)
	if err != nil {
		return dir, false, errors.Join(err, db.Close())
	}
	defer j.Close()
	j.Transport = l
	follower := &watcher{life: l}
	o := session.Options{
		Store: path, Program: "simulate", Host: "here", Env: env, Signals: w.signals,
		Display: follower, Observers: []session.Observer{follower}, Listen: w.listen,
	}
	if w.crew != nil {
		o.Agents = w.crew.at(l)
	}
	if w.workers > 0 {
		o.Workers, o.Lease = l.hire, 15*time.Second
	}
	s, err := session.New(j, o)
	if err != nil {
		return dir, false, errors.Join(err, db.Close())
	}
	var killer sync.WaitGroup
	killer.Go(l.await)
	sum, err := s.Run(ctx, db)
	w.endPause()
	l.mu.Lock()
	dead := l.frozen
	l.mu.Unlock()
	if !dead {
		close(l.over)
	}
	killer.Wait()
	if dead {
		_ = db.Close() // of nobody's store
		return l.next, false, nil
	}
	if l.endsByDisk(err) {
		_ = db.Close()
		return dir, false, nil
	}
	if err != nil {
		w.violated("a run ends with an error: %v", err)
		return dir, true, db.Close()
	}
	w.tell("run ended: %d of %d done, %d pending, %d parked, %d skipped, stopped %t, closed %v, not run %v, exhausted %v",
		sum.Done, sum.Planned, sum.Pending, sum.Parked, sum.Skipped, sum.Stopped, sum.Closed, sum.NotRun, sum.Exhausted)
	w.checkLife(ctx, db, sum)
	l.checkBudget(sum)
	if err := db.Close(); err != nil && !l.isSick() {
		return dir, false, err
	}
	if sum.Unfinished() == 0 {
		return dir, true, nil
	}
	if len(sum.Exhausted) > 0 && (sum.Settled == 0 || newDice(w.seed, uint64(500+w.lives)).often(50)) {
		w.budget *= 2
		if err := w.write(); err != nil {
			return dir, false, err
		}
	}
	time.Sleep(newDice(w.seed, uint64(1000+w.lives)).between(time.Second, 2*time.Hour)) // the user looks again
	w.countLife()
	return dir, false, nil
}

func (w *world) countLife() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lives++
	return strconv.Itoa(w.lives)
}

// trouble returns the outage that a request meets, or nil.
func (w *world) trouble(e *endpoint, key string, now time.Time) *item {
	at := now.Sub(w.began)
	for n := range w.items {
		i := &w.items[n]
		switch {
		case i.Kind == "outage" && i.On == e.name && i.during(at):
			return i
		case i.Kind == "revoke" && "secret-"+i.On == key && i.during(at):
			return &item{Style: "revoked"}
		}
	}
	return nil
}

// row returns the row of refusals that some requests meet, or nil.
func (w *world) row(e *endpoint, now time.Time) *item {
	for n := range w.items {
		if i := &w.items[n]; i.Kind == "row" && i.On == e.name && i.during(now.Sub(w.began)) {
			return i
		}
	}
	return nil
}

// fault returns the fault of a request, or "".
func (w *world) fault(e *endpoint, draw float64) string {
	at := time.Since(w.began)
	for n := range w.items {
		i := &w.items[n]
		if i.Kind == "fault" && i.On == e.name && i.during(at) {
			if draw -= i.Share; draw < 0 {
				return i.Style
			}
		}
	}
	return ""
}

func (w *world) renamed(e *endpoint, now time.Time) bool {
	for n := range w.items {
		if i := &w.items[n]; i.Kind == "rename" && i.On == e.name && i.during(now.Sub(w.began)) {
			return true
		}
	}
	return false
}

// killsAt reports whether a kill waits for this edge.
func (w *world) killsAt(kind string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, k := range w.kills {
		if k.On == kind && time.Since(w.began) >= k.At {
			if w.edges[kind]++; w.edges[kind] >= k.N {
				w.kills = append(w.kills[:n:n], w.kills[n+1:]...)
				w.edges[kind] = 0
				return true
			}
			return false
		}
	}
	return false
}

// nextKill returns when the next process is killed that is killed by the clock.
func (w *world) nextKill() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.kills {
		if k.On == "" {
			return max(k.At-time.Since(w.began), time.Millisecond)
		}
	}
	return ever
}

func (w *world) killedByClock() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, k := range w.kills {
		if k.On == "" {
			w.kills = append(w.kills[:n:n], w.kills[n+1:]...)
			return
		}
	}
}

// forget drops the requests of a process that is dead.
func (e *endpoint) forget(*life) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.bill.killed()
}

// listen opens the control socket of the process that is about to run.
func (w *world) listen() (net.Listener, error) {
	l := newListener()
	w.control.Store(l)
	return l, nil
}

var _ http.RoundTripper = (*life)(nil)

// settled notes an attempt that was shown.
func (w *world) settled(a *assay.Attempt) {
	if !a.Settles() {
		return
	}
	w.mu.Lock()
	_, again := w.shown[a.ID]
	w.shown[a.ID] = outcomeOf(a)
	w.mu.Unlock()
	if again {
		w.violated("trial %s settled twice", a.ID)
	}
}

// checkProgress checks what a display shows.
func (w *world) checkProgress(p *terminal.Progress) {
	if p.Left != nil && p.Left.Seconds < 0 {
		w.violated("the time left is %v s", p.Left.Seconds)
	}
	if n := p.Done + p.Pending + p.Parked + p.Skipped; n != p.Planned {
		w.violated("%d trials are planned, but %d done, pending, parked or skipped", p.Planned, n)
	}
	w.mu.Lock()
	shown := len(w.shown)
	w.mu.Unlock()
	if p.Done > p.Planned || shown > p.Planned {
		w.violated("%d of %d trials are done", max(p.Done, shown), p.Planned)
	}
}
