package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fiveTrials is an experiment that ends at once.
const fiveTrials = "models: [sim/mute]\ntasks_per_type: 1\nvariants: [cot]\n"

// failsWith checks that a command line failed for this reason, and that it gave a hint.
func failsWith(t *testing.T, r result, reason string) {
	t.Helper()
	if r.code != exitError || !strings.Contains(r.err, reason) ||
		!strings.Contains(r.err, "hint:") {
		t.Errorf("exit code %d, want %d with %q and a hint\n%s", r.code, exitError, reason, r.err)
	}
}

// Two runs can't write to one store at the same time, but a reader can open it during a run.
func TestSecondRunOnOneStore(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "assay.db")
	cmd := program(t, "run", "--store", db, "--display", "json", "--sim-latency", "2s")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	if _, err := out.Read(make([]byte, 1)); err != nil { // the run has opened the store
		t.Fatal(err)
	}

	failsWith(t, call(t, nil, "run", "--store", db), "in use by another run")
	r := must(t, nil, "status", "--store", db)
	if !strings.Contains(r.out, "and is working.\n") || !strings.Contains(r.out, "working: ") {
		t.Errorf("status during a run:\n%s", r.out)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	r = must(t, nil, "status", "--store", db)
	if !strings.Contains(r.out, "and ended without writing its end: it was killed, or ") {
		t.Errorf("status after the end of its process:\n%s", r.out)
	}
}

// mountSmall mounts a small file system in memory and returns its directory. It skips the test if
// this machine does not allow that.
func mountSmall(t *testing.T, size string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	mount := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", dir)
	if out, err := mount.CombinedOutput(); err != nil {
		t.Skipf("cannot mount a file system here: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
	return dir
}

func remount(t *testing.T, dir, options string) {
	t.Helper()
	out, err := exec.Command("mount", "-o", "remount,"+options, dir).CombinedOutput()
	if err != nil {
		t.Fatalf("remount: %v %s", err, out)
	}
}

// If the disk is full, the run stops with the reason and keeps its results. The same command
// continues when there is space again.
func TestFullDiskStopsTheRun(t *testing.T) {
	t.Parallel()
	small := mountSmall(t, "1500k")
	db := filepath.Join(small, "assay.db")
	failsWith(t, call(t, nil, "run", "--store", db, "--sim-latency", "0", "--display", "plain"),
		"disk full")
	done := settled(t, db)
	if done == 0 || done == quickstartTrials {
		t.Fatalf("%d trials done, so the disk did not fill up during the run", done)
	}

	remount(t, small, "size=20m")
	mustProgram(t, "run", "--store", db, "--sim-latency", "0", "--display", "none")
	if now := settled(t, db); now != quickstartTrials {
		t.Errorf("%d trials done in the end, want %d", now, quickstartTrials)
	}
}

// A run does not start on a read-only file system, but its results can still be read.
func TestReadOnlyFileSystem(t *testing.T) {
	t.Parallel()
	dir := mountSmall(t, "20m")
	db := filepath.Join(dir, "assay.db")
	experiment := file(t, dir, "e.yaml", fiveTrials)
	mustProgram(t, "run", experiment, "--store", db, "--sim-latency", "0", "--display", "none")

	remount(t, dir, "ro")
	failsWith(t, call(t, nil, "run", experiment, "--store", db), "read-only")
	if now := settled(t, db); now != 5 {
		t.Errorf("%d trials can be read, want 5", now)
	}
	must(t, nil, "status", "--store", db)
}

// A run finishes with all of its results if the store's directory becomes read-only, because the
// store's files are already open.
func TestDirectoryTurnsReadOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "assay.db")
	cmd := program(t, "run", "--store", db, "--display", "json", "--sim-latency", "30ms")
	if os.Getuid() == 0 { // root can write to any directory
		runAsNobody(t, cmd, dir)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Skipf("cannot start a process as another user here: %v", err)
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
	if done := settled(t, db); done != quickstartTrials {
		t.Errorf("%d trials done, want %d", done, quickstartTrials)
	}
}

// runAsNobody gives dir to the user nobody, as whom cmd will run. It skips the test if that user
// cannot reach the directory or the program.
func runAsNobody(t *testing.T, cmd *exec.Cmd, dir string) {
	t.Helper()
	const nobody = 65534
	err := errors.Join(os.Chown(dir, nobody, nobody), os.Chmod(scratch, 0o755),
		os.Chmod(filepath.Dir(dir), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: nobody, Gid: nobody},
	}
	probe := exec.Command("sh", "-c", `test -w "$1" && test -x "$2"`, "sh", dir, cmd.Path)
	probe.SysProcAttr = cmd.SysProcAttr
	if err := probe.Run(); err != nil {
		t.Skipf("another user cannot reach the test's directories here: %v", err)
	}
}
