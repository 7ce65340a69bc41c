//go:build !(linux || darwin || freebsd)

package wire

import (
	"net"
	"time"
)

// A socket cannot tell whether a connection has something to read on this system.
type socket struct{}

func socketOf(net.Conn) socket { return socket{} }

// silent reports whether an idle connection is probably open.
func (socket) silent(idle time.Duration) bool { return idle < time.Second }

// wait leaves the waiting to the first read.
func (socket) wait() error { return nil }
