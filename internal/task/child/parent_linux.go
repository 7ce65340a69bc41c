package child

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// dieWithParent lets the kernel kill the program if Assay is killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// killStrays kills processes that a program has started and that have left its process group. They
// have inherited the variable with its scratch directory. A process may start others before it
// dies, so killStrays looks again until they are gone.
func killStrays(dir string) {
	const rounds = 10
	for range rounds {
		found := strays(dir)
		for _, pid := range found {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(found) == 0 {
			return
		}
	}
}

func strays(dir string) (found []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	variable := []byte("\x00" + scratchVar(dir) + "\x00")
	for _, f := range files {
		env, _ := os.ReadFile(f) // it is empty if the process has ended or is another user's
		if !bytes.Contains(append([]byte{0}, env...), variable) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil {
			found = append(found, pid)
		}
	}
	return found
}
