package child

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const (
	// watching is how often it is looked at what programs in rooms use, and walking how often of these
	// their folders are measured, which takes longer.
	watching = 250 * time.Millisecond
	walking  = 8
)

// A watch ends programs that exceed the limits of their rooms. It looks at all of them in one go, as
// long as there are any.
type watch struct {
	mu      sync.Mutex
	rooms   map[string]*roomed // by their namespaces
	looking bool
}

var watched = watch{rooms: make(map[string]*roomed)}

func (w *watch) add(in *roomed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rooms[in.space] = in
	if !w.looking {
		w.looking = true
		go w.look()
	}
}

func (w *watch) remove(in *roomed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rooms[in.space] == in {
		delete(w.rooms, in.space)
	}
}

// current returns the rooms, by their namespaces. If there are none, nobody looks any more.
func (w *watch) current() map[string]*roomed {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looking = len(w.rooms) > 0
	return maps.Clone(w.rooms)
}

// look looks at rooms until there are none.
func (w *watch) look() {
	for n := 1; ; n++ {
		time.Sleep(watching)
		rooms := w.current()
		if len(rooms) == 0 {
			return
		}
		uses := usesOf(rooms)
		for space, in := range rooms {
			u := uses[space]
			if n%walking == 0 {
				u.disk = sizeOf(in.scratch)
			}
			if what := in.limits.exceeded(u); what != "" {
				in.exceeded.CompareAndSwap(nil, &what)
				_ = syscall.Kill(-in.cmd.Process.Pid, kill) // and the room with it
			}
		}
	}
}

// A use is what a program uses.
type use struct {
	memory, disk int64
	shared       int64 // the most memory that one of its processes shares with others
	processes    int
}

// exceeded says which limit a use exceeds, or "".
func (l Limits) exceeded(u use) string {
	size := func(n int64) string { return fmt.Sprintf("%d MB", n>>20) }
	switch {
	case l.Memory > 0 && u.memory > l.Memory:
		return fmt.Sprintf("killed: it used more memory than its room has, %s", size(l.Memory))
	case l.Disk > 0 && u.disk > l.Disk:
		return fmt.Sprintf("killed: its files took more space than its room has, %s", size(l.Disk))
	case l.Processes > 0 && u.processes > l.Processes:
		return fmt.Sprintf("killed: it had more processes and threads than its room may have, %d", l.Processes)
	}
	return ""
}

// usesOf returns what the processes in rooms use.
func usesOf(rooms map[string]*roomed) map[string]use {
	uses := make(map[string]use)
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if c := e.Name()[0]; c < '0' || c > '9' {
			continue
		}
		dir := filepath.Join("/proc", e.Name())
		space, err := os.Readlink(dir + "/ns/pid")
		if err != nil || rooms[space] == nil {
			continue // it has ended, or is somebody else's
		}
		u := uses[space]
		own, shared, threads := usedBy(dir)
		u.memory, u.shared, u.processes = u.memory+own, max(u.shared, shared), u.processes+threads
		uses[space] = u
	}
	for space, u := range uses {
		u.memory += u.shared
		uses[space] = u
	}
	return uses
}

// usedBy returns the bytes of memory that a process has for itself and that it may share with others, without
// those of files, and how many threads it has.
func usedBy(dir string) (own, shared int64, threads int) {
	b, _ := os.ReadFile(dir + "/status")
	for line := range bytes.Lines(b) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		fields := bytes.Fields(value)
		if len(fields) == 0 {
			continue
		}
		n, _ := strconv.ParseInt(string(fields[0]), 10, 64)
		switch string(name) {
		case "RssAnon":
			own = n << 10
		case "RssShmem":
			shared = n << 10
		case "Threads":
			threads = int(n)
		}
	}
	return own, shared, threads
}

// sizeOf returns the bytes that the files of a folder take on the disk.
func sizeOf(dir string) (sum int64) {
	seen := make(map[uint64]bool) // a file may have several names
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // it is gone
		}
		info, err := e.Info()
		if err != nil {
			return nil
		}
		if s, ok := info.Sys().(*syscall.Stat_t); ok && !seen[s.Ino] {
			seen[s.Ino] = true
			sum += s.Blocks * 512
		}
		return nil
	})
	return sum
}
