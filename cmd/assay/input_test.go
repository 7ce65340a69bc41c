package main

import (
	"bufio"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestBadInput: each mistake gets its exit code and a message with the place
// and the remedy, and nothing is written.
func TestBadInput(t *testing.T) {
	t.Parallel()
	const good = "models: [sim/listed]\ntasks_per_type: 1\nvariants: [optimal]\n"
	providers := "providers:\n  gw:\n    base_url: http://127.0.0.1:9/v1\n    keys: [GW_KEY]\n    models:\n      my-model: {}\n"
	for _, tc := range []struct {
		name  string
		files map[string]string
		args  []string
		code  int
		want  []string
	}{
		{
			"unknown field",
			map[string]string{"e.yaml": good + "reliabilitys: [0.8]\n"},
			nil, 2,
			[]string{"e.yaml:4:1: unknown field \"reliabilitys\"", "4 | reliabilitys: [0.8]", "hint: did you mean reliabilities?"},
		},
		{
			"reliability 80",
			map[string]string{"e.yaml": good + "reliabilities: [80]\n"},
			nil, 2,
			[]string{"e.yaml:4:17: reliability 80 is not between 0 and 1", "hint: write 0.8 for 80 %"},
		},
		{
			"model without provider",
			map[string]string{"e.yaml": "models: [my-model]\n"},
			nil, 2,
			[]string{"e.yaml:1:10: no provider serves model my-model", "hint: list the model in a providers file"},
		},
		{
			"model misspelt",
			map[string]string{"e.yaml": "models: [my-modle]\nproviders: p.yaml\n", "p.yaml": providers},
			nil, 2,
			[]string{"e.yaml:1:10: no provider serves model my-modle", "hint: did you mean my-model?"},
		},
		{
			"built-in model misspelt",
			map[string]string{"e.yaml": "models: [sim/optimum]\n"},
			nil, 2,
			[]string{"no provider serves model sim/optimum", "hint: did you mean sim/optimal?"},
		},
		{
			"missing variable",
			map[string]string{"e.yaml": "models: [my-model]\nproviders: p.yaml\n", "p.yaml": providers},
			nil, 2,
			[]string{"p.yaml:4:12: environment variable GW_KEY is not set", "hint: export GW_KEY=..."},
		},
		{
			"missing providers file",
			map[string]string{"e.yaml": "models: [my-model]\nproviders: p.yaml\n"},
			nil, 2,
			[]string{"p.yaml: no such file", "hint:"},
		},
		{"missing experiment", nil, nil, 2, []string{"e.yaml: no such file", "hint:"}},
		{"missing library", map[string]string{"e.yaml": good + "library: tasks.db\n"}, nil, 1, []string{"tasks.db", "hint:"}},
		{
			"library is JSON",
			map[string]string{"e.yaml": good + "library: tasks.json\n", "tasks.json": "[]"},
			nil, 1,
			[]string{"tasks.json", "hint:", "assay library import"},
		},
		{
			"library is garbage",
			map[string]string{"e.yaml": good + "library: tasks.db\n", "tasks.db": strings.Repeat("garbage ", 999)},
			nil, 1,
			[]string{"tasks.db", "hint:"},
		},
		{
			"store is garbage",
			map[string]string{"e.yaml": good, "assay.db": strings.Repeat("garbage ", 999)},
			nil, 1,
			[]string{"assay.db", "not an assay store", "hint:"},
		},
		{
			"too many tasks",
			map[string]string{"e.yaml": "models: [sim/mute]\ntasks_per_type: 100000\n"},
			nil, 2,
			[]string{"e.yaml:2:17: library builtin has 126 tasks", "hint: write `tasks_per_type: all`"},
		},
		{"unknown display", map[string]string{"e.yaml": good}, []string{"--display", "lif"}, 2, []string{"unknown display \"lif\"", "did you mean live?"}},
		{"unknown flag", map[string]string{"e.yaml": good}, []string{"--stor", "x"}, 2, []string{"unknown flag: --stor", "--help"}},
		{"two files", map[string]string{"e.yaml": good}, []string{"f.yaml"}, 2, []string{"accepts at most 1 arg", "--help"}},
		{"directory missing", map[string]string{"e.yaml": good}, []string{"--store", "no/such/dir/x.db"}, 1, []string{"no/such/dir", "hint:"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range tc.files {
				file(t, dir, name, text)
			}
			before := tree(t, dir)
			cmd := program(t, append([]string{"run", "e.yaml"}, tc.args...)...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != tc.code {
				t.Errorf("exit code %d (%v), want %d\n%s", code, err, tc.code, out)
			}
			for _, want := range tc.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("output does not have %q:\n%s", want, out)
				}
			}
			if after := tree(t, dir); after != before {
				t.Errorf("files before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// tree lists the files in a directory with their content.
func tree(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		if e.IsDir() {
			b.WriteString(e.Name() + "\n" + tree(t, filepath.Join(dir, e.Name())))
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(e.Name() + " " + string(text) + "\n")
	}
	return b.String()
}

func TestUnknownCommand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"rum"}, {"library", "imprt", "x.json"}, {"show"}, {"sim", "serv"}} {
		if r := call(t, nil, args...); r.code != exitUsage {
			t.Errorf("assay %v: exit code %d, want %d\n%s%s", args, r.code, exitUsage, r.out, r.err)
		}
	}
}

// TestNewerStoreIsLeftAlone: a store of a later version is refused, untouched.
func TestNewerStoreIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	experiment := file(t, dir, "e.yaml", "models: [sim/mute]\ntasks_per_type: 1\nvariants: [cot]\n")
	db := filepath.Join(dir, "assay.db")
	must(t, nil, "run", experiment, "--store", db, "--sim-latency", "0", "--display", "none")
	raw, err := sql.Open("sqlite", db)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Exec("PRAGMA user_version = 999"); err != nil {
		t.Fatal(err)
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	for _, args := range [][]string{{"run", experiment}, {"status"}, {"export"}} {
		r := call(t, nil, append(args, "--store", db)...)
		if r.code != exitError || !strings.Contains(r.err, "written by a newer assay") || !strings.Contains(r.err, "hint:") {
			t.Errorf("%v: exit code %d\n%s", args, r.code, r.err)
		}
	}
	if tree(t, dir) != before {
		t.Error("the store was changed")
	}
}

// TestSecondRunOnOneStore: two runs at once never share a store; readers do.
func TestSecondRunOnOneStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "assay.db")
	cmd := program(t, "run", "--store", db, "--display", "json", "--sim-latency", "2s")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if _, err := out.Read(make([]byte, 1)); err != nil { // the start event: the store is open
		t.Fatal(err)
	}
	r := call(t, nil, "run", "--store", db)
	if r.code != exitError || !strings.Contains(r.err, "in use by another run") || !strings.Contains(r.err, "hint:") {
		t.Errorf("a second run: exit code %d\n%s", r.code, r.err)
	}
	if r := must(t, nil, "status", "--store", db); !strings.Contains(r.out, "it is running, or it was killed") {
		t.Errorf("status beside a run:\n%s", r.out)
	}
}

// TestFullDiskStopsTheRun fills a small file system during a run: the results
// so far are intact, the run stops and says why, and with space it goes on.
func TestFullDiskStopsTheRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	small := filepath.Join(dir, "small")
	if err := os.Mkdir(small, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=700k", "tmpfs", small).CombinedOutput(); err != nil {
		t.Skipf("no small file system can be mounted here: %v %s", err, out)
	}
	defer func() { _ = exec.Command("umount", small).Run() }()
	db := filepath.Join(small, "assay.db")
	r := call(t, nil, "run", "--store", db, "--sim-latency", "0", "--display", "plain")
	if r.code != exitError || !strings.Contains(r.err, "disk full") || !strings.Contains(r.err, "hint:") {
		t.Errorf("exit code %d, want 1 with the reason\n%s", r.code, r.err)
	}
	done := settled(t, db)
	if done == 0 || done == quickstartTrials {
		t.Fatalf("%d trials were done: the test is too weak", done)
	}
	if out, err := exec.Command("mount", "-o", "remount,size=20m", small).CombinedOutput(); err != nil {
		t.Fatalf("remount: %v %s", err, out)
	}
	must(t, nil, "run", "--store", db, "--sim-latency", "0", "--display", "none")
	if now := settled(t, db); now != quickstartTrials {
		t.Errorf("%d trials done in the end, want %d", now, quickstartTrials)
	}
}

// TestReadOnlyFileSystem: the run does not begin, and reading goes on.
func TestReadOnlyFileSystem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ro := filepath.Join(dir, "ro")
	if err := os.Mkdir(ro, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", ro).CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted here: %v %s", err, out)
	}
	defer func() { _ = exec.Command("umount", ro).Run() }()
	db := filepath.Join(ro, "assay.db")
	experiment := file(t, dir, "e.yaml", "models: [sim/mute]\ntasks_per_type: 1\nvariants: [cot]\n")
	must(t, nil, "run", experiment, "--store", db, "--sim-latency", "0", "--display", "none")
	if out, err := exec.Command("mount", "-o", "remount,ro", ro).CombinedOutput(); err != nil {
		t.Fatalf("remount: %v %s", err, out)
	}
	r := call(t, nil, "run", experiment, "--store", db)
	if r.code != exitError || !strings.Contains(r.err, "read-only") || !strings.Contains(r.err, "hint:") {
		t.Errorf("run: exit code %d\n%s", r.code, r.err)
	}
	if now := settled(t, db); now != 5 {
		t.Errorf("%d trials can be read, want 5", now)
	}
	must(t, nil, "status", "--store", db)
}

// TestDirectoryTurnsReadOnly takes the right to write to the store's directory
// away while a run is under way: the store's files are open, so the run ends
// well and all results are there.
func TestDirectoryTurnsReadOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := program(t, "run", "--store", filepath.Join(dir, "assay.db"), "--display", "json", "--sim-latency", "30ms")
	if os.Getuid() == 0 { // for whom no directory is read-only
		const nobody = 65534
		if err := errors.Join(os.Chown(dir, nobody, nobody), os.Chmod(scratch, 0o755), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		probe := exec.Command("sh", "-c", `test -w "$1" && test -x "$2"`, "sh", dir, cmd.Path)
		probe.SysProcAttr = cmd.SysProcAttr
		if err := probe.Run(); err != nil {
			t.Skipf("another user cannot reach the test's directories here: %v", err)
		}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("no process can be started as another user here: %v", err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), `"start"`) {
			if err := os.Chmod(dir, 0o555); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the run ended with %v", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if done := settled(t, filepath.Join(dir, "assay.db")); done != quickstartTrials {
		t.Errorf("%d trials done, want %d", done, quickstartTrials)
	}
}
