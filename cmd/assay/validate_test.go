package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/validate"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
)

// validated is the output of `assay library validate --json`.
type validated struct {
	Library library.Meta     `json:"library"`
	Worlds  []validate.Proof `json:"worlds"`
}

// TestBuiltinLibraryIsSound checks that every task of the built-in library can be solved, as often
// as the planner computes, and not without any call.
func TestBuiltinLibraryIsSound(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: solves every built-in task")
	}
	text, err := program(t, "library", "validate", "--world", world.Assay1Name,
		"--json").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var got validated
	decode(t, string(text), &got)
	if len(got.Worlds) != 1 || got.Library.Name != "builtin" {
		t.Fatalf("%s", text)
	}
	pr := got.Worlds[0]
	want := 630 * len(validate.Difficulties)
	if pr.Tasks != want || pr.Unsolvable != 0 || !pr.Sound || len(pr.Failed)+len(pr.Null) != 0 {
		t.Errorf("%+v, want %d tasks", pr, want)
	}
	played := make(map[string]int)
	for _, g := range pr.Games {
		played[fmt.Sprint(g.Agent, g.Tools, g.Reliability)]++
		if g.Pays() || g.Tasks < 20 {
			t.Errorf("not doing the task: %s", &g)
		}
	}
	for _, agent := range sim.Gaming {
		for _, tools := range []string{assay.Discover, assay.Listed} {
			for _, reliability := range []float64{1, .9, .8, .6} {
				if played[fmt.Sprint(agent, tools, reliability)] != 1 {
					t.Errorf("%s does not play with tools %s at %v", agent, tools, reliability)
				}
			}
		}
	}
	// Over 5,040 episodes, the rate is within one point of the planner's.
	near := pr.Oracle > pr.Planned-0.01 && pr.Oracle < pr.Planned+0.01
	if pr.Planned < 0.95 || pr.Planned > 0.995 || !near || pr.Z == 0 {
		t.Errorf("oracle %.4f, planner %.4f, %.2f σ", pr.Oracle, pr.Planned, pr.Z)
	}
}

// ended runs a command to its end and accepts every exit code.
func ended(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// chain returns tools each of which depends on the one before.
func chain(n int) []assay.Tool {
	var tools []assay.Tool
	for i := range n {
		tool := assay.Tool{
			Name: fmt.Sprint("tool_", i), Description: "Does something.",
			Returns: []assay.Return{{Name: "success", Type: "boolean"}},
			Errors:  []assay.ToolError{{Code: "TIMEOUT"}},
		}
		if i > 0 {
			tool.Dependencies = []string{tools[i-1].Name}
		}
		tools = append(tools, tool)
	}
	return tools
}

func taskOf(id assay.TaskID, required ...string) assay.Task {
	return assay.Task{
		ID: id, Type: "basic_task", Difficulty: "easy", Description: "Do it.",
		Required: required,
	}
}

// TestValidateFindsUnsoundTasks validates libraries with one task under test among sound tasks.
func TestValidateFindsUnsoundTasks(t *testing.T) {
	t.Parallel()
	reader := assay.Tool{
		Name: "reader", Description: "Reads.",
		Parameters: []assay.Parameter{ // no value is both a text and a number
			{Name: "page", Type: "string", Required: true},
			{Name: "page", Type: "number", Required: true},
		},
	}
	refused := taskOf("refused", "reader")
	lost := assay.Tool{
		Name: "lost", Description: "Needs a missing tool.",
		Dependencies: []string{"tool_99"},
	}
	tools := append(chain(12), reader, lost)
	for _, tc := range []struct {
		name string
		task assay.Task
		more int                       // the number of further tasks, at which luck decides
		want map[string]validate.Proof // by world; counts and names of the task under test only
	}{
		{"sound", taskOf("short", "tool_1"), 0, map[string]validate.Proof{
			"assay-1": {Sound: true}, "pilot": {Sound: true},
		}},
		{"too long", taskOf("long", "tool_11"), 0, map[string]validate.Proof{
			"assay-1": {Sound: true, Unsolvable: 1, Examples: []string{"long (easy)"}},
			"pilot":   {Sound: true}, // where calls can work without their dependencies
		}},
		{"without its dependency", taskOf("orphan", "lost"), 0, map[string]validate.Proof{
			"assay-1": {Sound: true, Unsolvable: 1, Examples: []string{"orphan (easy)"}},
			"pilot":   {Sound: true},
		}},
		{"no arguments will do", refused, 0, map[string]validate.Proof{
			"assay-1": {Failed: []string{"refused (easy)"}},
			"pilot":   {Sound: true}, // where arguments make no difference
		}},
		{"one of many", refused, 200, map[string]validate.Proof{
			"assay-1": {Failed: []string{"refused (easy)"}}, // although the rates are as planned
			"pilot":   {Sound: true},
		}},
		{"nothing to do", taskOf("empty"), 0, map[string]validate.Proof{
			"assay-1": {Failed: []string{"empty (easy)"}},
			"pilot":   {Failed: []string{"empty (easy)"}},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "lib.db")
			tasks := []assay.Task{taskOf("control", "tool_0"), tc.task}
			for i := range tc.more {
				tasks = append(tasks, taskOf(assay.TaskID(fmt.Sprint("more_", i)), "tool_6"))
			}
			meta := library.Meta{Name: "small"}
			if err := library.Create(t.Context(), path, meta, tools,
				slices.Values(tasks)); err != nil {
				t.Fatal(err)
			}
			sound := true
			for _, w := range tc.want {
				sound = sound && w.Sound
			}
			code, message := exitOK, ""
			if !sound {
				code, message = exitError, "assay: the library is not sound\n"
			}
			r := ended(t, program(t, "library", "validate", path, "--json"))
			if r.code != code || r.err != message {
				t.Errorf("exit code %d, %q; want %d, %q", r.code, r.err, code, message)
			}
			var got validated
			decode(t, r.out, &got)
			for _, pr := range got.Worlds {
				want := tc.want[pr.World]
				want.World, want.Tasks = pr.World, len(tasks)
				want.Oracle, want.Planned, want.Z = pr.Oracle, pr.Planned, pr.Z
				want.Games, want.Floors = pr.Games, pr.Floors
				if diff := cmp.Diff(want, pr); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			text := ended(t, program(t, "library", "validate", path)).out
			for world, pr := range tc.want {
				for _, line := range proofLines(world, pr) {
					if !strings.Contains(text, line) {
						t.Errorf("the text lacks %q:\n%s", line, text)
					}
				}
			}
			if strings.Contains(text, "NOT SOUND") == sound {
				t.Errorf("sound is %v:\n%s", sound, text)
			}
		})
	}
}

// proofLines returns the lines that validate prints about the examples of a proof.
func proofLines(world string, pr validate.Proof) (lines []string) {
	for text, tasks := range map[string][]string{
		"no policy succeeds within the calls at":      pr.Examples,
		"the oracle fails, although no tool does, at": pr.Failed,
		"doing nothing scores at":                     pr.Null,
	} {
		if len(tasks) > 0 {
			lines = append(lines,
				fmt.Sprintf("%s: %s %s, …\n", world, text, strings.Join(tasks, ", ")))
		}
	}
	return lines
}

// TestValidateRefusesUnknownNames also checks that a signal ends validate.
func TestValidateRefusesUnknownNames(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{
			[]string{"--world", "assay-2"},
			exitUsage,
			"unknown world \"assay-2\"\nhint: there are assay-1, pilot, own-1",
		},
		{
			[]string{"--world", ""},
			exitUsage,
			"--world names no world\nhint: there are assay-1, pilot, own-1",
		},
		{[]string{filepath.Join(t.TempDir(), "none.db")}, exitError, "no such file\nhint: "},
	} {
		r := call(t, nil, append([]string{"library", "validate"}, tc.args...)...)
		if r.code != tc.code || !strings.Contains(r.err, tc.want) || r.out != "" {
			t.Errorf("validate %v: exit code %d, want %d with %q\n%s%s",
				tc.args, r.code, tc.code, tc.want, r.err, r.out)
		}
	}
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGINT
	var out, errs bytes.Buffer
	code := run([]string{"library", "validate"}, &process{
		in: strings.NewReader(""), out: &out, err: &errs, name: "assay", signals: signals,
	})
	interrupted := strings.HasPrefix(errs.String(), "assay: interrupted\n")
	if code != exitInterrupted || !interrupted || out.Len() > 0 {
		t.Errorf("interrupted: exit code %d\n%s%s", code, errs.String(), out.String())
	}
}

// inspected is the output of `assay library inspect --json`.
type inspected struct {
	Library library.Meta    `json:"library"`
	Tools   []string        `json:"tools"`
	Counts  []library.Count `json:"counts"`
}

func inspect(t *testing.T, args ...string) inspected {
	t.Helper()
	var got inspected
	decode(t, must(t, nil, append([]string{"library", "inspect", "--json"}, args...)...).out, &got)
	return got
}

// TestGenerate generates libraries of two sizes, and checks that only --force replaces a file.
func TestGenerate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "x.db")
	r := must(t, nil, "library", "generate", "-o", path, "--tasks-per-type", "3")
	want := path + ": 120 descriptions of 15 tasks\n" +
		"Next: write `library: " + path + "` in an experiment file\n"
	if r.out != want {
		t.Errorf("generate prints %q, want %q", r.out, want)
	}
	got := inspect(t, path)
	if len(got.Tools) != 30 || len(got.Counts) != 5*8 || got.Library.Tasks != 120 {
		t.Errorf("%+v", got)
	}
	for i, c := range got.Counts {
		want := library.Count{
			Type: assay.TaskTypes[i/8], Difficulty: validate.Difficulties[i%8],
			Tasks: 3,
		}
		if c != want {
			t.Errorf("count %d is %+v, want %+v", i, c, want)
		}
	}
	for _, line := range []string{
		"(30 tools, digest " + got.Library.Digest + ")",
		"multi_stage_pipeline  hard_biased        3",
	} {
		if text := must(t, nil, "library", "inspect", path).out; !strings.Contains(text, line) {
			t.Errorf("inspect lacks %q:\n%s", line, text)
		}
	}

	before := tree(t, dir)
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{
			[]string{"-o", path},
			exitError,
			"x.db already exists\nhint: choose another file, or replace it with --force",
		},
		{[]string{"-o", dir, "--force"}, exitError, " is a directory\nhint: name a file in it"},
		{[]string{"-o", filepath.Join(path, "y.db")}, exitError, "not a directory"},
		{[]string{"-o", filepath.Join(dir, "no", "y.db")}, exitError, "no such file or directory"},
		{nil, exitUsage, "--output is missing\nhint: assay library generate -o library.db"},
		{
			[]string{"-o", filepath.Join(dir, "y.db"), "--tasks-per-type", "0"},
			exitUsage,
			"cannot generate 0 tasks of each type\nhint: ",
		},
		{
			[]string{"-o", filepath.Join(dir, "y.db"), "--tasks-per-type", "1000"},
			exitUsage,
			"hint: choose a number from 1 to 999",
		},
	} {
		r := call(t, nil, append([]string{"library", "generate"}, tc.args...)...)
		if r.code != tc.code || !strings.Contains(r.err, tc.want) || r.out != "" {
			t.Errorf("generate %v: exit code %d, want %d with %q\n%s%s",
				tc.args, r.code, tc.code, tc.want, r.err, r.out)
		}
	}
	if tree(t, dir) != before {
		t.Error("a refused command left a file behind")
	}
	must(t, nil, "library", "generate", "-o", path, "--tasks-per-type", "2", "--force")
	if n := inspect(t, path).Library.Tasks; n != 80 {
		t.Errorf("the replaced library has %d tasks, want 80", n)
	}
}

// TestGenerateDefaultIsBuiltin checks that the default number of tasks gives the built-in
// library, so that both have the same trials.
func TestGenerateDefaultIsBuiltin(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "builtin.db")
	mustProgram(t, "library", "generate", "-o", path)
	got, want := inspect(t, path), inspect(t)
	if got.Library.Digest != want.Library.Digest || got.Library.Digest == "" {
		t.Errorf("digest %s, want %s", got.Library.Digest, want.Library.Digest)
	}
	if diff := cmp.Diff(want.Counts, got.Counts); diff != "" {
		t.Errorf("counts (-builtin +generated):\n%s", diff)
	}
}
