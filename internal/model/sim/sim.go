// Package sim provides the built-in simulated models: agents of known skill that need no key and no
// network. Users rehearse experiments with them, and tests compare the engine, the worlds and the
// scores with computed probabilities.
//
// An agent's choice depends only on the conversation and on the tools that it knows. It therefore
// gives the same answer in this process and behind an HTTP server, at any concurrency. Only a share
// of the decisions of [Made] also depends on the trial's seed, which no server gets to know.
package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/adapter"
	"github.com/assay-eval/assay/internal/task/workflow"
)

// The built-in models.
const (
	Listed   = "sim/listed"   // runs the steps in order, each until it succeeds
	Optimal  = "sim/optimal"  // follows the exact best policy, whatever its plan is
	Expert   = "sim/expert"   // works from the description and treats a plan as a hint
	Obedient = "sim/obedient" // runs the given plan to the letter
	Searcher = "sim/searcher" // searches forever
	Mute     = "sim/mute"     // never calls a tool
	Judge    = "sim/judge"    // judges by rubrics, and answers `assay store classify`; see [errsOf]
	Batcher  = "sim/batcher"  // follows the exact best policy for its plan, with several calls in a reply

	// The models whose probabilities are known; see [Presets].
	Careful = "sim/careful"
	Eager   = "sim/eager"
	Brittle = "sim/brittle"
	Made    = "sim/made" // takes [Parameters] in its name

	// The agents that try to succeed without doing the task; see [Gaming].
	Alphabet = "sim/alphabet" // calls all tools in alphabetical order
	Sprayer  = "sim/sprayer"  // searches for general words and calls the tools found
	Copier   = "sim/copier"   // repeats the whole plan, to the letter
	Inputs   = "sim/inputs"   // runs the plan's tools on the task's inputs
	Guesser  = "sim/guesser"  // guesses the tools from the names of the task's inputs
	Claimer  = "sim/claimer"  // claims to be done at once
	Starter  = "sim/starter"  // reads, parses and claims to be done
)

// Names lists the built-in models.
var Names = slices.Concat(Reference, Gaming)

// Reference lists the models of known skill, with which users rehearse experiments.
var Reference = []string{
	Listed, Optimal, Expert, Obedient, Searcher, Mute, Judge, Batcher, Careful, Eager, Brittle, Made,
}

// Gaming lists the agents that do not do the task. A sound verdict gives them hardly any credit.
var Gaming = []string{Alphabet, Sprayer, Copier, Inputs, Guesser, Claimer, Starter}

// Is reports whether a model is built in, with right parameters if it has any.
func Is(model string) bool {
	_, made, err := characterOf(model)
	_, judge, wrong := errsOf(model)
	return made && err == nil || judge && wrong == nil || slices.Contains(Names, model)
}

// Latency describes how long replies take. It is log-normal, with the given median and with Sigma
// as the standard deviation of the logarithm. The zero value means no delay.
type Latency struct {
	Median time.Duration
	Sigma  float64
}

// Models answers for all built-in models. It is safe for concurrent use.
type Models struct {
	catalog *assay.Catalog
	guide   *guide // to the catalog
	latency Latency
	// answers returns the answer to a task with tools that users wrote, or "".
	answers func(description string) string
	// tasks returns the task with a description, for [Optimal] and the models whose probabilities are
	// known.
	tasks func(description string) (assay.Task, bool)

	mu       sync.Mutex
	policies map[string]*workflow.Policy
	held     int // bytes of policies

	adapters *lru.Cache[adapterKey, *adapter.Adapter]
}

var _ assay.Provider = (*Models)(nil)

// New returns the built-in models. The catalog is the knowledge of tools that the experts among
// them have.
func New(catalog *assay.Catalog, latency Latency) *Models {
	var tools []listing
	for _, t := range catalog.All() {
		tools = append(tools, list(t.Name, t.Description))
	}
	adapters, _ := lru.New[adapterKey, *adapter.Adapter](512) // the size is positive
	return &Models{
		adapters: adapters,
		catalog:  catalog, guide: newGuide(tools), latency: latency,
		policies: make(map[string]*workflow.Policy),
	}
}

// Knowing lets the agents that carry out a plan know the answers to tasks with tools that users
// wrote. A prompt does not have them.
func (m *Models) Knowing(answers func(description string) string) *Models {
	m.answers = answers
	return m
}

// KnowingTasks lets [Optimal] and the models whose probabilities are known look up what a task needs.
// They and all others need it to read another interface of the tools than their own.
// Without it they take a plan for right, and guess from the description if there is none.
func (m *Models) KnowingTasks(tasks func(description string) (assay.Task, bool)) *Models {
	known, _ := lru.New[string, foundTask](1024) // the size is positive
	m.tasks = func(description string) (assay.Task, bool) {
		found, ok := known.Get(description)
		if !ok {
			found.task, found.ok = tasks(description)
			known.Add(description, found)
		}
		return found.task, found.ok
	}
	return m
}

type foundTask struct {
	task assay.Task
	ok   bool
}

// Chat implements [assay.Provider].
func (m *Models) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	if !Is(req.Model) {
		detail := fmt.Sprintf("there is no built-in model named %q", req.Model)
		return &assay.Response{}, &assay.Fault{Kind: assay.NotFound, Detail: detail}
	}
	if req.Form.Type != "" {
		return &assay.Response{}, &assay.Fault{Kind: assay.BadRequest, Form: true, Detail: "built-in models " +
			"reply with text, and not in a format; leave response_format out, and ask for it in words"}
	}
	start := time.Now()
	if err := m.wait(ctx, req); err != nil {
		return &assay.Response{}, err
	}
	view := newView(req, m.catalog)
	m.adapt(view)
	reply := m.decide(req.Model, view)
	return &assay.Response{
		Message:     reply,
		ServedModel: req.Model,
		Usage:       usage(req, reply),
		Waits:       assay.Waits{Working: time.Since(start), Requests: 1},
	}, nil
}

// wait waits for the reply's latency, which depends only on the conversation.
func (m *Models) wait(ctx context.Context, req *assay.Request) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	if m.latency.Median <= 0 {
		return nil
	}
	h := fnv.New64a()
	h.Write([]byte(req.Model))
	for _, msg := range req.Messages {
		h.Write([]byte(msg.Content))
	}
	rng := rand.New(rand.NewPCG(h.Sum64(), 1))
	d := time.Duration(float64(m.latency.Median) * math.Exp(m.latency.Sigma*rng.NormFloat64()))
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ended(ctx)
	}
}

// ended returns the fault of a request whose context has ended. If the cause is a fault, ended
// returns the cause. Otherwise the context's error determines the kind.
func ended(ctx context.Context) *assay.Fault {
	cause := context.Cause(ctx)
	var f *assay.Fault
	if !errors.As(cause, &f) {
		f = assay.AsFault(ctx.Err())
		f.Detail, f.Err = cause.Error(), cause
	}
	return f
}

// usage counts four bytes as one token, which is typical of English and JSON.
func usage(req *assay.Request, reply assay.Message) assay.Usage {
	in := 0
	for _, m := range req.Messages {
		in += size(m)
	}
	for _, f := range req.Functions {
		in += len(f.Name) + len(f.Description) + len(f.Parameters)
	}
	return assay.Usage{InputTokens: in / 4, OutputTokens: size(reply)/4 + 1}
}

func size(m assay.Message) int {
	n := len(m.Content)
	for _, c := range m.Calls {
		n += len(c.Name) + len(c.Arguments)
	}
	return n
}

// maxPolicies limits the bytes that all solved policies use together. It is enough for every kind
// of task in the known libraries with ten turns.
const maxPolicies = 8 << 20

// next asks the policy for a problem. Each kind of task is solved once. A policy is not safe for
// concurrent use, so next holds a lock; looking up a solved state takes a microsecond.
func (m *Models) next(problem workflow.Problem, history []workflow.Call) string {
	key := fmt.Sprintf("%s %s %x %d", problem.World, strings.Join(problem.Required, " "),
		binary.BigEndian.AppendUint64(nil, math.Float64bits(problem.Reliability)), problem.Calls)
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.policies[key]
	if p == nil {
		p = workflow.Solve(m.catalog, problem)
		if m.held += p.Size(); m.held > maxPolicies {
			clear(m.policies)
			m.held = p.Size()
		}
		m.policies[key] = p
	}
	return p.Next(history)
}
