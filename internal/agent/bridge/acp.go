package bridge

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/child"
)

// speak lets an agent that speaks the Agent Client Protocol work on the task, on its standard streams:
// https://agentclientprotocol.com. It gets its tools as an MCP server of the session, and each message of
// the user as a prompt. Its text since the latest prompt is the answer.
func (r *Runner) speak(ctx context.Context, a *attempt) end {
	p, err := child.Start(r.childOf(a, r.agent.Command, a.stage.Prompt()))
	if err != nil {
		return broken("start the agent", err)
	}
	a.started.Store(true)
	c := &acpClient{attempt: a, roomed: r.room != nil}
	replies, forReplies := io.Pipe()
	go c.listen(p.Stdout, forReplies)
	c.conn = acp.NewConnection(c.handle, p.Stdin, replies)
	c.conn.SetLogger(slog.New(slog.DiscardHandler)) // an agent's mistakes are not the run's
	e := r.dialogue(ctx, a, c)
	died := false
	switch {
	case ctx.Err() != nil:
		e.stopped = true
		_ = c.conn.SendNotification(context.WithoutCancel(ctx), acp.AgentMethodSessionCancel,
			acp.CancelNotification{SessionId: c.session()})
		p.Stop()
	case e.ended == assay.AgentError:
		if died = p.EndsWithin(dying); !died {
			p.Stop() // it would take the end of its input for the end of a task
		}
	}
	_ = p.Close() // nothing is left to remove
	if e.stopped || died {
		e.ended, e.answer, e.record.Exit = assay.AgentError, "", byOthers(p.State())
	}
	e.scratch = a.scratch
	e.record.Output, e.record.Errors, e.record.Plan = c.said(), p.Stderr(), c.latestPlan()
	return e
}

// dying is how long a program may take to end after it has closed its output.
const dying = 500 * time.Millisecond

const (
	// maxLine is the longest message of an agent, in bytes, and maxSpoken how much it may say in an attempt.
	maxLine, maxSpoken = 8 << 20, 256 << 20
)

// listen passes on what an agent writes, but for notifications, which it takes itself: the connection breaks
// if there are many at once. It remembers why it stopped listening.
func (c *acpClient) listen(from io.Reader, to *io.PipeWriter) {
	lines := bufio.NewReaderSize(from, 64<<10)
	var line []byte
	spoken := 0
	for {
		part, err := lines.ReadSlice('\n')
		line, spoken = append(line, part...), spoken+len(part)
		switch {
		case len(line) > maxLine:
			c.deaf.Store(new(fmt.Sprintf("it sent a message of more than %d MB", maxLine>>20)))
		case spoken > maxSpoken:
			c.deaf.Store(new(fmt.Sprintf("it sent more than %d MB", maxSpoken>>20)))
		}
		if c.deaf.Load() != nil {
			_ = to.Close()
			_, _ = io.Copy(io.Discard, lines) // so that it does not wait for us
			return
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if !c.notified(line) {
			if _, wrong := to.Write(line); wrong != nil && err == nil {
				err = wrong
			}
		}
		if line = line[:0]; err != nil {
			_ = to.CloseWithError(err)
			return
		}
	}
}

// notified takes a line that is a notification.
func (c *acpClient) notified(line []byte) bool {
	var m struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	if json.Unmarshal(line, &m) != nil || m.ID != nil || m.Method != acp.ClientMethodSessionUpdate {
		return false
	}
	var u updated
	if json.Unmarshal(m.Params, &u) == nil && u.SessionID == c.session() {
		c.update(&u)
	}
	return true
}

// opening is how long an agent may take to open a session. One that does not speak the protocol never does.
const opening = 2 * time.Minute

const (
	// connecting is how long a session may take to ask for its tools, and settling how long to take note of
	// them. Some agents do that in the background, and begin without tools if they are prompted at once.
	connecting, settling = 5 * time.Second, 100 * time.Millisecond
)

// awaitListing waits until the agent knows its tools, or for a while if it only asks for them when prompted.
func (a *attempt) awaitListing(ctx context.Context) {
	if a.hasListed() {
		return
	}
	select {
	case <-a.listed:
		select {
		case <-time.After(settling):
		case <-ctx.Done():
		}
	case <-time.After(connecting):
	case <-ctx.Done():
	}
}

// dialogue opens a session and prompts the agent until the user says no more.
func (r *Runner) dialogue(ctx context.Context, a *attempt, c *acpClient) (e end) {
	e = end{ended: assay.Finished, fine: string(acp.StopReasonEndTurn)}
	if err := c.begin(ctx, min(opening, r.agent.Timeout/2), r.mcpURL(a), a.token, a.scratch); err != nil {
		return end{ended: assay.AgentError, record: assay.AgentRecord{Exit: err.Error()}}
	}
	a.awaitListing(ctx)
	for message := a.stage.Prompt(); ; {
		stop, err := c.prompt(ctx, message)
		if err != nil {
			return end{ended: assay.AgentError, record: assay.AgentRecord{Exit: err.Error()}}
		}
		e.answer = c.answer()
		if stop != acp.StopReasonEndTurn {
			e.record.Exit = "it stopped because of " + strings.ReplaceAll(string(stop), "_", " ")
		}
		if !a.trace().acted() || ctx.Err() != nil {
			return e
		}
		goOn := a.clock.pause() // the user's time is not the agent's
		message = a.stage.Reply(e.answer)
		goOn()
		if message == "" {
			return e
		}
		a.refresh()
	}
}

// An acpClient is Assay's end of a connection with an agent.
type acpClient struct {
	attempt *attempt
	conn    *acp.Connection
	roomed  bool
	deaf    atomic.Pointer[string] // why the agent is not listened to any more

	mu    sync.Mutex
	id    acp.SessionId // of the session
	words []byte        // since the latest prompt
	all   []byte        // the end of all words
	apart bool          // a call came after the latest words
	plan  []string
}

// The parts of answers that matter. The SDK's own types refuse those of agents that are newer than it.
type (
	initialized struct {
		ProtocolVersion   *int
		AgentCapabilities struct {
			MCP struct{ HTTP bool } `json:"mcpCapabilities"`
		}
		AuthMethods []struct{ Name string }
	}
	opened struct {
		SessionID acp.SessionId
		Modes     struct {
			CurrentModeID  acp.SessionModeId
			AvailableModes []struct{ ID acp.SessionModeId }
		}
	}
	stopped struct{ StopReason acp.StopReason }
	updated struct {
		SessionID acp.SessionId
		Update    struct {
			Kind    string `json:"sessionUpdate"`
			Content json.RawMessage
			Entries []struct{ Content string }
		}
	}
	asked struct {
		ToolCall struct{ Kind acp.ToolKind }
		Options  []struct {
			Kind     acp.PermissionOptionKind
			OptionID acp.PermissionOptionId
		}
	}
)

// plainMode is the mode in which agents that know it ask nobody else whether a call is fine.
const plainMode = "default"

// begin opens a session with the tools at a URL, in that time.
func (c *acpClient) begin(ctx context.Context, within time.Duration, url, token, dir string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer in %v", within))
	defer cancel()
	hello, err := request[initialized](ctx, c, acp.AgentMethodInitialize, acp.InitializeRequest{
		ProtocolVersion: acp.ProtocolVersionNumber,
		ClientInfo:      &acp.Implementation{Name: "assay", Version: "1"},
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w; does it speak the Agent Client Protocol?", err)
	}
	if err != nil {
		return err
	}
	if v := hello.ProtocolVersion; v != nil && *v != acp.ProtocolVersionNumber {
		return fmt.Errorf("the agent speaks version %d of the protocol, not %d", *v, acp.ProtocolVersionNumber)
	}
	if !hello.AgentCapabilities.MCP.HTTP {
		return errors.New("the agent takes no MCP servers over HTTP, so it cannot reach its tools")
	}
	session, err := request[opened](ctx, c, acp.AgentMethodSessionNew, acp.NewSessionRequest{
		Cwd: dir,
		McpServers: []acp.McpServer{{Http: &acp.McpServerHttpInline{
			Type: "http", Name: "assay", Url: url,
			Headers: []acp.HttpHeader{{Name: "Authorization", Value: "Bearer " + token}},
		}}},
	})
	if err != nil {
		var methods []string
		for _, m := range hello.AuthMethods {
			methods = append(methods, m.Name)
		}
		if len(methods) > 0 {
			err = fmt.Errorf("%w (it knows the logins %s)", err, strings.Join(methods, ", "))
		}
		return err
	}
	if session.SessionID == "" {
		return errors.New(acp.AgentMethodSessionNew + ": the answer names no session")
	}
	c.mu.Lock()
	c.id = session.SessionID
	c.mu.Unlock()
	if session.Modes.CurrentModeID == plainMode {
		return nil
	}
	for _, m := range session.Modes.AvailableModes {
		if m.ID == plainMode {
			_, err := request[struct{}](ctx, c, acp.AgentMethodSessionSetMode,
				acp.SetSessionModeRequest{SessionId: c.session(), ModeId: m.ID})
			return err
		}
	}
	return nil
}

// prompt sends a message of the user, and returns why the agent stopped.
func (c *acpClient) prompt(ctx context.Context, message string) (acp.StopReason, error) {
	c.mu.Lock()
	c.words, c.apart = nil, false
	c.mu.Unlock()
	reply, err := request[stopped](ctx, c, acp.AgentMethodSessionPrompt, acp.PromptRequest{
		SessionId: c.session(), Prompt: []acp.ContentBlock{acp.TextBlock(message)},
	})
	return cmp.Or(reply.StopReason, acp.StopReasonEndTurn), err
}

// request sends a request and returns its answer. An error names the method.
func request[T any](ctx context.Context, c *acpClient, method string, params any) (T, error) {
	var reply T
	raw, err := acp.SendRequest[json.RawMessage](c.conn, ctx, method, params)
	deaf := c.deaf.Load()
	switch {
	case err == nil && (len(raw) == 0 || json.Unmarshal(raw, &reply) == nil):
		return reply, nil
	case deaf != nil:
		return reply, fmt.Errorf("%s: %s", method, *deaf)
	case ctx.Err() != nil:
		return reply, fmt.Errorf("%s: %w", method, context.Cause(ctx))
	case err == nil:
		return reply, fmt.Errorf("%s: the answer is not as the protocol has it: %s", method,
			assay.Head(c.attempt.secrets.Text(string(raw)), 200))
	}
	return reply, fmt.Errorf("%s: %s", method, c.attempt.secrets.Text(err.Error()))
}

// session returns the ID of the session, which is empty before there is one.
func (c *acpClient) session() acp.SessionId {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.id
}

// handle answers requests of the agent.
func (c *acpClient) handle(_ context.Context, method string, params json.RawMessage) (any, *acp.RequestError) {
	if method != acp.ClientMethodSessionRequestPermission {
		return nil, acp.NewMethodNotFound(method)
	}
	var q asked
	if err := json.Unmarshal(params, &q); err != nil {
		return nil, acp.NewInvalidParams(err.Error())
	}
	return c.permit(&q), nil
}

// update notes what the agent says and plans.
func (c *acpClient) update(u *updated) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch u.Update.Kind {
	case "agent_message_chunk":
		var text struct{ Text string }
		if json.Unmarshal(u.Update.Content, &text) != nil {
			return
		}
		if c.apart && len(c.words) > 0 {
			text.Text = "\n" + text.Text
		}
		c.apart = false
		c.words = ending(append(c.words, text.Text...))
		c.all = ending(append(c.all, text.Text...))
	case "tool_call":
		c.apart = true
	case "plan":
		c.plan = nil
		for _, e := range u.Update.Entries {
			c.plan = append(c.plan, e.Content)
		}
	}
}

// ending returns the end of a text that is kept.
func ending(text []byte) []byte {
	if len(text) > 2*maxOutput {
		text = append(text[:0], text[len(text)-maxOutput-1:]...) // one more byte shows the cut
	}
	return text
}

// harmless are the kinds of calls that an agent without a room may make. Those of our tools are "other".
var harmless = map[acp.ToolKind]bool{
	"": true, acp.ToolKindOther: true, acp.ToolKindRead: true, acp.ToolKindSearch: true, acp.ToolKindThink: true,
}

// permit allows a call once, or for the session if nothing else is offered. Without a room, it refuses
// calls that could touch the machine.
func (c *acpClient) permit(q *asked) acp.RequestPermissionResponse {
	wanted := []acp.PermissionOptionKind{acp.PermissionOptionKindAllowOnce, acp.PermissionOptionKindAllowAlways}
	if !c.roomed && !harmless[q.ToolCall.Kind] {
		wanted = []acp.PermissionOptionKind{acp.PermissionOptionKindRejectOnce, acp.PermissionOptionKindRejectAlways}
	}
	for _, kind := range wanted {
		for _, o := range q.Options {
			if o.Kind == kind {
				return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(o.OptionID)}
			}
		}
	}
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}
}

// answer returns what the agent has said since the latest prompt, and said the end of all that it has said.
func (c *acpClient) answer() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return lastOf(strings.NewReader(string(c.words)))
}

func (c *acpClient) said() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return lastOf(strings.NewReader(string(c.all)))
}

// latestPlan returns the entries of the agent's latest plan.
func (c *acpClient) latestPlan() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.plan
}
