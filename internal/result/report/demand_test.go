package report_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
)

// alone gates a version without a baseline.
func alone(t *testing.T, v version, d report.Demands, pending int) *report.Gate {
	t.Helper()
	c, err := report.Alone("next", all(v.attempts("m")...))
	if err != nil {
		t.Fatal(err)
	}
	c.B.Planned, c.B.Pending = v.tasks*v.repeats, pending
	g, err := c.Gate(report.Terms{
		Tasks: report.These, Margin: .05, Look: report.Looks(1)[0], Demands: d,
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A rate passes or fails only if it is sure, and a forbidden failure counts although trials are
// missing.
func TestDemands(t *testing.T) {
	t.Parallel()
	always := func(int, int) bool { return true }
	sometimes := func(_, repeat int) bool { return repeat > 0 }
	one := func(task, repeat int) bool { return task != 3 || repeat != 2 }
	for _, c := range []struct {
		name    string
		version version
		demands report.Demands
		pending int
		want    report.Verdict
	}{
		{"24 of 24 for 80 %", version{6, 4, always}, report.Demands{AtLeast: .8}, 0, report.Pass},
		{
			"24 of 24 for 90 %",
			version{6, 4, always},
			report.Demands{AtLeast: .9},
			0,
			report.Inconclusive,
		},
		{"30 of 30 for 90 %", version{6, 5, always}, report.Demands{AtLeast: .9}, 0, report.Pass},
		{"three of four for 95 %", version{6, 4, sometimes}, report.Demands{AtLeast: .95}, 0, report.Fail},
		{
			"a tenth missing",
			version{6, 10, always},
			report.Demands{AtLeast: .8},
			6,
			report.Inconclusive,
		},
		{"one failure elsewhere", version{6, 4, one}, report.Demands{Always: []string{"t2"}}, 0, report.Pass},
		{"one failure", version{6, 4, one}, report.Demands{Always: []string{"t*"}}, 0, report.Fail},
		{
			"one failure of a few",
			version{6, 4, one},
			report.Demands{Always: []string{"t3"}},
			20,
			report.Fail,
		},
		{"a trial to come", version{6, 40, always}, report.Demands{
			Always: []string{"t3"}, Pending: map[assay.TaskID]int{"t3": 1},
		}, 1, report.Inconclusive},
	} {
		g := alone(t, c.version, c.demands, c.pending)
		if g.Verdict != c.want {
			t.Errorf("%s: %s, want %s", c.name, g.Verdict, c.want)
		}
		for _, d := range g.Always {
			if (d.Verdict == report.Fail) != (d.Failed != "") {
				t.Errorf("%s: %s without the trial", c.name, d.Verdict)
			}
		}
	}
}

func TestMatchTasks(t *testing.T) {
	t.Parallel()
	known := []assay.TaskID{"never delete", "never pay", "a[1]", "a1"}
	for _, c := range []struct {
		names, want string // separated by commas
	}{
		{"never delete", "never delete"},
		{"never *,never pay", "never delete,never pay"},
		{"a[1]", "a1,a[1]"}, // a name and a pattern
		{"[", ""},
		{"never delte", ""},
	} {
		got, err := report.MatchTasks(strings.Split(c.names, ","), known)
		if c.want == "" {
			if !errors.Is(err, report.ErrNoTask) {
				t.Errorf("%s: %v, %v", c.names, got, err)
			}
			continue
		}
		var want []assay.TaskID
		for name := range strings.SplitSeq(c.want, ",") {
			want = append(want, assay.TaskID(name))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", c.names, got, want)
		}
	}
}

// Tasks that changed are listed with the largest loss first, each with a trial that shows it.
func TestChangedTasks(t *testing.T) {
	t.Parallel()
	was := version{6, 4, func(task, _ int) bool { return task != 5 }}
	now := version{6, 4, func(task, repeat int) bool { return task == 5 || repeat >= task }}
	g := gateOf(t, was, now, 24, 0)
	var got []string
	for _, c := range g.Changed {
		got = append(got, string(c.Task))
		if c.See == "" || c.FullA-c.FullB != int(-4*c.Change) {
			t.Errorf("%+v", c)
		}
	}
	if want := []string{"t4", "t3", "t2", "t1", "t5"}; !slices.Equal(got, want) {
		t.Errorf("changed: %v, want %v", got, want)
	}
}

// The usual question depends on whose library it is.
func TestUsualQuestion(t *testing.T) {
	t.Parallel()
	for suite, want := range map[report.Suite]string{
		{Own: true, Tasks: 6}:  report.These,
		{Own: true, Tasks: 50}: report.These,
		{Own: true, Tasks: 51}: report.Similar,
		{Tasks: 6}:             report.Similar,
	} {
		if got := suite.Question(); got != want {
			t.Errorf("%+v: %s, want %s", suite, got, want)
		}
	}
}
