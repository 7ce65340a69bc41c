package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/task/child"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// printed is how many of the last lines that an agent printed are kept.
const printed = 5

// An Agent describes the two starts of an agent.
type Agent struct {
	Agent string `json:"agent"`
	// Calm is the start without failing tools, and Planted the one in which the first tool of the
	// task's plan fails once.
	Calm    Start `json:"calm"`
	Planted Start `json:"planted"`
	// Sandbox is as in [assay.Attempt], and Sees lists the files and folders in the room of its program
	// besides those of the system.
	Sandbox assay.Sandboxed `json:"sandbox"`
	Sees    []string        `json:"sees"`
	Changes []string        `json:"changes"`
	Notes   []string        `json:"notes"`
}

// A Start describes how an agent worked on one task.
type Start struct {
	Started bool `json:"started"`
	// Listed is true if the agent asked for the tools. Asked counts the requests that reached its
	// model, Called the calls of tools, and Failed those that met a planted failure.
	Listed bool `json:"asked_for_tools"`
	Asked  int  `json:"requests"`
	Called int  `json:"calls"`
	Failed int  `json:"failures_met"`
	// Ended is the exit code or the signal, or why the agent was stopped. Ok is true if the attempt
	// would count, and the agent ended without being stopped and without an error.
	Ended string  `json:"ended"`
	Ok    bool    `json:"ok"`
	Took  float64 `json:"took_s"`
	// Printed has the last lines that the agent wrote: to its standard error, or else to its
	// standard output.
	Printed string `json:"printed"`
	// Fault is the fault of the attempt. It is nil if the attempt has an outcome.
	Fault *Fault `json:"fault,omitempty"`
	// unstarted is how the agent ended, in one line, if it ended before its first action.
	unstarted string
}

// Agents starts each agent of a job twice on one task, all agents at the same time.
func Agents(
	ctx context.Context, j *job.Job, pools *job.Pools, timeout time.Duration,
) (all []Agent, err error) {
	if len(pools.Agents) == 0 {
		return nil, nil
	}
	c := newChecker(j, timeout)
	var programs []bridge.Agent
	for _, a := range pools.Agents {
		programs = append(programs, a.Agent)
	}
	b, err := bridge.Open(func(string) {}, programs...)
	if err != nil {
		return nil, fmt.Errorf("open a port for agents: %w", err)
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	for _, model := range j.Experiment.Models {
		if _, ok := pools.Agents[model]; ok {
			all = append(all, Agent{Agent: model, Changes: []string{}, Notes: []string{}})
		}
	}
	var wg sync.WaitGroup
	failed := make([]error, len(all))
	for i := range all {
		wg.Go(func() { failed[i] = c.agent(ctx, b, pools, &all[i]) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return all, errors.Join(failed...)
}

// agent starts an agent without and with a planted failure.
func (c *checker) agent(ctx context.Context, b *bridge.Bridge, pools *job.Pools, r *Agent) error {
	trial, task, err := c.first(ctx, r.Agent)
	if err != nil {
		return err
	}
	program := pools.Agents[r.Agent].Agent
	if dir, err := os.Getwd(); err == nil {
		program.Hidden = append(program.Hidden[:len(program.Hidden):len(program.Hidden)], dir) // that of the usual store
	}
	program.Timeout = min(program.Timeout, c.timeout)
	runner := b.Runner(c.runner, program)
	pool := lane.NewPool(r.Agent, pools.Configs[r.Agent], lane.Options{Request: c.timeout})
	for _, s := range []struct {
		start *Start
		trial assay.Trial
	}{{&r.Calm, calm(trial, task)}, {&r.Planted, planted(trial, task)}} {
		began := time.Now()
		a, transcript, trace := runner.Try(ctx, pool, &s.trial, &task)
		*s.start = startOf(a, transcript, trace, fine(program))
		s.start.Took = time.Since(began).Seconds()
	}
	r.look(runner.Reach(), program)
	r.advise(program.URL != "")
	return nil
}

// fine describes how an agent ends well.
func fine(program bridge.Agent) string {
	if program.ACP {
		return "end of its turn"
	}
	return "exit status 0"
}

func startOf(a *assay.Attempt, t *assay.Transcript, trace bridge.Trace, fine string) Start {
	s := Start{
		Started: trace.Started, Listed: trace.Listed, Asked: trace.Asked, Called: trace.Called,
		Failed: a.Failures, Ok: a.Ended == assay.Finished, unstarted: bridge.Unstarted(a),
	}
	if a.FaultKind != "" {
		s.Fault = &Fault{Kind: a.FaultKind, Detail: a.FaultDetail}
	}
	exit := ""
	if t.Agent != nil {
		exit = t.Agent.Exit
		s.Printed = child.LastLines(cmp.Or(strings.TrimSpace(t.Agent.Errors), t.Agent.Output), printed)
	}
	switch {
	case !s.Started:
		s.Ended = "–"
	case a.Ended == assay.AgentTimeout:
		s.Ended = "stopped: out of time"
	case a.Ended != "" && a.Ended != assay.Finished && a.Ended != assay.AgentError:
		s.Ended = "stopped: " + strings.ReplaceAll(string(a.Ended), "_", " ")
	case s.Fault != nil && s.unstarted == "":
		s.Ended = "stopped: fault " + string(a.FaultKind)
	default:
		word := ""
		if t.Agent != nil {
			word = child.LastWord(t.Agent.Errors)
		}
		s.Ended = cmp.Or(strings.TrimSuffix(exit, ": "+word), fine)
	}
	return s
}

// calm returns a trial of the same task in which the tools work.
func calm(trial assay.Trial, task assay.Task) assay.Trial {
	cell := trial.Cell
	cell.Reliability = 1
	return lucky(trial, cell, func(t *assay.Trial) bool { return works(t, task.Required) })
}

// planted returns a trial of the same task in which the first required tool fails when it is called
// first.
func planted(trial assay.Trial, task assay.Task) assay.Trial {
	cell := trial.Cell
	cell.Reliability = .5
	return lucky(trial, cell, func(t *assay.Trial) bool {
		if len(task.Required) == 0 {
			return true
		}
		first := task.Required[0]
		return spec.Draw(t.Seed, first, 0).Success > .99 && spec.Draw(t.Seed, first, 1).Success < .4 &&
			works(t, task.Required[1:])
	})
}

// works reports whether the luck of the first calls of tools is good enough for every world.
func works(t *assay.Trial, tools []string) bool {
	for _, tool := range tools {
		if spec.Draw(t.Seed, tool, 0).Success > .4 {
			return false
		}
	}
	return true
}

// lucky returns the first repeat of a trial in another cell whose luck is right, or the last one
// that it tries.
func lucky(trial assay.Trial, cell assay.Cell, right func(*assay.Trial) bool) (t assay.Trial) {
	const most = 200_000
	ref := assay.TaskRef{ID: trial.Task, Digest: trial.TaskDigest}
	for n := range most {
		if t = assay.NewTrial(cell, ref, trial.Setting, 1, n); right(&t) {
			return t
		}
	}
	return t
}

func (r *Agent) change(format string, args ...any) {
	r.Changes = append(r.Changes, fmt.Sprintf(format, args...))
}

// look notes what the program can reach besides its tools and its model.
func (r *Agent) look(reach bridge.Reach, program bridge.Agent) {
	note := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	r.Sandbox, r.Sees = reach.Sandbox, reach.Sees
	switch reach.Sandbox {
	case "":
	case assay.Unsandboxed:
		note("it runs with your rights to files, processes and the network, because %s", program.Roomless())
	default:
		files := "the programs of the system and of PATH"
		if len(reach.Sees) > 0 {
			files += ", and " + strings.Join(reach.Sees, ", ")
		}
		network := "its tools and its model"
		if reach.Sandbox == assay.InRoomOnline {
			network = "the network of this machine"
		}
		note("it runs in a room that has %s, and reaches %s", files, network)
	}
	for _, path := range reach.Bares {
		note("`read` shows it %s, which has files of the experiment and perhaps its answers", path)
	}
}

// lacks matches what programs print that do not find a file.
var lacks = regexp.MustCompile(`(?i)no such file|no module named|cannot find (module|package)|can't open|not found|ENOENT`)

// advise lists the changes to make to an agent.
func (r *Agent) advise(service bool) {
	program := "program"
	if service {
		program = "service"
	}
	s, p := &r.Calm, &r.Planted
	defer func() {
		if lacks.MatchString(s.Printed) && r.Sandbox != "" && r.Sandbox != assay.Unsandboxed && len(r.Changes) > 0 {
			r.change("it may lack a file that is not in its room: `read` adds files and folders")
		}
	}()
	switch {
	case !s.Started:
		r.change("the %s does not start: %s", program,
			strings.TrimPrefix(s.Fault.Detail, string(s.Fault.Kind)+": "))
	case s.unstarted != "":
		r.change("the %s ends before it asks its model or a tool, so nothing can be measured: %s",
			program, s.unstarted)
	case s.Fault != nil:
		r.change("a fault ended the attempt: %s", s.Fault.Detail)
	case !s.Ok:
		r.change("the %s does not end well although no tool fails, which counts against it: %s",
			program, s.Ended)
	case p.Fault != nil:
		r.change("a fault ended the attempt with a planted failure: %s", p.Fault.Detail)
	case !p.Ok && p.Failed > 0:
		r.change("one failing tool ends the %s (%s): let its model see the errors of tools, "+
			"because some of them are planted", program, p.Ended)
	case !p.Ok:
		r.change("the %s does not always end well: %s", program, p.Ended)
	}
	if len(r.Changes) > 0 {
		return
	}
	if s.Asked == 0 {
		r.Notes = append(r.Notes,
			"it asks no model through Assay, so its tokens and its model are unknown")
	}
	if s.Called == 0 {
		r.Notes = append(r.Notes, "it called no tool")
	} else if p.Failed == 0 {
		r.Notes = append(r.Notes, "it met no planted failure, because it did not call the tool that "+
			"fails")
	}
}
