package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/child"
	"github.com/assay-eval/assay/internal/task/mcp"
)

// TestMain lets the test binary be a server, too.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		serve(os.Args[2])
		return
	}
	goleak.VerifyTestMain(m)
}

// serve is a server over the standard streams. Its mode is the way in which it misbehaves.
func serve(mode string) {
	switch mode {
	case "nonsense":
		fmt.Println("Welcome to the server!")
	case "dead":
		fmt.Fprintln(os.Stderr, "cannot open the database")
		os.Exit(3)
	case "mute":
		time.Sleep(time.Hour)
	case "newer":
		fromTheFuture()
		return
	case "empty":
		_ = sdk.NewServer(&sdk.Implementation{Name: "empty"}, nil).
			Run(context.Background(), &sdk.StdioTransport{})
		return
	}
	if err := newServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// fromTheFuture answers the first handshake with a version that nobody knows.
func fromTheFuture() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			panic(err)
		}
		reply := `"error":{"code":-32601,"message":"no such method"}`
		if m.Method == "initialize" {
			reply = `"result":{"protocolVersion":"2999-01-01","capabilities":{},"serverInfo":{"name":"x"}}`
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, reply)
	}
}

type (
	nothing struct{}
	text    struct {
		Text string `json:"text"`
	}
	count struct {
		N int `json:"n"`
	}
)

// newServer returns a server with a counter and with tools that misbehave when they are called.
func newServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test"}, nil)
	var mu sync.Mutex
	n := 0
	sdk.AddTool(s, &sdk.Tool{Name: "count", Description: "Counts its calls."},
		func(context.Context, *sdk.CallToolRequest, nothing) (*sdk.CallToolResult, count, error) {
			mu.Lock()
			defer mu.Unlock()
			n++
			return nil, count{n}, nil
		})
	plain := func(name string, act func(in string) (string, error)) {
		sdk.AddTool(s, &sdk.Tool{Name: name, Description: "Test tool."},
			func(_ context.Context, _ *sdk.CallToolRequest, in text) (*sdk.CallToolResult, any, error) {
				out, err := act(in.Text)
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: out}}}, nil, err
			})
	}
	plain("echo", func(in string) (string, error) { return in, nil })
	plain("fail", func(in string) (string, error) { return "", errors.New("no such order: " + in) })
	plain("die", func(string) (string, error) {
		fmt.Fprintln(os.Stderr, "panic: everything is lost")
		os.Exit(2)
		return "", nil
	})
	plain("hang", func(string) (string, error) { time.Sleep(time.Hour); return "", nil })
	plain("flood", func(string) (string, error) {
		line := strings.Repeat("x", 1<<20)
		for range 40 {
			fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/message","params":`+
				`{"level":"info","data":"%s"}}`+"\n", line)
		}
		return "", nil
	})
	plain("repeat", func(n string) (string, error) {
		length, err := strconv.Atoi(n)
		return strings.Repeat("x", length), err
	})
	plain("grow", func(name string) (string, error) {
		plain(name, func(in string) (string, error) { return in, nil })
		return "", nil
	})
	plain("announce", func(string) (string, error) {
		plain("echo", func(in string) (string, error) { return in, nil })
		return "", nil
	})
	plain("print", func(line string) (string, error) { fmt.Println(line); return "", nil })
	plain("mumble", func(line string) (string, error) {
		time.AfterFunc(time.Millisecond, func() { fmt.Println(line) })
		return "", nil
	})
	plain("close", func(string) (string, error) {
		err := os.Stdout.Close()
		time.Sleep(time.Hour)
		return "", err
	})
	plain("breed", func(file string) (string, error) {
		cmd := exec.Command("sleep", "3600")
		if err := cmd.Start(); err != nil {
			return "", err
		}
		return fmt.Sprint(cmd.Process.Pid), nil
	})
	plain("dir", func(string) (string, error) { return os.Getwd() })
	plain("keep", func(in string) (string, error) { return in, os.WriteFile("kept", []byte(in), 0o600) })
	plain("read", func(path string) (string, error) {
		b, err := os.ReadFile(path)
		return string(b), err
	})
	plain("env", func(string) (string, error) { return strings.Join(os.Environ(), "\n"), nil })
	s.AddTool(&sdk.Tool{
		Name: "lie", InputSchema: json.RawMessage(`{"type":"object"}`),
		OutputSchema: json.RawMessage(
			`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
	}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]any{"n": "one"}}, nil
	})
	return s
}

func config(mode string) *assay.MCPServer {
	return &assay.MCPServer{Command: []string{os.Args[0], "serve", mode}}
}

func open(t *testing.T, c *assay.MCPServer) *mcp.Server {
	t.Helper()
	s, err := mcp.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// overHTTP serves the same tools over Streamable HTTP to those who know the key.
func overHTTP(t *testing.T) *assay.MCPServer {
	t.Helper()
	h := sdk.NewStreamableHTTPHandler(
		func(*http.Request) *sdk.Server { return newServer() }, nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer hunter2" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Setenv("TEST_MCP_KEY", "hunter2")
	return &assay.MCPServer{URL: server.URL, Key: "TEST_MCP_KEY"}
}

func call(t *testing.T, s *mcp.Server, name, in string) (string, error) {
	t.Helper()
	args, err := json.Marshal(text{in})
	if err != nil {
		t.Fatal(err)
	}
	if name == "count" || name == "lie" {
		args = nil
	}
	out, err := s.Call(t.Context(), name, args)
	return string(out), err
}

// TestCall checks answers and errors of tools over both transports, and that each session has its
// own state.
func TestCall(t *testing.T) {
	configs := map[string]*assay.MCPServer{"command": config(""), "url": overHTTP(t)}
	for name, c := range configs {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				s := open(t, c)
				for _, want := range []string{`{"n":1}`, `{"n":2}`} {
					if got, err := call(t, s, "count", ""); got != want || err != nil {
						t.Errorf("count = %s, %v; want %s", got, err, want)
					}
				}
				if got, err := call(t, s, "echo", `a "b"`); got != `"a \"b\""` || err != nil {
					t.Errorf("echo = %s, %v", got, err)
				}
				if got, err := call(t, s, "echo", `{"a": 1}`); got != `{"a": 1}` || err != nil {
					t.Errorf("echo = %s, %v", got, err)
				}
				var answer *mcp.Error
				_, err := call(t, s, "fail", "7")
				if !errors.As(err, &answer) || answer.Text != "no such order: 7" {
					t.Errorf("fail = %v", err)
				}
				_, err = s.Call(t.Context(), "echo", json.RawMessage(`{"text": 7}`))
				if !errors.As(err, &answer) {
					t.Errorf("with a wrong type, echo = %v", err)
				}
			}
		})
	}
}

// TestFaults checks that a server that misbehaves is a fault that names the cause.
func TestFaults(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"die":   "call die: it ended: exit status 2: panic: everything is lost",
		"hang":  "call hang: it did not answer within 2s",
		"close": "call close: it closed its standard output",
		"lie": "call lie: the result is not what the server promised: - at '/n': got string, " +
			"want integer",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := config("")
			if name == "hang" {
				c.Timeout = 2 * time.Second
			}
			s := open(t, c)
			_, err := call(t, s, name, "")
			checkFault(t, err, want)
		})
	}
	for mode, want := range map[string]string{
		"nonsense": "start: it wrote a line to its standard output that is not a message: \"Welcome",
		"dead":     "start: it ended: exit status 3: cannot open the database",
		"mute":     "start: it did not answer within 2s",
		"empty":    "start: it has no tools",
		"newer":    `start: unsupported protocol version: "2999-01-01"`,
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c := config(mode)
			c.Timeout = 2 * time.Second
			_, err := mcp.Open(t.Context(), c)
			checkFault(t, err, want)
		})
	}
}

// TestLinesThatAreNoMessages has a server that prints something before or after its answer. Assay
// hangs up, and gives that as the reason, never the end of the server that follows.
func TestLinesThatAreNoMessages(t *testing.T) {
	t.Parallel()
	for line, why := range map[string]string{
		"DEBUG: called":                   "invalid character 'D'",
		"[2026-01-01] INFO: called":       "invalid character '-'",
		`{"level":"info","msg":"called"}`: "invalid message version tag",
		`{"jsonrpc":"2.0","id":7,"result":{"structuredContent":{"v":NaN}}}`:   "invalid character 'N'",
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"bad"}}`: "invalid request",
		`{"jsonrpc":"2.0","id":[],"result":{}}`:                               "invalid ID type",
		"null":                                                                "invalid message version tag",
		"[]":                                                                  "it is empty",
	} {
		for _, tool := range []string{"print", "mumble"} {
			t.Run(tool+" "+line, func(t *testing.T) {
				t.Parallel()
				s := open(t, config(""))
				_, err := call(t, s, tool, line)
				for tool == "mumble" && err == nil { // the line comes after the answer
					_, err = call(t, s, "echo", "")
				}
				checkFault(t, err, fmt.Sprintf("it wrote a line to its standard output that is not a "+
					"message: %q (", line[:min(len(line), 80)]))
				checkFault(t, err, why)
			})
		}
	}
}

// TestBatches has a server that sends several messages as one.
func TestBatches(t *testing.T) {
	t.Parallel()
	s := open(t, config(""))
	const note = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`
	for range 2 {
		if _, err := call(t, s, "print", "["+note+",\n"+note+"]"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestChangedToolsAreAFault checks that a server that announces other tools during an attempt is a
// fault, and that one that announces the same tools is not.
func TestChangedToolsAreAFault(t *testing.T) {
	t.Parallel()
	s := open(t, config(""))
	for range 20 {
		if _, err := call(t, s, "announce", ""); err != nil {
			t.Fatal(err)
		}
	}
	_, err := call(t, s, "grow", "weed")
	for err == nil { // the announcement may come after the result
		_, err = call(t, s, "count", "")
	}
	checkFault(t, err, "it changed its tools: weed is new")
}

func checkFault(t *testing.T, err error, want string) {
	t.Helper()
	var f *assay.Fault
	if !errors.As(err, &f) || f.Kind != assay.ToolServer || !strings.Contains(f.Detail, want) {
		t.Errorf("error = %v, want a fault with %q", err, want)
	}
}

// TestOpenAfterTheEnd checks that an attempt of a run that has ended starts no server.
func TestOpenAfterTheEnd(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "started")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := mcp.Open(ctx, &assay.MCPServer{Command: []string{"touch", marker}})
	if f := assay.AsFault(err); f.Kind != assay.Interrupted {
		t.Errorf("error = %v", err)
	}
	if _, err := os.Stat(marker); !os.IsNotExist(err) {
		t.Errorf("the server was started: %v", err)
	}
}

// TestInterruptedOpen checks that a run that ends while a server starts leaves no process, and is
// not taken for a fault of the server.
func TestInterruptedOpen(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err := mcp.Open(ctx, config("mute")) // goleak notices a process that is still followed
	if f := assay.AsFault(err); f.Kind != assay.Interrupted {
		t.Errorf("error = %v", err)
	}
}

// TestCancelledCall checks that the end of a run is not taken for a fault of the server.
func TestCancelledCall(t *testing.T) {
	t.Parallel()
	s := open(t, config(""))
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err := s.Call(ctx, "hang", json.RawMessage(`{"text": ""}`))
	if f := assay.AsFault(err); f.Kind != assay.Interrupted {
		t.Errorf("error = %v", err)
	}
}

// TestNothingIsLeft checks that a server's own processes and its directory end with it.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	s, err := mcp.Open(t.Context(), config(""))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := call(t, s, "breed", "")
	if err != nil {
		t.Fatal(err)
	}
	pid = strings.Trim(pid, `"`)
	if _, err := os.Stat(filepath.Join("/proc", pid)); err != nil {
		t.Skip("there is no /proc to look for processes in")
	}
	dir, err := call(t, s, "dir", "")
	if err != nil || strings.Trim(dir, `"`) != mcp.Scratch {
		t.Errorf("dir = %s, %v; want %s", dir, err, mcp.Scratch)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for runs(pid) { // until the test's own time is over
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := os.Stat(s.Dir()); !os.IsNotExist(err) {
		t.Errorf("the scratch directory is left: %v", err)
	}
}

// runs reports whether a process exists that has not ended.
func runs(pid string) bool {
	b, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

// A server in a room keeps its state where nobody else sees it, and sees no files but its own and those that
// it is lent.
func TestServerInARoom(t *testing.T) {
	t.Parallel()
	if err := child.Rooms(); err != nil {
		t.Skipf("there are no rooms here: %v; apt-get install bubblewrap", err)
	}
	c := config("")
	c.Sandbox, c.Dir, c.Read = "bubblewrap", t.TempDir(), []string{"lent"}
	for _, name := range []string{"lent", "answers"} {
		if err := os.WriteFile(filepath.Join(c.Dir, name), []byte("words"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, c)
	for _, tc := range []struct {
		tool, in string
		fails    bool
	}{
		{"keep", "state", false},
		{"read", "kept", false},
		{"read", filepath.Join(c.Dir, "lent"), false},
		{"read", filepath.Join(c.Dir, "answers"), true},
	} {
		if got, err := call(t, s, tc.tool, tc.in); (err != nil) != tc.fails {
			t.Errorf("%s %s = %s, %v", tc.tool, tc.in, got, err)
		}
	}
	if _, err := os.Stat(filepath.Join(s.Dir(), "kept")); !os.IsNotExist(err) {
		t.Errorf("others can see the state: %v", err)
	}
}

// TestEnvironment checks that a server sees the variables that it is given, and no other secret.
func TestEnvironment(t *testing.T) {
	t.Setenv("TEST_GIVEN", "given")
	t.Setenv("TEST_CANARY", "canary-7f3a")
	c := config("")
	c.Env = []string{"TEST_GIVEN"}
	got, err := call(t, open(t, c), "env", "")
	if err != nil || !strings.Contains(got, "TEST_GIVEN=given") || strings.Contains(got, "canary") {
		t.Errorf("env = %s, %v", got, err)
	}
}
