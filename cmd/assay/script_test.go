//go:build !race

// Stories are many short commands, and most of their time would be the start of a program with the
// race detector. Tests that run in this process show it the concurrent code.

package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/assay-eval/assay/internal/task/child"
)

// TestScripts runs the stories in testdata/script/*.txtar, which show how the command line behaves.
// Each story runs the real program in its own directory, which contains the files listed below its
// commands.
//
//	go test ./cmd/assay -run TestScripts/bad-experiment
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_CACHE_HOME", scratch) // all tests share the built-in library
			env.Values["test"] = env.T()
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":     exitsWith,
			"rehearse": rehearse,
			"sql":      changes,
		},
		RequireExplicitExec: true,
		Condition: func(name string) (bool, error) {
			if name != "rooms" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return child.Rooms() == nil, nil
		},
	})
}

// rehearse runs `rehearse ARGS…`, which starts `assay sim serve ARGS…` for the rest of the
// story and sets $URL to its address.
func rehearse(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv("URL", serveProgram(ts.Value("test").(testing.TB), args...))
}

// changes runs `sql STORE STATEMENT`, which changes a store as another program can.
func changes(ts *testscript.TestScript, _ bool, args []string) {
	meddle(ts.Value("test").(testing.TB), ts.MkAbs(args[0]), args[1])
}

// exitsWith runs `code N PROGRAM ARGS…` and fails unless the program exits with code N.
func exitsWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program args")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)

	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
