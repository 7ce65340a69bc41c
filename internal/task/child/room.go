package child

import (
	"bufio"
	"cmp"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A Room is what a program sees and uses of the machine: the programs of the system and of PATH, read-only;
// its scratch directory, which is also its HOME and has its /tmp; processes of its own. It ends with all of
// them.
type Room struct {
	// Read are files and folders that the program sees, too, at their own paths. Those that do not exist
	// are left out.
	Read []string
	// Hidden are folders of which nothing is seen but what Read names in them.
	Hidden []string
	// Address is where the program finds what Serve serves, such as 127.0.0.1:8712, until the program
	// ends. There is no other network, unless Open is true. Then the program has the network of the
	// machine, and Serve is not called.
	Address string
	Serve   func(net.Listener)
	Open    bool
	// Private means that the scratch directory is in memory, and nobody outside sees what is in it.
	Private bool
	Limits  Limits
}

// DefaultLimits are those of a room that states no others.
var DefaultLimits = Limits{Memory: 4 << 30, Disk: 4 << 30, Processes: 1000}

// Limits bound what a program in a room uses.
type Limits struct {
	// Memory and Disk are in bytes, without what is shared with other processes, or read-only.
	Memory, Disk int64
	// Processes counts threads, too.
	Processes int
}

// Finds returns the folders and files that a command needs and that a room has not anyway: those of the
// program, its interpreter and the files that the command names. Of hidden folders and of the user's home,
// these are only the files themselves.
func Finds(command, hidden []string) []string {
	f := finder{hidden: hidden}
	for i, arg := range command {
		if i == 0 {
			f.program(arg)
			continue
		}
		if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
			arg = value
		}
		if filepath.IsAbs(arg) && !strings.HasPrefix(arg, Scratch) {
			f.file(arg)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(f.found)))
}

// A finder finds what a command needs.
type finder struct {
	hidden, found []string
	seen          []string // paths of links and programs that were followed
}

// program adds a program with its interpreter, and whatever links lead to it.
func (f *finder) program(name string) {
	path, err := exec.LookPath(name)
	if err != nil {
		return
	}
	if path, err = filepath.Abs(path); err != nil || slices.Contains(f.seen, path) {
		return
	}
	f.seen = append(f.seen, path)
	f.file(path)
	if target, err := os.Readlink(path); err == nil {
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		f.program(target)
		return
	}
	if interpreter := interpreterOf(path); interpreter != "" {
		f.program(interpreter)
	}
}

// interpreterOf returns the program that a script names in its first line, or "".
func interpreterOf(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	const longest = 256 // as in Linux
	line, _ := bufio.NewReader(io.LimitReader(file, longest)).ReadString('\n')
	line, ok := strings.CutPrefix(line, "#!")
	words := strings.Fields(line)
	if !ok || len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) != "env" {
		return words[0]
	}
	for _, w := range words[1:] {
		if !strings.HasPrefix(w, "-") && !strings.Contains(w, "=") {
			return w
		}
	}
	return ""
}

// file adds a file with the folder that it works in, or a folder.
func (f *finder) file(path string) {
	if ofSystem(path) {
		return
	}
	info, err := os.Stat(path)
	if err != nil {
		return
	}
	folder := path
	if !info.IsDir() {
		folder = folderOf(path)
	}
	home, _ := os.UserHomeDir()
	switch bares := Bares(folder, append(f.hidden[:len(f.hidden):len(f.hidden)], home)); {
	case !bares:
		f.found = append(f.found, folder)
	case !info.IsDir():
		f.found = append(f.found, path)
	}
}

// Bares reports whether a folder is a hidden one or has one in it, whatever links lead to it.
func Bares(folder string, hidden []string) bool {
	folder = real(folder)
	return slices.ContainsFunc(hidden, func(h string) bool { return h != "" && within(real(h), folder) })
}

// real returns a path without links, or the path itself if there is no such file.
func real(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return filepath.Clean(path)
}

// folderOf returns the folder of everything that a program or a script needs that is installed with it:
// the outermost node_modules, the parent of a bin or of a version manager's shims, or else its own folder.
// A user's home and ~/.local are nobody's installation.
func folderOf(path string) string {
	const modules = "node_modules"
	sep := string(filepath.Separator)
	if before, _, ok := strings.Cut(path, sep+modules+sep); ok {
		return filepath.Join(before, modules)
	}
	dir := filepath.Dir(path)
	if base := filepath.Base(dir); base != "bin" && base != "shims" {
		return dir
	}
	parent := filepath.Dir(dir)
	home, _ := os.UserHomeDir()
	if parent == "/" || parent == filepath.Clean(cmp.Or(home, "/")) || filepath.Base(parent) == ".local" {
		return dir
	}
	return parent
}

// within reports whether a path is a folder or in it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}

// system are the folders of the system that every room has.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store",
}

// settings are the files of the system's configuration that programs hardly work without. They hold no
// secrets.
var settings = []string{
	"/etc/alternatives", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/fonts", "/etc/group", "/etc/host.conf",
	"/etc/hosts", "/etc/java", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/locale.alias",
	"/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd",
	"/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/protocols", "/etc/services", "/etc/ssl/certs",
	"/etc/ssl/openssl.cnf", "/etc/timezone",
}

func ofSystem(path string) bool {
	return slices.ContainsFunc(system, func(s string) bool { return within(path, s) })
}

// programs returns the folders of PATH that are not the system's, and that show nothing hidden.
func (r *Room) programs() (dirs []string) {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.Base(dir) == "shims" { // of a version manager, which the shims call
			dir = filepath.Dir(dir)
		}
		if filepath.IsAbs(dir) && !ofSystem(dir) && !Bares(dir, r.Hidden) {
			dirs = append(dirs, filepath.Clean(dir))
		}
	}
	return dirs
}
