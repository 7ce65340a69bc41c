//go:build unix

package child

import (
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
)

const (
	terminate = syscall.SIGTERM
	kill      = syscall.SIGKILL
)

// seal keeps open files to this process. Go opens none that programs inherit, but a shell may have opened some
// before it started Assay, and what they lead to is nothing for programs.
var seal = sync.OnceFunc(sealOpen)

func sealOpen() {
	open, _ := os.ReadDir("/dev/fd") // without it, there is no way to find them
	for _, f := range open {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// group puts a program into a separate process group.
func group(cmd *exec.Cmd) {
	seal()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

// signal sends a signal to the process group, which outlives the program if it left others behind.
func (p *Process) signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }
