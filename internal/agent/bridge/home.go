package bridge

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// At returns the agent with the files of a folder, which is absolute. Its program starts
// elsewhere, so relative paths in the command that name files of the folder become absolute: the
// program if it has a separator, arguments, and the values of arguments such as
// --config=agent.toml. Paths in an earlier Home become paths in the new one.
func (a Agent) At(home string) Agent {
	before := a.Home
	a.Home, a.Command = home, slices.Clone(a.Command)
	for i, arg := range a.Command {
		if rest, ok := strings.CutPrefix(arg, before+string(filepath.Separator)); ok && before != "" {
			a.Command[i] = filepath.Join(home, rest)
			continue
		}
		if i == 0 {
			a.Command[0] = programAt(home, arg)
			continue
		}
		flag, value, ok := strings.Cut(arg, "=")
		switch {
		case isFile(home, arg):
			a.Command[i] = filepath.Join(home, arg)
		case ok && strings.HasPrefix(flag, "-") && isFile(home, value):
			a.Command[i] = flag + "=" + filepath.Join(home, value)
		}
	}
	return a
}

// programAt returns the path of a program. A name without a separator is looked up in PATH first.
func programAt(home, program string) string {
	if filepath.IsAbs(program) {
		return program
	}
	if strings.ContainsRune(program, filepath.Separator) {
		return filepath.Join(home, program)
	}
	if _, err := exec.LookPath(program); err != nil && isFile(home, program) {
		return filepath.Join(home, program)
	}
	return program
}

// isFile reports whether a relative path names a file of a folder. A directory counts if the path
// has a separator, because a word such as run is no path.
func isFile(home, path string) bool {
	if path == "" || filepath.IsAbs(path) {
		return false
	}
	info, err := os.Stat(filepath.Join(home, path))
	return err == nil && (!info.IsDir() || strings.ContainsRune(path, filepath.Separator))
}
