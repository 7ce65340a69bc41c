package entry

import (
	"os"
	"strconv"
	"syscall"
)

const (
	// backlog is how many connections may wait until they are accepted.
	backlog = 128
	// processes is RLIMIT_NPROC, which syscall lacks.
	processes = 6
)

func init() {
	if len(os.Args) > 7 && os.Args[1] == Word {
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
	for i, limit := range []int{processes, syscall.RLIMIT_FSIZE} {
		most, err := strconv.ParseUint(args[2+i], 10, 63)
		if err == nil && most > 0 {
			err = syscall.Setrlimit(limit, &syscall.Rlimit{Cur: most, Max: most})
		}
		if err != nil {
			fail("set a limit", err)
		}
	}
	// The program gets its streams and nothing else: one of the others is this binary.
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		fail("find open files", err)
	}
	for _, f := range open {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	err = syscall.Exec(args[4], args[5:], os.Environ())
	fail("start "+args[4], err)
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
