package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-eval/assay/internal/agent/bridge"
	programs "github.com/assay-eval/assay/internal/task/child"
)

// agentName is how experiments list the agent, which takes the place of the second model of a plan
// and is served by it.
const agentName = "robot"

// The limits of the agent in the providers file.
const (
	agentTimeout     = 3 * time.Minute
	agentConcurrency = 8
)

// A house is a machine on which agents run, with its network. They live and die with a process of
// Assay.
type house struct {
	*crew
	life *life // nil on the machine of a worker

	listener atomic.Pointer[listener]
	working  atomic.Int32
}

// A crew knows what the agents of a world did.
type crew struct {
	variant uint64 // of what they do
	// broken reports whether agents do not start now. It is nil in rehearsals, in which all do.
	broken func() bool

	mu    sync.Mutex // guards the fields below
	tries map[uint64]int
	all   []*player
	// asking counts requests of agents to their models, and crowd how many there were together.
	asking, crowd int
}

func newCrew(variant uint64, broken func() bool) *crew {
	return &crew{variant: variant, broken: broken, tries: make(map[uint64]int)}
}

// killed notes that the process of some agents dies.
func (c *crew) killed(l *life) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.all {
		if p.life == l && (p.ended.IsZero() || time.Since(p.ended) <= flushWait) {
			p.cut = true
		}
	}
}

// isAgents reports whether a model, as in requests, serves the agent.
func (w *world) isAgents(model string) bool {
	return w.crew != nil && model == strings.Replace(plans[w.plan].models[1], "/", "-", 1)
}

// described describes the agent of the world.
func (w *world) described() bridge.Agent {
	a := bridge.Agent{
		Name: agentName, Model: plans[w.plan].models[1], Timeout: agentTimeout, Sandbox: bridge.NoSandbox,
	}
	if w.agent == "service" {
		a.URL = "http://agents.sim/run"
	} else {
		a.Command = []string{"sh"} // which does not run
	}
	return a
}

// at lets a process reach agents. It is nil on the machine of a worker.
func (c *crew) at(l *life) bridge.Place {
	h := &house{crew: c, life: l}
	return bridge.Place{
		Listen: func(string) (net.Listener, error) {
			l := newListener()
			h.listener.Store(l)
			return l, nil
		},
		Program: h.runProgram, Services: h,
	}
}

// runProgram implements [bridge.Program].
func (h *house) runProgram(ctx context.Context, c programs.Command, input string, read func(io.Reader)) (bridge.Exit, error) {
	set := make(map[string]string)
	for _, v := range c.Plain {
		name, value, _ := strings.Cut(v, "=")
		set[name] = value
	}
	p := h.begin(ctx, input, set["ASSAY_MCP_URL"], set["OPENAI_BASE_URL"], set["ASSAY_TOKEN"])
	output, err := p.run()
	read(strings.NewReader(output))
	switch {
	case ctx.Err() != nil:
		return bridge.Exit{Code: -1, State: "signal: terminated", Stopped: true}, nil
	case err != nil:
		return bridge.Exit{Code: 3, State: "exit status 3", Errors: err.Error()}, nil
	}
	return bridge.Exit{State: "exit status 0"}, nil
}

// RoundTrip carries out the work of an agent that is a service.
func (h *house) RoundTrip(r *http.Request) (*http.Response, error) {
	var told map[string]string
	if err := json.NewDecoder(r.Body).Decode(&told); err != nil {
		return nil, err
	}
	p := h.begin(r.Context(), told["prompt"], told["mcp_url"], told["model_url"]+"/v1", told["token"])
	output, err := p.run()
	switch {
	case r.Context().Err() != nil:
		return nil, context.Cause(r.Context())
	case err != nil:
		return respond(http.StatusInternalServerError, strings.NewReader(err.Error()), -1), nil
	}
	text, err := json.Marshal(map[string]string{"text": output})
	return respond(http.StatusOK, bytes.NewReader(text), int64(len(text))), err
}

// A player is an agent that works on an attempt, as a small framework does: it asks its model,
// carries out the calls of the reply, and tells their results.
type player struct {
	*house
	ctx               context.Context
	prompt            string
	tools, model, key string
	dice              dice
	client            *http.Client
	mood              string
	at                int  // the turn in which the mood shows
	quits             bool // if the model does not reply soon

	// What the laws ask for.
	acted, refused bool
	cut            bool // its process, or Assay, ended it, or died before its end was on disk
	replies        int  // of the model that were read
	ended          time.Time
}

// begin starts an agent. What it does depends on its prompt alone, except for troubles of the
// first attempts, of which nothing comes.
func (h *house) begin(ctx context.Context, prompt, tools, model, key string) *player {
	sum := fnv.New64a()
	_, _ = io.WriteString(sum, prompt)
	p := &player{house: h, ctx: ctx, prompt: prompt, tools: tools, model: model, key: key, dice: newDice(sum.Sum64(), h.variant).shaken()}
	p.mood, p.at = drawMood(p.dice), p.dice.IntN(3)
	falters, quits := p.dice.often(8), p.dice.often(8)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tries[sum.Sum64()]++
	h.all = append(h.all, p)
	if h.broken == nil {
		return p
	}
	first := h.tries[sum.Sum64()] == 1
	if p.quits = first && quits; first && falters || h.broken() {
		p.mood = "is broken"
	}
	return p
}

func drawMood(d dice) string {
	if d.often(35) {
		return "honest"
	}
	return d.of("crashes", "hangs", "talks", "floods the model", "floods the tools", "leaves", "asks twice", "asks twice at once",
		"is deaf", "is impatient")
}

// run works until the agent ends in some way.
func (p *player) run() (output string, err error) {
	listener := p.listener.Load()
	transport := &http.Transport{DialContext: listener.dial}
	p.client = &http.Client{Transport: transport}
	defer transport.CloseIdleConnections()
	if n := p.working.Add(1); n > agentConcurrency && p.life != nil {
		p.life.violated("law 2: %d agents work at once, but their concurrency is %d", n, agentConcurrency)
	}
	output, err = p.work()
	p.working.Add(-1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = p.cut || p.ctx.Err() != nil
	p.ended = time.Now()
	return output, err
}

var errCrashed = errors.New("panic: simulated")

func (p *player) work() (string, error) {
	if p.mood == "is broken" {
		return "", errCrashed
	}
	listed, err := p.call("tools/list", nil)
	if err != nil {
		return "", err
	}
	tools := functionsOf(listed)
	messages := []any{map[string]any{"role": "user", "content": p.prompt}}
	for turn := 0; ; turn++ {
		p.sleep(time.Duration(p.dice.IntN(5000)) * time.Millisecond)
		mood := ""
		if turn == p.at {
			mood = p.mood
		}
		switch mood {
		case "hangs":
			<-p.ctx.Done()
			return "", p.ctx.Err()
		case "floods the tools":
			for range 40 {
				if _, err := p.call("tools/call", map[string]any{"name": "tool_search", "arguments": map[string]any{"query": "x"}}); err != nil {
					return "", err
				}
			}
		}
		reply, err := p.asks(mood, map[string]any{"model": "m", "messages": messages, "tools": tools})
		if err != nil {
			return "", err
		}
		switch mood {
		case "crashes":
			return "", errCrashed
		case "leaves":
			return "", nil
		}
		messages = append(messages, reply)
		calls, _ := reply["tool_calls"].([]any)
		if len(calls) == 0 {
			text, _ := reply["content"].(string)
			if p.mood == "talks" {
				text = strings.Repeat("blah ", 100_000) + text
			}
			return text, nil
		}
		for _, c := range calls {
			told, err := p.carryOut(c.(map[string]any))
			if err != nil {
				return "", err
			}
			messages = append(messages, told)
		}
	}
}

// asks asks the model in some mood.
func (p *player) asks(mood string, body any) (map[string]any, error) {
	n, together := 1, false
	switch mood {
	case "is impatient":
		ctx, cancel := context.WithTimeout(p.ctx, time.Duration(5+p.dice.IntN(60))*time.Second)
		reply, err := p.ask(ctx, body)
		late := ctx.Err() != nil && !p.quits
		cancel()
		if err == nil || !late {
			return reply, err
		}
	case "floods the model":
		n, together = 3+p.dice.IntN(30), true
	case "asks twice", "is deaf":
		n = 2
	case "asks twice at once":
		n, together = 2, true
	}
	type answer struct {
		reply map[string]any
		err   error
	}
	answers := make([]answer, n)
	var asking sync.WaitGroup
	for i := range answers {
		one := func() { answers[i].reply, answers[i].err = p.ask(p.ctx, body) }
		if asking.Go(one); !together {
			if asking.Wait(); answers[i].err != nil {
				break
			}
		}
	}
	asking.Wait()
	if failed := slices.IndexFunc(answers, func(a answer) bool { return a.err != nil }); failed >= 0 {
		return nil, answers[failed].err
	}
	return answers[n-1].reply, nil
}

// ask sends a request to the model.
func (p *player) ask(ctx context.Context, body any) (map[string]any, error) {
	if p.quits {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 15*time.Second)
		defer cancel()
	}
	p.counts(1)
	reply, err := p.post(ctx, p.model+"/chat/completions", body)
	p.counts(-1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acted = true
	choices, _ := reply["choices"].([]any)
	switch {
	case err == nil && len(choices) > 0:
		p.replies++
		return choices[0].(map[string]any)["message"].(map[string]any), nil
	case err == nil:
		err = fmt.Errorf("no choices: %v", reply)
	}
	p.refused = true
	return nil, err
}

func (c *crew) counts(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking += n
	c.crowd = max(c.crowd, c.asking)
}

// carryOut carries out a call that the model asks for, and returns the message with its result.
func (p *player) carryOut(call map[string]any) (told map[string]any, err error) {
	function := call["function"].(map[string]any)
	result, err := p.call("tools/call", map[string]any{
		"name": function["name"], "arguments": json.RawMessage(function["arguments"].(string)),
	})
	if err != nil {
		return nil, err
	}
	text := result["content"].([]any)[0].(map[string]any)["text"]
	return map[string]any{"role": "tool", "tool_call_id": call["id"], "content": text}, nil
}

// call calls a method of the tool server.
func (p *player) call(method string, params map[string]any) (map[string]any, error) {
	reply, err := p.post(p.ctx, p.tools, map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if method == "tools/call" {
		p.mu.Lock()
		p.acted = true
		p.mu.Unlock()
	}
	result, ok := reply["result"].(map[string]any)
	if err == nil && !ok {
		err = fmt.Errorf("no result: %v", reply)
	}
	return result, err
}

func (p *player) post(ctx context.Context, url string, body any) (reply map[string]any, err error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+p.key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := p.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if err = json.NewDecoder(resp.Body).Decode(&reply); resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %v", resp.Status, reply)
	}
	return reply, err
}

func (p *player) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-p.ctx.Done():
	}
}

// functionsOf returns the tools of a list as models know them.
func functionsOf(list map[string]any) (functions []any) {
	tools, _ := list["tools"].([]any)
	for _, t := range tools {
		t := t.(map[string]any)
		functions = append(functions, map[string]any{"type": "function", "function": map[string]any{
			"name": t["name"], "description": t["description"], "parameters": t["inputSchema"],
		}})
	}
	return functions
}
