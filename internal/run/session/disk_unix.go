//go:build linux || darwin || freebsd

package session

import "syscall"

// freeDisk returns how many bytes this user can still write to the disk of a folder.
func freeDisk(dir string) (bytes int, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil || s.Blocks == 0 { // some report no size
		return 0, false
	}
	return int(s.Bavail) * int(s.Bsize), true
}
