//go:build !race

package main

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/sim"
)

// billers are providers with separate bills. They have thinking models, and cache prompts. Only
// Anthropic charges for writes.
var billers = map[string]struct{ protocol, path, tariff string }{
	"chat":    {"openai", "/v1", "input=1.25,cached=0.125,output=10"},
	"replies": {"responses", "/v1", "input=0.05,cached=0.005,output=0.4"},
	"claude":  {"anthropic", "", "input=3,cached=0.3,cache_write=3.75,output=15"},
	"gem":     {"gemini", "/v1beta", "input=0.3,cached=0.075,output=2.5"},
}

// TestDollarsAddUpToBills runs an experiment over HTTP at four providers with caches, thinking
// models and replies that are paid for but empty. The run's total, the report's table and the
// exported attempts have to agree with the providers' own bills.
func TestDollarsAddUpToBills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var providers, prices strings.Builder
	servers := make(map[string]rehearsal)
	providers.WriteString("prices: prices.yaml\nproviders:\n")
	names := slices.Sorted(maps.Keys(billers))
	for _, name := range names {
		b := billers[name]
		server := serve(t, "--tariff", b.tariff, "--thinking", "reasoning_content", "--seed", "3",
			"--fault", "empty=10%", "--fault", "500=5%")
		servers[name] = server
		fmt.Fprintf(&providers, "  at-%s:\n    protocol: %s\n    base_url: %s%s\n    keys: [K]\n"+
			"    models: {%s: {deployments: [sim-listed], serves: [%s]}}\n",
			name, b.protocol, server.url, b.path, name, sim.Listed)
		fmt.Fprintf(&prices, "%s: {%s}\n", name, strings.ReplaceAll(b.tariff, "=", ": "))
	}
	file(t, dir, "providers.yaml", providers.String())
	file(t, dir, "prices.yaml", prices.String())
	experiment := file(t, dir, "bills.yaml", "models: ["+strings.Join(names, ", ")+"]\n"+
		"providers: providers.yaml\ntasks_per_type: 4\nvariants: [optimal]\n")
	store := filepath.Join(dir, "assay.db")
	env := map[string]string{"K": "sk-0123456789"}
	r := must(t, env, "run", experiment, "--store", store, "--display", "json")
	total, _ := lastEvent(t, r.out)["cost_usd"].(float64)

	var report struct {
		Spreads []struct {
			Model  string
			Cost   float64 `json:"cost_usd"`
			Cached float64 `json:"cached_share"`
			Think  float64 `json:"reasoning_share"`
		} `json:"distributions"`
	}
	decode(t, must(t, nil, "report", "--store", store, "--json").out, &report)
	exported := make(map[string]float64)
	for _, a := range attempts(t, store) {
		exported[a.Model] += a.CostUSD
	}
	var bills []int64
	for _, s := range report.Spreads {
		b := servers[s.Model].stats(t).Bills[sim.Listed]
		bills = append(bills, b.MicroUSD)
		agree(t, "the report of "+s.Model, s.Cost, b.MicroUSD)
		agree(t, "the attempts of "+s.Model, exported[s.Model], b.MicroUSD)
		if b.MicroUSD == 0 || b.CachedTokens == 0 || b.ReasoningTokens == 0 || s.Cached == 0 ||
			s.Think == 0 || (b.CacheWriteTokens > 0) != (s.Model == "claude") {
			t.Errorf("%s: nothing is cached, thought or paid: %+v, %+v", s.Model, b, s)
		}
	}
	if len(report.Spreads) != len(names) {
		t.Errorf("the report has %d models, want %d", len(report.Spreads), len(names))
	}
	agree(t, "the run", total, bills...)
}

// mishaps are faults of a server after which a reply is paid for, or may be.
var mishaps = []string{
	"truncate=10%", "bad-json=5%", "reset=5%", "empty=5%", "error-inside=5%", "oversized=3%",
	"hang-body=2%", "hang=2%", "500=5%", "504=5%",
}

// TestShownMoneyIsBilled compares what is shown with the server's bill, in 20 random experiments
// with broken, slow and cancelled requests, retries, budgets and Ctrl-C: it is equal, or "at least"
// and below. The run, the report and the exported attempts show the same.
func TestShownMoneyIsBilled(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			billed(t, seed, rand.New(rand.NewPCG(seed, 45)))
		})
	}
}

func billed(t *testing.T, seed uint64, rng *rand.Rand) {
	args := []string{
		"--tariff", "input=1,cached=0.1,output=2", "--seed", fmt.Sprint(seed),
		"--latency", fmt.Sprintf("%dms", rng.IntN(40)),
	}
	for _, i := range rng.Perm(len(mishaps))[:rng.IntN(4)] {
		args = append(args, "--fault", mishaps[i])
	}
	server, dir := serve(t, args...), t.TempDir()
	file(t, dir, "providers.yaml", fmt.Sprintf("providers:\n  p:\n    base_url: %s/v1\n    keys: [K]\n"+
		"    models: {m: {deployments: [sim-listed], serves: [%s], price: {input: 1, cached: 0.1, output: 2}}}\n",
		server.url, sim.Listed))
	text := "models: [m]\nproviders: providers.yaml\ntasks_per_type: 2\nvariants: [optimal]\n" +
		"reliabilities: [0.8]\nlimits: {request: 1s}\n"
	budget := 0.0
	if rng.IntN(3) == 0 {
		budget = 0.02
		text += "budget: {usd: 0.02}\nsampling: {max_tokens: 100}\n"
	}
	experiment, store := file(t, dir, "e.yaml", text), filepath.Join(dir, "assay.db")

	ran, sent := 0.0, int64(0)
	for n := range 1 + rng.IntN(3) {
		args := []string{"run", experiment, "--store", store, "--display", "json"}
		if n > 0 && rng.IntN(2) == 0 {
			args = append(args, "--retry", "model=m")
		}
		stop := int64(0)
		if rng.IntN(2) == 0 {
			stop = sent + 1 + rng.Int64N(40)
		}
		out := runUntil(t, server, stop, args)
		if !strings.Contains(out, `"event":"done"`) {
			continue // nothing to retry
		}
		usd, _ := lastEvent(t, out)["cost_usd"].(float64)
		ran = assay.RoundUSD(ran + usd)
		sent = server.stats(t).Requests
		if budget > 0 && usd >= budget+0.01 { // eight requests of at most a tenth of a cent
			t.Errorf("a run with a budget of $%.2f cost $%.4f", budget, usd)
		}
	}

	var report struct {
		Spreads []struct {
			Cost     float64 `json:"cost_usd"`
			Unpriced int     `json:"unpriced_tokens"`
		} `json:"distributions"`
		Begun struct {
			Cost float64 `json:"cost_usd"`
		}
	}
	decode(t, must(t, nil, "report", "--store", store, "--json").out, &report)
	shown, unpriced, exported := report.Spreads[0].Cost, report.Spreads[0].Unpriced, report.Begun.Cost
	for _, a := range attempts(t, store) {
		exported = assay.RoundUSD(exported + a.CostUSD)
	}
	bill := float64(server.stats(t).Bills[sim.Listed].MicroUSD) / 1e6
	t.Logf("billed $%.6f, shown $%.6f, %d tokens of unknown cost", bill, shown, unpriced)
	if shown != ran || shown != exported {
		t.Errorf("the report shows $%v, the runs $%v, the export and the unfinished attempts $%v", shown, ran, exported)
	}
	const rounding = 1e-6
	if shown > bill+rounding || unpriced == 0 && shown < bill-rounding {
		t.Errorf("$%.6f is shown, with %d tokens of unknown cost, and $%.6f is billed", shown, unpriced, bill)
	}
	head := must(t, nil, "report", "--store", store).out
	head = strings.Join(strings.Fields(head), " ") // lines may break anywhere
	if least := strings.Contains(head, "at least $") || strings.Contains(head, "cost unknown"); least != (unpriced > 0) {
		t.Errorf("with %d tokens of unknown cost, the report says\n%s", unpriced, head)
	}
}

// TestKilledRunsKeepTheirCosts kills a run several times. The next run goes on with the unfinished
// attempts, or puts into the store what they had cost. At most the requests that were in flight are missing, and the report
// says "at least".
func TestKilledRunsKeepTheirCosts(t *testing.T) {
	t.Parallel()
	for _, save := range []string{plan.SaveTurns, plan.SaveAttempts} {
		t.Run(save, func(t *testing.T) {
			t.Parallel()
			keepsCosts(t, save)
		})
	}
}

func keepsCosts(t *testing.T, save string) {
	const kills, dearest, most = 4, 0.006, 8 // dollars of a request, and requests in flight
	server, dir := serve(t, "--tariff", "input=1,output=2", "--latency", "20ms"), t.TempDir()
	file(t, dir, "providers.yaml", fmt.Sprintf("providers:\n  p:\n    base_url: %s/v1\n    keys: [K]\n"+
		"    models: {m: {deployments: [sim-listed], serves: [%s], price: {input: 1, output: 2},\n"+
		"        limits: {concurrency: %d}}}\n", server.url, sim.Listed, most))
	experiment := file(t, dir, "e.yaml", "models: [m]\nproviders: providers.yaml\ntasks_per_type: 20\n"+
		"variants: [optimal]\nreliabilities: [0.8]\nsampling: {max_tokens: 100}\nsave: "+save+"\n")
	store := filepath.Join(dir, "assay.db")
	sum := func() (usd float64) {
		for _, a := range attempts(t, store) {
			usd = assay.RoundUSD(usd + a.CostUSD)
		}
		return usd
	}
	for kill := range kills {
		cmd := program(t, "run", experiment, "--store", store, "--display", "none")
		cmd.Env = append(os.Environ(), "K=sk-0123456789")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		after := server.stats(t).Requests + 40
		waitFor(t, func() bool { return server.stats(t).Requests >= after })
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if kill == 0 && !strings.Contains(strings.Join(strings.Fields(must(t, nil, "report", "--store", store).out), " "), "at least $") {
			t.Error("the cost of a killed run does not say at least")
		}
	}
	inStore := sum()
	must(t, map[string]string{"K": "sk-0123456789"}, "run", experiment, "--store", store, "--quiet")
	if _, err := os.Stat(store + ".bills"); !os.IsNotExist(err) {
		t.Errorf("the journal is left: %v", err)
	}
	bill, shown := float64(server.stats(t).Bills[sim.Listed].MicroUSD)/1e6, sum()
	t.Logf("billed $%.6f, in the store $%.6f, $%.6f before the last run", bill, shown, inStore)
	if shown > bill+1e-6 || shown < bill-kills*most*dearest {
		t.Errorf("$%.6f is in the store, and $%.6f was billed", shown, bill)
	}
	interrupted := 0.0
	for _, a := range attempts(t, store) {
		if a.FaultKind == assay.Interrupted {
			interrupted += a.CostUSD
		}
	}
	if (interrupted > 0) != (save == plan.SaveAttempts) {
		t.Errorf("$%v are of attempts in flight that did not go on", interrupted)
	}
}

// runUntil runs a command line in this process. If stop is not 0, it aborts it by two signals when
// the server has got so many requests.
func runUntil(t *testing.T, server rehearsal, stop int64, args []string) string {
	t.Helper()
	var when func(func() bool)
	if stop > 0 {
		when = func(ended func() bool) {
			waitFor(t, func() bool { return ended() || server.stats(t).Requests >= stop })
		}
	}
	out, _ := runAborted(t, when, args)
	return out
}

// runAborted runs a command line in this process, and aborts it by two signals when a function has
// returned, unless that is nil.
func runAborted(t *testing.T, when func(ended func() bool), args []string) (out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	signals, ended := make(chan os.Signal, 2), make(chan int, 1)
	go func() {
		ended <- run(args, &process{
			in: strings.NewReader(""), out: &stdout, err: &stderr, name: "assay", signals: signals,
			env: func(name string) (string, bool) { return "sk-0123456789", name == "K" },
		})
	}()
	if when != nil {
		when(func() bool { return len(ended) > 0 })
		signals <- os.Interrupt
		signals <- os.Interrupt
	}
	if code := <-ended; code == exitUsage {
		t.Fatalf("assay %s: exit code %d\n%s", strings.Join(args, " "), code, stderr.String())
	}
	return stdout.String(), stderr.String()
}

// lockStore locks a store as another program does, and returns the function that frees it.
func lockStore(t *testing.T, path string) (free func()) {
	t.Helper()
	other, err := sql.Open("sqlite", path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	other.SetMaxOpenConns(1)
	if _, err := other.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(rollback(other), other.Close()); err != nil {
			t.Error(err)
		}
	}
}

// TestLockedStoreKeepsCosts locks the store of a run and aborts the run. It does not say that
// everything is saved, and the next run puts into the store what the lost attempts had cost.
func TestLockedStoreKeepsCosts(t *testing.T) {
	t.Parallel()
	for _, display := range []string{"json", "none"} {
		t.Run(display, func(t *testing.T) {
			t.Parallel()
			server, dir := serve(t, "--tariff", "input=1,output=2", "--latency", "20ms"), t.TempDir()
			file(t, dir, "providers.yaml", fmt.Sprintf("providers:\n  p:\n    base_url: %s/v1\n    keys: [K]\n"+
				"    models: {m: {deployments: [sim-listed], serves: [%s], price: {input: 1, output: 2}}}\n",
				server.url, sim.Listed))
			experiment := file(t, dir, "e.yaml", "models: [m]\nproviders: providers.yaml\ntasks_per_type: 40\n"+
				"variants: [optimal]\nreliabilities: [0.8]\nsave: attempts\n")
			store := filepath.Join(dir, "assay.db")
			args := []string{"run", experiment, "--store", store, "--display", display}
			free := func() {}
			out, errs := runAborted(t, func(ended func() bool) {
				waitFor(t, func() bool { return ended() || server.stats(t).Requests >= 30 })
				free = lockStore(t, store)
				after := server.stats(t).Requests + 100
				waitFor(t, func() bool { return ended() || server.stats(t).Requests >= after })
			}, args)
			lost := lockedStoreSays(t, store, out+errs)
			free()
			must(t, map[string]string{"K": "sk-0123456789"}, "run", experiment, "--store", store, "--quiet")
			if _, err := os.Stat(store + ".bills"); !os.IsNotExist(err) {
				t.Errorf("the journal is left: %v", err)
			}
			booked := 0
			for _, a := range attempts(t, store) {
				if a.FaultKind == assay.Interrupted {
					booked++
				}
			}
			if booked != lost {
				t.Errorf("%d attempts could not be saved, and the next run stored the costs of %d", lost, booked)
			}
			if display == "json" {
				usd, _ := lastEvent(t, out)["cost_usd"].(float64)
				first, sum := lastEvent(t, out)["run"], 0.0
				for _, a := range attempts(t, store) {
					if string(a.Run) == first {
						sum = assay.RoundUSD(sum + a.CostUSD)
					}
				}
				if usd != sum || usd == 0 {
					t.Errorf("the run cost $%v, and $%v of it are in the store", usd, sum)
				}
			}
		})
	}
}

// TestSpentBudgetIsNamedAtTheEnd spends a budget while all trials are in flight and replies are
// lost. The last lines name it, with what is in the store at the end.
func TestSpentBudgetIsNamedAtTheEnd(t *testing.T) {
	t.Parallel()
	server := serve(t, "--tariff", "input=1,output=2", "--fault", "truncate=20%", "--latency", "20ms")
	dir := t.TempDir()
	file(t, dir, "providers.yaml", fmt.Sprintf("providers:\n  p:\n    base_url: %s/v1\n    keys: [K]\n"+
		"    models: {m: {deployments: [sim-listed], serves: [%s], price: {input: 1, output: 2},\n"+
		"        limits: {concurrency: 100}}}\n", server.url, sim.Listed))
	budgeted := func(usd string) string {
		return file(t, dir, "e.yaml", "models: [m]\nproviders: providers.yaml\ntasks_per_type: 8\n"+
			"variants: [optimal]\nreliabilities: [1]\nsampling: {max_tokens: 100}\n"+
			"budget: {usd: "+usd+", tokens: 100000000}\n")
	}
	store := filepath.Join(dir, "assay.db")
	r := call(t, map[string]string{"K": "sk-0123456789"}, "run", budgeted("0.05"), "--store", store, "--display", "none")
	if r.code != exitIncomplete {
		t.Fatalf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	said := regexp.MustCompile(`The budget of the run (?:is spent|has no room for another trial): \$([0-9.]+) plus up to \$([0-9.]+) for \d+ requests? whose ` +
		`replies were lost, of \$0.05, \d+ plus up to (\d+) for \d+ requests?`).FindStringSubmatch(r.out)
	if said == nil || strings.Contains(r.out, "run the same command again to go on") ||
		strings.Count(r.out, "udget of the run") != 1 || !strings.Contains(r.out, "with a fresh budget") {
		t.Fatalf("the last lines do not name the budget once:\n%s", r.out)
	}
	var status []struct {
		Spent struct {
			USD      float64 `json:"cost_usd"`
			Unpriced int     `json:"unpriced_tokens"`
		}
		Begun struct {
			USD      float64 `json:"cost_usd"`
			Unpriced int     `json:"unpriced_tokens"`
		}
	}
	decode(t, must(t, nil, "status", "--store", store, "--json").out, &status)
	usd, unpriced := status[0].Begun.USD, status[0].Begun.Unpriced
	for _, a := range attempts(t, store) {
		usd, unpriced = assay.RoundUSD(usd+a.CostUSD), unpriced+a.UnpricedTokens
	}
	dollars, err := strconv.ParseFloat(said[1], 64)
	if err != nil || math.Abs(dollars-usd) > .00005+1e-9 || said[3] != fmt.Sprint(unpriced) ||
		status[0].Spent.USD != usd || status[0].Spent.Unpriced != unpriced {
		t.Errorf("the status says %+v, the store has $%v and %d tokens of unknown cost, and the run says\n%s", status[0], usd, unpriced, said[0])
	}

	// At the same pace, no trial may have ended before the budget did. With a larger one, all do.
	must(t, map[string]string{"K": "sk-0123456789"}, "run", budgeted("10"), "--store", store, "--display", "none")
	var report struct {
		Standings []struct {
			Price struct{ USD float64 } `json:"usd_per_success"`
		}
		Spreads []struct {
			Price float64 `json:"cost_per_full_success"`
		} `json:"distributions"`
	}
	decode(t, must(t, nil, "report", "--store", store, "--json").out, &report)
	if price := report.Standings[0].Price.USD; price == 0 || price != report.Spreads[0].Price {
		t.Errorf("a success costs $%v, and $%v elsewhere in the report", price, report.Spreads[0].Price)
	}
	details := must(t, nil, "report", "--store", store, "--details").out
	if cell := fmt.Sprintf(" %.4f", report.Spreads[0].Price); strings.Count(details, cell) < 2 {
		t.Errorf("the report does not show %q in both tables:\n%s", cell, details)
	}
	known, _ := strconv.ParseFloat(said[1], 64)
	lost, _ := strconv.ParseFloat(said[2], 64)
	const trial = .02 // the dearest one, for which there was no room
	if known+lost < .05-trial || lost == 0 {
		t.Errorf("%v and %v dollars are not the budget", known, lost)
	}
}

// lockedStoreSays checks what a run says that could not save all attempts, and what is said of it. It
// returns the number of these attempts.
func lockedStoreSays(t *testing.T, store, out string) (lost int) {
	t.Helper()
	for _, wrong := range []string{"every finished trial is saved", "results so far are safe", " lost,"} {
		if strings.Contains(out, wrong) {
			t.Errorf("the run says %q:\n%s", wrong, out)
		}
	}
	said := regexp.MustCompile(`assay: (\d+) attempts could not be saved: .*the next run stores what they have cost`).
		FindStringSubmatch(out)
	if said == nil {
		t.Fatalf("the run does not say what could not be saved:\n%s", out)
	}
	lost, _ = strconv.Atoi(said[1])
	status := must(t, nil, "status", "--store", store).out
	if !strings.Contains(status, "it was killed, or could not write to its store") {
		t.Errorf("the status does not say how the run may have ended:\n%s", status)
	}
	return lost
}
