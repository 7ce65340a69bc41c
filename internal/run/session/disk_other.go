//go:build !linux && !darwin && !freebsd

package session

// freeDisk returns that the free space is unknown.
func freeDisk(string) (bytes int, ok bool) { return 0, false }
