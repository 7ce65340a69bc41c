// Command assay measures how well language-model agents carry out tool workflows when
// instructions are flawed and tools fail.
//
// This package contains the command line only, one file per verb: it reads flags, calls the
// packages in internal, prints results and chooses the exit code.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/atomicfile"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/store"
)

// The exit codes.
const (
	exitOK           = 0
	exitError        = 1
	exitUsage        = 2
	exitIncomplete   = 3   // finished with pending or parked trials, or a lane needs a change
	exitFail         = 4   // the candidate of a gate is worse
	exitInconclusive = 5   // a gate has no verdict
	exitInterrupted  = 130 // stopped by a signal
)

// A process connects the commands to the operating system.
type process struct {
	in          io.Reader
	out, err    io.Writer
	env         func(string) (string, bool)
	signals     <-chan os.Signal
	abort       func()            // ends the program at once; may be nil
	errTerminal bool              // whether err is a terminal
	terminal    document.Terminal // describes out
	name        string            // the command that starts this program
	read        []*store.DB       // the stores that were opened to read
}

func main() {
	hideProcess()
	// A run must not stop because the reader of its output has gone away.
	signal.Ignore(syscall.SIGPIPE)
	received, signals := make(chan os.Signal, 2), make(chan os.Signal)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	go forward(received, signals, leave)
	os.Exit(run(os.Args[1:], &process{
		in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv,
		signals: signals, abort: leave,
		errTerminal: isTerminal(os.Stderr), terminal: terminalOf(os.Stdout), name: programName(),
	}))
}

// leave ends the program at once.
func leave() { os.Exit(exitInterrupted) }

func isTerminal(f *os.File) bool {
	return term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// terminalOf returns the width and colours of a terminal. It is empty for other files, so that
// their text does not depend on where the program runs.
func terminalOf(f *os.File) (t document.Terminal) {
	if isTerminal(f) {
		t.Color = os.Getenv("NO_COLOR") == ""
		t.Width, _, _ = term.GetSize(int(f.Fd()))
	}
	return t
}

// programName returns the command that starts this program again. The binary of `go run` is in a
// temporary directory, so its path is of no use.
func programName() string {
	if path, err := os.Executable(); err == nil && strings.Contains(path, "go-build") {
		return "go run ./cmd/assay"
	}
	return "assay"
}

// A codedError carries an exit code. If err is nil, there is no message.
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

// flagValues describes the values of flags by the names that pflag gives to their types.
var flagValues = map[string]string{
	"bool": "true or false", "duration": "a duration, such as 30s or 5m", "float64": "a number",
	"float64Slice": "numbers, such as 0.9,0.8", "int": "a whole number",
	"uint64": "a whole number that is not negative",
}

func usageError(format string, args ...any) error {
	return &codedError{exitUsage, fmt.Errorf(format, args...)}
}

// run carries out one command line and returns the exit code.
func run(args []string, p *process) int {
	out := &errWriter{Writer: p.out}
	p.out = out
	root := newRoot(p)
	root.SetArgs(args)
	root.SetIn(p.in)
	root.SetOut(p.out)
	root.SetErr(p.err)
	cmd, err := root.ExecuteContextC(context.Background())
	if err == nil && p.readDamage() {
		err = &codedError{code: exitError}
	}
	if err == nil && out.err != nil {
		err = fmt.Errorf("write standard output: %w", out.err)
	}
	// A reader that closes the pipe early, such as head, has all the output that it needs.
	if err == nil || errors.Is(out.err, syscall.EPIPE) && brokenPipe(err) {
		return exitOK
	}
	if msg := assay.Words(words).Of(err); msg != "" {
		if path := storeAmong(cmd); path != "" {
			msg, _, _ = strings.Cut(msg, "\nhint: ")
			msg += "\nhint: did you mean --store " + path + "?"
		}
		fmt.Fprintln(p.err, "assay: "+assay.Brief(msg))
	}
	return exitCode(err)
}

// storeAmong returns the argument that looks like a store if the command takes its store from a flag
// and takes no files as arguments, and "" otherwise.
func storeAmong(cmd *cobra.Command) string {
	flag := cmd.Flags().Lookup("store")
	files := strings.Contains(cmd.Use, "FILE") || strings.Contains(cmd.Use, "STORE")
	if flag == nil || flag.Changed || files {
		return ""
	}
	args := cmd.Flags().Args()
	i := slices.IndexFunc(args, func(arg string) bool {
		info, err := os.Stat(arg)
		return filepath.Ext(arg) == ".db" && err == nil && info.Mode().IsRegular()
	})
	if i < 0 {
		return ""
	}
	return args[i]
}

// readDamage reports whether something was left out because it could not be read or proved.
func (p *process) readDamage() bool {
	return slices.ContainsFunc(p.read, func(db *store.DB) bool {
		return db.Skipped() > 0 || db.SkippedRows() > 0
	})
}

// brokenPipe reports whether an error consists of broken pipes only.
func brokenPipe(err error) bool {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(err error) bool { return !brokenPipe(err) })
	case interface{ Unwrap() error }:
		return brokenPipe(e.Unwrap())
	}
	return err == syscall.EPIPE
}

// An errWriter remembers its first error, for code that prints line by line.
type errWriter struct {
	io.Writer
	err error
}

func (w *errWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

func exitCode(err error) int {
	var coded *codedError
	if errors.As(err, &coded) {
		return coded.code
	}
	var file *plan.Error
	var output *atomicfile.NameError
	var ambiguous *query.AmbiguousNameError
	if errors.As(err, &file) || errors.As(err, &output) || errors.As(err, &ambiguous) {
		return exitUsage
	}
	return exitError
}

func init() { cobra.EnableCommandSorting = false } // help lists commands in our order

func newRoot(p *process) *cobra.Command {
	root := &cobra.Command{
		Use:   "assay",
		Short: "Measure how language-model agents carry out tool workflows",
		Long: `Assay measures how well language-model agents carry out tool workflows when their
instructions are flawed and their tools fail. It runs thousands of multi-turn trials
over every provider, key and deployment at once, within their rate limits, and saves
each result immediately. Running an experiment again runs only its pending trials.`,
		Example: `  assay run                         run the built-in quickstart without a key
  assay check experiment.yaml       try every key and deployment before money is spent
  assay plan experiment.yaml        estimate requests, cost, time and bottleneck
  assay run experiment.yaml         run your own experiment
  assay run --suite flawed --model sim/careful
  assay ctl pause                   pause the run, from another terminal
  assay status                      count done, pending and parked trials
  assay report                      show findings, warnings and tables; --format html adds charts
  assay failures                    group failures by what went wrong first
  assay compare model-a model-b     test whether two models differ
  assay show 3f2a9c                 show one trial: transcript, plan and score
  assay export --format parquet     export all attempts for other programs
  assay store verify                prove that the store is undamaged
  assay completion bash             complete commands in your shell; also zsh, fish, powershell`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		// If the command does not exist, that is the error to report, and not its flags.
		if args := cmd.Flags().Args(); onlyGroups(cmd) && len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			flag := invalid.GetFlag()
			if want := flagValues[flag.Value.Type()]; want != "" {
				err = fmt.Errorf("--%s is %q, want %s", flag.Name, invalid.GetValue(), want)
			}
		}
		hint := fmt.Sprintf("`%s --help` lists the flags", cmd.CommandPath())
		if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
			var known []string
			cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, f.Name) })
			if near := assay.NearestName(missing.GetSpecifiedName(), known); near != "" {
				hint = "did you mean --" + near + "? " + hint
			}
		}
		return usageError("%w\nhint: %s", err, hint)
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"daily", "Daily commands:", []*cobra.Command{
			newRun(p), interruptible(p, newCheck(p)), interruptible(p, newPlan(p)), newDebug(p),
			interruptible(p, newStatus(p)), interruptible(p, newView(p)), newCtl(p),
		}},
		{"results", "Results:", []*cobra.Command{
			interruptible(p, newReport(p)), interruptible(p, newFailures(p)),
			interruptible(p, newCompare(p)), interruptible(p, newShow(p)), interruptible(p, newExport(p)), newGate(p), newFork(p),
			interruptible(p, newJudge(p)),
			interruptible(p, newPublish(p)), interruptible(p, newCite(p)), interruptible(p, newRepeat(p)),
		}},
		{"more", "More:", []*cobra.Command{
			newInit(p), newLibrary(p), newStore(p), newWorker(p), newSim(p),
		}},
	} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, cmd := range group.commands {
			cmd.GroupID = group.id
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommandGroupID("more")
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"})
	completion.RunE = root.RunE // so that its arguments are checked
	for _, shell := range completion.Commands() {
		shell.Example = "  assay completion " + shell.Name()
	}
	wrapArgs(root)
	help, _, _ := root.Find([]string{"help"})
	help.Hidden = true // from completion
	help.Args = func(_ *cobra.Command, args []string) error {
		if found, rest, _ := root.Find(args); len(rest) > 0 {
			return unknownCommand(found, rest[0])
		}
		return nil
	}
	return root
}

// group returns a command that only has other commands.
func group(use, short, example string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// onlyGroups reports whether a command takes no arguments but the names of its commands.
func onlyGroups(cmd *cobra.Command) bool {
	return cmd.HasSubCommands() && !strings.Contains(cmd.Use, " ")
}

// wrapArgs turns the argument errors of all commands into usage errors.
func wrapArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if onlyGroups(cmd) && len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			if err := check(cmd, args); err != nil {
				if len(args) > 1 && assay.NearestName(args[0], commandsBelow(cmd)) != "" {
					return unknownCommand(cmd, args[0])
				}
				path := cmd.CommandPath() // cobra's own error does not show what is wanted
				return usageError("%s was given %s\nhint: write `%s`; `%s --help` has examples",
					path, assay.Counted(len(args), "argument"), cmd.UseLine(), path)
			}
			return nil
		}
	}
	for _, c := range cmd.Commands() {
		wrapArgs(c)
	}
}

// replaced maps former commands to those that answer their question today.
var replaced = map[string]string{"vendors": "assay compare --hosts MODEL"}

// commandsBelow returns the names of the commands below one.
func commandsBelow(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	return names
}

func unknownCommand(cmd *cobra.Command, name string) error {
	var moved []string
	for _, c := range cmd.Commands() {
		for _, below := range c.Commands() {
			if below.Name() == name {
				moved = append(moved, below.CommandPath())
			}
		}
	}
	path := cmd.CommandPath()
	hint := cmp.Or(assay.NameHint(name, commandsBelow(cmd)), fmt.Sprintf("`%s --help` lists the commands", path))
	switch {
	case replaced[name] != "":
		hint = fmt.Sprintf("`%s` has taken its place", replaced[name])
	case len(moved) > 0:
		hint = fmt.Sprintf("did you mean %s?", strings.Join(moved, " or "))
	case cmd.Flags().Lookup(name) != nil:
		hint = fmt.Sprintf("did you mean %s --%s?", path, name)
	}
	return usageError("%s has no command %q\nhint: %s", path, name, hint)
}

// version returns the module's version, which includes the commit if the build recorded it.
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

const defaultStore = assay.DefaultStore

// storeFlag adds --store to a command.
func storeFlag(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "store", defaultStore, "the `file` with all results")
	_ = cmd.MarkFlagFilename("store", "db")
}

// revealFlag adds --reveal to a command that can quote tasks.
func revealFlag(cmd *cobra.Command, reveal *bool) {
	cmd.Flags().BoolVar(reveal, "reveal", false, "show the texts of private libraries, too")
}

// namesIn completes arguments with names from the store.
func namesIn(
	path *string, names func(context.Context, *store.DB) ([]string, error),
) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		db, err := store.OpenReadOnly(cmd.Context(), *path)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer db.Close()
		all, _ := names(cmd.Context(), db) // on an error there are no completions
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// experimentNames returns the names of the experiments in a store.
func experimentNames(ctx context.Context, db *store.DB) (names []string, err error) {
	all, err := db.Experiments(ctx)
	for _, e := range all {
		names = append(names, e.Name)
	}
	return names, err
}

// choice makes a flag complete to fixed values.
func choice(cmd *cobra.Command, flag string, values ...string) {
	complete := cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc(flag, complete)
}
