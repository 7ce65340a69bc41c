package child

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/assay-eval/assay/internal/task/child/entry"
)

const (
	bubblewrap = "bwrap"
	// entering is how long it may take to make a room on a busy machine.
	entering = 30 * time.Second
	// self is this binary, although another file may have its name by now.
	self = "/proc/self/exe"
)

// Rooms returns why this machine has no rooms for programs, or nil.
func Rooms() error { return rooms() }

var rooms = sync.OnceValue(func() error {
	ctx, cancel := context.WithTimeout(context.Background(), entering)
	defer cancel()
	_, err := Output(ctx, Command{Args: []string{"true"}, Room: new(Room)})
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("bubblewrap is not installed")
	case err != nil:
		return fmt.Errorf("bubblewrap makes no rooms here (%w)", err)
	}
	return nil
})

// A roomed is a program in its room.
type roomed struct {
	cmd     *exec.Cmd
	socket  *net.UnixConn // the entry's messages
	inherit []*os.File
	limits  Limits
	scratch string
	// entered is closed when the fields below are known, or it is clear that nothing enters.
	entered  chan struct{}
	listener net.Listener // nil if the room is open
	program  int          // its process, which leads its group
	space    string       // the namespace of its processes
	exceeded atomic.Pointer[string]
}

// enter returns how a program starts in its room, before it does.
func (r *Room) enter(p *Process, dir string, args []string) (_ *roomed, err error) {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	bwrap, err := exec.LookPath(bubblewrap)
	if err != nil {
		return nil, err
	}
	in := &roomed{limits: r.Limits, scratch: p.Dir, entered: make(chan struct{})}
	defer func() {
		if err != nil {
			in.closeInherited()
		}
	}()
	binary, err := os.Open(self)
	if err != nil {
		return nil, err
	}
	in.inherit = append(in.inherit, binary)
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours := os.NewFile(uintptr(ends[0]), "room")
	defer ours.Close() // the connection has a copy
	in.inherit = append(in.inherit, os.NewFile(uintptr(ends[1]), "entry"))
	if err := syscall.SetsockoptInt(ends[0], syscall.SOL_SOCKET, syscall.SO_PASSCRED, 1); err != nil {
		return nil, err
	}
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	in.socket = conn.(*net.UnixConn)
	temporary := filepath.Join(p.Dir, ".tmp")
	if info, err := os.Lstat(temporary); err == nil && !info.IsDir() { // a program that ran there before has planted it
		if err := os.Remove(temporary); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return nil, err
	}
	port := "0"
	if _, number, err := net.SplitHostPort(r.Address); err == nil && !r.Open {
		port = number
	}
	const binaryFD, socketFD = 3, 4 // as in inherit
	most := 0
	if countsProcesses() {
		most = r.Limits.Processes
	}
	line := slices.Concat(r.wall(path, p.Dir, temporary), []string{
		"--chdir", dir, "--", fmt.Sprintf("/proc/self/fd/%d", binaryFD),
		entry.Word, strconv.Itoa(socketFD), port, strconv.Itoa(most), strconv.FormatInt(r.Limits.Disk, 10), path,
	}, args)
	in.cmd = exec.Command(bwrap, line...)
	in.cmd.ExtraFiles = in.inherit
	return in, nil
}

// wall returns the arguments of bubblewrap that say what a program sees.
func (r *Room) wall(program, scratch, temporary string) (args []string) {
	add := func(words ...string) { args = append(args, words...) }
	// A user namespace as root, too, so that the program has no rights beyond those of files.
	add("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
		"--cap-drop", "ALL", "--die-with-parent")
	if !r.Open {
		add("--unshare-net")
	}
	for _, path := range system {
		if target, err := os.Readlink(path); err == nil {
			add("--symlink", target, path)
		} else {
			add("--ro-bind-try", path, path)
		}
	}
	for _, path := range settings {
		add("--ro-bind-try", path, path)
	}
	if target, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil && r.Open {
		add("--ro-bind-try", target, "/etc/resolv.conf")
	}
	const shared = 64 << 20 // bytes of memory that processes can share, as in Docker
	add("--proc", "/proc", "--dev", "/dev", "--size", strconv.Itoa(shared), "--tmpfs", "/dev/shm",
		"--remount-ro", "/dev")
	own := func(path, outside string) {
		if r.Private {
			add("--size", strconv.FormatInt(max(r.Limits.Disk, 1), 10), "--tmpfs", path)
		} else {
			add("--bind", outside, path)
		}
	}
	own("/tmp", temporary)
	for _, path := range r.programs() {
		add("--ro-bind-try", path, path)
	}
	var covers []string
	for _, path := range slices.Sorted(slices.Values(r.Read)) { // a folder before what is in it
		add("--ro-bind-try", path, path)
		from := real(path)
		for _, hidden := range r.Hidden {
			hidden = real(hidden)
			cover := path + strings.TrimPrefix(hidden, from)
			if hidden != from && within(hidden, from) && !slices.Contains(covers, cover) {
				add("--tmpfs", cover)
				covers = append(covers, cover)
			}
		}
	}
	for _, path := range r.selves(program) {
		add("--ro-bind", os.DevNull, path)
	}
	own(scratch, scratch)
	for _, path := range append(covers, "/") {
		add("--remount-ro", path)
	}
	return args
}

// selves returns where a room would show this binary, which can compute the answers of public libraries,
// unless it is the program.
func (r *Room) selves(program string) (paths []string) {
	binary, err := os.Stat(self)
	if err != nil {
		return nil
	}
	if info, err := os.Stat(program); err != nil || os.SameFile(info, binary) {
		return nil
	}
	exe, err := os.Readlink(self)
	if err != nil {
		return nil
	}
	folders := slices.Concat(r.programs(), r.Read, []string{"/usr/bin", "/usr/local/bin"})
	for _, folder := range append(folders, filepath.Dir(exe)) {
		path := filepath.Join(folder, filepath.Base(exe))
		shown := slices.ContainsFunc(folders, func(f string) bool { return within(path, f) })
		info, err := os.Stat(path)
		if err == nil && shown && os.SameFile(info, binary) && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// countsProcesses reports whether the kernel counts the processes of a user namespace apart from those
// that its user has otherwise, as Linux does since 5.14.
var countsProcesses = sync.OnceValue(func() bool {
	var name syscall.Utsname
	if syscall.Uname(&name) != nil {
		return false
	}
	var release strings.Builder
	for _, c := range name.Release {
		if c == 0 {
			break
		}
		release.WriteByte(byte(c))
	}
	var major, minor int
	if _, err := fmt.Sscanf(release.String(), "%d.%d", &major, &minor); err != nil {
		return false
	}
	return major > 5 || major == 5 && minor >= 14
})

func (in *roomed) closeInherited() {
	for _, f := range in.inherit {
		_ = f.Close()
	}
}

// awaited waits until the program runs in its room.
func (in *roomed) awaited() error {
	defer close(in.entered)
	defer in.socket.Close()
	if err := in.socket.SetDeadline(time.Now().Add(entering)); err != nil {
		return err
	}
	message, control := make([]byte, 4<<10), make([]byte, syscall.CmsgSpace(4)+syscall.CmsgSpace(syscall.SizeofUcred))
	if err := in.received(message[:1], control); err != nil {
		return err
	}
	// The socket closes when the entry has become the program.
	switch n, err := in.socket.Read(message); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return err
	default:
		return errors.New(string(message[:n]))
	}
	var err error
	if in.space, err = os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", in.program)); err != nil {
		return nil // it has ended
	}
	watched.add(in)
	return nil
}

// received takes the entry's first message, which has the process and perhaps the listener.
func (in *roomed) received(message, control []byte) error {
	n, size, _, _, err := in.socket.ReadMsgUnix(message, control)
	if err != nil {
		return err
	}
	if n != 1 || message[0] != 0 {
		return errors.New(string(message[:n]))
	}
	parts, err := syscall.ParseSocketControlMessage(control[:size])
	if err != nil {
		return err
	}
	for _, part := range parts {
		switch part.Header.Type {
		case syscall.SCM_CREDENTIALS:
			from, err := syscall.ParseUnixCredentials(&part)
			if err != nil {
				return err
			}
			in.program = int(from.Pid)
		case syscall.SCM_RIGHTS:
			files, err := syscall.ParseUnixRights(&part)
			if err != nil {
				return err
			}
			file := os.NewFile(uintptr(files[0]), "listener")
			defer file.Close() // the listener has a copy
			if in.listener, err = net.FileListener(file); err != nil {
				return err
			}
		}
	}
	return nil
}

// terminate tells the program to end, but not the room, which would end with everything in it.
func (in *roomed) terminate() {
	if in.program > 0 {
		_ = syscall.Kill(-in.program, terminate)
	}
}

// leave releases what belongs to a room whose program has ended.
func (in *roomed) leave() {
	<-in.entered // a program may end before its start is known
	watched.remove(in)
	if in.listener != nil {
		_ = in.listener.Close()
	}
}

// state translates the exit code of bubblewrap, which is 128 and the signal if one ended the program.
func (in *roomed) state(s *os.ProcessState) string {
	if what := in.exceeded.Load(); what != nil {
		return *what
	}
	if n := s.ExitCode() - 128; n > 0 && n < 65 {
		return "signal: " + syscall.Signal(n).String()
	}
	return s.String()
}
