// Command bench measures how close assay comes to the limits of the machine.
//
// It starts assay and its simulated server as child processes, measures them
// from outside, and sends the same requests with a bare HTTP client for
// comparison. Benchmarks of single packages are ordinary Go benchmarks and are
// not part of it.
package main

import (
	"context"
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

const usageText = `Bench measures assay from outside. All measurements take about an hour; leave the
machine alone.

%s
The exit code is 3 if a figure misses its target.

  go run ./tools/bench --only 2a,2h
  go run ./tools/bench --quick --only 2a,2d,2e,2f
  go run ./tools/bench --assay ./assay --only 2

`

// children are the ways in which this program acts as a child process of a measurement, so that
// its CPU time can be measured.
var children = map[string]func(context.Context, []string) error{
	bareClientVerb: runBareClient, plainVerb: runPlainServer, environmentVerb: runEnvironment,
}

var errMissed = errors.New("missed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
	switch {
	case errors.Is(err, errMissed):
		os.Exit(3)
	case err != nil:
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (err error) {
	if len(args) > 0 && children[args[0]] != nil {
		return children[args[0]](ctx, args[1:])
	}
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	flags.Usage = func() {
		var list strings.Builder
		for _, m := range measurements {
			fmt.Fprintf(&list, "  %-4s %s\n", m.id, m.title)
		}
		fmt.Fprintf(os.Stderr, usageText, list.String())
		flags.PrintDefaults()
	}
	only := flags.String("only", "", "run only these measurements, such as `2a,2h`")
	assay := flags.String("assay", "", "measure this `program` instead of building ./cmd/assay")
	quick := flags.Bool("quick", false, "run small versions with lower targets, as CI does")
	_ = flags.Parse(args) // ends the program if it fails
	chosen, err := choose(*only)
	if err != nil {
		return err
	}

	dir, err := os.MkdirTemp("", "assay-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{rig: &rig{assay: *assay, dir: dir}, quick: *quick}
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.assay == "" {
		if b.assay, err = build(ctx, dir); err != nil {
			return err
		}
	}
	version, err := exec.CommandContext(ctx, b.assay, "--version").Output()
	if err != nil {
		return fmt.Errorf("%s --version: %w", b.assay, err)
	}
	rows, err := b.measure(ctx, chosen, os.Stderr)
	if err == nil {
		err = missed(rows)
	}
	writeText(os.Stdout, rows) // also if a later measurement failed
	fmt.Printf("\n%s on %s/%s, %d cores\n", strings.TrimSpace(string(version)), runtime.GOOS,
		runtime.GOARCH, runtime.NumCPU())
	return err
}

// choose returns the measurements whose IDs start with one of the prefixes in
// a comma-separated list, so that 2 selects 2a to 2k. An empty list selects all.
func choose(only string) (chosen []measurement, err error) {
	prefixes := strings.Split(only, ",")
	for _, p := range prefixes {
		has := func(m measurement) bool { return strings.HasPrefix(m.id, p) }
		if !slices.ContainsFunc(measurements, has) {
			return nil, fmt.Errorf("--only: unknown measurement %q; `bench --help` lists them", p)
		}
	}
	for _, m := range measurements {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(m.id, p) }) {
			chosen = append(chosen, m)
		}
	}
	return chosen, nil
}

// build compiles assay from the module of the working directory.
func build(ctx context.Context, dir string) (path string, err error) {
	path = dir + "/assay"
	const pkg = "github.com/assay-eval/assay/cmd/assay"
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as `make build`
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cannot build assay: %w; name a program with --assay\n%s", err, out)
	}
	return path, nil
}

// measure returns the rows of the chosen measurements, up to the first error.
func (b *bench) measure(
	ctx context.Context, chosen []measurement, progress io.Writer,
) (all []figure, err error) {
	for _, m := range chosen {
		fmt.Fprintf(progress, "%-3s %s: about %d s\n", m.id, m.title, b.size(m.seconds, 10))
		// Other work on the machine can spoil a measurement of a second, so a small one is repeated
		// until no target is missed.
		var rows []figure
		for range b.size(1, 3) {
			if rows, err = m.run(b, ctx); err != nil {
				return all, fmt.Errorf("%s: %w", m.id, errors.Join(err, context.Cause(ctx)))
			}
			for i := range rows {
				if rows[i].number = m.id; b.quick {
					rows[i] = small(rows[i])
				}
			}
			if missed(rows) == nil {
				break
			}
		}
		all = append(all, rows...)
	}
	return all, nil
}
