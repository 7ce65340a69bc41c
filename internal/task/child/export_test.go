package child

var (
	Sweep    = sweep
	SealOpen = sealOpen
)

// PID returns the process ID of the program.
func (p *Process) PID() int { return p.cmd.Process.Pid }
