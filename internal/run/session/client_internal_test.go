package session

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
)

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
