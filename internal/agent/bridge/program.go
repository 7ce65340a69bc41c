package bridge

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/assay-eval/assay/internal/task/child"
)

// maxHashed is how many bytes of a file are hashed at most. Longer files, such as weights of
// models, are distinguished by their size, too.
const maxHashed = 64 << 20

// Check returns an error if a program of the agent cannot be found, or if this machine has no rooms and
// the agent demands one.
func (a Agent) Check() error {
	if a.URL != "" {
		return nil
	}
	err := child.Command{Args: a.Command}.Check()
	if len(a.Next) > 0 {
		err = cmp.Or(err, child.Command{Args: a.Next}.Check())
	}
	for _, path := range a.Read {
		if _, missing := os.Stat(path); missing != nil && err == nil {
			err = fmt.Errorf("`read` names %s, which is not there", path)
		}
	}
	if err == nil && a.Sandbox == Bubblewrap {
		if err = child.Rooms(); err != nil {
			err = fmt.Errorf("its sandbox is bubblewrap, but %w", err)
		}
	}
	if err == nil && a.Sandbox == OwnUser {
		if err = child.Users(); err != nil {
			err = fmt.Errorf("its sandbox is user, but %w", err)
		}
	}
	return err
}

// Program returns digests of the program and of the files that its commands name, by their names
// as in the commands. Files that are not on this machine are left out. It is empty for a service.
func (a Agent) Program() map[string]string {
	files := make(map[string]string)
	if a.URL != "" {
		return files
	}
	for _, command := range [][]string{a.Command, a.Next} {
		for i, arg := range command {
			path := arg
			if i == 0 {
				path, _ = exec.LookPath(arg)
			} else if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
				path = value
			}
			if i > 0 && !filepath.IsAbs(path) {
				continue
			}
			if digest := digestOf(path); digest != "" {
				files[a.nameOf(path, arg)] = digest
			}
		}
	}
	return files
}

// nameOf returns the name of a file in the agent's home relative to it, and otherwise as it is
// written.
func (a Agent) nameOf(path, arg string) string {
	if rel, err := filepath.Rel(a.Home, path); a.Home != "" && err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return arg
}

// digestOf returns the start of the SHA-256 of a file, or "" if there is no such file.
func digestOf(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if info.Size() > maxHashed {
		fmt.Fprintln(h, info.Size())
	}
	if _, err := io.Copy(h, io.LimitReader(f, maxHashed)); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
