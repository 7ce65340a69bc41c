package child_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay/internal/task/child"
)

// needRooms skips a test on machines without rooms.
func needRooms(t testing.TB) {
	t.Helper()
	if err := child.Rooms(); err != nil {
		t.Skipf("there are no rooms here: %v; apt-get install bubblewrap", err)
	}
}

// inRoom runs a shell script in a room to its end, and returns what it printed and how it ended.
func inRoom(t *testing.T, room child.Room, script string) (output, state string) {
	t.Helper()
	needRooms(t)
	args := []string{"sh", "-c", script}
	room.Read = append(room.Read, child.Finds([]string{"python3"}, nil)...)
	p, err := child.Start(child.Command{Args: args, Room: &room})
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Stdin.Close()
	p.Finish(t.Context(), func(r io.Reader) {
		b, _ := io.ReadAll(r)
		output = string(b)
	})
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(output), p.State()
}

func TestRoomEndsAsItsProgramDoes(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"exit 0":                   "exit status 0",
		"echo why >&2; exit 7":     "exit status 7: why",
		"kill -9 $$":               "signal: killed",
		"kill -SEGV $$":            "signal: segmentation fault",
		"sleep 3600 & exit 3":      "exit status 3",
		"setsid sleep 3600 & true": "exit status 0",
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			if _, state := inRoom(t, child.Room{}, script); state != want {
				t.Errorf("it ended with %q, want %q", state, want)
			}
		})
	}
}

// A program in a room sees the system, what it may read, and its own files.
func TestRoomShowsLittle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"own/tool.txt": "tool", "answers.txt": "answers", "own/store/db": "results", "own/store/lent.txt": "lent",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	room := child.Room{
		Read:   []string{at("own"), at("own/store/lent.txt"), at("missing")},
		Hidden: []string{dir, at("own/store")},
	}
	if err := os.Symlink(dir, at("own/alias")); err != nil {
		t.Fatal(err)
	}
	room.Hidden = append(room.Hidden, filepath.Dir(dir)) // which no link opens
	out, state := inRoom(t, room, `cd "`+dir+`"; for f in own/tool.txt answers.txt own/store/db own/store/lent.txt; do
		if test -r $f; then cat $f; echo; else echo -; fi; done
		(echo x > own/tool.txt || echo x > /usr/x || echo x > /x || echo x > /dev/x || echo x > /etc/x) 2>/dev/null || echo read-only
		echo x > /tmp/x && echo x > "$TMPDIR/x" && test "$HOME" = "$TMPDIR" && pwd
		ls /root /home 2>/dev/null
		ls -d /proc/[0-9]* | wc -l`)
	want := "tool\n-\n-\nlent\nread-only\n"
	if !strings.HasPrefix(out, want) || state != "exit status 0" {
		t.Errorf("it printed %q and ended with %s; want %q and more", out, state, want)
	}
	if lines := strings.Split(out, "\n"); lines[len(lines)-1] > "5" || len(lines[len(lines)-1]) > 1 {
		t.Errorf("it saw %s processes", lines[len(lines)-1])
	}
}

// Rooms have no network but the address that leads here, each to its own listener.
func TestRoomHasOneWayOut(t *testing.T) {
	t.Parallel()
	other, err := net.Listen("tcp", "127.0.0.1:0") // a neighbour
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	needRooms(t)
	const script = `import socket, sys
def get(port):
    try:
        c = socket.create_connection(("127.0.0.1", int(port)), timeout=5)
    except OSError as e:
        return e.strerror
    c.sendall(b"GET / HTTP/1.0\r\n\r\n")
    got = b""
    while True:
        more = c.recv(1000)
        if not more:
            return got.decode().split("\r\n\r\n")[1]
        got += more
print(get(sys.argv[1]), get(sys.argv[2]))`
	_, theirs, _ := net.SplitHostPort(other.Addr().String())
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := &http.Server{
				Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.WriteString(w, name)
				}),
				ReadHeaderTimeout: time.Minute,
			}
			p, err := child.Start(child.Command{
				Args: []string{"python3", "-c", script, "8712", theirs}, Room: &child.Room{
					Address: "127.0.0.1:8712", Serve: func(l net.Listener) { _ = server.Serve(l) },
					Read: child.Finds([]string{"python3"}, nil),
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			var output string
			p.Finish(t.Context(), func(r io.Reader) {
				b, _ := io.ReadAll(r)
				output = string(b)
			})
			if want := name + " Connection refused\n"; output != want {
				t.Errorf("it got %q, want %q: %s", output, want, p.State())
			}
		})
	}
}

// A program in a room can tidy up when it is asked to end, and ends with everything it started.
func TestRoomTellsItsProgramToEnd(t *testing.T) {
	t.Parallel()
	needRooms(t)
	p, err := child.Start(child.Command{Room: new(child.Room), Args: []string{"sh", "-c", `
		env -i setsid sleep 3600 &
		trap 'sleep .1; echo tidy >&2; exit 7' TERM
		echo ready
		while :; do sleep 0.1; done`}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Stdout.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	p.Stop()
	if got := p.State(); got != "exit status 7: tidy" {
		t.Errorf("it ended with %q", got)
	}
}

// What a program takes beyond its limits ends it, and nothing else.
func TestRoomLimits(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	for _, l := range []struct {
		limits child.Limits
		script string
		want   string
	}{
		{
			child.Limits{Memory: 64 * mb},
			`exec python3 -c 'x = b"x" * (1 << 28); import time; time.sleep(60)'`,
			"killed: it used more memory than its room has, 64 MB",
		},
		{
			child.Limits{Disk: 8 * mb},
			`head -c 20000000 /dev/zero > /tmp/full; sleep 60`,
			"killed: its files took more space than its room has, 8 MB",
		},
		{
			child.Limits{Memory: 64 * mb},
			`exec python3 -c 'import mmap, time; m = mmap.mmap(-1, 1 << 28)
for i in range(0, 1 << 28, 4096): m[i] = 1
time.sleep(60)'`,
			"killed: it used more memory than its room has, 64 MB",
		},
		{
			child.Limits{Disk: 8 * mb},
			`exec python3 -c 'import os
f = open("/tmp/full", "wb")
os.unlink("/tmp/full")
f.write(b"x" * (20 << 20))
f.flush()'`,
			"exit status 1: OSError: [Errno 27] File too large",
		},
		{
			child.Limits{Processes: 30},
			`for i in $(seq 100); do sleep 60 & done; sleep 60`,
			"killed: it had more processes and threads than its room may have, 30",
		},
	} {
		t.Run(l.script, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, state := inRoom(t, child.Room{Limits: l.limits}, l.script)
			cannotFork := l.limits.Processes > 0 && strings.Contains(state, "Cannot fork") // unless it is root
			if ctx.Err() != nil || !strings.HasPrefix(state, l.want) && !cannotFork {
				t.Errorf("it ended with %q, want %q", state, l.want)
			}
		})
	}
}

// A program that is not in the room is an error, and so is a folder that is not there.
func TestRoomWithoutItsProgram(t *testing.T) {
	t.Parallel()
	needRooms(t)
	script := filepath.Join(t.TempDir(), "agent")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := child.Start(child.Command{Args: []string{script}, Room: new(child.Room)})
	if err == nil || !strings.Contains(err.Error(), "start "+script+": no such file or directory") {
		t.Errorf("the error is %v", err)
	}
}

func BenchmarkRoom(b *testing.B) {
	needRooms(b)
	for _, c := range []struct {
		name string
		room *child.Room
	}{{"without", nil}, {"with", &child.Room{
		Address: "127.0.0.1:8712", Serve: func(net.Listener) {},
	}}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				p, err := child.Start(child.Command{Args: []string{"true"}, Room: c.room})
				if err != nil {
					b.Fatal(err)
				}
				if err := p.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
