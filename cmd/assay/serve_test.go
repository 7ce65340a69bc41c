package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
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

// serveProgram starts `assay sim serve` as a separate process, without the race detector. It
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

// servedURL reads the output of a starting server up to its address, which it returns.
func servedURL(t testing.TB, out io.Reader) string {
	t.Helper()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, rest, ok := strings.Cut(lines.Text(), "base_url: "); ok {
			return strings.TrimSuffix(rest, "/v1")
		}
	}
	t.Fatal("sim serve printed no address")
	return ""
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

// agree compares dollars with bills, each of which is rounded to a millionth of a dollar.
func agree(t *testing.T, what string, usd float64, bills ...int64) {
	t.Helper()
	var micro int64
	for _, b := range bills {
		micro += b
	}
	if d := math.Abs(usd*1e6 - float64(micro)); d > 0.5*float64(len(bills))+0.001 {
		t.Errorf("%s costs $%.6f, but the bill is $%.6f", what, usd, float64(micro)/1e6)
	}
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

// TestPrintedProvidersWork runs an experiment with each provider that `assay sim serve` prints, and
// compares its cost with the server's bill.
func TestPrintedProvidersWork(t *testing.T) {
	t.Parallel()
	const tariff = "input=1.25, cached=0.125,cache_write=2,output=10"
	server := serve(t, "--tariff", tariff, "--thinking", "reasoning_content")
	printed := simserver.ProvidersFile(strings.TrimPrefix(server.url, "http://"), tariff)

	dir := t.TempDir()
	env := map[string]string{"SIM_KEY": "any"}
	experiment := file(t, dir, "e.yaml", "models: [sim/listed]\nvariants: [optimal]\n"+
		"tasks_per_type: 1\nproviders: providers.yaml\n")
	for _, model := range sim.Names {
		listed := strings.Contains(printed, "\n      "+model+": ")
		if listed == slices.Contains(sim.Gaming, model) {
			t.Errorf("%s is printed: %v", model, listed)
		}
	}
	all := strings.ReplaceAll(printed, "\n  # ", "\n  ")
	head, all, _ := strings.Cut(all, "\n  rehearsal")
	var spent float64
	used := make(map[string]bool)
	for i, settings := range strings.Split(all, "\n  rehearsal") {
		text, _, _ := strings.Cut(settings, "\n  Other protocols")
		file(t, dir, "providers.yaml", head+"\n  rehearsal"+text+"\n")
		store := filepath.Join(dir, fmt.Sprint(i)+".db")
		must(t, env, "run", experiment, "--store", store, "--display", "none")
		for _, a := range attempts(t, store) {
			spent += a.CostUSD
			used[a.Lane] = true
		}
	}
	lanes := []string{
		"rehearsal-anthropic/SIM_KEY/sim-listed-4", "rehearsal-azure/SIM_KEY/sim-listed-2",
		"rehearsal-gemini/SIM_KEY/sim-listed-5", "rehearsal-responses/SIM_KEY/sim-listed-3",
		"rehearsal/SIM_KEY/sim/listed",
	}
	if got := slices.Sorted(maps.Keys(used)); !slices.Equal(got, lanes) {
		t.Errorf("attempts on %q, want %q", got, lanes)
	}
	bill := server.stats(t).Bills[sim.Listed]
	if bill.CachedTokens == 0 {
		t.Errorf("nothing is cached: %+v", bill)
	}
	agree(t, "every run", spent, bill.MicroUSD)
}
