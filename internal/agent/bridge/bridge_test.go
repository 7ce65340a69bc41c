package bridge_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/library"
)

// A stand is a bridge with the built-in library and simulated models behind it.
type stand struct {
	*bridge.Bridge
	episodes *episode.Runner
	models   assay.Provider
	tasks    []assay.Task
	long     assay.Task // has several steps
	program  string
}

func open(t *testing.T) *stand {
	t.Helper()
	lib, err := library.Builtin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := bridge.Open(func(text string) { t.Error(text) })
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		_ = lib.Close()
	})
	s := &stand{
		Bridge: b, episodes: episode.NewRunner(lib.Catalog(), 0), program: program,
		models: sim.New(lib.Catalog(), sim.Latency{}),
	}
	refs, err := lib.Refs(t.Context(), "simple_task", "easy")
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range refs[:4] {
		task, err := lib.Task(t.Context(), ref.ID, "easy")
		if err != nil {
			t.Fatal(err)
		}
		s.tasks = append(s.tasks, task)
	}
	if refs, err = lib.Refs(t.Context(), "basic_task", "easy"); err != nil {
		t.Fatal(err)
	}
	if s.long, err = lib.Task(t.Context(), refs[0].ID, "easy"); err != nil {
		t.Fatal(err)
	}
	return s
}

// trial returns the n-th trial, of a simulated model behind an agent.
func (s *stand) trial(n int, tools string) (*assay.Trial, *assay.Task) {
	task := &s.tasks[n%len(s.tasks)]
	cell := assay.Cell{Model: "sim/listed", Variant: assay.Optimal, Reliability: .8}
	trial := assay.NewTrial(cell, assay.TaskRef{ID: task.ID}, assay.Setting{
		World: "assay-1", Protocol: assay.Native, Tools: tools, Turns: 15, Calls: 10,
	}, 7, n)
	return &trial, task
}

// runner returns a runner of the test's agent.
func (s *stand) runner(mode string, timeout time.Duration) *bridge.Runner {
	return s.Runner(s.episodes, bridge.Agent{
		Name: "agent", Command: []string{s.program, asAgent, mode}, Model: "m", Timeout: timeout,
	})
}

func TestAgentEarnsWhatTheBareModelEarns(t *testing.T) {
	t.Parallel()
	s := open(t)
	runner := s.runner("work", time.Minute)
	for _, tools := range assay.ToolSettings {
		for n := range 4 {
			trial, task := s.trial(n, tools)
			want, wantScript := s.episodes.Run(t.Context(), s.models, trial, task)
			got, script := runner.Run(t.Context(), s.models, trial, task)
			if diff := cmp.Diff(wantScript.Calls, script.Calls); diff != "" {
				t.Errorf("%s: calls (-bare +agent):\n%s", tools, diff)
			}
			if diff := cmp.Diff(want.Outcome, got.Outcome); diff != "" {
				t.Errorf("%s: outcome (-bare +agent):\n%s", tools, diff)
			}
			if got.InputTokens == 0 || got.Unmetered || got.FaultKind != "" {
				t.Errorf("%s: %d tokens, unmetered %v, fault %q", tools, got.InputTokens,
					got.Unmetered, got.FaultDetail)
			}
		}
	}
}

// Every kind of fault reaches the agent, with the details that it needs to find the cause.
func TestMixOfFaultsReachesTheAgent(t *testing.T) {
	t.Parallel()
	s := open(t)
	runner := s.runner("work", time.Minute)
	met := make(map[assay.ToolFault]int)
	for n := range 24 {
		trial, task := s.trial(n, assay.Listed)
		cell := trial.Cell
		cell.Reliability = .4
		cell.Faults = "after=0.1,before=0.1,drift=0.2,slow=0.2,stale=0.1,throttled=0.2,wrong_shape=0.1"
		mixed := assay.NewTrial(cell, assay.TaskRef{ID: task.ID}, trial.Setting, 7, n)
		want, wantScript := s.episodes.Run(t.Context(), s.models, &mixed, task)
		got, script := runner.Run(t.Context(), s.models, &mixed, task)
		if diff := cmp.Diff(wantScript.Calls, script.Calls); diff != "" {
			t.Errorf("calls (-bare +agent):\n%s", diff)
		}
		if diff := cmp.Diff(want.Outcome, got.Outcome); diff != "" {
			t.Errorf("outcome (-bare +agent):\n%s", diff)
		}
		answers := slices.DeleteFunc(slices.Clone(script.Messages), func(m assay.Message) bool {
			return m.Role != assay.ToolRole
		})
		for i, c := range script.Calls {
			met[c.Fault]++
			if c.Fault == assay.FaultAfter && (i >= len(answers) ||
				!slices.Contains(succeededIn(t, answers[i]), c.Tool)) {
				t.Errorf("call %d happened, but its answer does not list %s", i, c.Tool)
			}
		}
	}
	for _, kind := range assay.ToolFaults {
		// A stale answer needs an earlier success, after which this agent does not call again. Only
		// environments have attackers. An agent leaves when a tool is down, and a bare model does not.
		if met[kind] == 0 && kind != assay.FaultStale && !kind.Rule().Attacks && !kind.Rule().Permanent &&
			!kind.Rule().NeedsValues() { // the world has none of these
			t.Errorf("no call met %s; the test is too weak: %v", kind, met)
		}
	}
}

func succeededIn(t *testing.T, m assay.Message) []string {
	t.Helper()
	var answer struct{ Succeeded []string }
	if err := json.Unmarshal([]byte(m.Content), &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Succeeded
}

func TestEndsOfAgents(t *testing.T) {
	t.Parallel()
	const tooLong = "Assay ended the attempt, because the agent took longer than 300ms " +
		"(signal: terminated)"
	s := open(t)
	for _, tc := range []struct {
		mode      string
		timeout   time.Duration
		ended     assay.Ended
		category  string
		exit      string
		unmetered bool
	}{
		{"work, then crash", time.Minute, assay.AgentError, assay.CategoryAgentFailure, "exit status 3", false},
		{"call, then crash", time.Minute, assay.AgentError, assay.CategoryAgentFailure, "exit status 3", true},
		{"hang", 300 * time.Millisecond, assay.AgentTimeout, assay.CategoryTimeout, tooLong, true},
		{"talk forever", 300 * time.Millisecond, assay.AgentTimeout, assay.CategoryTimeout, tooLong, true},
		{"chat forever", time.Minute, assay.TurnLimit, "", "Assay ended the attempt, because the agent had its 15 replies of its model (", false},
		{"call forever", time.Minute, assay.CallLimit, "", "Assay ended the attempt, because the agent made its 10 calls (", true},
		{"kill itself", time.Minute, assay.AgentError, assay.CategoryAgentFailure, "signal: killed (not by Assay)", true},
		{"leave a child", time.Minute, assay.Finished, "", "", false},
	} {
		t.Run(tc.mode, func(t *testing.T) {
			t.Parallel()
			trial, task := s.trial(0, assay.Discover)
			a, script := s.runner(tc.mode, tc.timeout).Run(t.Context(), s.models, trial, task)
			if a.FaultKind != "" || a.Ended != tc.ended || a.Level == "" {
				t.Fatalf("ended %q, level %q, fault %q; want %q", a.Ended, a.Level, a.FaultDetail, tc.ended)
			}
			if tc.category != "" && a.ErrorCategory != tc.category {
				t.Errorf("category %s, want %s", a.ErrorCategory, tc.category)
			}
			if !strings.HasPrefix(script.Agent.Exit, tc.exit) || (tc.exit == "") != (script.Agent.Exit == "") {
				t.Errorf("exit %q, want %q", script.Agent.Exit, tc.exit)
			}
			if a.Unmetered != tc.unmetered {
				t.Errorf("unmetered %v, want %v", a.Unmetered, tc.unmetered)
			}
			if n := len(script.Agent.Output); n > 300<<10 {
				t.Errorf("%d bytes of output are stored", n)
			}
		})
	}
}

// An agent that ends before its first action has not tried the task, however it ended.
func TestEndBeforeTheFirstActionIsAFault(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, tc := range []struct{ mode, want string }{
		{"exit", "exit status 1"},
		{"environment", "exit status 0: "},
		{"crash at import", "exit status 1: ModuleNotFoundError: No module named 'agents'"},
		{"list, then crash", "exit status 3: no such tool"},
		{"ask in no language, then crash", "exit status 3: 400 Bad Request"},
	} {
		t.Run(tc.mode, func(t *testing.T) {
			t.Parallel()
			trial, task := s.trial(0, assay.Discover)
			a, script, trace := s.runner(tc.mode, time.Minute).Try(t.Context(), s.models, trial, task)
			got := bridge.Unstarted(a)
			if !strings.HasPrefix(got, tc.want) || a.Level != "" || a.Ended != "" {
				t.Errorf("%q, level %q, fault %q; want %s", got, a.Level, a.FaultDetail, tc.want)
			}
			if script.Agent == nil || trace.Asked+trace.Called > 0 {
				t.Errorf("record %v, trace %+v; want the record of an agent without actions",
					script.Agent, trace)
			}
			if wants := tc.mode == "list, then crash"; trace.Listed != wants {
				t.Errorf("listed %v, want %v", trace.Listed, wants)
			}
		})
	}
	trial, task := s.trial(0, assay.Discover)
	a, _ := s.runner("crash at import", time.Minute).Run(t.Context(), s.models, trial, task)
	if !strings.Contains(a.FaultDetail, "{scratch}/agent.py") {
		t.Errorf("the fault's detail lacks the last lines, or has a random path:\n%s", a.FaultDetail)
	}
}

func TestLastOutputOfAnAgentIsStored(t *testing.T) {
	t.Parallel()
	s := open(t)
	trial, task := s.trial(1, assay.Discover)
	_, script := s.runner("work, then crash", time.Minute).Run(t.Context(), s.models, trial, task)
	if script.Agent.Output != "almost done" || !strings.Contains(script.Agent.Errors, "red") {
		t.Errorf("%+v, want its last words", script.Agent)
	}
}

func TestUnknownToolIsCorrected(t *testing.T) {
	t.Parallel()
	s := open(t)
	trial, task := s.trial(0, assay.Listed)
	a, script := s.runner("no such tool", time.Minute).Run(t.Context(), s.models, trial, task)
	if a.ToolCalls != 0 || !strings.Contains(script.Agent.Output, `no tool is named`) {
		t.Errorf("%d calls, output %q", a.ToolCalls, script.Agent.Output)
	}
}

// A failing provider fails with one kind of fault after some replies.
type failing struct {
	assay.Provider
	after int32
	fault *assay.Fault
	asked atomic.Int32
}

func (f *failing) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	if f.asked.Add(1) > f.after {
		return &assay.Response{}, f.fault
	}
	return f.Provider.Chat(ctx, req)
}

func TestFaultOfTheModelIsNeverAVerdict(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, kind := range assay.FaultKinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			p := &failing{Provider: s.models, after: 2, fault: &assay.Fault{Kind: kind, Detail: "planted"}}
			trial, task := s.trial(2, assay.Discover)
			a, _ := s.runner("work", time.Minute).Run(t.Context(), p, trial, task)
			if a.FaultKind != kind || a.Level != "" || a.Ended != "" {
				t.Errorf("fault %q, level %q, want %s", a.FaultKind, a.Level, kind)
			}
		})
	}
}

// A conversation that has outgrown the model's context is the agent's doing. One that is too long
// from the beginning is not.
func TestAgentLearnsThatItsRequestIsTooLong(t *testing.T) {
	t.Parallel()
	s := open(t)
	tooLong := &assay.Fault{Kind: assay.BadRequest, TooLong: true, Detail: "maximum context length"}
	trial, task := s.trial(2, assay.Discover)
	p := &failing{Provider: s.models, after: 2, fault: tooLong}
	a, script := s.runner("work", time.Minute).Run(t.Context(), p, trial, task)
	if a.Ended != assay.AgentError || a.FaultKind != "" {
		t.Errorf("ended %q, fault %q, want a failure of the agent", a.Ended, a.FaultKind)
	}
	for _, want := range []string{"400", "context_length_exceeded", "maximum context length"} {
		if !strings.Contains(script.Agent.Output, want) {
			t.Errorf("the agent did not learn %q: %s", want, script.Agent.Output)
		}
	}
	p = &failing{Provider: s.models, fault: tooLong}
	a, _ = s.runner("work", time.Minute).Run(t.Context(), p, trial, task)
	if a.FaultKind != assay.BadRequest {
		t.Errorf("the first request: ended %q, fault %q", a.Ended, a.FaultKind)
	}
	p = &failing{Provider: s.models, after: 2, fault: tooLong}
	a, _ = s.runner("chat forever", time.Minute).Run(t.Context(), p, trial, task)
	if a.Ended != assay.TurnLimit || p.asked.Load() != 15 {
		t.Errorf("ended %q after %d requests, want the limit of turns", a.Ended, p.asked.Load())
	}
}

func TestStoppedRunKillsItsAgents(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	trial, task := s.trial(0, assay.Discover)
	a, _ := s.runner("hang", time.Hour).Run(ctx, s.models, trial, task)
	if a.FaultKind != assay.Interrupted {
		t.Errorf("fault %q, level %q, want interrupted", a.FaultKind, a.Level)
	}
}

// TestManyAgentsAtOnce runs honest agents and failing ones over a provider with every kind of
// fault.
func TestManyAgentsAtOnce(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	s := open(t)
	attempts := 250
	if testing.Short() {
		attempts = 60
	}
	modes := []string{"work", "work, then crash", "leave a child", "work", "exit"}
	byAgent := func(k assay.FaultKind) bool { return k == assay.AgentEnded } // no provider has it
	kinds := slices.DeleteFunc(slices.Clone(assay.FaultKinds), byAgent)
	places := make(chan struct{}, 50)
	var wg sync.WaitGroup
	var faults, outcomes atomic.Int32
	for n := range attempts {
		places <- struct{}{}
		wg.Go(func() {
			defer func() { <-places }()
			kind := kinds[n%len(kinds)]
			p := &failing{Provider: s.models, after: int32(n % 9), fault: &assay.Fault{Kind: kind}}
			trial, task := s.trial(n, assay.ToolSettings[n%2])
			a, _ := s.runner(modes[n%len(modes)], time.Minute).Run(t.Context(), p, trial, task)
			failed := p.asked.Load() > p.after
			if err := a.Check(); err != nil || failed != (a.FaultKind == kind) {
				t.Errorf("%s: level %q, fault %q %s, want fault %v (%s)", modes[n%len(modes)], a.Level,
					a.FaultKind, a.FaultDetail, failed, kind)
			}
			if failed {
				faults.Add(1)
			} else {
				outcomes.Add(1)
			}
		})
	}
	wg.Wait()
	if faults.Load() == 0 || outcomes.Load() == 0 {
		t.Errorf("%d faults and %d outcomes; the test is too weak", faults.Load(), outcomes.Load())
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if left := processesIn(tmp); len(left) > 0 {
		t.Errorf("processes left behind: %v", left)
	}
}

// processesIn returns the processes whose environment names a directory, on Linux.
func processesIn(dir string) (found []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err == nil && strings.Contains(string(b), "TMPDIR="+dir+"/") {
			found = append(found, f)
		}
	}
	return found
}

// serve returns the address of a service.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// bodyOf returns the body of a request to an agent.
func bodyOf(r *http.Request) (body map[string]string) {
	_ = json.NewDecoder(r.Body).Decode(&body)
	return body
}
