//go:build linux || darwin || freebsd

package wire

import (
	"net"
	"syscall"
	"time"
)

// A socket tells whether a connection has something to read, without reading it.
type socket struct{ raw syscall.RawConn }

func socketOf(conn net.Conn) socket {
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			return socket{raw}
		}
	}
	return socket{}
}

// silent reports whether an idle connection is open and has nothing to read.
func (s socket) silent(time.Duration) bool {
	if s.raw == nil {
		return false
	}
	silent := false
	err := s.raw.Read(func(fd uintptr) bool {
		silent = nothingAt(fd)
		return true
	})
	return err == nil && silent
}

// wait waits until there is something to read, which may be an error. It needs no buffer, so
// thousands of connections can wait.
func (s socket) wait() error {
	if s.raw == nil {
		return nil
	}
	waited := false
	return s.raw.Read(func(fd uintptr) bool {
		ready := waited || !nothingAt(fd)
		waited = true
		return ready
	})
}

func nothingAt(fd uintptr) bool {
	var b [1]byte
	_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return err == syscall.EAGAIN || err == syscall.EINTR
}
