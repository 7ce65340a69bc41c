package main

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// hideEnvironment keeps the values of our environment variables, such as keys, from other processes
// of the user. Agents run as the user, who can read the initial environment of a process in /proc.
// Getenv still works, because it reads a copy. Root can still read our memory.
//
// Errors are ignored, because without /proc there are no values to hide.
func hideEnvironment() {
	blankEnvironment()
	// Only root can read the memory and the environment of a process that cannot be dumped.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}

// blankEnvironment overwrites the values in the memory that /proc/self/environ shows. The runtime
// has copied them when it started.
func blankEnvironment() {
	environment, err := os.ReadFile("/proc/self/environ")
	if err != nil {
		return
	}
	start, length := environmentBlock()
	if start == 0 || length != len(environment) {
		return // the kernel shows another part of the memory, perhaps on request
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer memory.Close()
	blank := blanked(environment)
	seen := make([]byte, len(blank))
	if _, err := memory.ReadAt(seen, start); err == nil && bytes.Equal(seen, environment) {
		_, _ = memory.WriteAt(blank, start)
	}
}

// blanked returns an environment with zeros in place of values.
func blanked(environment []byte) []byte {
	blank := make([]byte, 0, len(environment))
	for entry := range bytes.SplitAfterSeq(environment, []byte{0}) {
		name, _, _ := bytes.Cut(entry, []byte("="))
		blank = append(append(blank, name...), make([]byte, len(entry)-len(name))...)
	}
	return blank
}

// environmentBlock returns where the kernel finds the environment, or 0 if the place is unknown.
func environmentBlock() (start int64, length int) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, 0
	}
	// The name of the program, in parentheses, may have spaces. The third field follows it.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const startField, endField = 50 - 3, 51 - 3
	if len(fields) <= endField {
		return 0, 0
	}
	start, err = strconv.ParseInt(fields[startField], 10, 64)
	if err != nil {
		return 0, 0
	}
	end, err := strconv.ParseInt(fields[endField], 10, 64)
	if err != nil || end < start {
		return 0, 0
	}
	return start, int(end - start)
}
