//go:build !race

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/sim"
)

// A turnCounter is an endpoint that counts how often each turn is asked for: a request with the same
// text is the same turn, of one of the trials that have the same conversation so far.
type turnCounter struct {
	url      string
	latency  time.Duration
	inFlight atomic.Int64
	revoked  atomic.Bool // the key

	mu    sync.Mutex
	asked map[[sha256.Size]byte]int
	all   int
}

func countTurns(t *testing.T, latency time.Duration) *turnCounter {
	t.Helper()
	to, err := url.Parse(serve(t).url)
	if err != nil {
		t.Fatal(err)
	}
	c := &turnCounter{latency: latency, asked: make(map[[sha256.Size]byte]int)}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {} // the client was killed
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		c.inFlight.Add(1)
		defer c.inFlight.Add(-1)
		if c.revoked.Load() {
			http.Error(w, `{"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}`, http.StatusUnauthorized)
			return
		}
		c.mu.Lock()
		c.asked[sha256.Sum256(body)]++
		c.all++
		c.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		time.Sleep(c.latency/2 + time.Duration(rand.Int64N(int64(c.latency))))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *turnCounter) turns() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// counts returns how often each turn was asked for, and forgets it.
func (c *turnCounter) counts() map[[sha256.Size]byte]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.asked
	c.asked, c.all = make(map[[sha256.Size]byte]int), 0
	return was
}

// turnsExperiment writes an experiment whose searcher takes 15 turns a trial. Its other model has all
// kinds of outcomes.
func turnsExperiment(t *testing.T, dir, url string, tasks, most int, more string) string {
	t.Helper()
	file(t, dir, "providers.yaml", fmt.Sprintf("providers:\n  p:\n    base_url: %s/v1\n    keys: [K]\n"+
		"    models:\n"+
		"      long: {deployments: [sim-searcher], serves: [%s], price: {input: 0, output: 0}, limits: {concurrency: %d}}\n"+
		"      short: {deployments: [sim-listed], serves: [%s], price: {input: 0, output: 0}, limits: {concurrency: %d}}\n",
		url, sim.Searcher, most, sim.Listed, most))
	return file(t, dir, "turns.yaml", fmt.Sprintf("providers: providers.yaml\n"+
		"variants: [optimal]\nloops: {search: off, repeat: off}\nparts:\n"+
		"  - {name: long, models: [long], tasks_per_type: %d, repeats: 20}\n"+
		"  - {name: short, models: [short], tasks_per_type: 4, reliabilities: [0.8, 0.5]}\n"+
		"models: [long, short]\n%s", tasks, more))
}

// TestKillsCostOnlyRequestsInFlight kills a run again and again, with SIGKILL and at random moments.
// No turn is asked for twice except for those that were in flight at a kill, and the outcomes, the
// conversations and the report are those of a run that was never killed. With ASSAY_KILLS, 1,600
// trials of 15 turns are killed 20 times.
func TestKillsCostOnlyRequestsInFlight(t *testing.T) {
	t.Parallel()
	kills, tasks, most := 6, 2, 20
	switch {
	case testing.Short():
		kills, tasks = 3, 1
	case os.Getenv("ASSAY_KILLS") != "": // as docs/measured.md has it
		kills, tasks = 20, 16
	}
	server, dir := countTurns(t, 20*time.Millisecond), t.TempDir()
	experiment := turnsExperiment(t, dir, server.url, tasks, most, "")
	calm, killed := filepath.Join(dir, "calm.db"), filepath.Join(dir, "killed.db")
	env := map[string]string{"K": "sk-0123456789"}
	must(t, env, "run", experiment, "--store", calm, "--quiet")
	once, all := server.turns(), 0
	want := server.counts()

	lost := 0
	for range kills {
		cmd := program(t, "run", experiment, "--store", killed, "--display", "none")
		cmd.Env = append(os.Environ(), "K=sk-0123456789")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		until := server.turns() + once/(kills+1) + rand.IntN(most)
		waitFor(t, func() bool { return server.turns() >= until })
		lost += int(server.inFlight.Load())
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	out := must(t, env, "run", experiment, "--store", killed, "--display", "json").out
	all = server.turns()
	again := 0
	for turn, n := range server.counts() {
		if n > want[turn] {
			again += n - want[turn]
		}
	}
	t.Logf("%d turns; %d kills with %d requests in flight; %d turns were asked for again",
		once, kills, lost, again)
	if all-once != again {
		t.Errorf("%d requests undisturbed, %d with kills, and %d of them again", once, all, again)
	}
	// A reply that waits for its flush is in flight, too, and another request may have its slot.
	if again == 0 || again > kills*2*2*most {
		t.Errorf("%d turns were asked for again in %d kills with at most %d requests at once", again, kills,
			2*most)
	}
	var done struct {
		Resumed struct{ Attempts, Replies, Differed int }
	}
	raw, err := json.Marshal(lastEvent(t, out))
	if err == nil {
		err = json.Unmarshal(raw, &done)
	}
	if r := done.Resumed; err != nil || r.Attempts == 0 || r.Replies < 2*r.Attempts || r.Differed > 0 {
		t.Errorf("the last run went on with %+v, %v", r, err)
	}
	if _, err := os.Stat(killed + ".bills"); !os.IsNotExist(err) {
		t.Errorf("the journal is left: %v", err)
	}
	if diff := cmp.Diff(lasting(t, calm), lasting(t, killed)); diff != "" {
		t.Errorf("the attempts differ (-undisturbed +killed):\n%s", diff)
	}
	inAnyOrder := cmpopts.EquateApprox(0, 1e-9) // of sums
	if diff := cmp.Diff(reported(t, calm), reported(t, killed), inAnyOrder); diff != "" {
		t.Errorf("the reports differ (-undisturbed +killed):\n%s", diff)
	}
	must(t, nil, "store", "verify", "--store", killed)
}

// TestKilledWorkerCostsOnlyRequestsInFlight kills a worker, and then the run. Another worker, and the
// next run without workers, go on at the next turns of its attempts.
func TestKilledWorkerCostsOnlyRequestsInFlight(t *testing.T) {
	t.Parallel()
	const most = 10
	server, dir := countTurns(t, 20*time.Millisecond), t.TempDir()
	experiment := turnsExperiment(t, dir, server.url, 1, most, "workers: {lease: 2s}\n")
	calm, killed := filepath.Join(dir, "calm.db"), filepath.Join(dir, "killed.db")
	key := []string{"K=sk-0123456789"}
	env := map[string]string{"K": "sk-0123456789"}
	must(t, env, "run", experiment, "--store", calm, "--quiet")
	once, want := server.turns(), server.counts()

	c := coordinateAt(t, "", key, experiment, "--store", killed, "--serve", ":0")
	w, _ := c.worker(t, "--name", "killed", "--slots", "40")
	waitFor(t, func() bool { return server.turns() >= once/3 })
	_ = w.Process.Kill()
	_ = w.Wait()
	c.worker(t, "--name", "other", "--slots", "40")
	after := server.turns()
	waitFor(t, func() bool { return server.turns() >= after+once/4 })
	_ = c.cmd.Process.Kill()
	<-c.done
	must(t, env, "run", experiment, "--store", killed, "--quiet")

	again := 0
	for turn, n := range server.counts() {
		again += max(0, n-want[turn])
	}
	t.Logf("%d turns, of which %d were asked for again", once, again)
	if kills := 2; again > kills*2*most {
		t.Errorf("%d turns were asked for again in %d kills with at most %d in flight", again, kills, 2*most)
	}
	ignored := func(all map[assay.TrialID]assay.Attempt) map[assay.TrialID]assay.Attempt {
		for id, a := range all {
			a.Worker = ""
			all[id] = a
		}
		return all
	}
	if diff := cmp.Diff(lasting(t, calm), ignored(lasting(t, killed))); diff != "" {
		t.Errorf("the attempts differ (-undisturbed +killed):\n%s", diff)
	}
}

// TestAbsentJudgeCostsNoTurn refuses the key of a judge, so that its lane is closed and the run ends. The next
// run goes on with the conversations, and asks for no turn again.
func TestAbsentJudgeCostsNoTurn(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: a lane is probed for some seconds before it is closed")
	}
	server, jury := countTurns(t, 2*time.Millisecond), countTurns(t, 2*time.Millisecond)
	dir := t.TempDir()
	experiment := judgedExperiment(t, dir, server.url, jury.url)
	env := map[string]string{"K": "sk-0123456789"}
	calm, cut := filepath.Join(dir, "calm.db"), filepath.Join(dir, "cut.db")
	must(t, env, "run", experiment, "--store", calm, "--quiet")
	want := server.counts()
	maps.Copy(want, jury.counts())

	jury.revoked.Store(true)
	r := call(t, env, "run", experiment, "--store", cut, "--display", "none")
	if r.code != exitIncomplete || !strings.Contains(r.out+r.err, "all of its lanes are closed: the judge jury: ") {
		t.Errorf("without a judge, the exit code is %d\n%s%s", r.code, r.out, r.err)
	}
	for _, a := range attempts(t, cut) {
		if a.InputTokens > 0 {
			t.Errorf("%d tokens of an attempt are lost: %s %s", a.InputTokens, a.FaultKind, a.FaultDetail)
		}
	}
	if server.turns() == 0 {
		t.Error("the agent was not asked")
	}
	jury.revoked.Store(false)
	must(t, env, "run", experiment, "--store", cut, "--quiet")
	for _, s := range []*turnCounter{server, jury} {
		for turn, n := range s.counts() {
			if n > want[turn] {
				t.Errorf("a turn was asked for %d times, want %d", n, want[turn])
			}
		}
	}
	if diff := cmp.Diff(outcomes(t, calm), outcomes(t, cut)); diff != "" {
		t.Errorf("the outcomes differ (-undisturbed +cut):\n%s", diff)
	}
}

// judgedExperiment writes an experiment whose outcomes a model judges.
func judgedExperiment(t *testing.T, dir, url, jury string) string {
	t.Helper()
	tasks := "name: notes\ntools: tools.yaml\njudge: {model: jury}\ntasks:\n"
	for n := range 30 {
		tasks += fmt.Sprintf("  - id: note-%d\n    type: note\n    prompt: Look up note %d.\n    inputs: {number: %d}\n"+
			"    judge: {rubric: 'The last words say \"done\".'}\n"+
			"    plan: [{tool: get_note, arguments: {number: %d}}]\n", n, n, n, n)
	}
	file(t, dir, "tasks.yaml", tasks)
	file(t, dir, "tools.yaml", "file: tools.star\ntools:\n  - name: get_note\n    description: Look up a note.\n"+
		"    parameters:\n      number: {type: integer}\n")
	file(t, dir, "tools.star", "def get_note(state, number):\n    return {\"note\": number}\n")
	model := "    base_url: %s/v1\n    keys: [K]\n    models:\n      %s: {deployments: [%s], serves: [%s], price: {input: 1, output: 1}, limits: {concurrency: 4}}\n"
	file(t, dir, "providers.yaml", "providers:\n  p:\n"+fmt.Sprintf(model, url, "m", "sim-listed", sim.Listed)+
		"  q:\n"+fmt.Sprintf(model, jury, "jury", "sim-judge", sim.Judge))
	return file(t, dir, "judged.yaml", "library: tasks.yaml\nproviders: providers.yaml\nmodels: [m]\nvariants: [optimal]\n"+
		"reliabilities: [1]\ntask_types: [note]\ntasks_per_type: 30\n")
}

// lasting returns a store's attempts by trial, without what depends on clocks and kills.
func lasting(t *testing.T, store string) map[assay.TrialID]assay.Attempt {
	t.Helper()
	all := make(map[assay.TrialID]assay.Attempt)
	for _, a := range attempts(t, store) {
		if before, ok := all[a.ID]; ok {
			t.Errorf("trial %s has two attempts: %s %s and %s %s", a.ID, before.Level, before.FaultDetail,
				a.Level, a.FaultDetail)
		}
		a.Run, a.StartedAt, a.FinishedAt = "", time.Time{}, time.Time{}
		a.QueuedMS, a.WorkingMS, a.UnpricedTokens = 0, 0, 0
		all[a.ID] = a
	}
	return all
}

// reported returns the figures of a store's report that do not depend on clocks and on how many runs
// it took.
func reported(t *testing.T, store string) map[string]any {
	t.Helper()
	var report map[string]any
	decode(t, must(t, nil, "report", "--store", store, "--json").out, &report)
	for _, ofRuns := range []string{"lanes", "speed", "reproduction", "headline", "warnings", "killed_runs"} {
		delete(report, ofRuns)
	}
	withoutTimes(report)
	return report
}

// withoutTimes removes measured times.
func withoutTimes(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			if strings.Contains(name, "_s_") || strings.HasSuffix(name, "_s") || strings.HasSuffix(name, "consistency_resources") {
				delete(v, name)
			}
			withoutTimes(field)
		}
	case []any:
		for _, x := range v {
			withoutTimes(x)
		}
	}
}
