//go:build unix && !linux

package child

import "syscall"

// dieWithParent does nothing, because only Linux can tie a program to its parent.
func dieWithParent(*syscall.SysProcAttr) {}
