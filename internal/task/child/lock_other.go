//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package child

import (
	"errors"
	"os"
)

// lockFolder fails, because this system has no locks of folders. Folders of processes that were
// killed are left to the system.
func lockFolder(string) (*os.File, error) { return nil, errors.ErrUnsupported }
