package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/model/simserver"
)

// A rehearsal is `assay sim serve` on a free port.
type rehearsal struct{ url string }

// serve starts `assay sim serve` in this process. At the end of the test it sends the signal that a
// user would send to stop it.
func serve(t testing.TB, args ...string) rehearsal {
	t.Helper()
	reader, writer := io.Pipe()
	signals := make(chan os.Signal, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		code := run(append([]string{"sim", "serve", "--addr", "127.0.0.1:0"}, args...), &process{
			in: strings.NewReader(""), out: writer, err: io.Discard,
			signals: signals, name: "assay",
			env: func(name string) (string, bool) { return "canary-" + name, true },
		})
		writer.Close()
		if code != 0 {
			t.Errorf("sim serve ended with exit code %d", code)
		}
	})
	url := servedURL(t, reader)
	wg.Go(func() { _, _ = io.Copy(io.Discard, reader) })
	t.Cleanup(func() {
		signals <- syscall.SIGTERM
		wg.Wait()
	})
	return rehearsal{url}
}

// serveProgram starts `assay sim serve` as a process of its own, without the race detector. It
// returns the server's address and kills the server at the end of the test.
func serveProgram(t testing.TB, args ...string) string {
	t.Helper()
	cmd := program(t, append([]string{"sim", "serve", "--addr", "127.0.0.1:0"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return servedURL(t, out)
}

// servedURL reads the output of a starting server up to its last model and returns its address.
func servedURL(t testing.TB, out io.Reader) (url string) {
	t.Helper()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, rest, ok := strings.Cut(lines.Text(), "base_url: "); ok {
			url = strings.TrimSuffix(rest, "/v1")
		}
		if strings.Contains(lines.Text(), sim.Names[len(sim.Names)-1]) {
			break
		}
	}
	if url == "" {
		t.Fatal("sim serve printed no address")
	}
	return url
}

// stats returns the counts of the server.
func (r rehearsal) stats(t testing.TB) simserver.Stats {
	t.Helper()
	resp, err := http.Get(r.url + "/stats")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var s simserver.Stats
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	return s
}

// providersFile serves all built-in models from one address with one key.
func providersFile(url, limits string) string {
	text := "providers:\n  rehearsal:\n    base_url: " + url + "/v1\n" +
		"    keys: [SIM_KEY]\n    models:\n"
	for _, m := range sim.Names {
		text += "      " + m + ": {limits: " + limits + "}\n"
	}
	return text
}
