package assay_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
)

// TestModelFaultsAreDrawn checks that requests meet each kind at its rate, and that higher rates only add
// faults.
func TestModelFaultsAreDrawn(t *testing.T) {
	t.Parallel()
	const requests = 40_000
	low := assay.ModelFaultRates{assay.ModelCut: .02, assay.ModelHang: .06, assay.ModelEmpty: 0}
	high := assay.ModelFaultRates{assay.ModelCut: .2, assay.ModelHang: .6}
	counts := make(map[assay.ModelFault]int)
	for n := range requests {
		kind := low.At(uint64(n%100), n/100)
		counts[kind]++
		if more := high.At(uint64(n%100), n/100); kind != "" && more != kind {
			t.Fatalf("request %d meets %q at a low rate, and %q at a high one", n, kind, more)
		}
	}
	for kind, rate := range low {
		mean, sd := rate*requests, math.Sqrt(rate*(1-rate)*requests)
		if got := float64(counts[kind]); math.Abs(got-mean) > 4*sd {
			t.Errorf("%s: %v of %d requests, want about %v", kind, got, requests, mean)
		}
	}
	if got := (assay.ModelFaultRates{}).At(7, 0); got != "" {
		t.Errorf("without rates, a request meets %q", got)
	}
}

func TestModelFaultRatesRoundTrip(t *testing.T) {
	t.Parallel()
	for text, rates := range map[string]assay.ModelFaultRates{
		"":                      {},
		"cut=0.05,hang=0.01":    {assay.ModelHang: .01, assay.ModelCut: .05, assay.ModelEmpty: 0},
		"rate_limit_wait=0.125": {assay.ModelRateWait: .125},
	} {
		read, err := assay.ParseModelFaults(text)
		if err != nil || rates.Check() != nil || rates.String() != text || read.String() != text {
			t.Errorf("%v is %q, which is read as %v, %v; want %q", rates, rates, read, err, text)
		}
	}
	for want, text := range map[string]string{
		`unknown fault of models "late"`: "late=0.5", "outside [0,1]": "cut=-1", "above 0.9": "cut=0.5,hang=0.5",
		"is NaN, outside": "cut=NaN", "invalid syntax": "cut",
	} {
		if _, err := assay.ParseModelFaults(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestModelFaultsAreDocumented checks that the page about agents has a row for each kind.
func TestModelFaultsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range assay.ModelFaultRules {
		if row := "| `" + string(r.Kind) + "` | " + r.Says + " |"; !strings.Contains(string(page), row) {
			t.Errorf("docs/agents.md lacks the row %s", row)
		}
	}
}
