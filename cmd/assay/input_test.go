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
