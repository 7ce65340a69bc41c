package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// spy is an agent that looks for keys in the files that the system shows about its ancestors. It
// writes its findings to a file beside it.
const spy = `
exec >>"${0%/*}/seen" 2>&1
p=$PPID
while [ "$p" -gt 1 ]; do
	tr '\0' '\n' <"/proc/$p/environ"
	tr '\0' '\n' <"/proc/$p/cmdline"
	p=$(sed 's/.*) //' "/proc/$p/stat" | cut -d ' ' -f 2)
done
head -c 1 "/proc/$PPID/mem"
head -n 1 "/proc/$PPID/maps"
`

// TestAgentsCannotReadKeysOfTheRun looks for a key of the run in its environment, its command line
// and its memory. The run itself has the key.
func TestAgentsCannotReadKeysOfTheRun(t *testing.T) {
	t.Parallel()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	var keys atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+canary {
			keys.Add(1)
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(server.Close)
	for _, user := range []string{"the user of the tests", "nobody"} {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			if root := os.Getuid() == 0; root == (user != "nobody") {
				t.Skip("root can read everything, and only root can start an agent of another user")
			}
			dir, err := os.MkdirTemp("", "spy")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			file(t, dir, "assay", string(text))
			file(t, dir, "spy.sh", spy)
			file(t, dir, "seen", "")
			file(t, dir, "e.yaml", "models: [spy]\nproviders: providers.yaml\n"+
				"task_types: [simple_task]\ntasks_per_type: 1\nvariants: [baseline]\n")
			file(t, dir, "providers.yaml", "providers:\n  gw:\n    base_url: "+server.URL+"/v1\n"+
				"    keys: [SPY_KEY]\n    models: {m: {}}\n"+
				"agents:\n  spy: {command: [sh, spy.sh], model: m, sandbox: none}\n")
			for _, name := range []string{"", "assay", "spy.sh", "seen", "e.yaml", "providers.yaml"} {
				if err := os.Chmod(filepath.Join(dir, name), 0o777); err != nil {
					t.Fatal(err)
				}
			}
			assay := func(args ...string) string {
				cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "assay"), args...)
				cmd.Dir = dir
				cmd.Env = []string{
					"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + dir, "SPY_KEY=" + canary,
				}
				if user == "nobody" {
					cmd.SysProcAttr = &syscall.SysProcAttr{
						Credential: &syscall.Credential{Uid: 65534, Gid: 65534},
					}
				}
				out, _ := cmd.CombinedOutput() // only the output matters
				return string(out)
			}
			out := assay("run", "e.yaml")
			seen, err := os.ReadFile(filepath.Join(dir, "seen"))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(seen), canary) {
				t.Errorf("the agent sees the key:\n%.2000q", seen)
			}
			if strings.Count(string(seen), "Permission denied") < 3 {
				t.Errorf("the agent could read the memory of the run:\n%.2000q\n%s", seen, out)
			}
			if assay("check", "e.yaml", "--model", "m"); keys.Load() == 0 {
				t.Error("the run does not send the key")
			}
		})
	}
}
