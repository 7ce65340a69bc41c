//go:build !race

package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// TestPhrasingsCostWhatTheyAreMadeToCost checks that the intervals of a report have the true loss of a
// model that is hurt by other words with a known probability.
func TestPhrasingsCostWhatTheyAreMadeToCost(t *testing.T) {
	t.Parallel()
	const hurt = .3
	dir := t.TempDir()
	db := filepath.Join(dir, "phrasings.db")
	e := file(t, dir, "e.yaml", `name: e
models: ["sim/made:hurt_by_phrasing=0.3"]
phrasings: all
difficulties: easy
variants: [baseline]
reliabilities: [1]
tasks_per_type: 20
`)
	must(t, nil, "run", e, "--store", db, "--sim-latency", "0", "--quiet")
	var report struct {
		Levels []struct {
			Factor     string        `json:"factor"`
			A          string        `json:"a"`
			B          string        `json:"b"`
			Difference float64       `json:"difference"`
			Interval   stat.Interval `json:"interval"`
		} `json:"level_comparisons"`
	}
	out := must(t, nil, "report", "e", "--store", db, "--format", "json").out
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, l := range report.Levels {
		if l.Factor != "phrasing" {
			continue
		}
		compared++
		if l.A != assay.Plain || l.Interval.Low > -hurt || l.Interval.High < -hurt || l.Interval.High >= 0 {
			t.Errorf("%+v, want a loss of %v", l, hurt)
		}
	}
	if compared != len(assay.Phrasings)-1 {
		t.Errorf("%d phrasings are compared", compared)
	}
}
