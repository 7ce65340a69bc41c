// Package child runs programs of the user, such as servers of tools: each in its own process group
// and scratch directory, with an environment that names the variables that it may see.
//
// It owns the life of a program, limits the output that it keeps, and can put it into a [Room] or give it a user
// of its own. Otherwise, a program runs with the rights of the user. It does not know the purpose of the program.
package child

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-eval/assay"
)

// Scratch stands for the path of the scratch directory in arguments and variables.
const Scratch = "{scratch}"

const (
	// grace is how long a program may take to end after its standard input was closed, and killAfter
	// how long after SIGTERM.
	grace     = 500 * time.Millisecond
	killAfter = 5 * time.Second
	// draining is how long it may take to read what a program wrote before its end.
	draining = time.Second
	// stderrKept is how much of the end of the standard error is kept, in bytes.
	stderrKept = 4 << 10
)

// passed are the variables that every program gets. They hold no secrets, and programs hardly work
// without them.
var passed = []string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "SystemRoot", "PATHEXT"}

// A Command is a program with its arguments and its environment.
type Command struct {
	// Args are the program and its arguments. [Scratch] is replaced in them.
	Args []string
	// Pass names further variables of Assay's own environment that the program gets.
	Pass []string
	// Set are more variables. [Scratch] is replaced in their values.
	Set map[string]string
	// Plain are variables as the environment has them, NAME=value. They are passed on unchanged.
	Plain []string
	// Files are files of the scratch directory, by path. [Scratch] is replaced in them.
	Files map[string]string
	// Dir is where the program starts. If it is empty, that is the scratch directory.
	Dir string
	// Kept is the scratch directory if the caller makes and removes it, as a [Folder]. If it is empty,
	// Start makes one and Close removes it.
	Kept string
	// Errors, if set, gets the standard error as it is written. It is kept, too.
	Errors io.Writer
	// Room is what the program sees and uses of the machine. If it is nil, that is all that the user can.
	Room *Room
	// Apart means that the program runs as a user of its own, to whom the scratch directory belongs. It has no
	// room then.
	Apart bool
}

// A Process is a running program. It must be closed. Its standard error is kept; the other streams
// belong to the caller.
type Process struct {
	Stdin  io.WriteCloser
	Stdout io.ReadCloser
	// Dir is the scratch directory.
	Dir string

	folder *Folder // the scratch directory, if Close removes it
	cmd    *exec.Cmd
	room   *roomed // nil without a room
	user   user    // 0 unless it is of its own
	stderr tail
	ended  chan struct{}
	swept  chan struct{} // closed when all that it started is gone

	once     sync.Once
	closeErr error
}

// Check returns an error if the program cannot be found.
func (c Command) Check() error {
	if len(c.Args) == 0 {
		return errors.New("the command is empty; name a program")
	}
	program := c.Args[0]
	if c.Dir != "" && filepath.Base(program) != program && !filepath.IsAbs(program) {
		program = filepath.Join(c.Dir, program) // where it starts
	}
	_, err := exec.LookPath(program)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; it has to be a program: chmod +x makes a file one", err)
	case filepath.Base(program) != program:
		return fmt.Errorf("%w; correct its path", err)
	}
	return fmt.Errorf("%w; install it or write its full path", err)
}

// Start starts a program.
func Start(c Command) (*Process, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	p := &Process{Dir: c.Kept, ended: make(chan struct{}), swept: make(chan struct{})}
	if c.Kept == "" {
		var err error
		if p.folder, err = NewFolder(); err != nil {
			return nil, err
		}
		p.Dir = p.folder.Path
	}
	if err := p.start(c); err != nil {
		p.user.leave()
		return nil, errors.Join(err, p.removeScratch())
	}
	return p, nil
}

func (p *Process) removeScratch() error {
	if p.folder == nil {
		return nil
	}
	return p.folder.Remove()
}

func (p *Process) start(c Command) error {
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		args[i] = strings.ReplaceAll(a, Scratch, p.Dir)
	}
	if err := c.writeFiles(p.Dir); err != nil {
		return err
	}
	dir := cmp.Or(c.Dir, p.Dir)
	if c.Apart {
		u, err := newUser(p.Dir)
		if err == nil {
			p.user, err = u, u.give(p.Dir)
		}
		if err != nil {
			return fmt.Errorf("make a user: %w", err)
		}
	}
	if c.Room == nil {
		p.cmd = exec.Command(args[0], args[1:]...)
	} else {
		room, err := c.Room.enter(p, dir, args)
		if err != nil {
			return fmt.Errorf("make a room: %w", err)
		}
		defer room.closeInherited()
		p.room, p.cmd = room, room.cmd
	}
	p.cmd.Dir, p.cmd.Env = dir, c.environment(p.Dir)
	group(p.cmd)
	if p.user != 0 {
		p.user.own(p.cmd)
	}
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return err
	}
	// Pipes of our own let Wait return although another process holds them open.
	out, outWrite, err := os.Pipe()
	if err != nil {
		return err
	}
	errRead, errWrite, err := os.Pipe()
	if err != nil {
		return errors.Join(err, out.Close(), outWrite.Close())
	}
	p.cmd.Stdout, p.cmd.Stderr = outWrite, errWrite
	p.Stdin, p.Stdout = stdin, out
	err = launch(p.cmd)
	err = errors.Join(err, outWrite.Close(), errWrite.Close())
	if p.user != 0 && errors.Is(err, fs.ErrPermission) {
		err = fmt.Errorf("%w: its user may not run it, or not look into a folder above it", err)
	}
	if err != nil {
		return errors.Join(err, out.Close(), errRead.Close())
	}
	if p.user != 0 {
		p.user.limit(p.cmd.Process.Pid)
	}
	stderr := io.Writer(&p.stderr)
	if c.Errors != nil {
		stderr = io.MultiWriter(&p.stderr, c.Errors)
	}
	go p.follow(errRead, stderr)
	if p.room == nil {
		return nil
	}
	p.room.closeInherited() // so that the end of the entry is noticed
	if err := p.room.awaited(); err != nil {
		p.signal(kill)
		<-p.ended
		if word := LastWord(p.Stderr()); word != "" {
			err = errors.New(word)
		}
		_ = p.Stdin.Close()
		return errors.Join(fmt.Errorf("make a room: %w", err), p.Stdout.Close())
	}
	if p.room.listener != nil {
		go c.Room.Serve(p.room.listener)
	}
	return nil
}

// follow reads the standard error until the program ends. Then it kills the processes that the program
// has left behind.
func (p *Process) follow(stderr *os.File, kept io.Writer) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(kept, stderr)
	}()
	_ = p.cmd.Wait() // State and ExitCode report how it ended
	forget(p.cmd)
	p.signal(kill)
	go func() {
		defer close(p.swept)
		switch {
		case p.room != nil:
			p.room.leave() // nobody is left behind
		case p.user != 0:
			p.user.leave()
		default:
			killStrays(p.Dir, p.cmd.Process.Pid)
		}
	}()
	select {
	case <-done:
	case <-time.After(grace): // a process that was not found holds the pipe open
	}
	_ = stderr.Close()
	<-done
	close(p.ended)
}

// writeFiles writes the files of a scratch directory. A program that ran there before may have planted links,
// which are replaced and never followed outside.
func (c Command) writeFiles(dir string) (err error) {
	if len(c.Files) == 0 {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for name, text := range c.Files {
		name = strings.TrimPrefix(filepath.Clean("/"+name), "/")
		err := ownFolders(root, filepath.Dir(name))
		if err == nil {
			text = strings.ReplaceAll(text, Scratch, dir)
			err = errors.Join(root.RemoveAll(name), root.WriteFile(name, []byte(text), 0o600))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ownFolders makes a folder and those above it, in place of whatever else a program has put there.
func ownFolders(root *os.Root, dir string) error {
	for i, c := range dir + "/" {
		if c != '/' {
			continue
		}
		part := dir[:i]
		info, err := root.Lstat(part)
		if err == nil && !info.IsDir() {
			if err := root.Remove(part); err != nil {
				return err
			}
		}
		if err := root.MkdirAll(part, 0o700); err != nil {
			return err
		}
		if err := root.Chmod(part, 0o700); err != nil { // it may be locked
			return err
		}
	}
	return nil
}

// scratchVar is the variable with the scratch directory, which no other program has.
func scratchVar(dir string) string { return "TMPDIR=" + dir }

// environment returns the variables of the program.
func (c Command) environment(dir string) []string {
	env := []string{scratchVar(dir)}
	for _, name := range append(passed[:len(passed):len(passed)], c.Pass...) {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	if c.Room != nil || c.Apart {
		env = append(env, "HOME="+dir)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Set)) {
		env = append(env, name+"="+strings.ReplaceAll(c.Set[name], Scratch, dir))
	}
	return append(env, c.Plain...)
}

// Ended is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// State describes how the program ended, such as "exit status 1" and the [LastWord] that it wrote
// to its standard error. It returns "" while the program runs.
func (p *Process) State() string {
	select {
	case <-p.ended:
	default:
		return ""
	}
	state := p.cmd.ProcessState.String()
	if p.room != nil {
		state = p.room.state(p.cmd.ProcessState)
	}
	if word := LastWord(p.Stderr()); word != "" {
		state += ": " + word
	}
	return state
}

// ExitCode returns the exit code of a program that has ended, or -1 if a signal ended it.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Stderr returns the end of the standard error so far.
func (p *Process) Stderr() string { return p.stderr.String() }

// Stop ends the program and everything that it started, with SIGTERM first, and returns when it has
// ended.
func (p *Process) Stop() {
	if p.room != nil {
		p.room.terminate()
	} else {
		p.signal(terminate)
	}
	if !p.EndsWithin(killAfter) {
		p.signal(kill)
	}
	<-p.swept
	<-p.ended
}

// Finish waits until the program has ended, or stops it when ctx ends, and reads its standard output
// meanwhile. A process that the program has left behind, and that holds the output open, does not
// prolong that.
func (p *Process) Finish(ctx context.Context, read func(io.Reader)) (stopped bool) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		read(p.Stdout)
	}()
	select {
	case <-p.ended:
	case <-ctx.Done():
		stopped = true
		p.Stop()
	}
	select {
	case <-done:
	case <-time.After(draining):
		_ = p.Stdout.Close() // which ends the reading
		<-done
	}
	return stopped
}

// Output runs a program without input to its end, and returns its standard output. It fails if the
// program does, or if ctx ends first.
func Output(ctx context.Context, c Command) (output []byte, err error) {
	p, err := Start(c)
	if err != nil {
		return nil, err
	}
	_ = p.Stdin.Close()
	stopped := p.Finish(ctx, func(r io.Reader) { output, _ = io.ReadAll(r) }) // as far as it gets
	err = p.Close()
	switch {
	case stopped:
		return nil, context.Cause(ctx)
	case p.ExitCode() != 0:
		return nil, errors.New(p.State())
	}
	return output, err
}

// Close ends the program and everything that it started, and removes a scratch directory that is not
// kept. It closes the standard input first, so that a program can end in its own way.
func (p *Process) Close() error {
	p.once.Do(func() {
		_ = p.Stdin.Close()
		if !p.EndsWithin(grace) {
			p.Stop()
		}
		<-p.swept
		_ = p.Stdout.Close()
		p.closeErr = p.removeScratch()
	})
	return p.closeErr
}

// EndsWithin waits for the end of the program for some time, and reports whether it has ended.
func (p *Process) EndsWithin(d time.Duration) bool {
	select {
	case <-p.ended:
		return true
	case <-time.After(d):
		return false
	}
}

// tail is a writer that keeps the end of its text.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if extra := len(t.b) - stderrKept; extra > 0 {
		t.b = append(t.b[:0], t.b[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := assay.Tail(string(t.b), stderrKept-1) // the first byte may be in a character
	return strings.ToValidUTF8(text, "�")
}
