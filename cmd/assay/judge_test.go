//go:build !race

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/judge"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/store"
)

// TestJudgeIsBilledApart lets a model judge, at a provider that often fails, in one process and on two
// workers, which have no key of it. What attempts, status and report say that the judge cost is the
// provider's bill, the agent is free, no failure of the provider is an outcome, and judging again asks
// nobody and changes nothing.
func TestJudgeIsBilledApart(t *testing.T) {
	t.Parallel()
	for name, workers := range map[string]int{"alone": 0, "workers": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, "--tariff", "input=100,output=1000", "--fault", "500=20%",
				"--fault", "empty=20%")
			dir := t.TempDir()
			file(t, dir, "t.star", "def get(state):\n    return {\"euros\": 40}\n")
			file(t, dir, "tools.yaml", "file: t.star\ntools: [{name: get, description: Says how much it is.}]\n")
			file(t, dir, "tasks.yaml", `tools: tools.yaml
judge: {model: jury}
tasks:
  - {id: right, prompt: How much is it?, answer: It is 40 euros., plan: [{tool: get}],
     judge: {calls: [{tool: get}], rubric: The agent says "40 euros".}}
  - {id: wrong, prompt: How much is that?, answer: It is 50 euros., plan: [{tool: get}],
     judge: {rubric: The agent says "40 euros".}}
`)
			file(t, dir, "providers.yaml", `providers:
  host:
    base_url: `+server.url+`/v1
    keys: [KEY]
    models: {jury: {deployments: [sim-judge], serves: [sim/judge], price: {input: 100, output: 1000}}}
`)
			experiment := file(t, dir, "e.yaml", "library: tasks.yaml\nmodels: [sim/optimal]\n"+
				"providers: providers.yaml\nvariants: [optimal]\nreliabilities: [1]\nrepeats: 10\n")
			path := filepath.Join(dir, "assay.db")
			args := []string{experiment, "--store", path, "--sim-latency", "0"}
			if workers == 0 {
				must(t, map[string]string{"KEY": "any"}, append([]string{"run"}, args...)...)
			} else {
				c := coordinateAt(t, dir, []string{"KEY=any"}, append(args, "--serve", ":0")...)
				for range workers {
					c.worker(t, "--slots", "4")
				}
				c.wait(t)
			}

			var cost float64
			outcomes, by := 0, make(map[string]int)
			for _, a := range attempts(t, path) {
				cost += a.JudgeCostUSD
				by[a.Worker]++
				if a.CostUSD > 0 || a.JudgedBy != "jury" {
					t.Errorf("an attempt of the agent cost $%f, and was judged by %q", a.CostUSD, a.JudgedBy)
				}
				if a.Level == "" {
					if !strings.Contains(a.FaultDetail, "the judge jury: ") {
						t.Errorf("a fault is %s", a.FaultDetail)
					}
					continue
				}
				outcomes++
				type judged struct {
					level    assay.Level
					verdict  assay.Verdict
					cause    assay.Cause
					category string
					alone    bool
				}
				want := judged{assay.FullSuccess, assay.Pass, "", "", false}
				if a.Task == "wrong" {
					want = judged{assay.Failure, assay.Fail, assay.JudgeSaidNo, assay.CategoryJudge, true}
				}
				if is := (judged{a.Level, a.Verdict, a.Cause, a.ErrorCategory, a.JudgedAlone}); is != want {
					t.Errorf("task %s has %v, want %v", a.Task, is, want)
				}
				if a.JudgeInputTokens == 0 || a.JudgePrompt != judge.PromptVersion {
					t.Errorf("an outcome has %d tokens of the judge, asked by %q", a.JudgeInputTokens, a.JudgePrompt)
				}
			}
			if outcomes != 20 || len(by) != max(1, workers) {
				t.Errorf("%d outcomes, attempts by worker %v", outcomes, by)
			}
			bill := server.stats(t).Bills[sim.Judge].MicroUSD
			if bill == 0 {
				t.Error("the judge cost nothing")
			}
			agree(t, "the judge of the attempts", cost, bill)
			var status []struct {
				Judges []store.AsideUse
			}
			decode(t, must(t, nil, "status", "--store", path, "--json").out, &status)
			agree(t, "the judge of the status", status[0].Judges[0].CostUSD, bill)
			var report struct {
				Spreads []struct {
					Cost  float64 `json:"cost_usd"`
					Judge float64 `json:"judge_cost_usd"`
				} `json:"distributions"`
				Warnings []struct{ Kind string }
			}
			decode(t, must(t, nil, "report", "--store", path, "--json").out, &report)
			agree(t, "the judge of the report", report.Spreads[0].Judge, bill)
			agree(t, "the agent of the report", report.Spreads[0].Cost, 0)
			if again := must(t, nil, "store", "rescore", "--store", path).out; !strings.Contains(again, " 0 differ") {
				t.Error(again)
			}
			if now := server.stats(t).Bills[sim.Judge].MicroUSD; now != bill {
				t.Errorf("judging again cost %d micro-dollars", now-bill)
			}
		})
	}
}
