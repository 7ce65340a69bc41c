package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrNoRun is returned by [Send] if no run is working on the store, or if it ends before it replies.
var ErrNoRun = errors.New("no run is working on this store")

// Send sends an order to the run that works on a store.
func Send(ctx context.Context, storePath string, o Order) (Reply, error) {
	path, err := socketPath(storePath)
	if err != nil {
		return Reply{}, err
	}
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
	}}
	body, err := json.Marshal(o)
	if err != nil {
		return Reply{}, err
	}
	const url = "http://run/" // the host is ignored
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return Reply{}, err
	}

	var r Reply
	resp, err := client.Do(req)
	if err == nil {
		defer resp.Body.Close()
		err = json.NewDecoder(resp.Body).Decode(&r)
	}
	switch {
	case err == nil && r.Error != "":
		return r, errors.New(r.Error)
	case err == nil:
		return r, nil
	case errors.Is(err, fs.ErrPermission):
		return r, fmt.Errorf("the run on %s belongs to another user: %w", storePath, err)
	case !listens(path): // it may have ended before it replied
		return r, ErrNoRun
	}
	return r, fmt.Errorf("the run on %s does not answer: %w", storePath, err)
}

// listens reports whether a process may be listening at a socket.
func listens(path string) bool {
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
	}
	return !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED)
}

// socketPath returns where the run on a store listens. The socket is next to the store, so
// that only users who may write there can control the run. If that path is too long for a
// socket, it is replaced by one in the system's directory for temporary files.
func socketPath(storePath string) (string, error) {
	abs, err := filepath.Abs(storePath)
	if err != nil {
		return "", err
	}
	if target, err := filepath.EvalSymlinks(abs); err == nil {
		abs = target
	}
	const longest = 100 // the system allows 104 or 108 bytes
	if path := abs + ".ctl"; len(path) <= longest {
		return path, nil
	}
	sum := sha256.Sum256([]byte(abs))
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("assay-%d", os.Getuid()))
	if err := ownFolder(dir); err != nil {
		return "", err
	}
	return filepath.Join(dir, hex.EncodeToString(sum[:8])+".ctl"), nil
}

// ownFolder makes a folder that only this user can look into. Anybody may make one of that name in
// the directory for temporary files, and would then receive the orders to a run, and answer them.
func ownFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !fi.IsDir() || !ownedByUs(fi) || fi.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is not a folder of this user alone, so it cannot have the socket of the "+
			"run\nhint: remove it, set TMPDIR, or give the store a path of less than 97 bytes", dir)
	}
	return nil
}
