package main

import (
	"context"
	"fmt"
	"time"

	"github.com/assay-eval/assay/internal/model/sim"
)

// certificateVariable names a file with the certificates that Go programs trust on Linux.
const certificateVariable = "SSL_CERT_FILE"

// inFlight is measurement 2j: the memory of a run whose episodes all wait for their model at once,
// over HTTP/2 and over plain HTTP.
func (b *bench) inFlight(ctx context.Context) ([]figure, error) {
	var rows []figure
	for _, l := range []struct {
		what    string
		trials  int
		latency time.Duration
		tls     bool
		most    float64 // MB
	}{
		{"over HTTP/2", b.size(100_000, 500), 90 * time.Second, true, 4096},
		{"over HTTP", b.size(10_000, 500), 15 * time.Second, false, 500},
	} {
		if b.quick {
			l.latency = time.Second
		}
		s := workload{
			plain: l.latency, model: sim.Claimer, trials: l.trials, limits: concurrency(l.trials),
			text: "limits: {request: 10m}",
		}
		if l.tls {
			s.certificate = b.path("certificate.pem")
		}
		m, err := b.runScenario(ctx, s)
		if err != nil {
			return rows, err
		}
		what := fmt.Sprintf("%d at once %s: ", l.trials, l.what)
		rows = append(rows,
			newRow(what+"peak resident memory", megabytes, m.peakMB).below(l.most).because(
				"replies after %v; at most %d requests at once; %s", l.latency,
				m.stats.MaxInFlight, m.phases()),
			countRow(what+"trials not done", m.undone()).zero())
	}
	return rows, nil
}
