//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package runlog

import "os"

// lock reports that nobody else has locked f, which nobody can here: the hour
// in which a log is spared is all that protects a run's.
func lock(*os.File) bool { return true }
