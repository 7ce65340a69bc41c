//go:build !linux

package child

import (
	"errors"
	"net"
	"os"
	"os/exec"
)

// errNoRooms says why there are no rooms.
var errNoRooms = errors.New("bubblewrap makes rooms on Linux only")

// Rooms returns why this machine has no rooms for programs, or nil.
func Rooms() error { return errNoRooms }

// A roomed is a program in its room.
type roomed struct {
	cmd      *exec.Cmd
	listener net.Listener
}

func (r *Room) enter(*Process, string, []string) (*roomed, error) { return nil, errNoRooms }

func (*roomed) closeInherited()                 {}
func (*roomed) awaited() error                  { return errNoRooms }
func (*roomed) terminate()                      {}
func (*roomed) leave()                          {}
func (*roomed) state(s *os.ProcessState) string { return s.String() }
