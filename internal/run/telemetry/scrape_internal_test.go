package telemetry

import (
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay/internal/run/session"
)

// The counts at the end of a run are read by whoever has scraped regularly, and the end waits for
// nobody else.
func TestLastScrapeReadsTheEnd(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		scrapes []time.Duration // since the begin of the run, which ends after a minute
		stopped bool
		waits   time.Duration // of the end
		read    bool
	}{
		{"never", nil, false, 0, false},
		{"once, by hand", []time.Duration{50 * time.Second}, false, 0, false},
		{"every 15 s", every(15*time.Second, 6), false, 14 * time.Second, true},
		{"every 20 s", every(20*time.Second, 5), false, 19 * time.Second, true},
		{"every minute", every(time.Minute, 3), false, 0, false},
		{"no longer", every(10*time.Second, 5), false, 0, false},
		{"missing the last", every(10*time.Second, 7), false, 10 * time.Second, false},
		{"stopped by the user", every(15*time.Second, 6), true, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMetrics()
				ended := time.Now().Add(61 * time.Second)
				var read atomic.Bool
				for _, at := range tc.scrapes {
					go func() {
						time.Sleep(at + 1) // never in the same moment as the end
						w := httptest.NewRecorder()
						m.server.Handler.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
						if time.Now().After(ended) {
							read.Store(true)
						}
					}()
				}
				time.Sleep(time.Until(ended))
				m.End(&session.Summary{Stopped: tc.stopped})
				waited := time.Since(ended).Round(time.Second)
				synctest.Wait() // the scrape that let the end go may not have stored that it has read
				if waited != tc.waits || read.Load() != tc.read {
					t.Errorf("the end waited %s, and a scrape read it: %v; want %s and %v",
						waited, read.Load(), tc.waits, tc.read)
				}
				time.Sleep(time.Hour) // the scrapes that come too late
			})
		})
	}
}

// every returns the times of n scrapes.
func every(d time.Duration, n int) (all []time.Duration) {
	for i := range n {
		all = append(all, time.Duration(i)*d)
	}
	return all
}
