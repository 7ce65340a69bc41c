package child

import (
	"os/exec"
	"syscall"
)

const (
	terminate = syscall.SIGTERM
	kill      = syscall.SIGKILL
)

func group(*exec.Cmd) {}

// signal kills the program, because Windows has no process groups that signals could reach.
func (p *Process) signal(syscall.Signal) { _ = p.cmd.Process.Kill() }
