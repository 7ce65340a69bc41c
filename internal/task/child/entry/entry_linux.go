package entry

import (
	"os"
	"strconv"
	"syscall"
)

// backlog is how many connections may wait until they are accepted.
const backlog = 128

func init() {
	if len(os.Args) > 6 && os.Args[1] == Word {
		enter(os.Args[2:])
	}
}

// enter becomes the program, or ends the process.
func enter(args []string) {
	socket, err := strconv.Atoi(args[0])
	if err != nil {
		os.Exit(Failed)
	}
	syscall.CloseOnExec(socket)
	fail := func(doing string, err error) {
		_, _ = syscall.Write(socket, []byte(doing+": "+err.Error()))
		os.Exit(Failed)
	}
	// The program has a group of its own, so that it can be told to end before its room is.
	if err := syscall.Setpgid(0, 0); err != nil {
		fail("make a process group", err)
	}
	rights, err := listen(args[1])
	if err != nil {
		fail("listen on port "+args[1], err)
	}
	if err := syscall.Sendmsg(socket, []byte{0}, rights, nil, 0); err != nil {
		fail("hand out the port", err)
	}
	if most, err := strconv.ParseUint(args[2], 10, 63); err == nil && most > 0 {
		if err := limitProcesses(most); err != nil {
			fail("limit the processes", err)
		}
	}
	err = syscall.Exec(args[3], args[4:], os.Environ())
	fail("start "+args[3], err)
}

// listen listens on a port, and returns the listener as a control message. There is none for port 0.
func listen(port string) (rights []byte, err error) {
	n, err := strconv.Atoi(port)
	if err != nil || n == 0 {
		return nil, err
	}
	listener, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := syscall.Bind(listener, &syscall.SockaddrInet4{Port: n, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return nil, err
	}
	if err := syscall.Listen(listener, backlog); err != nil {
		return nil, err
	}
	return syscall.UnixRights(listener), nil
}

// limitProcesses limits how many processes and threads the user of this namespace may have.
func limitProcesses(most uint64) error {
	const number = 6 // RLIMIT_NPROC, which syscall lacks
	return syscall.Setrlimit(number, &syscall.Rlimit{Cur: most, Max: most})
}
