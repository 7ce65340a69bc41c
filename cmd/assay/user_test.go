//go:build !race

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/model/sim"
)

// TestUserIsBilledApart lets a model speak as the user of an environment, at a provider that often
// fails, in one process and on two workers with a server each. What attempts, run and report say
// that the user cost is the provider's bill, the agent is free, and no failure of the provider is an
// outcome.
func TestUserIsBilledApart(t *testing.T) {
	t.Parallel()
	for name, workers := range map[string]int{"alone": 0, "workers": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, "--tariff", "input=100,output=1000", "--fault", "500=20%",
				"--fault", "empty=20%")
			dir := t.TempDir()
			programIn(t, dir, "envserver")
			file(t, dir, "till.yaml", strings.Replace(tillWithRefunds, "ok]", "speaks]", 1))
			file(t, dir, "providers.yaml", `providers:
  host:
    base_url: `+server.url+`/v1
    keys: [KEY]
    models: {customer: {deployments: [sim-listed], serves: [sim/listed],
      price: {input: 100, output: 1000}}}
`)
			experiment := file(t, dir, "e.yaml", "library: till.yaml\nmodels: [sim/optimal]\n"+
				"user: customer\nproviders: providers.yaml\nvariants: [optimal]\nreliabilities: [1]\n"+
				"repeats: 20\n")
			store := filepath.Join(dir, "assay.db")
			args := []string{experiment, "--store", store, "--sim-latency", "0"}
			if workers == 0 {
				must(t, map[string]string{"KEY": "any"}, append([]string{"run"}, args...)...)
			} else {
				c := coordinateAt(t, dir, []string{"KEY=any"}, append(args, "--serve", ":0")...)
				for range workers {
					c.worker(t, "--slots", "4")
				}
				c.wait(t)
			}

			var user float64
			outcomes, by := 0, make(map[string]int)
			for _, a := range attempts(t, store) {
				user += a.UserCostUSD
				by[a.Worker]++
				if a.CostUSD > 0 {
					t.Errorf("an attempt of the agent cost $%f", a.CostUSD)
				}
				if a.Level != "" {
					outcomes++
					if a.Level != "full_success" || a.UserInputTokens == 0 {
						t.Errorf("an outcome is %s with %d tokens of the user", a.Level, a.UserInputTokens)
					}
				} else if !strings.Contains(a.FaultDetail, "the simulated user: ") {
					t.Errorf("a fault is %s", a.FaultDetail)
				}
			}
			if outcomes != 20 || len(by) != max(1, workers) {
				t.Errorf("%d outcomes, attempts by worker %v", outcomes, by)
			}
			bill := server.stats(t).Bills[sim.Listed].MicroUSD
			if bill == 0 {
				t.Error("the user cost nothing")
			}
			agree(t, "the user of the attempts", user, bill)
			var status []struct {
				Users []struct {
					Cost float64 `json:"cost_usd"`
				}
			}
			decode(t, must(t, nil, "status", "--store", store, "--json").out, &status)
			agree(t, "the user of the status", status[0].Users[0].Cost, bill)
			var report struct {
				Spreads []struct {
					Cost float64 `json:"cost_usd"`
					User float64 `json:"user_cost_usd"`
				} `json:"distributions"`
			}
			decode(t, must(t, nil, "report", "--store", store, "--json").out, &report)
			agree(t, "the user of the report", report.Spreads[0].User, bill)
			agree(t, "the agent of the report", report.Spreads[0].Cost, 0)
		})
	}
}
