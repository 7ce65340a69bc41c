package live_test

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/live"
)

func TestRatesCoverTheLastMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := live.NewMeter(nil)
		m.Model("a", 1000, 0, 0)
		want := func(tokens float64) {
			t.Helper()
			if got := m.Progress().Models[0].TokensPerMinute; got != tokens {
				t.Errorf("after %v: %v tokens per minute, want %v",
					m.Progress().Elapsed, got, tokens)
			}
		}
		use := func(tokens int) { m.Request("a", "", assay.Usage{InputTokens: tokens}) }
		use(100)
		time.Sleep(999 * time.Millisecond)
		want(0) // too early
		time.Sleep(time.Millisecond)
		want(6000)
		time.Sleep(4 * time.Second)
		want(1200)
		time.Sleep(25 * time.Second)
		use(100)
		want(400)
		time.Sleep(29500 * time.Millisecond) // 59.5 s: both still count
		want(200 * 60 / 59.5)
		time.Sleep(500 * time.Millisecond) // 60 s: the first second no longer counts
		want(100 * 60 / 59.0)
		time.Sleep(30 * time.Second)
		want(0)
		time.Sleep(24 * time.Hour)
		use(10)
		want(10 * 60 / 59.0)
	})
}

// TestRateOfSteadyUse checks that steady use shows as its rate at any moment.
func TestRateOfSteadyUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := live.NewMeter(nil)
		m.Model("a", 1000, 0, 0)
		for range 3000 {
			time.Sleep(100 * time.Millisecond)
			m.Request("a", "", assay.Usage{OutputTokens: 10})
			s := m.Progress()
			if s.Elapsed < 1 {
				continue
			}
			if got := s.Models[0].TokensPerMinute; got < 5990 || got > 6020 {
				t.Fatalf("after %v: %v tokens per minute, want about 6000", s.Elapsed, got)
			}
		}
	})
}

func TestTotalLeftIsTheSlowest(t *testing.T) {
	t.Parallel()
	fast := live.ModelState{Counts: counts(10, 5, 0, 0), Left: &live.TimeLeft{Seconds: 60}}
	slow := live.ModelState{Counts: counts(10, 5, 0, 0), Left: &live.TimeLeft{Seconds: 3600}}
	unknown := live.ModelState{Counts: counts(10, 5, 0, 0)}
	done := live.ModelState{Counts: counts(10, 8, 2, 0)}
	closed := live.ModelState{Counts: counts(10, 0, 0, 0), Closed: "no key"}
	for _, tc := range []struct {
		name   string
		models []live.ModelState
		want   *live.TimeLeft
	}{
		{"no models", nil, nil},
		{"slowest", []live.ModelState{fast, slow, done, closed}, slow.Left},
		{"unknown", []live.ModelState{fast, unknown}, nil},
		{"none working", []live.ModelState{done, closed}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := (&live.Progress{Models: tc.models}).Total().Left
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Total().Left (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMeterCountsEvents compares the meter with the events of a random run
// after each event. No count is ever negative.
func TestMeterCountsEvents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := live.NewMeter(nil)
		var want []live.ModelState
		for i := range rapid.IntRange(1, 3).Draw(t, "models") {
			s := live.ModelState{
				Model: fmt.Sprint("m", i), Faults: map[assay.FaultKind]int{},
			}
			s.Planned = rapid.IntRange(0, 20).Draw(t, "planned")
			s.Done = rapid.IntRange(0, s.Planned).Draw(t, "done")
			s.Pending = s.Planned - s.Done
			m.Model(s.Model, s.Planned, s.Done, 0)
			want = append(want, s)
		}
		m.Started("unknown")
		m.Settled("unknown", false)
		for range rapid.IntRange(0, 100).Draw(t, "events") {
			step(t, m, &want[rapid.IntRange(0, len(want)-1).Draw(t, "model")])
			got := m.Progress()
			for i := range got.Models {
				got.Models[i].TokensPerMinute = 0 // covered by other tests
			}
			if diff := cmp.Diff(want, got.Models); diff != "" {
				t.Fatalf("models (-want +got):\n%s", diff)
			}
			checkTotal(t, got)
		}
	})
}

// step makes one event happen that an engine could cause.
func step(t *rapid.T, m *live.Meter, s *live.ModelState) {
	running, pending := s.InFlight > 0, s.Pending > s.InFlight
	switch event := rapid.IntRange(0, 4).Draw(t, "event"); {
	case event == 0 && pending:
		m.Started(s.Model)
		s.InFlight++
	case event == 1 && running:
		m.Settled(s.Model, false)
		s.InFlight--
		s.Done++
		s.Pending--
	case event == 2 && running:
		parked := rapid.Bool().Draw(t, "parked")
		m.Faulted(s.Model, parked)
		s.InFlight--
		if parked {
			s.Parked++
			s.Pending--
		}
	case event == 3:
		kinds := append([]assay.FaultKind{""}, assay.FaultKinds...)
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		m.Request(s.Model, kind, assay.Usage{InputTokens: 3})
		s.Requests++
		if kind != "" {
			s.Faults[kind]++
		}
	case event == 4:
		m.Closed(s.Model, "why")
		s.Closed = "why"
	}
}

func checkTotal(t *rapid.T, s live.Progress) {
	total := s.Total()
	requests, faults := 0, 0
	for _, m := range append(s.Models, total) {
		if m.Planned < 0 || m.Done < 0 || m.Parked < 0 || m.InFlight < 0 || m.Pending < 0 ||
			m.Pending > m.Planned {
			t.Fatalf("impossible counts: %+v", m)
		}
	}
	for _, m := range s.Models {
		requests += m.Requests
		for _, n := range m.Faults {
			faults += n
		}
	}
	for _, n := range total.Faults {
		faults -= n
	}
	if total.Requests != requests || faults != 0 {
		t.Fatalf("total %+v of %+v", total, s.Models)
	}
}

func TestProgressIsACopy(t *testing.T) {
	t.Parallel()
	m := live.NewMeter(nil)
	m.Model("a", 2, 0, 0)
	m.Note("first")
	m.Request("a", assay.Timeout, assay.Usage{})
	s := m.Progress()
	before := s.Models[0]
	before.Faults = maps.Clone(before.Faults)

	m.Started("a")
	m.Request("a", assay.Timeout, assay.Usage{})
	m.Note("second")
	m.Stopping()
	diff := cmp.Diff([]live.ModelState{before}, s.Models)
	if diff != "" || len(s.Notes) != 1 || s.Stopping {
		t.Errorf("the meter changed an earlier progress: %+v\n%s", s, diff)
	}

	later := m.Progress()
	later.Models[0].Faults[assay.Timeout] = 99
	later.Models[0].Model = "x"
	later.Notes[0] = "x"
	if s := m.Progress(); s.Models[0].Faults[assay.Timeout] != 2 || s.Models[0].Model != "a" ||
		s.Notes[0] != "first" {
		t.Errorf("progress changed the meter: %+v", s)
	}
}

func TestNotesAreBoundedAndUnique(t *testing.T) {
	t.Parallel()
	m := live.NewMeter(nil)
	m.Note("one\r\n two\x1b[31m\tthree\u009b ")
	m.Note("one two [31m three")
	if got, want := m.Progress().Notes, []string{"one two [31m three"}; !cmp.Equal(got, want) {
		t.Errorf("notes %q, want %q", got, want)
	}
	for i := range 1000 {
		m.Note(fmt.Sprint("note ", i))
	}
	notes := m.Progress().Notes
	if len(notes) != 51 || !strings.HasPrefix(notes[50], "further notes") {
		t.Errorf("%d notes, the last %q; want 50 and one about further notes",
			len(notes), notes[len(notes)-1])
	}
}

// TestCompleteMayReadTheMeter checks that complete is called without the meter's mutex.
func TestCompleteMayReadTheMeter(t *testing.T) {
	t.Parallel()
	var m *live.Meter
	m = live.NewMeter(func(p *live.Progress) {
		m.Note("asked")
		p.Models[0].Waits = "rpm"
	})
	m.Model("a", 1, 0, 0)
	if p := m.Progress(); p.Models[0].Waits != "rpm" {
		t.Errorf("waits %q, want rpm", p.Models[0].Waits)
	}
}

// TestPauseHasNoFinish checks that no view announces an end while the user has paused all lanes.
func TestPauseHasNoFinish(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 2, 14, 2, 0, 0, time.Local)
	s := live.Progress{PausedSince: since, Models: []live.ModelState{{
		Model: "a", Counts: counts(10, 5, 0, 0), Left: &live.TimeLeft{Seconds: 3600},
	}}}
	var b bytes.Buffer
	(&live.Plain{W: &b}).Show(s)
	views := map[string]string{"live": plain(live.Draw(s, 0, 0)), "plain": b.String()}
	for name, text := range views {
		if !strings.Contains(text, "paused since 14:02") || strings.Contains(text, "1h") ||
			strings.Contains(text, "60m") {
			t.Errorf("%s view of a pause:\n%s", name, text)
		}
	}
}

// TestPlainNamesAttentionOnce checks that plain lines mention a need for attention when it appears,
// and again if it comes back, but not with each line.
func TestPlainNamesAttentionOnce(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	view := &live.Plain{W: &b}
	stall := func(text string) live.Progress {
		return live.Progress{Attention: []live.Attention{{Cause: "stalled", Text: text, Trials: 3}}}
	}
	for _, s := range []live.Progress{stall("for 1m"), stall("for 2m"), {}, stall("for 1m")} {
		view.Show(s)
	}
	if n := strings.Count(b.String(), "attention: for 1m (trials: 3)\n"); n != 2 ||
		strings.Contains(b.String(), "for 2m") {
		t.Errorf("plain lines:\n%s", b.String())
	}
}
