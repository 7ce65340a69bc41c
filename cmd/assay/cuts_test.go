//go:build !race

package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/sim"
)

// TestMoneyAtEveryCut cuts runs of two experiments of one store in every way: by a kill, a second
// Ctrl-C, a cancelled model and a spent budget. After each cut, status, report, and a copy and a merged
// store agree on the money. It is what the endpoint was paid but for the requests that were in flight,
// and if none were, it is that exactly. Then one of the experiments never runs again, and its money
// stays.
func TestMoneyAtEveryCut(t *testing.T) {
	t.Parallel()
	// Requests in flight, with replies that wait to be on disk while others have their slots; dollars of one.
	const most, dearest = 6, 0.4
	const unsaved = 3
	server, dir := serve(t, "--tariff", "input=100,output=100", "--latency", "40ms"), t.TempDir()
	file(t, dir, "providers.yaml", fmt.Sprintf("providers:\n  p:\n    base_url: %s/v1\n    keys: [K]\n    models:\n"+
		"      m: {deployments: [sim-searcher], serves: [%s], price: {input: 100, output: 100},\n"+
		"          limits: {concurrency: %d}}\n", server.url, sim.Searcher, most))
	experiment := func(name, more string) string {
		return file(t, dir, name+".yaml", "name: "+name+"\nmodels: [m]\nproviders: providers.yaml\ntasks_per_type: 1\n"+
			"variants: [optimal]\nloops: {search: off, repeat: off}\n"+more)
	}
	one, other := experiment("one", "repeats: 4\n"), experiment("other", "seed: 7\nbudget: {usd: 1.5}\n")
	path := filepath.Join(dir, "assay.db")
	billed := func() float64 { return float64(server.stats(t).Bills[sim.Searcher].MicroUSD) / 1e6 }
	lost := 0.0 // of requests in flight
	check := func(cut string, inFlight bool) {
		t.Helper()
		waitFor(t, func() bool { before := billed(); return billed() == before })
		bill, shown := billed(), moneyOf(t, path)
		now := bill - shown - lost
		if now < -1e-6 || !inFlight && now > 1e-6 || now > (most+unsaved)*dearest {
			t.Errorf("after %s, $%.4f were paid and $%.4f are shown, $%.4f less were before", cut, bill, shown, lost)
		}
		lost += max(0, now)
		copied, merged := filepath.Join(dir, cut+"-copy.db"), filepath.Join(dir, cut+"-merged.db")
		must(t, nil, "store", "backup", "--store", path, copied)
		must(t, nil, "store", "merge", merged, path, copied)
		for _, p := range []string{copied, merged} {
			if usd := moneyOf(t, p); math.Abs(usd-shown) > 1e-6 {
				t.Errorf("after %s, %s has $%.4f of $%.4f", cut, filepath.Base(p), usd, shown)
			}
		}
	}
	sent := func(n int64) func() bool {
		from := server.stats(t).Requests
		return func() bool { return server.stats(t).Requests >= from+n }
	}

	killed := program(t, "run", one, "--store", path, "--display", "none")
	killed.Env = append(os.Environ(), "K=sk-0123456789")
	reached := sent(30)
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, reached)
	_ = killed.Process.Kill()
	_ = killed.Wait()
	check("kill", true)

	env := map[string]string{"K": "sk-0123456789"}
	for n := range 2 {
		if r := call(t, env, "run", other, "--store", path, "--display", "none"); r.code != exitIncomplete {
			t.Fatalf("exit code %d\n%s%s", r.code, r.out, r.err)
		}
		check(fmt.Sprint("budget", n), false)
	}
	reached = sent(30)
	runAborted(t, func(ended func() bool) {
		waitFor(t, func() bool { return ended() || reached() })
	}, []string{"run", one, "--store", path, "--display", "none"})
	check("interrupt", true)

	reached = sent(30)
	runs := make(chan result, 1)
	go func() { runs <- call(t, env, "run", one, "--store", path, "--display", "none") }()
	waitFor(t, reached)
	must(t, nil, "ctl", "cancel", "m", "--store", path)
	<-runs
	check("cancel", true)

	must(t, env, "run", one, "--store", path, "--quiet") // and the other one never again
	check("end", false)
	var status []struct {
		Experiment string
		Begun      struct{ Replies int }
	}
	decode(t, must(t, nil, "status", "--store", path, "--json").out, &status)
	for _, s := range status {
		if (s.Begun.Replies > 0) != (s.Experiment == "other") {
			t.Errorf("at the end, %s has %d replies without an end", s.Experiment, s.Begun.Replies)
		}
	}
}

// moneyOf returns the money that the readers of a store show for all experiments, which agree.
func moneyOf(t *testing.T, path string) (usd float64) {
	t.Helper()
	var status []struct {
		Experiment string
		Spent      struct {
			USD float64 `json:"cost_usd"`
		}
	}
	decode(t, must(t, nil, "status", "--store", path, "--json").out, &status)
	for _, s := range status {
		var report struct {
			Spreads []struct {
				USD float64 `json:"cost_usd"`
			} `json:"distributions"`
		}
		decode(t, must(t, nil, "report", s.Experiment, "--store", path, "--json").out, &report)
		sum := 0.0
		for _, m := range report.Spreads {
			sum = assay.RoundUSD(sum + m.USD)
		}
		if sum != s.Spent.USD {
			t.Errorf("%s: status says $%v, report $%v", s.Experiment, s.Spent.USD, sum)
		}
		usd = assay.RoundUSD(usd + sum)
	}
	return usd
}
