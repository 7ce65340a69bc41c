//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// SIGTERM ends a command while it reads a file, where no context reaches. Here the file is a pipe
// that another program does not write to.
func TestSignalEndsReading(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"run"},
		{"plan"},
		{"check"},
		{"library", "inspect"},
		{"library", "validate"},
		{"library", "call", "a", "--library"},
		{"store", "import"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			pipe := filepath.Join(t.TempDir(), "pipe.yaml")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := program(t, append(args, pipe)...)
			cmd.Dir = t.TempDir()
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			writer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for the reader
			if err != nil {
				t.Fatal(err)
			}
			defer writer.Close()
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitInterrupted {
				t.Errorf("the command ended with %v", err)
			}
		})
	}
}
