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

// rehearsal is `assay sim serve` on a free port.
type rehearsal struct{ url string }

// serve starts `assay sim serve` in this process and stops it at the end of
// the test, with the signal that a user would send.
func serve(t testing.TB, args ...string) rehearsal {
	t.Helper()
	reader, writer := io.Pipe()
	signals := make(chan os.Signal, 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		code := run(append([]string{"sim", "serve", "--addr", "127.0.0.1:0"}, args...), &process{
			in: strings.NewReader(""), out: writer, err: io.Discard, signals: signals, name: "assay",
			env: func(name string) (string, bool) { return "canary-" + name, true },
		})
		writer.Close()
		if code != 0 {
			t.Errorf("sim serve ended with exit code %d", code)
		}
	})
	var url string
	lines := bufio.NewScanner(reader)
	for lines.Scan() {
		if _, rest, ok := strings.Cut(lines.Text(), "base_url: "); ok {
			url = strings.TrimSuffix(rest, "/v1")
		}
		if strings.Contains(lines.Text(), sim.Names[len(sim.Names)-1]) {
			break
		}
	}
	wg.Go(func() { _, _ = io.Copy(io.Discard, reader) })
	if url == "" {
		t.Fatal("sim serve printed no address")
	}
	t.Cleanup(func() {
		signals <- syscall.SIGTERM
		wg.Wait()
	})
	return rehearsal{url}
}

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
	text := "providers:\n  rehearsal:\n    base_url: " + url + "/v1\n    keys: [SIM_KEY]\n    models:\n"
	for _, m := range sim.Names {
		text += "      " + m + ": {limits: " + limits + "}\n"
	}
	return text
}
