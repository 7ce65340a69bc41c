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
// --config=agent.toml. All relative paths in Read do. Paths in an earlier Home become paths in the new
// one.
func (a Agent) At(home string) Agent {
	a.Command = moved(a.Command, a.Home, home)
	if a.URL == "" {
		a.Next = moved(a.Next, a.Home, home)
	}
	a.Read = slices.Clone(a.Read)
	for i, path := range a.Read {
		if rest, ok := strings.CutPrefix(path, a.Home+string(filepath.Separator)); ok && a.Home != "" {
			path = rest
		}
		if !filepath.IsAbs(path) {
			a.Read[i] = filepath.Join(home, path)
		}
	}
	a.Home = home
	return a
}

// moved returns a command whose paths in one folder are paths in another one.
func moved(command []string, before, home string) []string {
	command = slices.Clone(command)
	for i, arg := range command {
		if rest, ok := strings.CutPrefix(arg, before+string(filepath.Separator)); ok && before != "" {
			command[i] = filepath.Join(home, rest)
			continue
		}
		if i == 0 {
			command[0] = programAt(home, arg)
			continue
		}
		flag, value, ok := strings.Cut(arg, "=")
		switch {
		case isFile(home, arg):
			command[i] = filepath.Join(home, arg)
		case ok && strings.HasPrefix(flag, "-") && isFile(home, value):
			command[i] = flag + "=" + filepath.Join(home, value)
		}
	}
	return command
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
