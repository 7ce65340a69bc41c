package child

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// dieWithParent lets the kernel kill the program if Assay is killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// killStrays kills processes that a program has started and that have left its process group. They
// have inherited the variable with its scratch directory. A process may start others before it
// dies, so killStrays looks again until they are gone.
func killStrays(dir string, group int) {
	const rounds = 10
	for range rounds {
		found := strays(dir)
		for _, pid := range found {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(found) == 0 {
			break
		}
	}
	killOrphans(dir, group)
}

// adopt makes this process the parent of programs that outlive theirs, so that they can be found. It does not
// if there are children already, which a shell has started before it became Assay: they may leave others.
var adopt = sync.OnceFunc(func() {
	const setChildSubreaper = 36 // PR_SET_CHILD_SUBREAPER
	if len(children()) == 0 {
		_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0) // Linux has it since 3.4
		adopts.Store(true)
	}
})

var adopts atomic.Bool

// started has the process IDs of running programs. Its lock is held while one starts.
var started struct {
	sync.RWMutex
	ids sync.Map
}

// launch starts a program, and remembers it until forget.
func launch(cmd *exec.Cmd) error {
	adopt()
	started.RLock()
	defer started.RUnlock()
	err := cmd.Start()
	if err == nil {
		started.ids.Store(cmd.Process.Pid, true)
	}
	return err
}

func forget(cmd *exec.Cmd) { started.ids.Delete(cmd.Process.Pid) }

// killOrphans kills adopted processes that have left the group of their program and tell of this scratch
// directory or of none. No other program needs the latter, so it does not matter whose end this is. Some start
// another process and end, so that there is one at any time, but never for long: once it has found any, it goes on
// until it has found none for a while. Those of the program's own group die anyway.
func killOrphans(dir string, group int) {
	const patience, long = 50, 5 * time.Second
	if !killedOrphans(dir, group) {
		return
	}
	until := time.Now().Add(long)
	for quiet := 0; quiet < patience && time.Now().Before(until); quiet++ {
		if killedOrphans(dir, group) {
			quiet = -1
		}
		time.Sleep(200 * time.Microsecond)
	}
}

// killedOrphans kills those that there are now, if any, and notices the end of all that have died.
func killedOrphans(dir string, group int) (found bool) {
	if !adopts.Load() {
		return false
	}
	started.Lock()
	defer started.Unlock()
	for _, pid := range orphans(dir) {
		its, err := syscall.Getpgid(pid)
		if dead, _ := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); dead == pid || err != nil || its == group {
			continue
		}
		found = true
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return found
}

// Descends reports whether a process is a program that this process has started, or was started by one in
// whatever way.
func Descends(pid int) bool {
	self := os.Getpid()
	for pid > 1 && pid != self {
		parent := parentOf(pid)
		if parent == self {
			_, ours := started.ids.Load(pid)
			group, err := syscall.Getpgid(pid)
			return ours || adopts.Load() && err == nil && group != syscall.Getpgrp()
		}
		pid = parent
	}
	return false
}

// parentOf returns the parent of a process, or 0.
func parentOf(pid int) (parent int) {
	if words := statOf(pid); len(words) > 1 {
		parent, _ = strconv.Atoi(words[1])
	}
	return parent
}

// statOf returns what the kernel says of a process after its name, which may have anything in it: its state, its
// parent and more. It returns nothing if there is no such process.
func statOf(pid int) []string {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
}

// orphans lists the children of this process that it has not started and that are not known to belong to
// another scratch directory.
func orphans(dir string) (found []int) {
	for _, pid := range children() {
		if _, ours := started.ids.Load(pid); ours {
			continue
		}
		group, err := syscall.Getpgid(pid)
		if err != nil || group == syscall.Getpgrp() {
			continue
		}
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // nothing if it has ended
		if !bytes.Contains(env, []byte("/"+folderPrefix)) || bytes.Contains(env, []byte(scratchVar(dir))) {
			found = append(found, pid)
		}
	}
	return found
}

func children() (ids []int) {
	files, _ := filepath.Glob("/proc/self/task/*/children")
	for _, f := range files {
		text, _ := os.ReadFile(f) // a thread that has ended has none
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				ids = append(ids, pid)
			}
		}
	}
	return ids
}

func strays(dir string) (found []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	variable := []byte("\x00" + scratchVar(dir) + "\x00")
	for _, f := range files {
		env, _ := os.ReadFile(f) // it is empty if the process has ended or is another user's
		if !bytes.Contains(append([]byte{0}, env...), variable) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil {
			found = append(found, pid)
		}
	}
	return found
}
