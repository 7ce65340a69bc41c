// Simulate runs whole experiments in virtual time, with everything that can happen to them in weeks,
// and checks laws that must hold whatever happens; see docs/simulation.md.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"
)

const usageText = `Simulate runs whole experiments in virtual time: the real plan, engine, lanes, limits, wire,
episodes, store and control, with simulated endpoints, users and machines that are drawn from a
seed. Each seed is a world. Worlds follow each other until they have made enough requests.

A law that is broken ends the simulation with exit code 1. It prints the seed, the shortest history
that still breaks a law, and what the run said.

  go run ./tools/simulate --seed 7 --requests 60000          a minute of CPU
  go run ./tools/simulate --seed 7 --requests 10000000       a night
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
	f.StringVar(&o.profile, "cpuprofile", "", "with --child, the `file` of a profile of the CPU")
	f.BoolVar(&o.child, "child", false, "print each world as a line of JSON (for simulate itself)")
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
	err := error(nil)
	if o.mutate != "" {
		err = findAll(os.Stdout, &o)
	} else {
		err = simulate(&o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
}

// beChild lives worlds in a test, because only a test can have virtual time. It does not return.
func beChild(o *options) {
	out := json.NewEncoder(os.Stdout)
	live := func(t *testing.T) {
		if o.profile != "" {
			if f, err := os.Create(o.profile); err == nil && pprof.StartCPUProfile(f) == nil {
				defer pprof.StopCPUProfile()
			}
		}
		for seed, made := o.seed, 0; made < o.requests; seed++ {
			r := liveWorld(t, seed, o.dropped())
			made += r.Requests
			if out.Encode(r) != nil || o.one { // nobody listens
				return
			}
		}
	}
	os.Args = os.Args[:1]
	debug.SetGCPercent(400)
	testing.Main(func(string, string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "simulate", F: live}}, nil, nil)
}

func (o *options) dropped() map[int]bool {
	all := make(map[int]bool)
	for _, text := range strings.Split(o.drop, ",") {
		if n, err := strconv.Atoi(text); err == nil {
			all[n] = true
		}
	}
	return all
}

var errBroken = errors.New("a law is broken")

// simulate lives worlds in children, so that it outlives their panics.
func simulate(o *options) error {
	if o.one {
		return o.repeat()
	}
	began, sum := time.Now(), total{}
	for seed := o.seed; sum.requests < o.requests; {
		last, err := inChild(self(), seed, o.requests-sum.requests, nil, func(r *result) error {
			sum.add(r)
			seed = r.Seed + 1
			fmt.Fprintf(os.Stderr, "\r%s, seed %d, %v ", &sum, r.Seed, time.Since(began).Round(time.Second))
			if len(r.Wrong) > 0 {
				return errBroken
			}
			return nil
		})
		if err == nil {
			continue
		}
		if last == nil || len(last.Wrong) == 0 { // the process died
			last = &result{Seed: seed, Wrong: []string{"law 5: the process died: " + err.Error()}}
			seed++
		}
		sum.broken = append(sum.broken, last.Seed)
		fmt.Fprintln(os.Stderr)
		explain(os.Stdout, shortest(last))
		if !o.keep {
			return errBroken
		}
	}
	fmt.Fprintln(os.Stderr)
	fmt.Println(&sum)
	if len(sum.broken) > 0 {
		return fmt.Errorf("laws are broken by the seeds %v", sum.broken)
	}
	return nil
}

// repeat lives one world several times.
func (o *options) repeat() error {
	broken := 0
	for range o.times {
		r := alone(o.seed, o.dropped())
		if o.times == 1 {
			explain(os.Stdout, r)
		}
		if len(r.Wrong) > 0 {
			broken++
			fmt.Println(strings.Join(r.Wrong, "\n"))
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
	virtual, cpu            time.Duration
	broken                  []uint64
}

func (s *total) add(r *result) {
	s.worlds++
	s.requests += r.Requests
	s.lives += r.Lives
	s.virtual += r.Virtual
	s.cpu += r.CPU
}

func (s *total) String() string {
	each := time.Duration(0)
	if s.requests > 0 {
		each = s.cpu / time.Duration(s.requests)
	}
	return fmt.Sprintf("%d worlds, %d requests, %d processes, %.1f days, %v of CPU (%v a request)",
		s.worlds, s.requests, s.lives, s.virtual.Hours()/24, s.cpu.Round(time.Second), each.Round(time.Microsecond))
}

// live1 lives worlds from a seed on in a child, and returns the last one. It ends early if each
// returns an error.
func inChild(program string, seed uint64, requests int, drop []int, each func(*result) error, more ...string) (*result, error) {
	args := append([]string{
		"--child", "--seed", strconv.FormatUint(seed, 10), "--requests", strconv.Itoa(requests),
		"--drop", strings.Trim(strings.ReplaceAll(fmt.Sprint(drop), " ", ","), "[]"),
	}, more...)
	c := exec.Command(program, args...)
	var said tail
	c.Stderr = &said
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return nil, err
	}
	var last *result
	for d := bufio.NewReader(out); err == nil; {
		line, readErr := d.ReadBytes('\n')
		if readErr != nil {
			break
		}
		r := new(result)
		if json.Unmarshal(line, r) == nil && r.Seed > 0 {
			last, err = r, each(r)
		}
	}
	if err != nil {
		_ = c.Process.Kill()
		_ = c.Wait()
		return last, err
	}
	if err = c.Wait(); err != nil {
		err = fmt.Errorf("%w\n%s", err, said.text)
	}
	return last, err
}

func self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// tail keeps the beginning of what a process says when it dies.
type tail struct{ text []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.text = append(t.text, b[:min(len(b), max(0, 6000-len(t.text)))]...)
	return len(b), nil
}

// alone lives one world in a child.
func alone(seed uint64, dropped map[int]bool) *result {
	var drop []int
	for n := range dropped {
		drop = append(drop, n)
	}
	r, err := inChild(self(), seed, 1, drop, func(*result) error { return nil }, "--one")
	if err != nil {
		r = &result{Seed: seed, Wrong: []string{"law 5: the process died: " + err.Error()}}
	}
	return r
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
