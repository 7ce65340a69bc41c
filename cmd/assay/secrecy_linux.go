package main

import "golang.org/x/sys/unix"

// hideProcess keeps the memory and the environment of this process, and with them the keys, from
// other processes of the user, such as agents. Root can still read them.
func hideProcess() {
	// The only error is that the kernel does not know the command.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}
