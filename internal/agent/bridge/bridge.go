// Package bridge carries out attempts of foreign agents: programs and services that Assay has not
// written. For each attempt it opens a tool server, which speaks MCP, and a gateway to the agent's
// model, which speaks the protocols of package gateway. Both accept the token of that attempt
// alone, and are on loopback unless the agent names another address.
//
// It owns the life of the agent and the two servers. The rules of an attempt, its limits and its
// records belong to [episode.Stage]. The programs of agents run in rooms where the machine has them, and
// otherwise with the rights of the user.
package bridge

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/protocol/responses"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/task/child"
)

// A Bridge serves the tools and the models of all attempts in flight on one address, and on the
// addresses that agents name. It must be closed.
type Bridge struct {
	place     Place
	elsewhere bool // programs do not run on this machine
	server    *http.Server
	bases     map[string]string // URLs, by the address in [Agent.Listen]
	serving   sync.WaitGroup

	mu       sync.Mutex
	attempts map[string]*attempt // by ID
	users    sync.Map            // *user by token
}

// Open opens a bridge on a free port of the loopback interface, and on the addresses that agents
// name. It tells about panics and other errors of its HTTP server, which nobody else hears of.
func Open(tell func(text string), agents ...Agent) (*Bridge, error) {
	return Place{}.Open(tell, agents...)
}

// Open is like [Open] at another place.
func (p Place) Open(tell func(text string), agents ...Agent) (*Bridge, error) {
	b := &Bridge{place: p.completed(), elsewhere: p.Program != nil, bases: make(map[string]string), attempts: make(map[string]*attempt)}
	b.server = &http.Server{
		Handler: b.handler(), ReadHeaderTimeout: time.Minute,
		ErrorLog: log.New(teller(tell), "", 0), BaseContext: base,
	}
	for _, a := range append(agents, Agent{}) {
		if b.bases[a.Listen] != "" {
			continue
		}
		listener, err := b.place.Listen(a.Listen)
		if err != nil {
			return nil, errors.Join(err, b.Close())
		}
		b.bases[a.Listen] = "http://" + listener.Addr().String()
		b.serving.Go(func() { _ = b.server.Serve(listener) }) // Close ends it
	}
	return b, nil
}

// A teller is a writer of a log's lines.
type teller func(text string)

func (t teller) Write(line []byte) (int, error) {
	t(strings.TrimSpace(string(line)))
	return len(line), nil
}

// Close closes the bridge and all connections.
func (b *Bridge) Close() error {
	err := b.server.Close()
	b.serving.Wait()
	return err
}

func (b *Bridge) handler() http.Handler {
	mux := http.NewServeMux()
	tools := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		return r.Context().Value(serverKey{}).(*mcp.Server)
	}, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody,
		DisableLocalhostProtection: true, // each request needs a token
	})
	mux.HandleFunc("/{attempt}/mcp", func(w http.ResponseWriter, r *http.Request) {
		a := b.find(r) // once: the attempt may end meanwhile
		if !a.admits(gateway.Bearer(r.Header)) {
			http.Error(w, refused, http.StatusUnauthorized)
			return
		}
		a.begun.Store(true)
		server := (*a.tools.Load())()
		tools.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), serverKey{}, server)))
	})
	b.serveModels(mux)
	b.serveUsers(mux)
	return mux
}

// serverKey is the key of an attempt's [mcp.Server] in the context of a request.
type serverKey struct{}

// refused answers a request without the token of its attempt.
const refused = "the token is not that of this attempt, or the attempt is over"

// find returns the attempt of a request, or nil.
func (b *Bridge) find(r *http.Request) *attempt {
	id := r.PathValue("attempt")
	if behindDoor(r, id) {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.attempts[id]
}

// An attempt is the servers' view of one. It is never nil while it admits requests.
type attempt struct {
	id, token string
	stage     *episode.Stage
	secrets   *wire.Redactor                     // secrets that the agent's service must not send back
	tools     atomic.Pointer[func() *mcp.Server] // made when the agent first asks for it
	provider  assay.Provider
	ctx       context.Context // ends with the attempt
	clock     *clock
	scratch   string // the scratch directory of a program
	name      string // the agent as the experiment lists it
	model     string
	items     responses.Items // of the replies so far
	end       context.CancelCauseFunc
	heard     func(tool, arguments, answer string) // may be nil
	bug       atomic.Pointer[string]               // the panic of one of its requests
	activity
}

// admits reports whether a token belongs to the attempt.
func (a *attempt) admits(token string) bool {
	return a != nil && subtle.ConstantTimeCompare([]byte(token), []byte(a.token)) == 1
}

// open makes an attempt known to the servers.
func (b *Bridge) open(a *attempt) {
	a.id, a.token = rand.Text()[:10], "assay-"+rand.Text()
	a.refresh()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.attempts[a.id] = a
}

// contain ends the attempt if a request of its agent panics, unless that breaks off a connection on
// purpose. It is to be deferred.
func (a *attempt) contain() {
	if v := recover(); v == http.ErrAbortHandler {
		panic(v)
	} else if v != nil {
		a.bug.Store(new(fmt.Sprintf("%v\n%s", v, debug.Stack())))
		a.end(errOver)
	}
}

// refresh lets the agent see the tools that it can call now.
func (a *attempt) refresh() {
	tools := sync.OnceValue(func() *mcp.Server { return toolServer(a) })
	a.tools.Store(&tools)
}

func (b *Bridge) forget(a *attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.attempts, a.id)
}

// An Agent is a foreign agent as the user describes it: a program, or a service at a URL.
type Agent struct {
	Name string
	// Command is the program and its arguments. It starts in its scratch directory.
	Command []string
	// ACP means that the program speaks the Agent Client Protocol.
	ACP bool
	// Home is the folder of the file that names the agent; see [Agent.At].
	Home string
	URL  string
	// Next is how the agent hears further messages of the user: a command that starts in the same
	// scratch directory, or the URL of the service. It is empty for an agent that cannot.
	Next []string
	// Headers are sent to the URL. ${NAME} stands for an environment variable, one of Keys, whose
	// value is a secret.
	Headers map[string]string
	Keys    []string
	// Listen is where the tools and the model are offered, if not on loopback, and Public is the
	// URL of that place for the agent, if it is different.
	Listen, Public string
	// Pass names further environment variables that the program gets, and Set sets more of them.
	Pass []string
	Set  map[string]string
	// Files are files of the scratch directory, by path.
	Files map[string]string
	// Sandbox says where the program runs. In a room, it sees Read besides what [child.Finds] finds, and
	// nothing else of the folders in Hidden and of Home. It has the network of the machine if
	// OpenNetwork is true or Listen is set. Limits that are 0 are those of [child.DefaultLimits].
	Sandbox      Sandbox
	Read, Hidden []string
	OpenNetwork  bool
	Limits       child.Limits
	// Model is the name of the model that serves the agent.
	Model string
	// Timeout is the time that the agent may take itself, without waiting for its model or a
	// slow tool.
	Timeout time.Duration
}

// A Runner carries out attempts of one agent. It is safe for concurrent use.
type Runner struct {
	bridge   *Bridge
	episodes *episode.Runner
	agent    Agent
	secrets  *wire.Redactor
	room     *child.Room // nil for a service, and without a sandbox
}

// Runner returns a runner of the agent.
func (b *Bridge) Runner(episodes *episode.Runner, agent Agent) *Runner {
	var secrets []wire.Secret
	for _, name := range agent.Keys {
		secrets = append(secrets, wire.NewSecret(keyOf(name)))
	}
	return &Runner{b, episodes, agent, wire.NewRedactor(secrets), b.newRoom(agent)}
}

var (
	errOver    = errors.New("the attempt is over")
	errTimeout = errors.New("the agent used up its time")
)

// Run carries out one attempt. It is like [episode.Runner.Run], but the agent takes the turns.
func (r *Runner) Run(
	ctx context.Context, provider assay.Provider, trial *assay.Trial, task *assay.Task,
) (*assay.Attempt, *assay.Transcript) {
	attempt, transcript, _ := r.Try(ctx, provider, trial, task)
	return attempt, transcript
}

// Try is like Run. It also returns how far the agent got.
func (r *Runner) Try(
	ctx context.Context, provider assay.Provider, trial *assay.Trial, task *assay.Task,
) (*assay.Attempt, *assay.Transcript, Trace) {
	stage, err := r.episodes.Stage(ctx, trial, task)
	if err != nil {
		attempt, transcript := stage.Conclude("", "", nil, err)
		return attempt, transcript, Trace{}
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(errOver)
	a := &attempt{
		stage: stage, provider: provider, ctx: inner, end: cancel, secrets: r.secrets,
		name: trial.Model, model: r.agent.Model, heard: r.bridge.place.Called,
		clock:    newClock(r.agent.Timeout, func() { cancel(errTimeout) }),
		activity: activity{listed: make(chan struct{})},
	}
	defer a.clock.stop()
	r.bridge.open(a)
	defer r.bridge.forget(a)
	defer context.AfterFunc(inner, a.clock.stop)()
	go func() {
		select {
		case <-stage.Over():
			cancel(errOver)
		case <-inner.Done():
		}
	}()

	end := r.work(inner, a)
	if bug := a.bug.Load(); bug != nil {
		panic(*bug) // as if it had happened here
	}
	stage.Settle(ctx)
	if end.stopped || stage.Limited() != "" {
		end.record.Exit = fmt.Sprintf("Assay ended the attempt, because %s (%s)",
			r.why(inner, a, trial), cmp.Or(end.record.Exit, end.fine))
	}
	switch {
	case ctx.Err() != nil:
		end.err = episode.Stopped(ctx)
	case context.Cause(inner) == errTimeout:
		end.ended = assay.AgentTimeout
	case end.err == nil && !a.trace().acted():
		end.err = unstarted(&end, r.shown())
	}
	attempt, transcript := stage.Conclude(end.ended, end.answer, &end.record, end.err)
	attempt.Sandbox = r.sandboxed()
	return attempt, transcript, a.trace()
}

// An end is how an agent ended.
type end struct {
	ended  assay.Ended
	answer string
	record assay.AgentRecord
	err    error
	// fine describes an end without an error, and scratch is the path of the scratch directory.
	fine, scratch string
	// stopped is true if Assay has ended the agent.
	stopped bool
}

// mcpURL and modelURL are the addresses of the attempt's servers.
func (r *Runner) mcpURL(a *attempt) string { return r.modelURL(a) + "/mcp" }

func (r *Runner) modelURL(a *attempt) string {
	base := cmp.Or(r.agent.Public, r.bridge.bases[r.agent.Listen])
	return strings.TrimRight(base, "/") + "/" + a.id
}
