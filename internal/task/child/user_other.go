//go:build !linux

package child

import (
	"errors"
	"os/exec"
)

type user int

var errNoUsers = errors.New("programs have users of their own on Linux only")

// Users returns why this machine has no users of their own for programs, or nil.
func Users() error { return errNoUsers }

func newUser(string) (user, error) { return 0, errNoUsers }

func (user) own(*exec.Cmd)     {}
func (user) give(string) error { return nil }
func (user) leave()            {}
func (user) limit(int)         {}

func evict(string) {}
