// Package environment is the client of OpenEnv servers, whose tools and verdicts a library uses.
//
// It owns the life of a server, which is one program for all attempts, and of the sessions with it,
// and distinguishes the tools' own errors from faults. A server that dies, hangs, is full or breaks
// the protocol is a fault, never an answer. The package does not know about luck, trials or
// verdicts.
package environment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/child"
)

// DefaultTimeout is how long a server may take to start or to answer. Some of them read large data
// first.
const DefaultTimeout = 2 * time.Minute

// DefaultSessions is the largest number of sessions at a time.
const DefaultSessions = 16

const (
	// maxStarts is how often a program may end in a row without having served a session to its
	// end, until the server is given up. The wait before the next start doubles each time, so they
	// are 15.5 seconds in all.
	maxStarts    = 6
	shortestWait = time.Second / 2
	// healthy is how long a server may take to say that it is healthy.
	healthy = 5 * time.Second
)

// A Server is an OpenEnv server, of which all attempts of a run have sessions. It must be closed. It
// is safe for concurrent use.
type Server struct {
	config assay.MCPServer
	name   string
	secret *strings.Replacer
	client *http.Client // asks whether the server is healthy
	slots  chan struct{}

	// firstWait is the time before a program is started again for the first time, and fullWait
	// before a full server is asked again.
	firstWait, fullWait time.Duration

	starting sync.Mutex // held while a program starts or is examined

	mu       sync.Mutex // guards the fields below
	program  *program
	deaths   int    // programs in a row that ended before a session did
	givenUp  string // why no program is started any more, or ""
	suspect  bool   // a session got no answer in time
	closed   bool
	sessions int // limit, which a full server lowers
}

// A program is one process of a server, which may be restarted.
type program struct {
	*child.Process
	url string
}

// Check returns an error if a server cannot be started by this configuration.
func Check(config *assay.MCPServer) error {
	switch {
	case len(config.Command) == 0 && config.URL == "":
		return errors.New("the environment has neither a command nor a URL; give one of them")
	case len(config.Command) > 0 && config.URL != "":
		return errors.New("the environment has both a command and a URL; remove one of them")
	case config.Concurrency < 0:
		return fmt.Errorf("sessions is %d, want 1 or more", config.Concurrency)
	case config.URL != "":
		return nil
	case !strings.Contains(strings.Join(config.Command, " "), portPlace):
		return fmt.Errorf("the command has no %s, so it cannot listen where Assay looks for it; for "+
			"example [python, -m, uvicorn, \"app:app\", --port, %q]", portPlace, portPlace)
	}
	return command(config, "0").Check()
}

// portPlace stands for the port in a command.
const portPlace = "{port}"

// Of returns the server of a catalog, which its attempts share. [assay.Catalog.Close] closes it.
func Of(catalog *assay.Catalog) *Server {
	return catalog.Runtime(func() io.Closer { return New(catalog.Server()) }).(*Server)
}

// New returns a server that starts with the first session.
func New(config *assay.MCPServer) *Server {
	s := &Server{
		config: *config, name: cmp.Or(config.URL, strings.Join(config.Command, " ")),
		client: &http.Client{Timeout: healthy}, firstWait: shortestWait, fullWait: shortestWait / 5,
	}
	s.config.Timeout = cmp.Or(config.Timeout, DefaultTimeout)
	s.sessions = cmp.Or(config.Concurrency, DefaultSessions)
	s.slots = make(chan struct{}, s.sessions)
	s.secret = redactor(config)
	return s
}

// Sessions returns how many sessions may be open at a time. A server that says that it is full
// lowers it.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions
}

// Close ends the program and with it all sessions.
func (s *Server) Close() error {
	s.starting.Lock()
	defer s.starting.Unlock()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.client.CloseIdleConnections()
	return s.end()
}

// end ends the program, if there is one. The caller holds starting.
func (s *Server) end() error {
	s.mu.Lock()
	p := s.program
	s.program = nil
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.Close()
}

// command returns the command of a server that listens on a port.
func command(config *assay.MCPServer, port string) child.Command {
	place := strings.NewReplacer("{dir}", config.Dir, portPlace, port)
	c := child.Command{Pass: config.Env, Set: make(map[string]string), Dir: config.Dir}
	for _, arg := range config.Command {
		c.Args = append(c.Args, place.Replace(arg))
	}
	for name, value := range config.Set {
		c.Set[name] = place.Replace(value)
	}
	return c
}

// running returns the program, which it starts if there is none, and nil for a URL. A program that
// has ended, or does not say that it is healthy after it did not answer in time, is replaced.
func (s *Server) running(ctx context.Context) (*program, error) {
	if s.config.URL != "" {
		return nil, nil
	}
	s.starting.Lock()
	defer s.starting.Unlock()
	for {
		p, deaths, err := s.current(ctx)
		if p != nil || err != nil {
			return p, err
		}
		if err := pause(ctx, s.wait(deaths)); err != nil {
			return nil, assay.AsFault(err)
		}
		if p, err = s.start(ctx); err != nil {
			return nil, err
		}
		s.replace(p, deaths)
	}
}

// wait returns how long to wait before a start.
func (s *Server) wait(deaths int) time.Duration {
	if deaths == 0 {
		return 0
	}
	return s.firstWait << (deaths - 1)
}

// current returns the program if it runs and is healthy, and otherwise how many programs ended in a
// row. The caller holds starting, so nothing else changes the program.
func (s *Server) current(ctx context.Context) (p *program, deaths int, err error) {
	s.mu.Lock()
	p, deaths = s.program, s.deaths
	suspect, closed, givenUp := s.suspect, s.closed, s.givenUp
	s.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, 0, assay.AsFault(ctx.Err())
	case closed:
		return nil, 0, s.broken("the run is over")
	case givenUp != "":
		return nil, 0, s.broken(givenUp)
	case p == nil:
		return nil, deaths, nil
	case p.State() == "" && (!suspect || s.isHealthy(ctx, p)):
		s.replace(p, deaths)
		return p, 0, nil
	}
	state := cmp.Or(p.State(), "it did not answer, so Assay ended it")
	err = p.Close()
	return nil, deaths + 1, cmp.Or(s.died(state), err)
}

// died counts a program that ended. It returns a fault if the server is given up.
func (s *Server) died(state string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.program, s.suspect = nil, false
	if s.deaths++; s.deaths < maxStarts {
		return nil
	}
	s.givenUp = fmt.Sprintf("it ended %d times in a row, so this run starts it no more: %s", s.deaths,
		state)
	return s.broken(s.givenUp)
}

func (s *Server) replace(p *program, deaths int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.program, s.deaths, s.suspect = p, deaths, false
}

// broken returns a fault that no other attempt will heal.
func (s *Server) broken(detail string) *assay.Fault {
	return &assay.Fault{
		Kind: assay.ToolServer, Hopeless: true,
		Detail: s.secret.Replace(fmt.Sprintf("environment %s: %s", s.name, detail)),
	}
}

// start starts the program and waits until it is healthy. A program that ends instead is returned,
// too; one that does neither in time has died.
func (s *Server) start(ctx context.Context) (*program, error) {
	port, err := freePort()
	if err != nil {
		return nil, s.broken(err.Error())
	}
	process, err := child.Start(command(&s.config, port))
	if err != nil {
		return nil, s.broken("start: " + err.Error())
	}
	go func() { _, _ = io.Copy(io.Discard, process.Stdout) }() // until Close closes it
	p := &program{process, "http://127.0.0.1:" + port}
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.Timeout, errSilent)
	defer cancel()
	for wait := 20 * time.Millisecond; p.State() == "" && !s.isHealthy(ctx, p); wait = min(2*wait, time.Second) {
		if err := pause(ctx, wait); err != nil {
			err = errors.Join(s.fault(ctx, nil, "start", err), p.Close())
			if errors.Is(context.Cause(ctx), errSilent) {
				err = cmp.Or(s.died("it was not healthy within "+s.config.Timeout.String()), err)
			}
			return nil, err
		}
	}
	return p, nil
}

// freePort returns a port on which nothing listened a moment ago.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), l.Close()
}

// isHealthy reports whether a program answers that it is healthy.
func (s *Server) isHealthy(ctx context.Context, p *program) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/health", nil)
	if err != nil {
		return false
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close() // only the status matters
	return resp.StatusCode == http.StatusOK
}

// pause waits. It returns the error of a context that ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
