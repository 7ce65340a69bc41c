package session

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestSocketIsInAFolderOfThisUser lets somebody make the folder for the sockets of stores with long
// paths before us.
func TestSocketIsInAFolderOfThisUser(t *testing.T) {
	store := filepath.Join(t.TempDir(), strings.Repeat("long", 40), "s.db")
	for name, tc := range map[string]struct {
		make func(dir string) error
		ok   bool
	}{
		"nobody":       {func(string) error { return nil }, true},
		"this user":    {func(dir string) error { return os.Mkdir(dir, 0o700) }, true},
		"for everyone": {func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o777)) }, false},
		"a link":       {func(dir string) error { return os.Symlink(t.TempDir(), dir) }, false},
		"another user": {func(dir string) error { return errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 12345, -1)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			if name == "another user" && os.Getuid() != 0 {
				t.Skip("only root can give a folder to another user")
			}
			if err := tc.make(filepath.Join(os.TempDir(), "assay-"+strconv.Itoa(os.Getuid()))); err != nil {
				t.Fatal(err)
			}
			path, err := socketPath(store)
			if (err == nil) != tc.ok {
				t.Errorf("the socket would be at %q, %v", path, err)
			}
		})
	}
}

// TestRunEndsBeforeItReplies ends a run while an order is under way: when it has only connected,
// when it has been read, and in the middle of the reply.
func TestRunEndsBeforeItReplies(t *testing.T) {
	t.Parallel()
	for name, serve := range map[string]func(net.Conn){
		"connected": func(net.Conn) {},
		"read":      func(c net.Conn) { _, _ = c.Read(make([]byte, 4096)) },
		"replying": func(c net.Conn) {
			_, _ = c.Read(make([]byte, 4096))
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"run\":")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := filepath.Join(t.TempDir(), "s.db")
			path, err := socketPath(store)
			if err != nil {
				t.Fatal(err)
			}
			l, err := listenPrivately(path)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				serve(c)
				l.Close()
				c.Close()
			}()
			if _, err := Send(t.Context(), store, Order{Do: "status"}); !errors.Is(err, ErrNoRun) {
				t.Errorf("%v, want %v", err, ErrNoRun)
			}
		})
	}
}
