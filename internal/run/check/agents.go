package check

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/task/child"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

const (
	// printed is how many of the last lines that an agent printed are kept.
	printed = 5
)

// stepFiles are an experiment with the one task that agents are checked on.
//
//go:embed steps
var stepFiles embed.FS

// An Agent describes how an agent treats the replies of its model and the answers of its tools. A finding
// is empty if the agent did not get that far.
type Agent struct {
	Agent string `json:"agent"`
	// Starts is true if it asked its model or called a tool.
	Starts bool `json:"starts"`
	// Offered is how many of the five tools it offers to its model, and Own how many others.
	Offered int `json:"tools_offered"`
	Own     int `json:"own_tools"`
	// Parallel is what becomes of several calls in one reply, and Streamed of calls in a stream.
	// Streamed is empty if it asks for no stream.
	Parallel Finding `json:"parallel_calls"`
	Streamed Finding `json:"streamed_calls"`
	// Results is how the answers of tools reach its model, and Errors what becomes of a call that fails.
	Results Finding `json:"results"`
	Errors  Finding `json:"errors"`
	// Tokens says whether all its work is counted.
	Tokens Finding `json:"tokens"`
	// Limit says whose limit ends it if its model never does.
	Limit Finding `json:"limits"`
	// End is how it ends.
	End Finding `json:"end"`
	// Sandbox is as in [assay.Attempt], and Sees lists the files and folders in the room of its program
	// besides those of the system.
	Sandbox assay.Sandboxed `json:"sandbox"`
	Sees    []string        `json:"sees"`
	// Took is how long it worked on the task when no tool failed.
	Took float64 `json:"took_s"`
	// Printed has the last lines that it wrote when it did not end well: to its standard error, or else to its
	// standard output.
	Printed string   `json:"printed,omitempty"`
	Changes []string `json:"changes"`
	Notes   []string `json:"notes"`
}

// A Finding is what becomes of something, in one or two words.
type Finding string

// Findings. Others are the ends of programs, such as "exit status 1".
const (
	Kept    Finding = "kept"    // calls are carried out as the reply has them; the limit is the experiment's
	Dropped Finding = "dropped" // calls are not carried out
	Late    Finding = "late"    // calls are carried out after later ones
	Changed Finding = "changed" // calls have other arguments or names

	Whole   Finding = "whole"   // an answer is a message of its own
	Wrapped Finding = "wrapped" // an answer is a part of a message
	Lost    Finding = "lost"    // an answer or an error does not reach the model

	Shown Finding = "shown" // an error reaches the model, which goes on
	Fatal Finding = "fatal" // an error ends the agent

	Exact   Finding = "exact"   // its model gets the requests that the task needs
	More    Finding = "more"    // its model gets further requests, which count
	Outside Finding = "outside" // it acts without a reply of its model

	Own Finding = "its own" // it ends before the limit

	Clean  Finding = "clean"  // it ends without an error, and when it is told to
	Killed Finding = "killed" // it does not end when it is told to
)

// Agents checks each agent of a job, some at a time, with a model that follows a script, so that nothing is
// paid: on a task whose tools work, on the same task with a tool that fails once, and without an end. It tells
// which agents are checked. An agent may take that time for each, besides the time of its tools.
func Agents(
	ctx context.Context, j *job.Job, pools *job.Pools, timeout time.Duration, tell func(agent string),
) (all []Agent, err error) {
	if len(pools.Agents) == 0 {
		return nil, nil
	}
	s, err := openSteps(ctx, j.Experiment.Limits.Turns)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	s.timeout = cmp.Or(max(0, timeout), DefaultTimeout)
	for _, model := range j.Experiment.Models {
		if _, ok := pools.Agents[model]; ok {
			all = append(all, Agent{Agent: model, Sees: []string{}, Changes: []string{}, Notes: []string{}})
		}
	}
	var wg sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0)) // many agents keep a machine busy while they start
	failed := make([]error, len(all))
	for i := range all {
		wg.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			if ctx.Err() == nil {
				tell(all[i].Agent)
				failed[i] = s.check(ctx, pools.Agents[all[i].Agent].Agent, &all[i])
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return all, errors.Join(failed...)
}

// steps is the task that agents are checked on, in a job of its own.
type steps struct {
	*job.Job
	folder  *child.Folder
	task    assay.Task
	trial   assay.Trial
	turns   int // of an agent without an end
	timeout time.Duration
}

func openSteps(ctx context.Context, turns int) (_ *steps, err error) {
	folder, err := child.NewFolder()
	if err != nil {
		return nil, err
	}
	s := &steps{folder: folder, turns: turns}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := os.CopyFS(folder.Path, stepFiles); err != nil {
		return nil, err
	}
	e, err := plan.Load(filepath.Join(folder.Path, "steps", "experiment.yaml"))
	if err != nil {
		return nil, err
	}
	if s.Job, err = job.Open(ctx, e, 1); err != nil {
		return nil, err
	}
	for trial := range s.Trials() {
		s.trial, s.trial.Calls = trial, 0
	}
	s.task, err = s.Library.TaskOf(ctx, &s.trial)
	return s, err
}

// Close removes the task.
func (s *steps) Close() (err error) {
	if s.Job != nil {
		err = s.Job.Close()
	}
	return errors.Join(err, s.folder.Remove())
}

// An outing is what an agent did with a script.
type outing struct {
	*script
	bridge.Trace
	attempt *assay.Attempt
	exit    string // how it ended, if not well
	printed string // the last lines of its output
	reach   bridge.Reach
	took    time.Duration
}

// try lets an agent work with a script.
func (s *steps) try(ctx context.Context, program bridge.Agent, trial assay.Trial, model *script) (_ *outing, err error) {
	model.steps = s.task.Reference.Calls
	model.whole, model.within = make(map[string]bool), make(map[string]bool)
	b, err := bridge.Place{Called: model.called}.Open(func(string) {}, program)
	if err != nil {
		return nil, fmt.Errorf("open a port for agents: %w", err)
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	trial.Model = program.Name
	began := time.Now()
	runner := b.Runner(episode.NewRunner(s.Library.Catalog(), 0), program)
	a, transcript, trace := runner.Try(ctx, model, &trial, &s.task)
	o := &outing{script: model, Trace: trace, attempt: a, reach: runner.Reach(), took: time.Since(began)}
	if t := transcript.Agent; t != nil {
		o.exit = t.Exit
		if word := child.LastWord(t.Errors); word != "" {
			o.exit = strings.TrimSuffix(o.exit, ": "+word)
		}
		o.printed = child.LastLines(cmp.Or(strings.TrimSpace(t.Errors), t.Output), printed)
	}
	return o, nil
}

// check lets an agent work without and with a planted failure, and without an end.
func (s *steps) check(ctx context.Context, program bridge.Agent, r *Agent) error {
	if dir, err := os.Getwd(); err == nil {
		program.Hidden = append(program.Hidden[:len(program.Hidden):len(program.Hidden)], dir) // that of the usual store
	}
	program.Timeout = min(program.Timeout, s.timeout)
	trial := calm(s.trial)
	o, err := s.try(ctx, program, trial, &script{together: true})
	if err != nil {
		return err
	}
	r.look(o.reach, program)
	if r.calm(o); r.Starts && r.Offered > 0 {
		trial := planted(s.trial, s.task)
		if o, err = s.try(ctx, program, trial, &script{}); err != nil {
			return err
		}
		r.planted(o)
		trial = calm(s.trial)
		trial.Turns = s.turns
		if o, err = s.try(ctx, program, trial, &script{endless: true}); err != nil {
			return err
		}
		r.endless(o, s.turns)
	}
	inRoom := r.Sandbox == assay.InRoom || r.Sandbox == assay.InRoomOnline
	switch {
	case len(r.Changes) == 0:
	case inRoom && lacks.MatchString(r.Printed):
		r.change("it may lack a file that is not in its room: `read` adds files and folders")
	case r.Sandbox == assay.AsOwnUser && strings.Contains(strings.ToLower(r.Printed), "permission denied"):
		r.change("its user may not read a file: with sandbox: user, its program and its files have to be where " +
			"everybody can read them")
	}
	return nil
}

// calm learns from an outing in which no tool failed.
func (r *Agent) calm(o *outing) {
	r.Starts, r.Offered, r.Own, r.Took = o.Asked+o.Called > 0, o.offered, o.own, o.took.Seconds()
	a := o.attempt
	if !r.Starts {
		r.Printed = o.printed
		switch how := bridge.Unstarted(a); {
		case a.Ended == assay.AgentTimeout:
			r.change("it asks neither its model nor a tool until its time is up: `timeout` and --timeout give it more")
		case how == "":
			r.change("it does not start: %s", strings.TrimPrefix(a.FaultDetail, string(a.FaultKind)+": "))
		default:
			r.change("it ends before it asks its model or a tool, so nothing can be measured: %s", how)
		}
		return
	}
	r.End = o.ended()
	if r.End != Clean {
		r.Printed = o.printed
		r.change("it does not end well although no tool fails, which counts against it: %s", r.End)
	}
	r.ignores(o)
	calls, _ := a.Deviating()
	switch {
	case a.Unmetered:
		r.Tokens = Outside
		r.note("it asks no model through Assay, so its tokens and its model are unknown")
	case calls[assay.CallsUnasked] > 0:
		r.Tokens = Outside
		r.note("it makes %s that no reply through Assay asked for", assay.Counted(calls[assay.CallsUnasked], "call"))
	default:
		r.Tokens = Exact
	}
	if o.asked == 0 {
		switch {
		case a.Unmetered:
		case o.Listed:
			r.change("it offers its model none of the tools, although it has asked for them")
		default:
			r.change("it offers its model none of the tools: let it connect to ASSAY_MCP_URL with ASSAY_TOKEN")
		}
		return
	}
	if missing := len(o.steps) - o.offered; missing > 0 {
		r.change("it offers its model only %d of %d tools", o.offered, len(o.steps))
	}
	r.calls(o, calls)
	r.answers(o)
	n := o.idle
	if r.Parallel == Kept { // otherwise, its model has to ask again
		n += max(0, o.asked-needed)
	}
	if n > 0 && r.Tokens == Exact {
		r.Tokens = More
		r.note("it asks its model %s that the task does not need, such as for a title; they count as turns and "+
			"in tokens", assay.Counted(n, "time"))
	}
}

// needed is how many requests the script needs that asks for several steps at once.
const needed = 3

// calls learns what became of the calls of replies.
func (r *Agent) calls(o *outing, deviating map[string]int) {
	r.Parallel = Kept
	switch {
	case deviating[assay.CallsChanged]+deviating[assay.CallsRefused] > 0:
		r.Parallel = Changed
		r.change("it carries out calls with other names or arguments than its model asked for; such a change counts " +
			"against the framework")
	case deviating[assay.CallsLost] > 0 || len(o.made) < o.offered:
		r.Parallel = Dropped
		r.change("it leaves out calls if a reply has several, and its model has to ask again; that counts against " +
			"the framework")
	case deviating[assay.CallsLate] > 0:
		r.Parallel = Late
		r.change("it carries out the calls of a reply in another order, which counts against the framework")
	}
	if o.Streamed {
		r.Streamed = r.Parallel
	}
}

// answers learns how the answers of tools reached the model.
func (r *Agent) answers(o *outing) {
	if o.due == 0 {
		return
	}
	r.Results = Whole
	for _, answer := range o.answers[:o.due] {
		switch {
		case o.whole[answer]:
		case o.within[answer]:
			r.Results = Wrapped
			r.note("it shows its model what tools answer in words of its own")
			return
		default:
			r.Results = Lost
			r.change("its model does not see what tools answer, or not as they do: %s", assay.Head(answer, 100))
			return
		}
	}
}

// planted learns from an outing in which the first call of a tool failed.
func (r *Agent) planted(o *outing) {
	if o.attempt.Failures == 0 || len(o.answers) == 0 {
		r.note("it met no planted failure, because it did not call the tool that fails")
		return
	}
	failed, end := o.answers[0], o.ended()
	switch {
	case o.whole[failed] || o.within[failed]:
		r.Errors = Shown
	case o.due > 0:
		r.Errors = Lost
		r.change("its model does not see why a tool failed (%s), so it cannot find another way", assay.Head(failed, 100))
	case r.Results == "": // it never shows its model an answer
	case end == outOfTime:
		r.note("it did not go on after a planted failure in its time")
	case r.End == Clean || r.End != end: // otherwise it ends like that anyway
		r.Errors, r.Printed = Fatal, o.printed
		r.change("one failing tool ends it (%s): let its model see the errors of tools, because some of them are "+
			"planted", end)
	}
}

// endless learns from an outing with a model that never ends, in so many turns.
func (r *Agent) endless(o *outing, turns int) {
	switch end := o.ended(); {
	case o.attempt.Ended == assay.TurnLimit:
		r.Limit = Kept
	case end == outOfTime:
		r.note("it did not reach the limit of turns in its time")
	default:
		r.Limit = Own
		how := ""
		if end != Clean {
			how = fmt.Sprintf(" (%s)", end)
		}
		r.change("it stops by itself after %d of %d turns%s: give it as many steps as the experiment has turns",
			o.attempt.Turns, turns, how)
	}
	r.ignores(o)
}

// ignores notes that an agent had to be killed.
func (r *Agent) ignores(o *outing) {
	const note = "it does not end when it gets SIGTERM, so each attempt that Assay ends takes some seconds longer"
	if !strings.Contains(o.exit, "signal: killed") || slices.Contains(r.Notes, note) {
		return
	}
	if r.End == Clean {
		r.End = Killed
	}
	r.note(note)
}

// outOfTime is the end of an agent that worked longer than it may.
const outOfTime Finding = "out of time"

// ended returns how the agent of an outing ended.
func (o *outing) ended() Finding {
	a := o.attempt
	switch {
	case a.Ended == assay.AgentTimeout:
		return outOfTime
	case a.FaultKind != "":
		return Finding("fault " + a.FaultKind)
	case a.Ended == assay.Finished:
		return Clean
	case a.Ended == assay.AgentError:
		return Finding(o.exit)
	}
	return Finding(strings.ReplaceAll(string(a.Ended), "_", " "))
}

// calm returns a trial of the same task in which the tools work.
func calm(trial assay.Trial) assay.Trial {
	cell := trial.Cell
	cell.Reliability = 1
	return lucky(trial, cell, func(*assay.Trial) bool { return true })
}

// planted returns a trial of the same task in which the first tool of its plan fails when it is called first.
func planted(trial assay.Trial, task assay.Task) assay.Trial {
	cell := trial.Cell
	cell.Reliability = .5
	return lucky(trial, cell, func(t *assay.Trial) bool {
		for i, step := range task.Reference.Calls {
			works := func(n int) bool { return spec.Draw(t.Seed, step.Tool, n).Success < .4 }
			if i == 0 && (works(0) || !works(1)) || i > 0 && !works(0) {
				return false
			}
		}
		return true
	})
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

func (r *Agent) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// look notes what the program can reach besides its tools and its model.
func (r *Agent) look(reach bridge.Reach, program bridge.Agent) {
	r.Sandbox, r.Sees = reach.Sandbox, reach.Sees
	switch reach.Sandbox {
	case "":
	case assay.Unsandboxed:
		r.note("it runs with your rights to files, processes and the network, because %s", program.Roomless())
	case assay.AsOwnUser:
		r.note("each attempt runs as a user of its own, which has the network and files that everybody may read")
	default:
		more := ""
		if len(reach.Sees) > 0 {
			more = " with " + strings.Join(reach.Sees, ", ")
		}
		if reach.Sandbox == assay.InRoomOnline {
			more += ", and the network of this machine"
		}
		if more != "" {
			r.note("it runs in a room%s", more)
		}
	}
	for _, path := range reach.Bares {
		r.note("`read` shows it %s, which has files of the experiment and perhaps its answers", path)
	}
}

// lacks matches what programs print that do not find a file.
var lacks = regexp.MustCompile(`(?i)no such file|no module named|cannot find (module|package)|can't open|not found|ENOENT`)
