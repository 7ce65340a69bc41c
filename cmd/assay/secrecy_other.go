//go:build !linux

package main

// hideEnvironment does nothing, because only Linux shows the environment of a process as a file.
func hideEnvironment() {}
