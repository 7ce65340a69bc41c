package job_test

import (
	"testing"
	"time"

	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/model/lane"
)

func TestBottleneckIsTheLongestWaitOrFullLanes(t *testing.T) {
	t.Parallel()
	const wall = 100 * time.Second
	ledger := func(name string, used time.Duration, waited map[string]time.Duration) lane.Ledger {
		return lane.Ledger{Name: name, Used: used, Available: 1000 * time.Second, Waited: waited}
	}
	full := ledger("gw/K0/m", 950*time.Second, nil)
	alsoFull := ledger("gw/K1/m", 900*time.Second, nil)
	idle := ledger("gw/K2/m", 50*time.Second, nil)
	slow := ledger("gw/K1/m", 50*time.Second, map[string]time.Duration{
		"rpm": 80 * time.Second, "tpm": time.Second,
	})
	spaced := ledger("gw/K1/m", 0, map[string]time.Duration{"even spacing": 20 * time.Second})
	for _, tc := range []struct {
		name    string
		ledgers []lane.Ledger
		want    string
		waited  time.Duration
	}{
		{"unused", []lane.Ledger{{Name: "x"}}, "", 0},
		{"idle", []lane.Ledger{idle}, "", 0},
		{"full", []lane.Ledger{full}, "concurrency limit of gw/K0/m", 0},
		{"all full", []lane.Ledger{full, alsoFull}, "concurrency limits of all lanes", 0},
		{"waited", []lane.Ledger{full, slow}, "rpm limit of gw/K1/m", 80 * time.Second},
		{"no bucket", []lane.Ledger{spaced}, "even spacing of gw/K1/m", 20 * time.Second},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, waited := job.Bottleneck(tc.ledgers, wall)
			if got != tc.want || waited != tc.waited {
				t.Errorf("Bottleneck() = %q, %s; want %q, %s", got, waited, tc.want, tc.waited)
			}
		})
	}
}
