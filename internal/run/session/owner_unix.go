//go:build unix

package session

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByUs reports whether a file belongs to the user who runs this program.
func ownedByUs(fi fs.FileInfo) bool {
	stat, ok := fi.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == uint32(os.Getuid())
}
