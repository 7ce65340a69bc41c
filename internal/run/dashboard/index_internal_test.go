package dashboard

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/run/terminal"
	"github.com/assay-eval/assay/internal/store"
)

// drawFilter draws levels that attempts have, and some that they lack.
func drawFilter(t *rapid.T) (f filter) {
	for name, field := range f.fields() {
		*field = rapid.SampledFrom([]string{"", "", "", "", "a", "b", "0.9", "timeout", "failure"}).
			Draw(t, name)
	}
	f.State = rapid.SampledFrom([]string{"", "failure", "full_success", "failed", "fault", "parked"}).
		Draw(t, "state")
	f.Before = rapid.IntRange(0, 50).Draw(t, "before")
	return f
}

func TestFilterIsItsAddress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFilter(t)
		u, err := url.Parse(f.URL())
		if err != nil {
			t.Fatal(err)
		}
		got, err := parseFilter(u.Query())
		if diff := cmp.Diff(f, got); diff != "" || err != nil {
			t.Error(err, diff)
		}
	})
}

// The first page says which attempts are unfinished once no run works on them, as status does.
func TestPageNamesUnfinishedAttempts(t *testing.T) {
	begun := job.Begun{Attempts: 3, Replies: 7, Answered: 2}
	m := &moment{Loaded: true, Standing: job.Standing{Begun: begun}}
	for _, run := range []*terminal.Progress{nil, {}} {
		m.Run = run
		var page strings.Builder
		if err := pages().ExecuteTemplate(&page, "now", liveBody{moment: m}); err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(page.String(), begun.String()); has != (run == nil) {
			t.Errorf("run %v: the page says %v that %s", run, has, begun)
		}
	}
}

func drawListed(t *rapid.T, i int) store.Listed {
	word := func(name string) string { return rapid.SampledFrom([]string{"a", "b"}).Draw(t, name) }
	a := assay.Attempt{Number: 1, Run: assay.RunID(word("run")), Lane: word("lane")}
	a.ID = assay.TrialID(fmt.Sprintf("%032x", rapid.Uint32().Draw(t, "id")))
	a.Cell = assay.Cell{
		Model: word("model"), Variant: word("variant"), Severity: word("severity"),
		Difficulty: word("difficulty"), TaskType: word("type"),
		Reliability: rapid.SampledFrom([]float64{.9, .5}).Draw(t, "reliability"),
	}
	a.Task = assay.TaskID(word("task"))
	a.FinishedAt = time.UnixMilli(int64(i)).UTC()
	switch rapid.IntRange(0, 3).Draw(t, "end") {
	case 0:
		a.Level, a.Ended = assay.FullSuccess, assay.Finished
	case 1:
		a.Level, a.Ended, a.Cause = assay.Failure, assay.Finished, assay.Cause(word("cause"))
	case 2:
		a.FaultKind = assay.Timeout
	default:
		a.FaultKind, a.Parked = assay.Server, true
	}
	return store.Listed{Row: int64(i + 1), Attempt: a}
}

// means reports whether an attempt is one that a filter means.
func (f filter) means(a *assay.Attempt) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	c := a.Cell
	state := f.State == "" || f.State == string(a.Level) || f.State == stateFault && a.Level == "" ||
		f.State == stateParked && a.Parked ||
		f.State == stateFailed && a.Level != "" && a.Level != assay.FullSuccess
	text := f.Text == "" || len(f.Text) >= 4 && strings.HasPrefix(string(a.ID), f.Text)
	for _, s := range []string{
		c.Model, c.Variant, c.Severity, c.Difficulty, c.TaskType, string(a.Task), a.Lane,
		string(a.Ended), string(a.Cause), string(a.Level), string(a.FaultKind),
	} {
		text = text || strings.Contains(s, f.Text)
	}
	return state && text && is(f.Model, c.Model) && is(f.Variant, c.Variant) &&
		is(f.Severity, c.Severity) && is(f.Difficulty, c.Difficulty) && is(f.Type, c.TaskType) &&
		is(f.Reliability, assay.FormatReliability(c.Reliability)) && is(f.Mix, c.Faults) &&
		is(f.Fault, string(a.FaultKind)) && is(f.Cause, string(a.Cause)) &&
		is(f.Phrasing, report.PhrasingName(c.Phrasing)) &&
		is(f.Lane, a.Lane) && is(f.Run, string(a.Run))
}

// indexOf returns an index of planned trials.
func indexOf(trials ...assay.Trial) *index {
	all := func(*assay.Trial) bool { return true }
	rules := job.NewStopper(plan.Budgets{}, plan.StopRules{})
	return newIndex(job.RecountOf(rules, all, slices.Values(trials)))
}

// The index finds exactly the attempts that match a filter, latest first, and its pages together
// have everything once.
func TestIndexFindsWhatAFilterMeans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []store.Listed
		var trials []assay.Trial
		for i := range rapid.IntRange(0, 250).Draw(t, "n") {
			l := drawListed(t, i)
			all, trials = append(all, l), append(trials, l.Trial)
		}
		x := indexOf(trials...)
		for _, l := range all {
			x.add(&l)
		}
		f := drawFilter(t)
		f.Before = 0
		var want, got []assay.TrialID
		done := 0
		for i := len(all) - 1; i >= 0; i-- {
			if f.means(&all[i].Attempt) {
				want = append(want, all[i].ID)
				if all[i].Level != "" {
					done++
				}
			}
		}
		for {
			found := x.find(f)
			if found.Total != len(want) || found.Done != done {
				t.Fatalf("%s: %d found, %d done; want %d, %d", f.URL(), found.Total, found.Done,
					len(want), done)
			}
			for _, r := range found.Rows {
				got = append(got, r.ID())
			}
			if f = f.older(found.Older); found.Older == 0 {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", f.URL(), diff)
		}
	})
}

// An attempt at a trial that the experiment does not plan is not shown.
func TestIndexKnowsItsPlan(t *testing.T) {
	x := indexOf(assay.Trial{ID: assay.TrialID(strings.Repeat("a", 32))})
	for i, id := range []string{"a", "b"} {
		a := assay.Attempt{Number: 1}
		a.ID, a.Level = assay.TrialID(strings.Repeat(id, 32)), assay.FullSuccess
		x.add(&store.Listed{Row: int64(i + 1), Attempt: a})
	}
	if found := x.find(filter{}); found.Total != 1 || x.tally().Standing("").Done != 1 {
		t.Errorf("%d found, %+v", found.Total, x.tally().Standing(""))
	}
}

// A browser gets back every content of an event, whatever lines it has.
func TestEventsKeepContents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.StringOf(rapid.SampledFrom([]rune("a\n:\u00e9 "))).Draw(t, "content")
		w := httptest.NewRecorder()
		if err := writeEvent(w, []byte(content), true); err != nil {
			t.Fatal(err)
		}
		text, ended := strings.CutSuffix(w.Body.String(), "\n\n")
		var lines []string
		for line := range strings.Lines(text + "\n") {
			data, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "data: ")
			if !ok && content != "" {
				t.Fatalf("line %q", line)
			}
			lines = append(lines, data)
		}
		if got := strings.Join(lines, "\n"); content != "" && (!ended || got != strings.TrimSuffix(content, "\n")) {
			t.Errorf("%q became %q", content, got)
		}
	})
}

func TestOwnHosts(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1:80": true, "127.0.0.1": true, "localhost:1": true, "[::1]:80": true, "::1": true,
		"evil.example": false, "localhost.evil.example:80": false, "127.0.0.1.nip.io": false,
		"": false, "127.0.0.1@evil.example": false,
	} {
		if got := isOwnHost(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}
