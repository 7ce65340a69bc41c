package child

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
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
	id, err := newUser()
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

// newUser returns a user that nobody is.
func newUser() (user, error) {
	usersMu.Lock()
	defer usersMu.Unlock()
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

// own has a program start as the user.
func (u user) own(cmd *exec.Cmd) {
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(u), Gid: uint32(u)}
}

// give makes everything in a scratch directory the user's.
func (u user) give(dir string) error {
	if strings.HasPrefix(filepath.Base(filepath.Dir(dir)), folderPrefix) {
		if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
			return err
		}
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(u), int(u))
	})
}

// leave kills everything that the user still runs.
func (u user) leave() {
	if u == 0 {
		return
	}
	const rounds = 100 // a process may start others before it dies
	for range rounds {
		found := u.processes()
		for _, pid := range found {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(found) == 0 {
			break
		}
	}
	usersMu.Lock()
	defer usersMu.Unlock()
	delete(usersHere, u)
}

// processes lists those of the user that have not ended.
func (u user) processes() (found []int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range all {
		info, err := os.Stat(path)
		if err != nil || info.Sys().(*syscall.Stat_t).Uid != uint32(u) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(path)); err == nil && !dead(path) {
			found = append(found, pid)
		}
	}
	return found
}

// dead reports whether a process only waits to be noticed by its parent.
func dead(path string) bool {
	stat, _ := os.ReadFile(filepath.Join(path, "stat"))
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X")
}
