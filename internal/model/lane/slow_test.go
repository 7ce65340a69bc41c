package lane_test

import (
	"testing"
	"testing/synctest"

	"github.com/assay-eval/assay/internal/model/lane"
)

// TestLimitersThatAreStated checks lanes with stated limits at endpoints of all kinds.
func TestLimitersThatAreStated(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: plays days of virtual time")
	}
	t.Parallel()
	for _, row := range matrix() {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				used, refused := play(t, row.make(), row.stated, row)
				if used < .95 || refused > .01 {
					t.Errorf("used %.3f of what is permitted, %.2f %% refused", used, 100*refused)
				}
			})
		})
	}
}

// TestLimitersThatAreLearned checks lanes without stated limits. They use .90 of the permitted
// rate, and .80 at worst: requests of one instant arrive in any order, so plays differ, and one of
// several against a sliding window of 10 s used .86. A limit per day that is spent and not
// announced costs a probe a minute.
func TestLimitersThatAreLearned(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: plays days of virtual time")
	}
	t.Parallel()
	for _, row := range matrix() {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				used, refused := play(t, row.make(), lane.Limits{}, row)
				most := .02
				if row.window > hour {
					most = .15
				}
				if used < .80 || refused > most {
					t.Errorf("used %.3f of what is permitted, %.2f %% refused", used, 100*refused)
				}
			})
		})
	}
}

// TestLimitersThatAreOfAnHour checks a lane at 5,000 requests an hour, which an earlier version
// took for a limit of a day.
func TestLimitersThatAreOfAnHour(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: plays days of virtual time")
	}
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stranger{limiter: &fixed{n: 5000, span: hour}, headers: plainHeaders}
		row := limiterRow{rate: 5000. / 3600, window: hour}
		used, refused := play(t, s, lane.Limits{}, row)
		if used < .90 || refused > .025 {
			t.Errorf("used %.3f of what is permitted, %.2f %% refused", used, 100*refused)
		}
	})
}
