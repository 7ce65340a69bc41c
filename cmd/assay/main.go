// Command assay measures how well language-model agents carry out tool
// workflows when instructions are flawed and tools fail.
//
// This package holds the command line only: it reads flags, wires the packages
// of internal/ together, prints, and chooses the exit code.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/delivery"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/selection"
	"github.com/assay-eval/assay/internal/run/plan"
	"github.com/assay-eval/assay/internal/store"
)

// The exit codes.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitIncomplete  = 3   // finished with pending or parked trials
	exitInterrupted = 130 // stopped by a signal
)

// process is what the commands see of the operating system.
type process struct {
	in          io.Reader
	out, err    io.Writer
	env         func(string) (string, bool)
	signals     <-chan os.Signal
	abort       func()            // ends the program at once; nil for never
	errTerminal bool              // err is a terminal
	terminal    document.Terminal // what out is
	name        string            // how the user called the program
}

func main() {
	// Whoever reads our output may go away; a run does not stop for that.
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	os.Exit(run(os.Args[1:], &process{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv, signals: signals, abort: func() { os.Exit(exitInterrupted) },
		errTerminal: isTerminal(os.Stderr), terminal: terminalOf(os.Stdout), name: programName(),
	}))
}

func isTerminal(f *os.File) bool {
	return term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// terminalOf says what may be written to a file: to one that is no terminal neither
// colours nor lines of another width than everywhere.
func terminalOf(f *os.File) (t document.Terminal) {
	if isTerminal(f) {
		t.Color = os.Getenv("NO_COLOR") == ""
		t.Width, _, _ = term.GetSize(int(f.Fd()))
	}
	return t
}

// programName is how to call this program again: `go run` leaves its binary in
// a temporary directory.
func programName() string {
	if path, err := os.Executable(); err == nil && strings.Contains(path, "go-build") {
		return "go run ./cmd/assay"
	}
	return "assay"
}

// codedError carries an exit code; without err there is no message.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *codedError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &codedError{exitUsage, fmt.Errorf(format, args...)}
}

// run carries out one command line and returns the exit code.
func run(args []string, p *process) int {
	out := &heedful{Writer: p.out}
	p.out = out
	root := newRoot(p)
	root.SetArgs(args)
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	err := root.ExecuteContext(context.Background())
	if err == nil && out.err != nil {
		err = fmt.Errorf("write standard output: %w", out.err)
	}
	// Whoever reads only the beginning of our output has what they want.
	if err == nil || errors.Is(out.err, syscall.EPIPE) && brokenPipe(err) {
		return exitOK
	}
	if msg := err.Error(); msg != "" {
		fmt.Fprintln(p.err, "assay: "+msg)
	}
	return exitCode(err)
}

// brokenPipe says that a reader who went away is all that an error is about.
func brokenPipe(err error) bool {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(err error) bool { return !brokenPipe(err) })
	case interface{ Unwrap() error }:
		return brokenPipe(e.Unwrap())
	}
	return err == syscall.EPIPE
}

// A heedful writer remembers the first error, for what prints line by line.
type heedful struct {
	io.Writer
	err error
}

func (w *heedful) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// Stat describes the file that the writer writes to.
func (w *heedful) Stat() (os.FileInfo, error) {
	if file, ok := w.Writer.(*os.File); ok {
		return file.Stat()
	}
	return nil, errors.ErrUnsupported
}

func exitCode(err error) int {
	var coded *codedError
	if errors.As(err, &coded) {
		return coded.code
	}
	var file *plan.Error
	var output *delivery.NameError
	var ambiguous *selection.AmbiguousError
	if errors.As(err, &file) || errors.As(err, &output) || errors.As(err, &ambiguous) {
		return exitUsage
	}
	return exitError
}

func newRoot(p *process) *cobra.Command {
	root := &cobra.Command{
		Use:   "assay",
		Short: "Measure how language-model agents carry out tool workflows",
		Long: `Assay measures how well language-model agents carry out tool workflows when
tools fail. It runs thousands of multi-turn trials over every provider, key and
deployment at once, within their rate limits, and saves each result the moment
it exists. Running an experiment again runs only what is pending.`,
		Example: `  assay run                         the built-in quickstart: no key, no network
  assay plan experiment.yaml        what it would cost and take
  assay run experiment.yaml         an experiment of yours
  assay run --suite flawed --model sim/expert
  assay ctl pause                   pause the run, from another terminal
  assay status                      what is done, pending and parked
  assay report                      findings, warnings, tables; --format html for charts
  assay compare model-a model-b     what differs, is it chance, which trials flipped
  assay show 3f2a9c                 one trial: transcript, plan and path, score step by step
  assay export --format parquet     all attempts, for other programs
  assay verify                      proves that the store is whole`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError("%w\nhint: `%s --help` lists the flags", err, cmd.CommandPath())
	})
	root.AddCommand(newRun(p), interruptible(p, newPlan(p)), newSuites(p), newCtl(p),
		interruptible(p, newStatus(p)), interruptible(p, newShow(p)), interruptible(p, newExport(p)),
		interruptible(p, newReport(p)), interruptible(p, newCompare(p)), interruptible(p, newImports(p)),
		interruptible(p, newVerify(p)), interruptible(p, newRecover(p)), interruptible(p, newBackup(p)),
		interruptible(p, newMerge(p)), interruptible(p, newDelete(p)),
		newRescore(p), newClassify(p), newLibrary(p), newSchema(p), newSim(p))
	wrapArgs(root)
	return root
}

// wrapArgs makes wrong arguments of any command a usage error.
func wrapArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if cmd.HasSubCommands() && len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			if err := check(cmd, args); err != nil {
				return usageError("%w\nhint: `%s --help` shows how to call it", err, cmd.CommandPath())
			}
			return nil
		}
	}
	for _, c := range cmd.Commands() {
		wrapArgs(c)
	}
}

func unknownCommand(cmd *cobra.Command, name string) error {
	var known []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			known = append(known, c.Name())
		}
	}
	hint := cmp.Or(assay.NameHint(name, known), fmt.Sprintf("`%s --help` lists the commands", cmd.CommandPath()))
	return usageError("%s has no command %q\nhint: %s", cmd.CommandPath(), name, hint)
}

// version is the module's version, with the commit where the build knows it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
	}
	return v
}

// storeFlag adds --store to a command.
func storeFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "store", "assay.db", "the `file` that holds all results")
	_ = cmd.MarkFlagFilename("store", "db")
}

// namesIn completes arguments with names that the store holds.
func namesIn(path *string, names func(context.Context, *store.DB) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		db, err := store.OpenReadOnly(cmd.Context(), *path)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer db.Close()
		all, _ := names(cmd.Context(), db) // without names there is nothing to complete
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// experimentNames are those that a store holds.
func experimentNames(ctx context.Context, db *store.DB) (names []string, err error) {
	all, err := db.Experiments(ctx)
	for _, e := range all {
		names = append(names, e.Name)
	}
	return names, err
}

// choice completes a flag with fixed values.
func choice(cmd *cobra.Command, flag string, values ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
