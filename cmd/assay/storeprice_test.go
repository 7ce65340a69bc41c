//go:build !race

package main

import (
	"database/sql"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/audit"
	"github.com/assay-eval/assay/internal/store"
)

// judging is what a judge has cost in a pricedStore, in dollars.
const judging = 0.25

// pricedStore returns a store with superseded outcomes, a fault and an interrupted attempt.
func pricedStore(t *testing.T) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(dir, "assay.db")
	experiment := file(t, dir, "e.yaml", "models: [sim/careful, sim/brittle]\nreliabilities: [0.6]\ntasks_per_type: 4\n")
	for _, more := range [][]string{nil, {"--retry", "failures"}} {
		must(t, nil, append([]string{"run", experiment, "--store", path, "--sim-latency", "0", "--display", "none"}, more...)...)
	}
	faulty := attempts(t, path)
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for i, kind := range []assay.FaultKind{assay.Network, assay.Interrupted} {
		a := faulty[i]
		a.Outcome, a.FaultKind, a.Number, a.Round, a.Superseded = assay.Outcome{}, kind, 0, 0, false
		a.StartedAt, a.FinishedAt = time.Now(), time.Now()
		if kind == assay.Network {
			a.JudgedBy, a.JudgeSpend = "org/jury", assay.JudgeSpend{JudgeRequests: 1, JudgeInputTokens: 9_000, JudgeCostUSD: judging}
		}
		if err := db.Save(t.Context(), &a, nil); err != nil {
			t.Fatal(err)
		}
	}
	return dir, path
}

// selected returns the rows of a query with one column, which another program makes of a store.
func selected(t *testing.T, path, text string) (got []string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		got = append(got, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return got
}

// reportAgrees compares the views of a store with the rows of its report.
func reportAgrees(t *testing.T, path string) {
	t.Helper()
	var report struct {
		Rows []struct {
			Model       string
			Variant     string
			Done        int
			FullSuccess int     `json:"full_success"`
			CostUSD     float64 `json:"cost_usd"`
		}
	}
	decode(t, must(t, nil, "report", "--store", path, "--format", "json").out, &report)
	var outcomes []string
	spent := make(map[string]float64)
	for _, r := range report.Rows {
		outcomes = append(outcomes, fmt.Sprint(r.Model, " ", r.Variant, " ", r.Done, " ", r.FullSuccess))
		spent[r.Model] += r.CostUSD
	}
	var spend []string
	for _, model := range slices.Sorted(maps.Keys(spent)) {
		spend = append(spend, fmt.Sprintf("%s %.6f", model, spent[model]))
	}
	slices.Sort(outcomes)
	for _, view := range []struct {
		want []string
		text string
	}{
		{outcomes, `SELECT model || ' ' || variant || ' ' || count(*) || ' ' || sum(level = 'full_success')
			FROM outcomes GROUP BY model, variant ORDER BY 1`},
		{spend, "SELECT printf('%s %.6f', model, total(cost_usd)) FROM spend WHERE spender = 'model' GROUP BY model ORDER BY 1"},
	} {
		if diff := cmp.Diff(view.want, selected(t, path, view.text)); diff != "" {
			t.Errorf("the view differs from the report (-report +view):\n%s", diff)
		}
	}
}

// viewsAgree compares the views of a store with its export.
func viewsAgree(t *testing.T, path string) {
	t.Helper()
	var outcomes, spend []string
	kinds := make(map[string]int)
	for _, a := range attempts(t, path) {
		counts := "outcome"
		switch {
		case a.OnlyCosts():
			counts = "cost only"
		case !a.Settles():
			counts = "fault"
		}
		kinds[counts]++
		saved := "none"
		if a.SavedCostUSD != nil {
			saved = fmt.Sprintf("%.9f", *a.SavedCostUSD)
		}
		spend = append(spend, fmt.Sprintf("%s %d %s %s %d %d %.9f %s", a.ID, a.Number, counts, a.Model, a.InputTokens,
			a.OutputTokens, a.CostUSD, saved))
		if counts == "outcome" {
			outcomes = append(outcomes, fmt.Sprintf("%s %d %s %s %s %s %.3f %s %d %.9f %d %.6f %s", a.ID, a.Number, a.Experiment,
				a.Run, a.Model, a.Variant, a.Reliability, a.Level, a.Outcome.Turns, a.CostUSD, a.Total(), a.Adherence,
				a.ErrorCategory))
		}
	}
	if len(kinds) != 3 {
		t.Fatalf("the test is too weak: %v", kinds)
	}
	for _, view := range []struct {
		want  []string
		query string
	}{
		{outcomes, `SELECT printf('%s %d %s %s %s %s %.3f %s %d %.9f %d %.6f %s', trial, attempt, experiment, run, model,
			variant, reliability, level, turns, cost_usd, input_tokens + output_tokens, adherence, error_category) FROM outcomes`},
		{spend, `SELECT printf('%s %d %s %s %d %d %.9f ', trial, attempt, counts, spent_on, input_tokens, output_tokens, cost_usd)
			|| iif(saved_cost_usd IS NULL, 'none', printf('%.9f', saved_cost_usd)) FROM spend WHERE spender = 'model'`},
	} {
		got := selected(t, path, view.query)
		slices.Sort(got)
		slices.Sort(view.want)
		if diff := cmp.Diff(view.want, got); diff != "" {
			t.Errorf("the view differs from the export (-export +view):\n%.3000s", diff)
		}
	}
	if n := selected(t, path, "SELECT count(*) FROM attempts")[0]; n != fmt.Sprint(len(spend)) {
		t.Errorf("the table attempts has %s rows, want %d", n, len(spend))
	}
}

// judgeAgain stores a later verdict for the first outcome that counts.
func judgeAgain(t *testing.T, path string) {
	t.Helper()
	all := attempts(t, path)
	a := all[slices.IndexFunc(all, func(a assay.Attempt) bool { return a.Settles() && !a.Superseded })]
	a.Level, a.ErrorCategory, a.Adherence = assay.Failure, assay.CategoryOther, 0.123
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Rescore(t.Context(), []store.Rescored{{Trial: a.ID, Number: a.Number, Outcome: a.Outcome, At: time.Now(), Program: "later"}})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStorePrice has costs computed by a price list, and looks at them in every place that shows them.
func TestStorePrice(t *testing.T) {
	t.Parallel()
	dir, path := pricedStore(t)
	viewsAgree(t, path)
	before := must(t, nil, "export", "--store", path).out
	prices := file(t, dir, "prices.yaml", "sim/careful: {input: 2, cached: 0.5, output: 10}\n"+
		"org/jury: {input: 0.0000025, output: 1}\n")
	price := lane.Price{Input: 2, Cached: new(.5), Output: 10}
	args := []string{"store", "price", prices, "--store", path}

	dry := must(t, nil, append(args, "--dry-run")...)
	text := dry.out + dry.err
	for _, want := range []string{
		"differ and would be stored", "sim/careful", "without a price there, and as before: sim/brittle",
		"judges of tasks stays as it was: $0.25", "if that is the price of one token, write input: 2.5",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	if must(t, nil, "export", "--store", path).out != before {
		t.Error("a dry run changed the store")
	}
	var sum audit.Priced
	decode(t, must(t, nil, append(args, "--json")...).out, &sum)
	spent, n := make(map[string]float64), 0
	for _, a := range attempts(t, path) {
		want := 0.0
		if a.Model == "sim/careful" {
			n++
			want = price.Of(a.Usage())
			if a.SavedCostUSD == nil || *a.SavedCostUSD != 0 || !strings.Contains(a.PriceList, " prices.yaml sha256:"+sum.SHA256[:12]) {
				t.Errorf("saved %v, list %q", a.SavedCostUSD, a.PriceList)
			}
		} else if a.PriceList != "" {
			t.Errorf("%s was priced by %s", a.Model, a.PriceList)
		}
		if math.Abs(a.CostUSD-want) > 1e-8 {
			t.Errorf("$%v, want $%v", a.CostUSD, want)
		}
		spent[a.Model] += a.CostUSD
	}
	if sum.Changed != n || sum.Attempts != n || len(sum.Models) != 2 ||
		math.Abs(sum.Models[1].After.USD-spent["sim/careful"]) > 1e-8 || sum.Models[1].Before.USD != 0 {
		t.Errorf("%+v, want %d attempts for $%v", sum, n, spent)
	}
	viewsAgree(t, path)
	judgeAgain(t, path)
	viewsAgree(t, path)

	report := strings.Join(strings.Fields(must(t, nil, "report", "--store", path).out), " ")
	for _, want := range []string{
		"Costs were computed again", fmt.Sprintf("sim/careful: %d attempts, $%.4f, at first $0.0000; by ", n, spent["sim/careful"]),
	} {
		if !strings.Contains(report, want) {
			t.Errorf("want %q in\n%s", want, report)
		}
	}
	var status []struct {
		Spent assay.Bill `json:"spent"`
	}
	decode(t, must(t, nil, "status", "--store", path, "--json").out, &status)
	if len(status) != 1 || math.Abs(status[0].Spent.USD-spent["sim/careful"]-judging) > 1e-8 {
		t.Errorf("status has %+v, want $%v and $%v for judging", status, spent, judging)
	}
	reportAgrees(t, path)
	for _, a := range attempts(t, path) {
		if a.Model == "sim/careful" {
			show := must(t, nil, "show", string(a.ID), "--store", path).out
			if !strings.Contains(show, "its cost was computed again by 20") || !strings.Contains(show, "; at first $0.0000") {
				t.Errorf("show says\n%s", show)
			}
			break
		}
	}
	must(t, nil, "store", "verify", "--store", path)
	var again audit.Priced
	if decode(t, must(t, nil, append(args, "--json")...).out, &again); again.Changed != 0 || again.Attempts != n {
		t.Errorf("a second time, %+v", again)
	}
	file(t, dir, "typo.yaml", "sim/careful: {input: 2, output: 10}\nsim/brittel: {input: 1, output: 1}\n")
	typo := filepath.Join(dir, "typo.yaml")
	wantError(t, exitUsage, "typo.yaml:2:1: no stored attempt was made with a model, deployment or lane sim/brittel",
		"store", "price", typo, "--store", path)
	wantError(t, exitUsage, "did you mean sim/brittle?", "store", "price", typo, "--store", path)
	wantError(t, exitError, "store not found", "store", "price", prices, "--store", filepath.Join(dir, "none.db"))
}
