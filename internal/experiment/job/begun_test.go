package job_test

import (
	"testing"

	"github.com/assay-eval/assay/internal/experiment/job"
)

func TestBegunTellsWhatGoesOn(t *testing.T) {
	t.Parallel()
	const of = " of runs that have ended "
	for want, b := range map[string]job.Begun{
		"": {},
		"2 attempts" + of + "cost nothing, and will begin again": {Attempts: 2},
		"1 attempt" + of + "has 1 reply; it goes on at the next turn when the experiment runs again": {
			Attempts: 1, Replies: 1, Answered: 1,
		},
		"3 attempts" + of + "have 9 replies; they go on at the next turn when the experiment runs again": {
			Attempts: 3, Replies: 9, Answered: 3,
		},
		"10 attempts" + of + "have 9 replies; 8 of them go on at the next turn when the experiment runs " +
			"again; 2 attempts without a reply will begin again": {Attempts: 10, Replies: 9, Answered: 8},
	} {
		if got := b.String(); got != want {
			t.Errorf("%+v:\n%s\nwant\n%s", b, got, want)
		}
	}
}
