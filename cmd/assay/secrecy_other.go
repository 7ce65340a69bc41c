//go:build !linux

package main

// hideProcess does nothing, because only Linux shows the environment of a process as a file.
func hideProcess() {}
