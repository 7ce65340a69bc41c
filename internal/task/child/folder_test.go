//go:build linux

package child_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-eval/assay/internal/task/child"
)

// TestMain lets the test binary be a process that uses a folder.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "hold" {
		f, err := child.NewFolder()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(f.Path)
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

// hold starts a process that uses a folder in dir.
func hold(t *testing.T, dir string) (folder string, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "hold")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), kill
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestFoldersOfTheKilled kills a process. The next one removes its folder, never one that a living
// process uses, and nothing else.
func TestFoldersOfTheKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	other := filepath.Join(dir, "assay-results")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	killed, kill := hold(t, dir)
	if err := os.WriteFile(filepath.Join(killed, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	living, _ := hold(t, dir)
	kill()
	if !exists(killed) {
		t.Fatal("there is nothing to remove")
	}
	next, _ := hold(t, dir)
	if exists(killed) {
		t.Error("the folder of a killed process is left")
	}
	for _, folder := range []string{living, next, other} {
		if !exists(folder) {
			t.Errorf("%s is gone, which is in use", folder)
		}
	}
}

// TestFoldersAreNeverSweptAway makes folders while another process might look for old ones, which
// may meet them before they are locked.
func TestFoldersAreNeverSweptAway(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	stop := make(chan struct{})
	var sweeper sync.WaitGroup
	sweeper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				child.Sweep(dir)
			}
		}
	})
	for range 300 {
		f, err := child.NewFolder()
		if err != nil {
			t.Fatal(err)
		}
		child.Sweep(dir)
		if !exists(f.Path) {
			t.Fatal("a folder in use was swept away")
		}
		if err := f.Remove(); err != nil || exists(f.Path) {
			t.Fatalf("the folder is left: %v", err)
		}
	}
	close(stop)
	sweeper.Wait()
}

// TestCloseTwice closes a program twice, which keeps the first result.
func TestCloseTwice(t *testing.T) {
	t.Parallel()
	p, _ := start(t, "echo ready; cat")
	if err := errors.Join(p.Close(), p.Close()); err != nil || exists(p.Dir) {
		t.Errorf("the folder is left: %v", err)
	}
}
