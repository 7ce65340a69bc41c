package main

import (
	"testing"
	"time"

	"github.com/assay-eval/assay/internal/model/lane"
)

func TestSpeedText(t *testing.T) {
	t.Parallel()
	const wall = 100 * time.Second
	full := lane.Ledger{Name: "gw/K0/m", Used: 950 * time.Second, Available: 1000 * time.Second}
	slow := lane.Ledger{Name: "gw/K1/m", Used: 50 * time.Second, Available: 1000 * time.Second, Waited: map[string]time.Duration{"rpm": 80 * time.Second, "tpm": time.Second}}
	for _, tc := range []struct {
		ledgers []lane.Ledger
		want    string
	}{
		{[]lane.Ledger{{Name: "x"}}, ""},
		{[]lane.Ledger{full}, "m: lanes 95 % full, bound by concurrency limit of gw/K0/m"},
		{[]lane.Ledger{full, slow}, "m: lanes 50 % full, bound by rpm limit of gw/K1/m (for 1m20s)"},
		{[]lane.Ledger{{Name: "x", Used: 10 * time.Second, Available: 100 * time.Second}}, "m: lanes 10 % full"},
	} {
		if got := speedText("m", tc.ledgers, wall); got != tc.want {
			t.Errorf("speedText() = %q, want %q", got, tc.want)
		}
	}
}
