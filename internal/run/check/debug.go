package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/task/child"
)

// A Hand works on a trial by hand. It gets the variables of the environment that an agent would get, as
// NAME=value, and the message of the user, and returns what the agent answers.
type Hand func(ctx context.Context, variables []string, message string) (answer string, err error)

// An Event is something that a program did by hand.
type Event struct {
	// Request and Response are an exchange with the model. Err is its error, if it has failed.
	Request  *assay.Request
	Response *assay.Response
	Err      error
	// Tool and Arguments are a call, with its answer.
	Tool, Arguments, Answer string
}

// sitting is how long a person may take for a trial.
const sitting = 24 * time.Hour

// Debug opens a trial for a program that is started by hand: its tools, with its luck and its faults, and
// its model. It tells what happens, and returns the attempt, which is not stored. The limits of the trial
// hold, but for its working time.
func Debug(
	ctx context.Context, j *job.Job, pools *job.Pools, trial assay.Trial, hand Hand, tell func(Event),
) (_ *assay.Attempt, _ *assay.Transcript, err error) {
	task, err := j.Library.TaskOf(ctx, &trial)
	if err != nil {
		return nil, nil, err
	}
	place := bridge.Place{
		Program: func(ctx context.Context, c child.Command, message string, read func(io.Reader)) (bridge.Exit, error) {
			answer, err := hand(ctx, append(c.Plain, "TMPDIR="+c.Kept), message)
			read(strings.NewReader(answer))
			exit := bridge.Exit{State: "ended by hand", Stopped: ctx.Err() != nil}
			if err != nil && ctx.Err() == nil {
				exit.Code, exit.State = 1, err.Error()
			}
			return exit, nil
		},
		Called: func(tool, arguments, answer string) {
			tell(Event{Tool: tool, Arguments: arguments, Answer: answer})
		},
	}
	b, err := place.Open(func(string) {})
	if err != nil {
		return nil, nil, fmt.Errorf("open a port for the program: %w", err)
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	agent := bridge.Agent{
		Name: trial.Model, Model: j.Experiment.Served(trial.Model), Timeout: sitting,
		Command: []string{"by hand"}, Next: []string{"by hand"}, Sandbox: bridge.NoSandbox,
	}
	runner := b.Runner(episode.NewRunner(j.Library.Catalog(), 0), agent)
	pool := lane.NewPool(trial.Model, pools.Configs[trial.Model],
		lane.Options{Request: time.Duration(j.Experiment.Limits.Request)})
	a, transcript := runner.Run(ctx, &overheard{pool, tell}, &trial, &task)
	return a, transcript, nil
}

// An overheard provider tells what is asked and answered.
type overheard struct {
	assay.Provider
	tell func(Event)
}

// Chat implements [assay.Provider].
func (o *overheard) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	resp, err := o.Provider.Chat(ctx, req)
	o.tell(Event{Request: req, Response: resp, Err: err})
	return resp, err
}
