package terminal_test

import (
	"testing"

	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/terminal"
)

func TestLimitsTextShowsWhatWasFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		limits      lane.Limits
		found, want string
	}{
		{lane.Limits{}, "", ""},
		{lane.Limits{Concurrency: 8, RPM: 300}, "", "concurrency 8, rpm 300"},
		{lane.Limits{RPM: 300}, "at most 7 in flight", "rpm 300, found: at most 7 in flight"},
	} {
		l := terminal.LaneState{Limits: test.limits, Found: test.found}
		if got := l.LimitsText(); got != test.want {
			t.Errorf("limits %+v, found %q: %q, want %q", test.limits, test.found, got, test.want)
		}
	}
}
