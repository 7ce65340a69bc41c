package environment_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/environment"
	"github.com/assay-eval/assay/internal/task/environment/environmenttest"
)

// TestMain lets the test binary be a server, too.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "serve" {
		environmenttest.Serve(os.Args[2], os.Args[3])
		return
	}
	goleak.VerifyTestMain(m)
}

// program returns a server that is a program of its own.
func program(t *testing.T, mode string, timeout time.Duration) *environment.Server {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config := &assay.MCPServer{
		OpenEnv: true, Command: []string{self, "serve", "{port}", mode}, Timeout: timeout,
		Answer: json.RawMessage(`{"type":"message","content":"{answer}"}`),
	}
	if err := environment.Check(config); err != nil {
		t.Fatal(err)
	}
	s := environment.New(config)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// begin opens a session at a task.
func begin(t *testing.T, s *environment.Server, task string) *environment.Session {
	t.Helper()
	session, err := s.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	_, err = session.Reset(t.Context(), json.RawMessage(`{"task_id": "`+task+`"}`), 0)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

// TestResetIsAnObject reads a task of a library that somebody has changed.
func TestResetIsAnObject(t *testing.T) {
	t.Parallel()
	session := begin(t, program(t, "ok", time.Minute), "pay")
	for _, reset := range []string{`[]`, `null`, `"pay"`, `{`} {
		_, err := session.Reset(t.Context(), json.RawMessage(reset), 0)
		toolServer(t, err)
	}
}

func pay(t *testing.T, s *environment.Session, euros string) (string, error) {
	t.Helper()
	out, err := s.Call(t.Context(), "pay", json.RawMessage(`{"euros":`+euros+`}`))
	return string(out), err
}

// toolServer returns the detail of a fault of the kind tool_server.
func toolServer(t *testing.T, err error) *assay.Fault {
	t.Helper()
	var f *assay.Fault
	if !errors.As(err, &f) || f.Kind != assay.ToolServer {
		t.Fatalf("the error is %v, want a fault of the server of tools", err)
	}
	return f
}

func TestSession(t *testing.T) {
	t.Parallel()
	s := begin(t, program(t, "ok", 0), "refund")
	names := func() (all []string) {
		tools, err := s.Tools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools {
			all = append(all, tool.Name)
		}
		return all
	}
	if got := strings.Join(names(), " "); got != "pay" {
		t.Errorf("the tools are %s", got)
	}
	if out, err := pay(t, s, "25"); err != nil || !strings.HasPrefix(out, `{"paid": 25`) {
		t.Errorf("pay: %s, %v", out, err)
	}
	var refused *environment.Error
	if _, err := pay(t, s, "-1"); !errors.As(err, &refused) || refused.Text != "that is not an amount" {
		t.Errorf("pay a negative amount: %v", err)
	}
	o, err := s.Say(t.Context(), `I "paid" it.`)
	if err != nil {
		t.Fatal(err)
	}
	if _, user := o.Messages(); user != "Take 5 euros back." || o.Done {
		t.Errorf("the user says %q, done %t", user, o.Done)
	}
	if got := strings.Join(names(), " "); got != "pay refund" {
		t.Errorf("the tools are %s", got)
	}
	if _, err := s.Call(t.Context(), "refund", json.RawMessage(`{"euros":5}`)); err != nil {
		t.Error(err)
	}
	o, err = s.Say(t.Context(), "Done.")
	if err != nil || !o.Done || o.Reward == nil || *o.Reward != 1 || s.Last.Reward == nil {
		t.Errorf("the verdict is %+v, %v", o, err)
	}
}

// TestFullServer opens more sessions than the server has, which lowers the limit.
func TestFullServer(t *testing.T) {
	t.Parallel()
	till := environmenttest.Handler(environmenttest.Full)
	web := httptest.NewServer(till)
	defer web.Close()
	s := environment.New(&assay.MCPServer{OpenEnv: true, URL: web.URL, Concurrency: 4})
	defer s.Close()
	environment.Hurry(s)
	var open []*environment.Session
	for range 2 {
		session, err := s.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, session)
	}
	third := make(chan error, 1)
	go func() {
		session, err := s.Open(t.Context())
		if err == nil {
			err = session.Close()
		}
		third <- err
	}()
	for s.Sessions() > 2 {
		select {
		case err := <-third:
			t.Fatalf("a third session of two: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	for _, session := range open {
		_ = session.Close()
	}
	if err := <-third; err != nil {
		t.Error(err)
	}
	if got := s.Sessions(); got != 2 {
		t.Errorf("the limit is %d sessions, want 2", got)
	}
}

func TestSessionsAreLimited(t *testing.T) {
	t.Parallel()
	till := environmenttest.Handler("")
	web := httptest.NewServer(till)
	defer web.Close()
	s := environment.New(&assay.MCPServer{OpenEnv: true, URL: web.URL, Concurrency: 3})
	defer s.Close()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			session, err := s.Open(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			_ = session.Close()
		})
	}
	all.Wait()
	if most := till.Most.Load(); most < 1 || most > 3 || till.All.Load() != 20 {
		t.Errorf("%d sessions at a time of %d, want at most 3 of 20", most, till.All.Load())
	}
}

// TestMisbehaviour has a fault with its reason for each way to misbehave, and another session works
// afterwards.
func TestMisbehaviour(t *testing.T) {
	t.Parallel()
	for mode, why := range map[string]string{
		environmenttest.Dies:   "it ended: exit status 3: the till is on fire",
		environmenttest.Hangs:  "did not answer within 2s",
		environmenttest.Stuck:  "did not answer within 2s",
		environmenttest.Babble: "Welcome to the till!",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			server := program(t, mode, 2*time.Second)
			environment.Hurry(server)
			s := begin(t, server, "pay")
			_, err := pay(t, s, "25")
			if f := toolServer(t, err); !strings.Contains(f.Detail, why) || f.Hopeless {
				t.Errorf("the fault is %+v, want %q", f, why)
			}
			_ = s.Close()
			if _, err := begin(t, server, "pay").Tools(t.Context()); err != nil {
				t.Errorf("the next session: %v", err)
			}
		})
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(nil)
	web.Close()
	_, err := environment.New(&assay.MCPServer{OpenEnv: true, URL: web.URL}).Open(t.Context())
	if f := toolServer(t, err); !strings.Contains(f.Detail, "open a session") {
		t.Errorf("the fault is %+v", f)
	}
}

// TestDeadServer has programs that always end, or never become healthy. After six starts the server
// is given up for the run: nothing waits for it or starts it any more.
func TestDeadServer(t *testing.T) {
	t.Parallel()
	for does, why := range map[string]string{
		"echo the till is on fire >&2; exit 3": "the till is on fire",
		"cat":                                  "it was not healthy within 20ms",
	} {
		t.Run(does, func(t *testing.T) {
			t.Parallel()
			starts := filepath.Join(t.TempDir(), "starts")
			timeout := time.Minute
			if does == "cat" {
				timeout = 20 * time.Millisecond
			}
			s := environment.New(&assay.MCPServer{
				OpenEnv: true, Timeout: timeout,
				Command: []string{"sh", "-c", "echo start >> '" + starts + "'; " + does, "{port}"},
			})
			defer s.Close()
			environment.Hurry(s)
			var f *assay.Fault
			for range 20 {
				_, err := s.Open(t.Context())
				f = toolServer(t, err)
			}
			if !f.Hopeless || !strings.Contains(f.Detail, "6 times in a row") ||
				!strings.Contains(f.Detail, why) {
				t.Errorf("the fault is %+v", f)
			}
			text, err := os.ReadFile(starts)
			got := strings.Count(string(text), "start")
			if err != nil || got > 6 || got < 6 && timeout == time.Minute {
				t.Errorf("it was started %d times, %v, want 6", got, err)
			}
		})
	}
}

// TestWaitsForADeadServer adds up the waits that docs/environments.md states.
func TestWaitsForADeadServer(t *testing.T) {
	t.Parallel()
	if got := environment.Waits(); got != 15500*time.Millisecond {
		t.Errorf("the waits are %s in all, want 15.5s", got)
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := program(t, "ok", 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Open(ctx); assay.AsFault(err).Kind != assay.Interrupted {
		t.Errorf("the error is %v", err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for why, config := range map[string]assay.MCPServer{
		"neither a command nor a URL": {},
		"both a command and a URL":    {Command: []string{"sh", "{port}"}, URL: "http://127.0.0.1"},
		"no {port}":                   {Command: []string{"sh"}},
		"install it":                  {Command: []string{"no-such-program", "{port}"}},
		"sessions is -1":              {Command: []string{"sh", "{port}"}, Concurrency: -1},
	} {
		if err := environment.Check(&config); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("the error is %v, want %q", err, why)
		}
	}
}

func TestRewardsAreNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]environment.Reward{"true": 1, "false": 0, "0.5": .5, "-2": -2} {
		var r environment.Reward
		if err := json.Unmarshal([]byte(text), &r); err != nil || r != want {
			t.Errorf("%s is %v, %v", text, r, err)
		}
	}
}
