package child_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/assay-eval/assay/internal/task/child"
)

// A program inherits nothing that whoever has started Assay had open, and in a room nothing of Assay either.
func TestOnlyStreamsAreInherited(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Open(secret, syscall.O_RDONLY, 0) // as a shell opens it, without O_CLOEXEC
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	child.SealOpen()
	script := []string{"/bin/sh", "-c", "ls -l /proc/$$/fd; true"}
	for name, c := range map[string]child.Command{
		"plain": {Args: script}, "user": {Args: script, Apart: true}, "room": {Args: script, Room: new(child.Room)},
	} {
		if c.Room != nil && child.Rooms() != nil || c.Apart && child.Users() != nil {
			continue
		}
		out, err := child.Output(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			before, target, ok := strings.Cut(line, " -> ")
			if ok && !slices.Contains([]string{"0", "1", "2"}, before[strings.LastIndexByte(before, ' ')+1:]) {
				t.Errorf("%s: it has the open file %s", name, target)
			}
		}
	}
}
