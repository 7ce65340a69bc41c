package bench_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay/internal/bench"
)

// TestMain makes this binary a child that does as it is told.
func TestMain(m *testing.M) {
	switch os.Getenv("ASSAY_BENCH_CHILD") {
	case "talk":
		fmt.Println("one")
		fmt.Fprintln(os.Stderr, "oh no")
		fmt.Print("two\nthree without an end")
		time.Sleep(100 * time.Millisecond) // so that its memory is read
		os.Exit(3)
	case "hang":
		fmt.Println("here")
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

func child(t *testing.T, does string) *exec.Cmd {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "an", "argument")
	cmd.Env = append(os.Environ(), "ASSAY_BENCH_CHILD="+does)
	return cmd
}

// TestProcess: whole lines are heard, a failure comes with the last words, and
// what it took is known.
func TestProcess(t *testing.T) {
	t.Parallel()
	var lines []string
	p, err := bench.Start(child(t, "talk"), func(line []byte) { lines = append(lines, strings.TrimSpace(string(line))) })
	if err != nil {
		t.Fatal(err)
	}
	usage, err := p.Wait()
	if err == nil || !strings.Contains(err.Error(), "an argument: exit status 3\noh no") {
		t.Errorf("Wait() = %v", err)
	}
	if got := strings.Join(lines, ", "); got != "one, two" {
		t.Errorf("lines %s", got)
	}
	if usage.Wall <= 0 || usage.CPU <= 0 || (usage.PeakMB < 1) == (runtime.GOOS == "linux") {
		t.Errorf("usage %+v", usage)
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	here := make(chan bool, 1) // said once
	p, err := bench.Start(child(t, "hang"), func([]byte) { here <- true })
	if err != nil {
		t.Fatal(err)
	}
	<-here
	p.Kill()
	if _, err := p.Wait(); err == nil {
		t.Error("Wait() of a process that was killed returned no error")
	}
	p.Kill() // does nothing
}

func TestOpenFiles(t *testing.T) {
	t.Parallel()
	if n := bench.OpenFiles(); (n > 0) != (runtime.GOOS == "linux") {
		t.Errorf("OpenFiles() = %d", n)
	}
}
