package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/atomicfile"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/run/check"
	"github.com/assay-eval/assay/internal/task/child"
)

type debugFlags struct {
	chosen
	variables, output string
	interactive       bool
	simLatency        time.Duration
}

func newDebug(p *process) *cobra.Command {
	var f debugFlags
	cmd := &cobra.Command{
		Use:   "debug [TRIAL] [FILE] [-- COMMAND...]",
		Short: "Work on one trial by hand, with a debugger or a prompt",
		Long: `Debug opens one trial as a run would, with the same task, tools, luck, faults and plan, and
the same model behind the same addresses, and waits for a program that you start. It prints
what the program asks its model and its tools, and what they answer, as it happens. At the end it
judges the attempt. Nothing is stored.

TRIAL is the beginning of the ID of a planned trial; without it, it is the first trial of the
first model. FILE is the experiment file, and the default is experiment.yaml in this directory.

With a COMMAND after --, debug starts that in this directory, with the variables that agents get and
the message on its input; what it prints is its answer. A debugger needs --interactive: then its
input is this terminal, Ctrl-C is its own, the message is in ASSAY_PROMPT, and you type the answer
when it has ended. Without a command, debug prints the
variables (--env writes them to a file that a shell or an editor can read), waits for you, and takes
the answer from its input: type it, and end it with Ctrl-D.

The limits of the trial hold, but for its time. A program by hand has your rights: there is no room
around it. A model that costs money costs it here, too.`,
		Example: `  assay debug 3f2a9c -- python3 agent.py
  assay debug 3f2a9c --interactive -- python3 -m pdb agent.py
  assay debug experiment.yaml --model my-agent --env trial.env
  assay debug 3f2a9c --output attempt.json -- ./agent`,
		ValidArgsFunction: completeYAML,
		RunE: func(cmd *cobra.Command, args []string) error {
			var command []string
			if n := cmd.ArgsLenAtDash(); n >= 0 {
				args, command = args[:n], args[n:]
			}
			if len(args) > 2 {
				return usageError("%d arguments, want at most a trial and a file\n"+
					"hint: write -- before the command of your program", len(args))
			}
			trial := ""
			if len(args) > 0 && !isThere(args[0]) && trialText.MatchString(args[0]) {
				trial, args = args[0], args[1:]
			}
			if args = f.file(args); len(args) == 0 {
				return usageError("no experiment is named\nhint: `assay debug TRIAL experiment.yaml`")
			}
			if f.interactive && len(command) == 0 {
				return usageError("--interactive is for a command\nhint: write it after --")
			}
			for _, path := range []string{f.variables, f.output} {
				if path != "" && isThere(path) {
					return usageError("%s is there already\nhint: remove it, or name another file", path)
				}
			}
			return p.whileDebugging(cmd.Context(), f.interactive, func(ctx context.Context) error {
				return p.debug(ctx, trial, args, command, &f)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.models, "model", nil, "the `model` whose trial it is, if no trial is named")
	flags.StringVar(&f.providers, "providers", "", "the providers `file` to use instead of the experiment's")
	flags.StringVar(&f.variables, "env", "", "a `file` to write the variables to, as NAME=value")
	flags.StringVar(&f.output, "output", "", "a `file` to write the attempt and its transcript to, as JSON")
	flags.BoolVarP(&f.interactive, "interactive", "i", false,
		"let the command read this terminal, as a debugger does, and not the message")
	simLatencyFlag(cmd, &f.simLatency)
	_ = cmd.MarkFlagFilename("providers", "yaml", "yml")
	return cmd
}

// errInterrupted is why a trial by hand ended.
var errInterrupted = errors.New("interrupted")

// whileDebugging does work with a context that ends at a signal. An interrupt is the program's own, if that
// reads the terminal: debuggers stop at it. Unlike other commands, this one waits until its programs have ended.
func (p *process) whileDebugging(ctx context.Context, interactive bool, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	var listener sync.WaitGroup
	listener.Go(func() {
		for {
			select {
			case s := <-p.signals:
				if !interactive || s != os.Interrupt {
					cancel(errInterrupted)
				}
			case <-done:
				return
			}
		}
	})
	err := work(ctx)
	close(done)
	listener.Wait()
	if context.Cause(ctx) == errInterrupted {
		return &codedError{exitInterrupted, errInterrupted}
	}
	return err
}

// trialText is the beginning of a trial's ID.
var trialText = regexp.MustCompile(`^[0-9a-f]{4,32}$`)

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (p *process) debug(ctx context.Context, text string, args, command []string, f *debugFlags) (err error) {
	e, err := f.experiment(args)
	if err != nil {
		return err
	}
	j, err := job.Open(ctx, e, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	trial, err := findPlanned(j, text)
	if err != nil {
		return err
	}
	pools, err := j.Pools(p.env, f.simLatency)
	if err != nil {
		return err
	}
	defer pools.Close()

	w := &workbench{process: p, command: command, debugFlags: f, id: trial.ID}
	if f.variables != "" {
		defer func() { _ = os.Remove(f.variables) }() // the token is over
	}
	a, transcript, err := check.Debug(ctx, j, pools, trial, w.hand, w.tell)
	if err = errors.Join(err, w.failed); err != nil {
		return err
	}
	fmt.Fprintln(p.out)
	t := &query.Trial{Attempt: *a, Attempts: 1, Transcript: transcript}
	t.Number = 1
	if _, err := p.out.Write(t.Text(nil, nil, nil)); err != nil {
		return err
	}
	if task, err := j.Library.TaskOf(ctx, &trial); err == nil && task.Judge != nil && task.Judge.Model != "" {
		p.say("%s judges this task, too, and was not asked.", task.Judge.Model)
	}
	if f.output == "" {
		return nil
	}
	attempt, err := export.JSON(*a)
	if err != nil {
		return err
	}
	return atomicfile.Write(p.out, f.output, func(out io.Writer) error {
		return json.NewEncoder(out).Encode(map[string]any{"attempt": attempt, "transcript": transcript})
	})
}

// findPlanned returns the planned trial whose ID begins with a text, or the first one.
func findPlanned(j *job.Job, text string) (found assay.Trial, err error) {
	n := 0
	for t := range j.Trials() {
		if !strings.HasPrefix(string(t.ID), text) {
			continue
		}
		if n++; n == 1 {
			found = t
		}
		if text == "" {
			break
		}
	}
	switch {
	case n == 0:
		return found, assay.WithHint(fmt.Errorf("experiment %s plans no trial whose ID begins with %s",
			j.Experiment.Name, cmp.Or(text, "anything")), assay.HintTrialIDs, assay.StorePath(""))
	case n > 1:
		return found, fmt.Errorf("%d planned trials have IDs that begin with %s\nhint: write more of the ID", n, text)
	}
	return found, nil
}

// A workbench is where a person works on a trial.
type workbench struct {
	*process
	*debugFlags
	command []string
	id      assay.TrialID
	failed  error // why the program could not start

	mu sync.Mutex // guards what is printed
}

// hand implements [check.Hand].
func (w *workbench) hand(ctx context.Context, variables []string, message string) (string, error) {
	w.mu.Lock()
	fmt.Fprintf(w.out, "trial %s begins. Its message, which is also in ASSAY_PROMPT:\n\n", w.id)
	for line := range strings.Lines(message) {
		fmt.Fprintf(w.out, "  %s\n", sanitize(strings.TrimRight(line, "\r\n")))
	}
	fmt.Fprintln(w.out)
	w.failed = w.offer(variables)
	w.mu.Unlock()
	if w.failed != nil {
		return "", w.failed
	}
	if len(w.command) == 0 {
		answer := make(chan string, 1)
		go func() {
			b, _ := io.ReadAll(w.in) // as far as it gets
			answer <- strings.TrimSpace(string(b))
		}()
		select {
		case text := <-answer:
			return text, nil
		case <-ctx.Done(): // a limit, or an interrupt
			return "", context.Cause(ctx)
		}
	}
	if w.interactive {
		return w.interact(variables)
	}
	return w.start(ctx, variables, message)
}

// start starts the command with a message, as a run does, but with all variables and in this directory.
func (w *workbench) start(ctx context.Context, variables []string, message string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	c := child.Command{Args: w.command, Dir: dir, Plain: append(os.Environ(), variables...), Errors: w.err}
	for _, v := range variables {
		if scratch, ok := strings.CutPrefix(v, "TMPDIR="); ok {
			c.Kept = scratch
		}
	}
	program, err := child.Start(c)
	if err != nil {
		w.failed = err
		return "", err
	}
	go func() {
		_, _ = io.WriteString(program.Stdin, message) // the program need not read it
		_ = program.Stdin.Close()
	}()
	var said bytes.Buffer
	stopped := program.Finish(ctx, func(r io.Reader) { _, _ = io.Copy(io.MultiWriter(w.out, &said), r) })
	_ = program.Close() // its directory is not its own
	switch {
	case stopped:
		return "", context.Cause(ctx)
	case program.ExitCode() != 0:
		return "", errors.New(program.State())
	}
	return strings.TrimSpace(said.String()), nil
}

// interact starts the command on this terminal, waits until it ends by itself, and takes the answer from the
// person, because a debugger prints more than the program does.
func (w *workbench) interact(variables []string) (string, error) {
	cmd := exec.Command(w.command[0], w.command[1:]...)
	cmd.Env = append(os.Environ(), variables...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = w.in, w.out, w.err
	if err := cmd.Start(); err != nil {
		w.failed = err
		return "", err
	}
	if err := cmd.Wait(); err != nil {
		return "", err
	}
	fmt.Fprintf(w.out, "\nType the agent's answer, and end it with Ctrl-D.\n")
	b, _ := io.ReadAll(w.in) // as far as it gets
	return strings.TrimSpace(string(b)), nil
}

// offer prints the variables, or writes them to a file, unless a command gets them.
func (w *workbench) offer(variables []string) error {
	variables = slices.DeleteFunc(slices.Clone(variables), func(v string) bool {
		return strings.ContainsAny(v, "\r\n") // the message
	})
	switch {
	case w.variables != "":
		path, err := filepath.Abs(w.variables)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(strings.Join(variables, "\n")+"\n"), 0o600); err != nil {
			return err
		}
		fmt.Fprintf(w.out, "Its variables are in %s: set -a; . %[1]s\n", path)
	case len(w.command) == 0:
		for _, v := range variables {
			fmt.Fprintf(w.out, "export %s\n", v)
		}
	}
	if len(w.command) == 0 {
		fmt.Fprintf(w.out, "\nStart your program with these variables. Then type its answer here, and end it with Ctrl-D.\n")
	}
	fmt.Fprintln(w.out)
	return nil
}

// tell prints what the program does.
func (w *workbench) tell(e check.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Request == nil {
		fmt.Fprintf(w.out, "tool   %s %s\n       → %s\n", sanitize(e.Tool), short(e.Arguments), short(e.Answer))
		return
	}
	fmt.Fprintf(w.out, "model  %s, %s\n", assay.Counted(len(e.Request.Messages), "message"),
		assay.Counted(len(e.Request.Functions), "tool"))
	switch {
	case e.Err != nil:
		fmt.Fprintf(w.out, "       → failed: %s\n", short(e.Err.Error()))
	default:
		if text := e.Response.Message.Content; text != "" {
			fmt.Fprintf(w.out, "       → %s\n", short(text))
		}
		for _, c := range e.Response.Message.Calls {
			fmt.Fprintf(w.out, "       → calls %s %s\n", sanitize(c.Name), short(c.Arguments))
		}
	}
}

// short returns the beginning of a text in one line.
func short(text string) string {
	const most = 300
	text = sanitize(strings.Join(strings.Fields(text), " "))
	if cut := assay.Head(text, most); cut != text {
		return cut + "…"
	}
	return text
}
