// Simulate runs whole experiments in virtual time, with everything that can happen to them in weeks,
// and checks laws that must hold whatever happens; see docs/simulation.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const usageText = `Simulate runs whole experiments in virtual time: the real plan, engine, lanes, limits, wire,
episodes, store and control, with simulated endpoints, users and machines that are drawn from a
seed. Each seed is a world. Worlds follow each other until they have made enough requests.

A law that is broken ends the simulation with exit code 1. It prints the seed, the shortest history
that still breaks a law, and what the run said.

  go run ./tools/simulate --seed 7 --requests 60000          a minute of CPU
  go run ./tools/simulate --seed 7 --requests 10000000       an evening on two cores
  simulate --requests 10000000 --resume worlds.jsonl         the same in several evenings
  go run ./tools/simulate --seed 42 --one                    one world, with its story
  go run ./tools/simulate --seed 42 --one --drop 0,3         without two of its items
  go run ./tools/simulate --seed 42 --one --times 50         again and again: the scheduler is free
  go run ./tools/simulate --mutate all                       does it find known defects?

`

type options struct {
	seed     uint64
	requests int
	one      bool
	times    int
	drop     string
	keep     bool
	resume   string
	child    bool
	mutate   string
	profile  string
}

func main() {
	var o options
	f := flag.NewFlagSet("simulate", flag.ExitOnError)
	f.Uint64Var(&o.seed, "seed", 1, "the first world")
	f.IntVar(&o.requests, "requests", 60000, "how many `requests` the worlds make together")
	f.BoolVar(&o.one, "one", false, "only the world of the seed, and print its story")
	f.IntVar(&o.times, "times", 1, "with --one, how many `times`")
	f.StringVar(&o.drop, "drop", "", "with --one, the `numbers` of the items that do not happen")
	f.BoolVar(&o.keep, "keep-going", false, "go on with the next world after a broken law")
	f.StringVar(&o.resume, "resume", "", "keep what worlds come to in a `file`, and go on where it ends")
	f.StringVar(&o.profile, "cpuprofile", "", "with --child, the `file` of a profile of the CPU")
	f.BoolVar(&o.child, "child", false, "live the worlds that standard input names (for simulate itself)")
	f.StringVar(&o.mutate, "mutate", "", "put known defects into the product, whose names have this `text`, "+
		"or all, and show which world finds each")
	f.Usage = func() {
		fmt.Fprint(f.Output(), usageText)
		f.PrintDefaults()
	}
	_ = f.Parse(os.Args[1:]) // exits if that fails
	if o.child {
		beChild(&o)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := error(nil)
	if o.mutate != "" {
		err = findAll(ctx, os.Stdout, &o)
	} else {
		err = simulate(ctx, &o)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
}

// maxMemory is how many bytes a child may use before it frees them eagerly.
const maxMemory = 2 << 30

// beChild lives the worlds of the tasks on standard input in a test, because only a test can have
// virtual time. It does not return.
func beChild(o *options) {
	live := func(t *testing.T) {
		if o.profile != "" {
			if f, err := os.Create(o.profile); err == nil && pprof.StartCPUProfile(f) == nil {
				defer pprof.StopCPUProfile()
			}
		}
		in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
		for {
			var next task
			if in.Decode(&next) != nil || out.Encode(liveWorld(t, &next)) != nil {
				return
			}
		}
	}
	os.Args = os.Args[:1]
	debug.SetGCPercent(800)
	debug.SetMemoryLimit(maxMemory)
	testing.Main(func(string, string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "simulate", F: live}}, nil, nil)
}

func (o *options) dropped() (drop []int, err error) {
	for _, text := range strings.FieldsFunc(o.drop, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("--drop: %q is no number", text)
		}
		drop = append(drop, n)
	}
	return drop, nil
}

var errBroken = errors.New("a law is broken")

// sayEvery is how often a long simulation says how far it is.
const sayEvery = 30 * time.Second

// simulate lives worlds until they have made enough requests.
func simulate(ctx context.Context, o *options) error {
	if o.one {
		return o.repeat(ctx)
	}
	began, sum := time.Now(), total{}
	said := began
	record, known, err := openRecord(o.resume)
	if err != nil {
		return err
	}
	for _, r := range known {
		sum.add(r)
		o.seed = r.Seed + 1
	}
	sum.before = sum.requests
	for r := range worlds(ctx, self(), o.seed) {
		sum.add(r)
		if err := record.add(r); err != nil {
			return err
		}
		if len(r.Wrong) > 0 {
			explain(os.Stdout, shortest(ctx, r))
			if !o.keep {
				break
			}
		}
		if sum.requests >= o.requests {
			break
		}
		if time.Since(said) >= sayEvery {
			said = time.Now()
			fmt.Fprintf(os.Stderr, "%s: seed %d, %s\n", time.Since(began).Round(time.Second), r.Seed, sum.text(time.Since(began)))
		}
	}
	fmt.Println(sum.text(time.Since(began)))
	if len(sum.broken) > 0 {
		return fmt.Errorf("laws are broken by the seeds %v", sum.broken)
	}
	return ctx.Err()
}

// repeat lives one world several times.
func (o *options) repeat(ctx context.Context) error {
	drop, err := o.dropped()
	if err != nil {
		return err
	}
	broken := 0
	for range o.times {
		r := alone(ctx, task{Seed: o.seed, Drop: drop})
		if o.times == 1 {
			explain(os.Stdout, r)
		} else if len(r.Wrong) > 0 {
			fmt.Println(strings.Join(r.Wrong, "\n"))
		}
		if len(r.Wrong) > 0 {
			broken++
		}
	}
	if broken > 0 {
		return fmt.Errorf("laws are broken in %d of %d", broken, o.times)
	}
	return nil
}

// A total adds up worlds.
type total struct {
	worlds, requests, lives int
	before                  int // requests of an earlier process
	virtual, cpu            time.Duration
	broken                  []uint64
}

func (s *total) add(r *result) {
	s.worlds++
	s.requests += r.Requests
	s.lives += r.Lives
	s.virtual += r.Virtual
	s.cpu += r.CPU
	if len(r.Wrong) > 0 {
		s.broken = append(s.broken, r.Seed)
	}
}

func (s *total) text(took time.Duration) string {
	return fmt.Sprintf("%d worlds, %d requests (%.0f a second), %d processes, %.1f days, %d worlds that break laws, "+
		"%v of CPU (%v a request)", s.worlds, s.requests, float64(s.requests-s.before)/took.Seconds(), s.lives, s.virtual.Hours()/24,
		len(s.broken), s.cpu.Round(time.Second), (s.cpu / time.Duration(max(1, s.requests))).Round(time.Microsecond))
}

// explain prints a world.
func explain(out io.Writer, r *result) {
	fmt.Fprintf(out, "seed %d: %d requests, %d processes, %v\n", r.Seed, r.Requests, r.Lives, r.Virtual)
	for _, part := range []struct {
		title string
		lines []string
	}{{"history", r.Items}, {"what happened", r.Story}, {"broken laws", r.Wrong}} {
		if len(part.lines) > 0 {
			fmt.Fprintf(out, "%s:\n  %s\n", part.title, strings.Join(part.lines, "\n  "))
		}
	}
}
