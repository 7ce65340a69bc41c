package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestTablesNeverShareAFile names standard output a second time, in several ways.
func TestTablesNeverShareAFile(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip(err)
	}
	path := quickRun(t, oneModel)
	out := filepath.Join(t.TempDir(), "out")
	for _, calls := range []string{"/dev/stdout", "/dev/fd/1", out} {
		for _, kind := range []string{"file", "pipe"} {
			if kind == "pipe" && calls == out {
				continue
			}
			cmd := program(t, "export", "--store", path, "-o", "-", "--calls", calls)
			var errs strings.Builder
			cmd.Stderr = &errs
			f, err := os.Create(out)
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stdout = f
			if kind == "pipe" {
				cmd.Stdout = new(strings.Builder)
			}
			err = cmd.Run()
			f.Close()
			refused := strings.Contains(errs.String(), "two outputs have the same path")
			if cmd.ProcessState.ExitCode() != exitUsage || !refused {
				t.Errorf("calls to %s, standard output is a %s: %v, %s", calls, kind, err,
					errs.String())
			}
		}
	}
}

// TestBrokenPipeIsAnErrorIfFilesAreLost writes one table to a file and the other to a pipe whose
// reader goes away.
func TestBrokenPipeIsAnErrorIfFilesAreLost(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	out := filepath.Join(t.TempDir(), "a.jsonl")
	var errs bytes.Buffer
	code := run([]string{"export", "--store", path, "-o", out, "--calls", "-"}, &process{
		in: strings.NewReader(""), out: &failingWriter{10, syscall.EPIPE}, err: &errs,
		env: func(string) (string, bool) { return "", false },
	})
	if code != exitError || !strings.Contains(errs.String(), "nothing was written") {
		t.Errorf("exit code %d, %s", code, errs.String())
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("the file exists")
	}
}
