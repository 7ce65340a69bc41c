// Command bench measures how close assay comes to the limits of the machine.
//
// It starts assay and its simulated server as child processes, measures them
// from outside, and sends the same requests with a bare HTTP client for
// comparison. Benchmarks of single packages are ordinary Go benchmarks and are
// not part of it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

const help = `Usage: bench [flags]

Bench measures assay from outside. It starts the simulated server and runs
against it as child processes, and a bare HTTP client that sends the same
requests. All measurements take about an hour; leave the machine alone.

%s
The exit code is 3 if a figure misses its target. Small versions have targets of
their own, which docs/measured.md lists.

Examples:
  go run ./tools/bench
  go run ./tools/bench --only 2a,2h
  go run ./tools/bench --quick --only 2a,2d,2e,2f
  go run ./tools/bench --assay ./assay --only 2

Flags:
`

// bareClientVerb makes this program act as the bare client. Each measurement
// starts it as a separate process, so that its CPU time can be measured.
const bareClientVerb = "bare-client"

const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitMissed      = 3
	exitInterrupted = 130
)

var (
	errUsage       = errors.New("usage")
	errMissed      = errors.New("missed")
	errInterrupted = errors.New("interrupted")
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		signal.Stop(signals) // a second signal ends the program at once
		cancel(errInterrupted)
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run carries out one command line and returns the exit code.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	var err error
	switch {
	case len(args) > 0 && args[0] == bareClientVerb:
		err = runBareClient(ctx, args[1:], out)
	case len(args) > 0 && args[0] == plainVerb:
		err = runPlainServer(ctx, args[1:], out)
	case len(args) > 0 && args[0] == environmentVerb:
		err = runEnvironment(ctx, out)
	default:
		err = runBench(ctx, args, out, errs)
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.Is(err, errUsage): // the flag package has printed the reason
		return exitUsage
	}
	fmt.Fprintln(errs, "bench:", err)
	switch {
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.Is(err, errMissed):
		return exitMissed
	}
	return exitError
}

type options struct {
	only  string
	assay string
	quick bool
	json  bool
}

func parseOptions(args []string, errs io.Writer) (o options, chosen []measurement, err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() {
		fmt.Fprintf(errs, help, measurementList())
		flags.PrintDefaults()
	}
	flags.StringVar(&o.only, "only", "", "run only these measurements, such as `2a,2h`")
	flags.StringVar(&o.assay, "assay", "", "measure this `program` instead of building ./cmd/assay")
	flags.BoolVar(&o.quick, "quick", false,
		"run small versions with lower targets, as CI does")
	flags.BoolVar(&o.json, "json", false, "print one JSON object instead of a table")

	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, nil, err
		}
		return o, nil, errUsage
	}
	if flags.NArg() > 0 {
		const format = "bench: unexpected argument %q; `bench --help` lists the flags\n"
		fmt.Fprintf(errs, format, flags.Arg(0))
		return o, nil, errUsage
	}
	if chosen, err = choose(o.only); err != nil {
		fmt.Fprintln(errs, "bench:", err)
		return o, nil, errUsage
	}
	return o, chosen, nil
}

func measurementList() string {
	var b strings.Builder
	for _, m := range measurements {
		fmt.Fprintf(&b, "  %-4s %s\n", m.id, m.title)
	}
	return b.String()
}

// choose returns the measurements whose IDs start with one of the prefixes in
// a comma-separated list, so that 2 selects 2a to 2k. An empty list selects all.
func choose(only string) ([]measurement, error) {
	if only == "" {
		return measurements, nil
	}
	prefixes := strings.Split(only, ",")
	for _, p := range prefixes {
		matches := func(m measurement) bool { return p != "" && strings.HasPrefix(m.id, p) }
		if !slices.ContainsFunc(measurements, matches) {
			return nil, fmt.Errorf("--only: unknown measurement %q; `bench --help` lists them", p)
		}
	}

	var chosen []measurement
	for _, m := range measurements {
		selects := func(p string) bool { return strings.HasPrefix(m.id, p) }
		if slices.ContainsFunc(prefixes, selects) {
			chosen = append(chosen, m)
		}
	}
	return chosen, nil
}

func runBench(ctx context.Context, args []string, out, errs io.Writer) (err error) {
	o, chosen, err := parseOptions(args, errs)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "assay-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	b := &bench{rig: &rig{assay: o.assay, dir: dir}, quick: o.quick}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.assay == "" {
		if b.assay, err = build(ctx, dir); err != nil {
			return err
		}
	}
	version, err := b.version(ctx)
	if err != nil {
		return err
	}

	r := report{
		Program: version, System: runtime.GOOS + "/" + runtime.GOARCH,
		Cores: runtime.NumCPU(), Quick: o.quick,
	}
	r.Rows, err = b.measure(ctx, chosen, errs)
	if len(r.Rows) == 0 {
		return err
	}
	if err == nil {
		err = r.missed()
	}
	if o.json { // rows measured before an error are printed too
		return errors.Join(err, json.NewEncoder(out).Encode(r))
	}
	return errors.Join(err, r.writeText(out))
}

// build compiles assay from the module of the working directory.
func build(ctx context.Context, dir string) (path string, err error) {
	path = dir + "/assay"
	const pkg = "github.com/assay-eval/assay/cmd/assay"
	out, err := exec.CommandContext(ctx, "go", "build", "-o", path, pkg).CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil:
		return "", fmt.Errorf("cannot build assay: %w; name a program with --assay\n%s", err, out)
	}
	return path, nil
}

// measure returns the rows of the chosen measurements, up to the first error.
func (b *bench) measure(
	ctx context.Context, chosen []measurement, progress io.Writer,
) (all []row, err error) {
	for _, m := range chosen {
		duration := fmt.Sprintf("about %d s", m.seconds)
		if b.quick {
			duration = "small version"
		}
		fmt.Fprintf(progress, "%-3s %s: %s\n", m.id, m.title, duration)

		rows, err := b.repeated(func() ([]row, error) {
			rows, err := m.run(b, ctx)
			for i := range rows {
				if rows[i].Number = m.id; b.quick {
					rows[i] = small(rows[i])
				}
			}
			return rows, err
		})
		if cause := context.Cause(ctx); cause != nil {
			return all, cause
		}
		if err != nil {
			return all, fmt.Errorf("%s: %w", m.id, err)
		}
		all = append(all, rows...)
	}
	return all, nil
}

// runBareClient sends recorded requests and prints a summary as JSON.
func runBareClient(ctx context.Context, args []string, out io.Writer) error {
	c := client{key: "bench"}
	flags := flag.NewFlagSet(bareClientVerb, flag.ContinueOnError)
	flags.StringVar(&c.url, "url", "", "where to send the requests")
	flags.IntVar(&c.connections, "connections", 1, "requests in flight at once")
	requests := flags.Int("requests", 1, "requests to send")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}

	text, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &c.bodies); err != nil {
		return err
	}
	result, err := c.replay(ctx, *requests)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result)
}
