// Package mcp is the client of the MCP servers whose tools a library uses.
//
// It owns the life of a server, which is a process or a session for one attempt alone, and
// distinguishes the tools' own errors from faults of the server. A server that dies, hangs, floods,
// changes its tools or breaks the protocol is a fault, never an answer. The package does not know
// about luck, trials or verdicts.
package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/child"
)

// DefaultTimeout is how long a server may take to start or to answer a call.
const DefaultTimeout = 30 * time.Second

// DefaultConcurrency is the largest number of attempts at a time whose tools a server carries out.
// Each has its own process, which may well take 100 MB.
const DefaultConcurrency = 16

// Scratch stands for the scratch directory of a server in tasks, calls and answers, which are the
// same in every attempt. [Server.Call] puts the real path in its place.
const Scratch = "/tmp/assay-scratch"

const (
	// maxMessage and maxOutput limit the output of a server, in bytes: a message, and everything
	// in an attempt.
	maxMessage = 4 * megabyte
	maxOutput  = 32 * megabyte
	megabyte   = 1_000_000
	// maxTools limits the tools of a server.
	maxTools = 1000
)

// A Server is a running server, or a session with one. It belongs to one attempt and must be
// closed. It is safe for concurrent use.
type Server struct {
	config  assay.MCPServer
	name    string
	process *child.Process // nil for a URL
	pipes   *pipes         // nil for a URL
	output  *meter
	secret  *strings.Replacer // removes the key and the scratch directory, which a server may echo
	session *sdk.ClientSession
	tools   map[string]*tool
	changed atomic.Bool // the server reports that its tools have changed
}

// Check returns an error if a server cannot be started by this configuration.
func Check(config *assay.MCPServer) error { return check(inFolder(config)) }

func check(c assay.MCPServer) error {
	switch {
	case len(c.Command) == 0 && c.URL == "":
		return errors.New("the MCP server has neither a command nor a URL; give one of them")
	case len(c.Command) > 0 && c.URL != "":
		return errors.New("the MCP server has both a command and a URL; remove one of them")
	case c.Concurrency < 0:
		return fmt.Errorf("concurrency is %d, want 1 or more attempts", c.Concurrency)
	case c.URL != "" && c.Key != "" && os.Getenv(c.Key) == "":
		return fmt.Errorf("the environment variable %s is not set; it holds the key of %s", c.Key, c.URL)
	case !slices.Contains(sandboxes, c.Sandbox):
		return fmt.Errorf("unknown sandbox %q, want bubblewrap or none", c.Sandbox)
	case !slices.Contains(networks, c.Network):
		return fmt.Errorf("unknown network %q, want closed or open", c.Network)
	case c.Sandbox != bubblewrap && (len(c.Read) > 0 || c.Network != ""):
		return errors.New("read and network are of a room; write sandbox: bubblewrap, or remove them")
	case c.URL != "" && c.Sandbox != "":
		return errors.New("a server at a URL has no sandbox here; remove it")
	case c.URL != "":
		return nil
	}
	if err := (child.Command{Args: c.Command}).Check(); err != nil || c.Sandbox != bubblewrap {
		return err
	}
	if err := child.Rooms(); err != nil {
		return fmt.Errorf("its sandbox is bubblewrap, but %w", err)
	}
	return nil
}

const bubblewrap = "bubblewrap"

var (
	sandboxes = []string{"", "none", bubblewrap}
	networks  = []string{"", "closed", "open"}
)

// roomOf returns the room of a server, or nil.
func roomOf(c *assay.MCPServer) *child.Room {
	if c.Sandbox != bubblewrap {
		return nil
	}
	room := &child.Room{
		Read: child.Finds(c.Command, nil), Private: true, Open: c.Network == "open",
		Limits: child.DefaultLimits,
	}
	for _, path := range c.Read {
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Dir, path)
		}
		room.Read = append(room.Read, path)
	}
	return room
}

// Open starts a server and asks it for its tools. If it fails, the error is a fault.
func Open(ctx context.Context, config *assay.MCPServer) (*Server, error) {
	if ctx.Err() != nil {
		return nil, assay.AsFault(ctx.Err())
	}
	c := inFolder(config)
	if err := check(c); err != nil {
		return nil, &assay.Fault{Kind: assay.ToolServer, Detail: err.Error(), Err: err}
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	s := &Server{
		config: c, name: cmp.Or(c.URL, strings.Join(c.Command, " ")), output: new(meter),
		secret: redactor(os.Getenv(c.Key), ""),
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, errSilent)
	defer cancel()
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(s.fault(ctx, "start", err), s.Close())
	}
	return s, nil
}

// inFolder returns a configuration without references to its folder.
func inFolder(config *assay.MCPServer) assay.MCPServer {
	c := *config
	place := strings.NewReplacer("{dir}", c.Dir)
	c.Command, c.Set = nil, make(map[string]string)
	for _, arg := range config.Command {
		c.Command = append(c.Command, place.Replace(arg))
	}
	for name, value := range config.Set {
		c.Set[name] = place.Replace(value)
	}
	return c
}

// shortestKey is the length of a key from which it is removed from the output of a server. A
// shorter one gives no protection and would appear in honest results by chance.
const shortestKey = 8

// redactor replaces a key and a scratch directory, also as JSON has them.
func redactor(key, dir string) *strings.Replacer {
	var pairs []string
	replace := func(text, by string) {
		pairs = append(pairs, text, by, inJSON(text), by)
	}
	if len(key) >= shortestKey {
		replace(key, "[redacted]")
	}
	if dir != "" {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			replace(real, Scratch)
		}
		replace(dir, Scratch)
	}
	return strings.NewReplacer(pairs...)
}

// inJSON returns a text as it is in a string of JSON.
func inJSON(text string) string {
	quoted, _ := json.Marshal(text) // a string can always be encoded
	return string(quoted[1 : len(quoted)-1])
}

func (s *Server) open(ctx context.Context) error {
	transport, err := s.transport()
	if err != nil {
		return err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "assay", Version: "1"}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			s.changed.Store(true)
		},
	})
	if s.session, err = client.Connect(ctx, transport, nil); err != nil {
		return err
	}
	s.tools, err = s.list(ctx)
	return err
}

func (s *Server) transport() (sdk.Transport, error) {
	if s.config.URL != "" {
		c := &carrier{meter: s.output, key: os.Getenv(s.config.Key)}
		return &sdk.StreamableClientTransport{
			Endpoint: s.config.URL, HTTPClient: c.client(),
			MaxRetries: -1, DisableStandaloneSSE: true, MaxEventSize: maxMessage,
		}, nil
	}
	p, err := child.Start(child.Command{
		Args: s.config.Command, Pass: s.config.Env, Set: s.config.Set, Room: roomOf(&s.config),
	})
	if err != nil {
		return nil, err
	}
	s.process, s.pipes, s.secret = p, newPipes(p, s.output), redactor("", p.Dir)
	return &sdk.IOTransport{Reader: s.pipes, Writer: input{s.pipes}, MaxLineLength: -1}, nil
}

// Close ends the server or the session. It leaves no process and no file behind.
func (s *Server) Close() error {
	if s.session != nil {
		_ = s.session.Close() // a server that is gone cannot say goodbye
	}
	if s.process != nil {
		return s.process.Close()
	}
	return nil
}

// Dir is the scratch directory of a server that is a process. It is empty for a URL.
func (s *Server) Dir() string {
	if s.process == nil {
		return ""
	}
	return s.process.Dir
}

// errSilent is the cause of a context that ended because the server took too long.
var errSilent = errors.New("the server did not answer in time")

// An Error is the answer of a tool that failed, for the one who called it.
type Error struct {
	// Code is a JSON-RPC code, or 0 if the tool itself reported the error.
	Code int64
	Text string
}

func (e *Error) Error() string { return e.Text }

// Call calls a tool. It returns the tool's result as JSON, or an [*Error] if the tool answered that
// it failed. Any other error is a fault of the server.
func (s *Server) Call(ctx context.Context, name string, arguments json.RawMessage) (
	json.RawMessage, error,
) {
	t, ok := s.tools[name]
	if !ok {
		return nil, fmt.Errorf("mcp: %s has no tool %q", s.name, name)
	}
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	if dir := s.Dir(); dir != "" {
		arguments = json.RawMessage(strings.ReplaceAll(string(arguments), Scratch, inJSON(dir)))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.Timeout, errSilent)
	defer cancel()
	result, err := s.session.CallTool(asCall(ctx),
		&sdk.CallToolParams{Name: name, Arguments: arguments})
	var answer *jsonrpc.Error
	switch {
	case errors.As(err, &answer) && lostIn(err) == nil:
		return nil, &Error{answer.Code, s.secret.Replace(answer.Message)}
	case err != nil:
		return nil, s.fault(ctx, "call "+name, err)
	case result.IsError:
		return nil, &Error{Text: s.secret.Replace(textOf(result))}
	}
	output, err := t.output(result)
	if err == nil {
		err = s.keepsRules(ctx, len(output))
	}
	if err != nil {
		return nil, s.fault(ctx, "call "+name, err)
	}
	return json.RawMessage(s.secret.Replace(string(output))), nil
}

// keepsRules returns an error if a result is too long, or if the server has changed its tools.
func (s *Server) keepsRules(ctx context.Context, length int) error {
	if length > maxMessage {
		return errTooLong
	}
	if !s.changed.Swap(false) {
		return nil
	}
	now, err := s.list(ctx)
	if err != nil {
		return err
	}
	return difference(s.tools, now)
}

// fault names the way in which a server failed. If ctx ended for another reason, that counts.
func (s *Server) fault(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errSilent) {
		return assay.AsFault(ctx.Err())
	}
	return &assay.Fault{
		Kind: assay.ToolServer, Err: err,
		Detail: s.secret.Replace(fmt.Sprintf("MCP server %s: %s: %v", s.name, doing, s.reason(ctx, err))),
	}
}

// reason returns why a server failed, of all that is known.
func (s *Server) reason(ctx context.Context, err error) error {
	switch {
	case s.pipes != nil && s.pipes.broken() != nil:
		return s.pipes.broken()
	case s.output.flooded():
		return errFlood
	case ctx.Err() != nil:
		return fmt.Errorf("it did not answer within %s", s.config.Timeout)
	case lostIn(err) != nil:
		return lostIn(err)
	}
	return err
}

// Names returns the names of the tools, sorted.
func (s *Server) Names() []string {
	var names []string
	for name := range s.tools {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
