package child

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The IDs of users that systemd sets aside for services that run for a while:
// https://systemd.io/UIDS-GIDS
const firstUser, lastUser = 61184, 65519

// Users returns why this machine has no users of their own for programs, or nil.
func Users() error { return users() }

var users = sync.OnceValue(func() error {
	if os.Geteuid() != 0 {
		return errors.New("only root can give a program a user of its own")
	}
	id, err := newUser("")
	if err != nil {
		return err
	}
	defer id.leave()
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = new(syscall.SysProcAttr)
	id.own(cmd)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("this machine gives programs no user of their own (%w)", err)
	}
	return nil
})

// A user is an ID that belongs to one program of this machine and what it starts.
type user int

var (
	usersMu   sync.Mutex
	usersHere = make(map[user]bool)
)

// newUser returns a user that nobody is, or the one to whom a scratch directory belongs already.
func newUser(dir string) (user, error) {
	usersMu.Lock()
	defer usersMu.Unlock()
	if u := ownerOf(dir); u != 0 {
		usersHere[u] = true
		return u, nil
	}
	const n = lastUser - firstUser + 1
	first := rand.IntN(n) // another Assay has others, mostly
	for i := range n {
		if u := user(firstUser + (first+i)%n); !usersHere[u] && len(u.processes()) == 0 {
			usersHere[u] = true
			return u, nil
		}
	}
	return 0, errors.New("all users from 61184 to 65519 are somebody")
}

// own makes a program start as the user.
func (u user) own(cmd *exec.Cmd) {
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(u), Gid: uint32(u)}
}

// ownerOf returns the user to whom a directory belongs, or 0.
func ownerOf(dir string) user {
	info, err := os.Lstat(dir)
	if err != nil {
		return 0
	}
	if id := info.Sys().(*syscall.Stat_t).Uid; id >= firstUser && id <= lastUser {
		return user(id)
	}
	return 0
}

// give makes what Assay has put into a scratch directory the user's. Anything else is that already, or is a link
// to somebody's file that a program has made.
func (u user) give(dir string) error {
	if strings.HasPrefix(filepath.Base(filepath.Dir(dir)), folderPrefix) {
		if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
			return err
		}
	}
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		if stat.Uid != 0 || !e.IsDir() && stat.Nlink > 1 {
			return nil
		}
		return os.Lchown(path, int(u), int(u))
	})
}

// limit bounds the processes and threads that the user has, from a program that has just started.
func (u user) limit(pid int) {
	n := uint64(DefaultLimits.Processes)
	_ = unix.Prlimit(pid, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: n, Max: n}, nil) // it may have ended
}

// leave kills everything that the user still runs.
func (u user) leave() {
	if u == 0 {
		return
	}
	const dying = 30 * time.Second // a thousand processes on a busy machine
	for until := time.Now().Add(dying); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		u.killAll() // before looking, because a process that starts another and ends is easily overlooked
		if len(u.processes()) == 0 {
			break
		}
	}
	usersMu.Lock()
	defer usersMu.Unlock()
	delete(usersHere, u)
}

// killAll kills all processes of the user at the same time, because some start others faster than they can be
// found. Only the user itself can do that, so a thread becomes the user, and ends.
func (u user) killAll() {
	onThread(func() {
		id := uintptr(u)
		if _, _, wrong := syscall.RawSyscall(syscall.SYS_SETRESUID, id, id, id); wrong == 0 {
			_ = syscall.Kill(-1, syscall.SIGKILL) // not this process
		}
	})
}

// onThread calls f on a thread that ends with it. The first thread of a process never ends, and stands for all of
// it to others, so f is called on the next one there.
func onThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlock it, so that the thread ends
		if unix.Gettid() == os.Getpid() {
			onThread(f) // on another thread, because this one is locked
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
	<-done
}

// evict kills what a user runs whose scratch directory an Assay has left that was killed.
func evict(dir string) {
	if os.Geteuid() == 0 {
		ownerOf(dir).leave()
	}
}

// processes lists those of the user that have not ended.
func (u user) processes() (found []int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range all {
		info, err := os.Stat(path)
		if err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(u) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(path)); err == nil && !dead(pid) {
			found = append(found, pid)
		}
	}
	return found
}

// dead reports whether a process only waits to be noticed by its parent, or is gone.
func dead(pid int) bool {
	words := statOf(pid)
	return len(words) == 0 || words[0] == "Z" || words[0] == "X"
}
