package session_test

import (
	"testing"

	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/session"
)

func TestLimitsTextShowsWhatWasLearned(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		limits, learned lane.Limits
		want            string
	}{
		{lane.Limits{}, lane.Limits{}, ""},
		{lane.Limits{Concurrency: 8, RPM: 300}, lane.Limits{}, "concurrency 8, rpm 300"},
		{lane.Limits{RPM: 300}, lane.Limits{RPM: 120}, "rpm 120 (learned)"},
		{lane.Limits{}, lane.Limits{TPM: 9000}, "tpm 9000 (learned)"},
	} {
		l := session.LaneState{Limits: test.limits, Learned: test.learned}
		if got := l.LimitsText(); got != test.want {
			t.Errorf("limits %+v, learned %+v: %q, want %q", test.limits, test.learned, got, test.want)
		}
	}
}
