//go:build !linux

package main

// hideEnvironment is empty, because only Linux shows the environment of a process as a file.
func hideEnvironment() {}
