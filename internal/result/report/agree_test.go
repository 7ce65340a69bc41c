package report_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/sections"
)

// TestSecurityOfZeroIsInJSON checks that the worst rate is not left out like an unknown one.
func TestSecurityOfZeroIsInJSON(t *testing.T) {
	t.Parallel()
	var x scene
	x.try(of(assay.Optimal, "easy", 1), "t", 1, assay.Setting{}, true).Security = assay.Broken
	x.try(of(assay.Baseline, "easy", 1), "t", 1, assay.Setting{}, true)
	b, err := json.Marshal(x.analyze(t, report.Beside{}).Rows)
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Variant  string
		Security *float64
	}
	if err := json.Unmarshal(b, &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if attacked := r.Variant == assay.Optimal; attacked != (r.Security != nil) || attacked && *r.Security != 0 {
			t.Errorf("%s: security %v", r.Variant, r.Security)
		}
	}
}

// TestHarmlessFlawsAreNoKinds checks that a flaw that hurts nobody is neither named nor counted among
// the kinds that p-values are adjusted for.
func TestHarmlessFlawsAreNoKinds(t *testing.T) {
	t.Parallel()
	var x scene
	for i := range 20 {
		for _, v := range []string{assay.Optimal, "flawed_tool_misuse", "flawed_missing_step"} {
			x.try(of(v, "easy", 1), fmt.Sprint(i), 1, assay.Setting{}, v == assay.Optimal || i%2 > 0)
		}
	}
	hurts := func(t *assay.Trial) bool { return t.Variant == "flawed_missing_step" }
	c := x.analyzeAs(t, report.Design{Hurts: hurts}, report.Beside{}).Standings[0].FlawedPlan
	if c.Level != "flawed_missing_step" || len(c.Kinds) > 0 || c.Q != c.P {
		t.Errorf("the flaw %q with %d kinds, p = %v and q = %v", c.Level, len(c.Kinds), c.P, c.Q)
	}
}

// TestPooledSeveritiesAreNotNamed checks that a row over several severities does not bear the name of
// one of them.
func TestPooledSeveritiesAreNotNamed(t *testing.T) {
	t.Parallel()
	var x scene
	for _, severity := range []string{assay.Light, assay.Severe} {
		c := of("flawed_tool_misuse", "easy", 1)
		c.Severity = severity
		x.try(c, severity, 1, assay.Setting{}, true).Pilot = &assay.PilotScores{Executor: assay.FullSuccess}
	}
	seen := 0
	for _, s := range sections.Report(x.analyze(t, report.Beside{})).Sections {
		if s.ID != "pilot" && s.ID != "success" {
			continue
		}
		for _, row := range s.Table.Rows {
			name := slices.IndexFunc(row, func(c document.Cell) bool { return strings.HasPrefix(c.Text, "flawed_") })
			if graded := strings.Contains(row[name].Text, ", "); graded != (s.ID == "success") {
				t.Errorf("%s has a row %s", s.ID, row[name].Text)
			}
			seen++
		}
	}
	if seen != 3 {
		t.Errorf("%d rows", seen)
	}
}

// TestRankingNamesRepeats checks that a ranking over several repeats of trials says so.
func TestRankingNamesRepeats(t *testing.T) {
	t.Parallel()
	var x scene
	for _, model := range []string{"m", "n"} {
		for repeat := range 2 {
			x.try(cellOf(model, "easy", 1), "t", 1+repeat, assay.Setting{}, true)
		}
	}
	if got := x.analyze(t, report.Beside{}).Ranking.Averaged; !slices.Equal(got, []string{"repeat"}) {
		t.Errorf("the ranking averages over %v", got)
	}
	var y scene
	for i, model := range []string{"m", "n"} {
		y.try(cellOf(model, "easy", 1), "t", 1, assay.Setting{}, true)
		y.trials[i] = y.trials[i].Replayed(1)
		y.attempts[i].Trial = y.trials[i]
	}
	if got := y.analyze(t, report.Beside{}).Ranking.Averaged; len(got) > 0 {
		t.Errorf("the ranking over one replay of each task averages over %v", got)
	}
}

// TestEveryReasonHasAPlace has a most frequent cause that occurs only where there are few outcomes.
func TestEveryReasonHasAPlace(t *testing.T) {
	t.Parallel()
	var x scene
	for i := range 40 {
		x.try(of(assay.Optimal, "easy", 1), fmt.Sprint(i), 1, assay.Setting{}, true)
	}
	x.try(of(assay.Baseline, "easy", 1), "0", 1, assay.Setting{}, false).Cause = assay.WrongTool
	a := x.analyze(t, report.Beside{})
	if a.Reason.Place.Level != assay.Baseline || a.Reason.Share.Count != 1 || a.Example == nil {
		t.Errorf("the reason %+v, and the example %+v", a.Reason, a.Example)
	}
}
