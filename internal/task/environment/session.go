package environment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/assay-eval/assay"
)

// maxMessage limits a message of a server, in bytes.
const maxMessage = 4_000_000

// Waiting for a session ends after longestQueue. A server that is full is asked fullTries times
// before it is believed, because it may still be closing an earlier session.
const (
	longestQueue = 10 * time.Minute
	fullTries    = 4
)

var (
	// errSilent is the cause of a context that ended because the server took too long.
	errSilent = errors.New("the server did not answer in time")
	errFull   = errors.New("the server has no free session")
	errClosed = errors.New("the server closed the session")
	errQueue  = fmt.Errorf("no session became free within %s", longestQueue)
	// errSurplus means that the answers to come belong to earlier messages.
	errSurplus = errors.New("it answered a message more than once")
)

// A Session is one episode of an environment. It belongs to one attempt and must be closed.
type Session struct {
	server  *Server
	program *program // nil for a URL
	conn    *websocket.Conn
	replies chan []byte
	ended   chan struct{} // closed when the connection has ended
	err     error         // why; to be read after ended
	once    sync.Once
	failed  bool // it did not answer as it should, so it is not told that the session ends

	// Last is the latest observation. Its reward is the latest one that the environment gave, unless
	// it is done: an end without a reward is an end without a verdict.
	Last Observation
}

// An Observation is what an environment answers to an action.
type Observation struct {
	Observation json.RawMessage `json:"observation"`
	// Reward is nil as long as the environment has given none.
	Reward *Reward `json:"reward"`
	Done   bool    `json:"done"`
}

// A Reward is a number. An environment may also write true or false.
type Reward float64

// UnmarshalJSON implements [json.Unmarshaler].
func (r *Reward) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "true":
		*r = 1
		return nil
	case "false":
		*r = 0
		return nil
	}
	return json.Unmarshal(b, (*float64)(r))
}

// Open opens a session. It waits while as many are open as the server may have.
func (s *Server) Open(ctx context.Context) (*Session, error) {
	for {
		if err := s.acquire(ctx); err != nil {
			return nil, err
		}
		session, err := s.connect(ctx)
		if err == nil {
			return session, nil
		}
		if !errors.Is(err, errFull) {
			s.release()
			return nil, err
		}
		if !s.shrink() {
			s.release()
			return nil, s.fault(ctx, nil, "open a session", errFull)
		}
	}
}

// acquire takes one of the slots.
func (s *Server) acquire(ctx context.Context) error {
	queue, cancel := context.WithTimeoutCause(ctx, longestQueue, errQueue)
	defer cancel()
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-queue.Done():
	}
	if ctx.Err() != nil {
		return assay.AsFault(ctx.Err())
	}
	return &assay.Fault{Kind: assay.ToolServer, Detail: "environment " + s.name + ": " + errQueue.Error()}
}

func (s *Server) release() { <-s.slots }

// shrink gives up the caller's slot for good, because the server is full. It returns false for the
// last slot.
func (s *Server) shrink() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == 1 {
		return false
	}
	s.sessions--
	return true
}

// connect opens a session within the caller's slot.
func (s *Server) connect(ctx context.Context) (*Session, error) {
	p, err := s.running(ctx)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		session, err := s.dial(ctx, p)
		if err == nil {
			return session, nil
		}
		if !errors.Is(err, errFull) {
			return nil, s.fault(ctx, p, "open a session", err)
		}
		if try == fullTries {
			return nil, errFull
		}
		if err := pause(ctx, s.fullWait<<try); err != nil {
			return nil, assay.AsFault(err)
		}
	}
}

// dial opens a connection. A full server accepts it and then refuses the session, so the session is
// asked for its state.
func (s *Server) dial(ctx context.Context, p *program) (*Session, error) {
	inner, cancel := context.WithTimeoutCause(ctx, s.config.Timeout, errSilent)
	defer cancel()
	url := s.config.URL
	if p != nil {
		url = p.url
	}
	options := &websocket.DialOptions{CompressionMode: websocket.CompressionDisabled}
	if key := os.Getenv(s.config.Key); s.config.Key != "" && key != "" {
		options.HTTPHeader = http.Header{"Authorization": {"Bearer " + key}}
	}
	conn, resp, err := websocket.Dial(inner, strings.TrimRight(url, "/")+"/ws", options)
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close() // a refusal's text is in err
	}
	if err != nil {
		return nil, errors.Join(err, context.Cause(inner))
	}
	conn.SetReadLimit(maxMessage)
	session := &Session{
		server: s, program: p, conn: conn,
		replies: make(chan []byte, 1), ended: make(chan struct{}),
	}
	go session.listen()
	err = session.state(inner)
	if r := (*serverRefusal)(nil); err != nil && (!errors.As(err, &r) || r.Code != noState) {
		session.hangUp()
		<-session.ended
		return nil, err
	}
	return session, nil
}

// The types of answers.
const (
	typeObservation = "observation"
	typeState       = "state"
	typeError       = "error"
)

// noState is the code of an environment that has no state before it is reset.
const noState = "EXECUTION_ERROR"

// state asks for the state of the environment. Only the answer matters: it shows that the server
// serves the session, and that it owes no answer.
func (s *Session) state(ctx context.Context) error {
	_, err := s.ask(ctx, typeState, map[string]any{"type": "state"})
	return err
}

// Finish returns a fault if the last observation may not be the last one, because the server has
// sent more answers than it was asked for, or has not kept the session to the end of the episode.
func (s *Session) Finish(ctx context.Context) error {
	const doing = "end the episode"
	if s.failed {
		return s.server.fault(ctx, s.program, doing, errClosed)
	}
	inner, cancel := s.server.patient(ctx)
	defer cancel()
	err := s.state(inner)
	refusal := (*serverRefusal)(nil) // an answer, too
	closed := s.Last.Done && errors.Is(err, errClosed) && !errors.Is(err, errSurplus)
	if err == nil || errors.As(err, &refusal) || closed {
		return nil
	}
	s.failed = true
	return s.server.fault(inner, s.program, doing, err)
}

// listen reads messages until the connection ends. It always reads, because servers end connections
// that do not answer their pings.
func (s *Session) listen() {
	defer close(s.ended)
	for {
		_, text, err := s.conn.Read(context.Background()) // hangUp ends it
		if err == nil {
			select {
			case s.replies <- text:
				continue
			default:
				err = errSurplus
			}
		}
		s.err = fmt.Errorf("%w: %w", errClosed, err)
		s.hangUp()
		return
	}
}

func (s *Session) hangUp() { _ = s.conn.CloseNow() }

// Close ends the session, and waits until the server has done so, too, so that its place is free.
func (s *Session) Close() error {
	s.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), healthy)
		defer cancel()
		if !s.failed && s.conn.Write(ctx, websocket.MessageText, []byte(`{"type":"close"}`)) == nil {
			select {
			case <-s.ended:
				s.server.served(s.program)
			case <-ctx.Done():
			}
		}
		s.hangUp()
		<-s.ended
		s.server.release()
	})
	return nil
}

// served notes that a program served a session to its end.
func (s *Server) served(p *program) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.program == p && (p == nil || p.State() == "") {
		s.deaths = 0
	}
}

// A serverRefusal is a message of the server that something went wrong.
type serverRefusal struct{ Code, Message string }

func (r *serverRefusal) Error() string { return r.Code + ": " + r.Message }

// ask sends a message and returns the data of its answer, which has to be of a type. Messages have
// no IDs, so an answer too many is noticed before the next question, or by its type.
func (s *Session) ask(ctx context.Context, want string, message any) (json.RawMessage, error) {
	text, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	select {
	case <-s.replies:
		return nil, errSurplus
	default:
	}
	// If it cannot be sent, the connection is about to end, and the reason may be under way.
	_ = s.conn.Write(ctx, websocket.MessageText, text)
	select {
	case reply := <-s.replies:
		return read(reply, want)
	case <-s.ended:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case reply := <-s.replies: // it came just before the end
		return read(reply, want)
	default:
		return nil, s.err
	}
}

// read returns the data of a message of a type.
func read(text []byte, want string) (json.RawMessage, error) {
	var m struct {
		Type string
		Data json.RawMessage
	}
	err := json.Unmarshal(text, &m)
	if err == nil && m.Type == "" {
		err = errors.New("it has no type")
	}
	if err != nil {
		return nil, fmt.Errorf("it sent something that is not a message: %q (%w)",
			assay.Head(string(text), 80), err)
	}
	switch m.Type {
	case want:
		return m.Data, nil
	case typeError:
	case typeObservation, typeState:
		return nil, errSurplus
	default:
		return nil, fmt.Errorf("it sent a message of the type %q instead of %s", m.Type, want)
	}
	r := new(serverRefusal)
	if err := json.Unmarshal(m.Data, r); err != nil {
		return nil, fmt.Errorf("it sent an error that is not a message: %q", assay.Head(string(text), 80))
	}
	if r.Code == "CAPACITY_REACHED" {
		return nil, fmt.Errorf("%w: %s", errFull, r.Message)
	}
	return nil, r
}

// act sends a message that an observation answers.
func (s *Session) act(ctx context.Context, doing string, message any) (*Observation, error) {
	inner, cancel := s.server.patient(ctx)
	defer cancel()
	data, err := s.ask(inner, typeObservation, message)
	if err != nil {
		s.failed = true
		return nil, s.server.fault(inner, s.program, doing, err)
	}
	o := new(Observation)
	if err := json.Unmarshal([]byte(s.server.secret.Replace(string(data))), o); err != nil ||
		len(o.Observation) == 0 || o.Observation[0] != '{' {
		err = fmt.Errorf("it sent no observation: %q", assay.Head(string(data), 80))
		return nil, s.server.fault(inner, s.program, doing, err)
	}
	return o, nil
}

// step takes an action and remembers the observation.
func (s *Session) step(ctx context.Context, doing string, action any) (*Observation, error) {
	o, err := s.act(ctx, doing, map[string]any{"type": "step", "data": action})
	if err != nil {
		return nil, err
	}
	if o.Reward == nil && !o.Done {
		o.Reward = s.Last.Reward
	}
	s.Last = *o
	return o, nil
}

// Reset begins an episode with the arguments of a task, and with a seed unless they have one. A seed
// has 31 bits, because many libraries take no more. Reset hands over the token of the user, if a
// model speaks as one.
func (s *Session) Reset(
	ctx context.Context, task json.RawMessage, seed uint64,
) (*Observation, error) {
	arguments := map[string]json.RawMessage{"seed": fmt.Append(nil, seed&(1<<31-1))}
	if len(task) > 0 {
		if err := json.Unmarshal(task, &arguments); err != nil || arguments == nil {
			return nil, s.server.broken("the task's reset is not an object")
		}
	}
	if line := lineOf(ctx); line != nil {
		arguments[tokenArgument] = json.RawMessage(`"` + inJSON(line.Token) + `"`)
	}
	o, err := s.act(ctx, "reset", map[string]any{"type": "reset", "data": arguments})
	if err != nil {
		return nil, err
	}
	s.Last = *o
	return o, nil
}

// Say takes the action that hands over what the agent says to the user.
func (s *Session) Say(ctx context.Context, text string) (*Observation, error) {
	action := strings.ReplaceAll(string(s.server.config.Answer), "{answer}", inJSON(text))
	return s.step(ctx, "hand over the answer", json.RawMessage(action))
}

// inJSON returns a text as it is in a string of JSON.
func inJSON(text string) string {
	quoted, _ := json.Marshal(text) // a string can always be encoded
	return string(quoted[1 : len(quoted)-1])
}

// shortestKey is the length of a key from which it is removed from the output of a server.
const shortestKey = 8

// redactor replaces the key of a server, which may echo it.
func redactor(config *assay.MCPServer) *strings.Replacer {
	var pairs []string
	if key := os.Getenv(config.Key); config.Key != "" && len(key) >= shortestKey {
		pairs = append(pairs, key, "[redacted]", inJSON(key), "[redacted]")
	}
	return strings.NewReplacer(pairs...)
}

// fault names the way in which a server failed. If ctx ended for another reason, that counts.
func (s *Server) fault(ctx context.Context, p *program, doing string, err error) error {
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errSilent) {
		return assay.AsFault(ctx.Err())
	}
	if fault := (*assay.Fault)(nil); errors.As(err, &fault) {
		return fault
	}
	detail := err.Error()
	if p != nil && ctx.Err() == nil {
		select { // the end of a program may become known later than the end of its connections
		case <-p.Ended():
		case <-time.After(lateEnd(err)):
		}
	}
	switch {
	case p != nil && p.State() != "":
		detail = "it ended: " + p.State()
	case ctx.Err() != nil:
		detail = "it did not answer within " + s.config.Timeout.String()
		s.mu.Lock()
		s.suspect = s.suspect || p == nil || s.program == p
		s.mu.Unlock()
	}
	return &assay.Fault{
		Kind: assay.ToolServer, Err: err,
		Detail: s.secret.Replace(fmt.Sprintf("environment %s: %s: %s", s.name, doing, detail)),
	}
}

// lateEnd is how long to wait for the end of a program that may have ended.
func lateEnd(err error) time.Duration {
	if errors.Is(err, errClosed) {
		return 500 * time.Millisecond
	}
	return 0
}
