//go:build unix && !linux

package child

import "syscall"

// dieWithParent is a no-op, because only Linux can tie a program to its parent.
func dieWithParent(*syscall.SysProcAttr) {}
