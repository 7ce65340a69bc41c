package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
)

// A task names a world, and the items that do not happen in it.
type task struct {
	Seed uint64 `json:"seed"`
	Drop []int  `json:"drop,omitempty"`
	// Early is true for a world without the later draws of [drawItems].
	Early bool `json:"early,omitempty"`
}

// A child is a process that lives worlds, one after the other. A panic, a standstill, or memory that
// is never freed is its own.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *json.Decoder
	said  tail
	lived int
}

// maxLived is how many worlds a child lives before another one takes its place, because memory grows by a
// megabyte a world.
const maxLived = 50

// born counts the children of this process.
var born atomic.Int64

// newChild starts a child that keeps its files in a directory. Unless the user decides that, it collects
// garbage seldom, because a tenth of the CPU goes there. Three of four use one core, because idle ones
// that look for work are a fifth of the CPU; the others race as on a machine of their own.
func newChild(ctx context.Context, program, dir string) (*child, error) {
	c := &child{cmd: exec.CommandContext(ctx, program, "--child")}
	c.cmd.Stderr = &c.said
	c.cmd.Env = append([]string{"GOGC=400", "GOMEMLIMIT=1500MiB"}, append(os.Environ(), "TMPDIR="+dir)...)
	if born.Add(1)%4 != 0 {
		c.cmd.Env = append(c.cmd.Env, "GOMAXPROCS=1")
	}
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.in, c.out = in, json.NewDecoder(out)
	return c, c.cmd.Start()
}

// live lives a world. ok is false if the child has died of it.
func (c *child) live(t task) (r *result, ok bool) {
	c.lived++
	r = new(result)
	if json.NewEncoder(c.in).Encode(t) == nil && c.out.Decode(r) == nil {
		return r, true
	}
	return &result{Seed: t.Seed, Wrong: []string{
		fmt.Sprintf("law 5: the process died: %v\n%s", c.cmd.Wait(), c.said.text),
	}}, false
}

func (c *child) end() {
	_ = c.in.Close()
	_ = c.cmd.Wait() // what it had to say is known
}

// A place is that of a world in the order of seeds.
type place struct {
	task
	result chan *result
}

// worlds lives the worlds from a seed on, several at once, and returns them in the order of their
// seeds. It ends with ctx.
func worlds(ctx context.Context, program string, first uint64) iter.Seq[*result] {
	return func(yield func(*result) bool) {
		dir, err := scratch()
		if err != nil {
			yield(&result{Seed: first, Wrong: []string{err.Error()}})
			return
		}
		defer os.RemoveAll(dir)
		ctx, cancel := context.WithCancel(ctx)
		var children sync.WaitGroup
		defer children.Wait()
		defer cancel()
		cores := runtime.NumCPU()
		next, order := make(chan place), make(chan place, 8*cores) // how far a fast child may be ahead
		for range cores {
			children.Go(func() { liveAll(ctx, program, dir, next) })
		}
		children.Go(func() {
			for seed := first; ; seed++ {
				p := place{task{Seed: seed}, make(chan *result, 1)}
				for _, to := range []chan place{order, next} {
					select {
					case to <- p:
					case <-ctx.Done():
						return
					}
				}
			}
		})
		for {
			select {
			case p := <-order:
				select {
				case r := <-p.result:
					if ctx.Err() == nil && yield(r) {
						continue
					}
				case <-ctx.Done():
				}
				return
			case <-ctx.Done():
				return
			}
		}
	}
}

// liveAll lives worlds in one child after the other.
func liveAll(ctx context.Context, program, dir string, next <-chan place) {
	var c *child
	for {
		select {
		case p := <-next:
			if c == nil {
				var err error
				if c, err = newChild(ctx, program, dir); err != nil {
					p.result <- &result{Seed: p.Seed, Wrong: []string{err.Error()}}
					return
				}
			}
			r, ok := c.live(p.task)
			p.result <- r
			switch {
			case !ok:
				c = nil
			case c.lived == maxLived:
				c.end()
				c = nil
			}
		case <-ctx.Done():
			if c != nil {
				c.end()
			}
			return
		}
	}
}

// scratch makes a directory in memory, if that is possible: a simulated machine needs no disk.
func scratch() (string, error) {
	if dir, err := os.MkdirTemp("/dev/shm", "simulate"); err == nil {
		return dir, nil
	}
	return os.MkdirTemp("", "simulate")
}

// alone lives one world in a child of its own.
func alone(ctx context.Context, t task) *result {
	dir, err := scratch()
	if err != nil {
		return &result{Seed: t.Seed, Wrong: []string{err.Error()}}
	}
	defer os.RemoveAll(dir)
	c, err := newChild(ctx, self(), dir)
	if err != nil {
		return &result{Seed: t.Seed, Wrong: []string{err.Error()}}
	}
	r, ok := c.live(t)
	if ok {
		c.end()
	}
	return r
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
