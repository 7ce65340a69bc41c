package lane_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/model/lane"
)

// TestLaneIsNeverSilent checks the fourth law for random servers: while requests are waiting, the
// lane sends one a minute at least, unless the endpoint has announced a wait.
func TestLaneIsNeverSilent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(rt, "limit")
		span := rapid.SampledFrom([]time.Duration{second, 15 * second, minute}).Draw(rt, "span")
		reset := rapid.SampledFrom([]time.Duration{minute, hour, 24 * hour}).Draw(rt, "reset")
		kind := rapid.SampledFrom([]limiter{
			&fixed{n: n, span: span}, &sliding{n: n, span: span},
			&bucket{n: n, size: max(1, n/10), span: span},
			liar{reset},
		}).Draw(rt, "kind")
		headers := rapid.SampledFrom([]headerStyle{
			noHeaders, plainHeaders, azureHeaders, anthropicHeaders, mistralHeaders, litellmHeaders,
		}).Draw(rt, "headers")
		wait := rapid.SampledFrom([]waitStyle{
			noWait, waitInSeconds, waitInMs, waitUntilDate, waitZero, waitAsTime,
		}).Draw(rt, "wait")
		limits := lane.Limits{RPM: rapid.SampledFrom([]int{0, 0, 1, 60, 3000}).Draw(rt, "rpm")}
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(27 * 365 * 24 * hour) // from the year 2000, when Unix times were short
			s := &stranger{limiter: kind, headers: headers, wait: wait, took: 5 * second}
			c := lane.Config{Name: "l", Provider: client(t, s), Orders: "m", Limits: limits}
			p := lane.NewPool("m", []lane.Config{c}, lane.Options{Queue: 1000 * hour})
			saturate(p, 20, 10*minute)
			// Headers forbid requests for a minute from the reply, which takes up to 7 s.
			if s.hear(time.Now()); s.silence > minute+8*second {
				t.Errorf("silent for %v at %T %d in %v", s.silence, kind, n, span)
			}
		})
	})
}
