package session

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/experiment/plan"
)

// TestScarceDiskNeedsAttention checks the alarm on a file system of 1 MB. It skips the test if this
// machine does not allow to mount one.
func TestScarceDiskNeedsAttention(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mount := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", dir)
	if out, err := mount.CombinedOutput(); err != nil {
		t.Skipf("cannot mount a small file system: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
	s := troubled(t, silent{}, silent{}, plan.Budgets{}, plan.StopRules{})
	s.options.Store = filepath.Join(dir, "s.db")
	all := s.progress().Attention
	if len(all) != 1 || all[0].Cause != CauseDisk || all[0].Trials != 200 ||
		!strings.HasPrefix(all[0].Text, "only 1 MB are free") {
		t.Errorf("attention %+v, want a scarce disk", all)
	}
}
