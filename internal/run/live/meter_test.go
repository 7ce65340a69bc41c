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
			if got := m.Snapshot().Models[0].TokensPerMinute; got != tokens {
				t.Errorf("after %v: %v tokens per minute, want %v",
					m.Snapshot().Elapsed, got, tokens)
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
			s := m.Snapshot()
			if s.Elapsed < time.Second {
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
	fast := live.ModelState{Planned: 10, Done: 5, Left: live.Left{Expected: time.Minute}}
	slow := live.ModelState{Planned: 10, Done: 5, Left: live.Left{Expected: time.Hour}}
	unknown := live.ModelState{Planned: 10, Done: 5}
	done := live.ModelState{Planned: 10, Done: 8, Parked: 2}
	closed := live.ModelState{Planned: 10, Closed: "no key"}
	for _, tc := range []struct {
		name   string
		models []live.ModelState
		want   time.Duration
	}{
		{"no models", nil, 0},
		{"slowest", []live.ModelState{fast, slow, done, closed}, time.Hour},
		{"unknown", []live.ModelState{fast, unknown}, 0},
		{"none working", []live.ModelState{done, closed}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := (live.Snapshot{Models: tc.models}).Total().Left.Expected; got != tc.want {
				t.Errorf("Total().Left = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestMeterCountsEvents compares the meter with the events of a random run
// after each event. No count is ever negative.
func TestMeterCountsEvents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := live.NewMeter(func(model string) string { return "waits of " + model })
		var want []live.ModelState
		for i := range rapid.IntRange(1, 3).Draw(t, "models") {
			s := live.ModelState{
				Name: fmt.Sprint("m", i), Faults: map[assay.FaultKind]int{},
				Waits: fmt.Sprint("waits of m", i),
			}
			s.Planned = rapid.IntRange(0, 20).Draw(t, "planned")
			s.Done = rapid.IntRange(0, s.Planned).Draw(t, "done")
			m.Model(s.Name, s.Planned, s.Done, 0)
			want = append(want, s)
		}
		m.Started("unknown")
		m.Settled("unknown", false)
		for range rapid.IntRange(0, 100).Draw(t, "events") {
			step(t, m, &want[rapid.IntRange(0, len(want)-1).Draw(t, "model")])
			got := m.Snapshot()
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
	running, pending := s.InFlight > 0, s.Pending() > s.InFlight
	switch event := rapid.IntRange(0, 4).Draw(t, "event"); {
	case event == 0 && pending:
		m.Started(s.Name)
		s.InFlight++
	case event == 1 && running:
		m.Settled(s.Name, false)
		s.InFlight--
		s.Done++
	case event == 2 && running:
		parked := rapid.Bool().Draw(t, "parked")
		m.Faulted(s.Name, parked)
		s.InFlight--
		if parked {
			s.Parked++
		}
	case event == 3:
		kinds := append([]assay.FaultKind{""}, assay.FaultKinds...)
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		m.Request(s.Name, kind, assay.Usage{InputTokens: 3})
		s.Requests++
		if kind != "" {
			s.Faults[kind]++
		}
	case event == 4:
		m.Closed(s.Name, "why")
		s.Closed = "why"
	}
}

func checkTotal(t *rapid.T, s live.Snapshot) {
	total := s.Total()
	requests, faults := 0, 0
	for _, m := range append(s.Models, total) {
		if m.Planned < 0 || m.Done < 0 || m.Parked < 0 || m.InFlight < 0 || m.Pending() < 0 ||
			m.Pending() > m.Planned {
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

func TestSnapshotIsACopy(t *testing.T) {
	t.Parallel()
	m := live.NewMeter(nil)
	m.Model("a", 2, 0, 0)
	m.Note("first")
	m.Request("a", assay.Timeout, assay.Usage{})
	s := m.Snapshot()
	before := s.Models[0]
	before.Faults = maps.Clone(before.Faults)

	m.Started("a")
	m.Request("a", assay.Timeout, assay.Usage{})
	m.Note("second")
	m.Stopping()
	diff := cmp.Diff([]live.ModelState{before}, s.Models)
	if diff != "" || len(s.Notes) != 1 || s.Stopping {
		t.Errorf("the meter changed an earlier snapshot: %+v\n%s", s, diff)
	}

	later := m.Snapshot()
	later.Models[0].Faults[assay.Timeout] = 99
	later.Models[0].Name = "x"
	later.Notes[0] = "x"
	if s := m.Snapshot(); s.Models[0].Faults[assay.Timeout] != 2 || s.Models[0].Name != "a" ||
		s.Notes[0] != "first" {
		t.Errorf("a snapshot changed the meter: %+v", s)
	}
}

func TestNotesAreBoundedAndUnique(t *testing.T) {
	t.Parallel()
	m := live.NewMeter(nil)
	m.Note("one\r\n two\x1b[31m\tthree\u009b ")
	m.Note("one two [31m three")
	if got, want := m.Snapshot().Notes, []string{"one two [31m three"}; !cmp.Equal(got, want) {
		t.Errorf("notes %q, want %q", got, want)
	}
	for i := range 1000 {
		m.Note(fmt.Sprint("note ", i))
	}
	notes := m.Snapshot().Notes
	if len(notes) != 51 || !strings.HasPrefix(notes[50], "further notes") {
		t.Errorf("%d notes, the last %q; want 50 and one about further notes",
			len(notes), notes[len(notes)-1])
	}
}

// TestWaitsMayReadTheMeter checks that waits is called without the meter's
// mutex.
func TestWaitsMayReadTheMeter(t *testing.T) {
	t.Parallel()
	var m *live.Meter
	m = live.NewMeter(func(model string) string {
		m.Note("asked for " + model)
		return "rpm"
	})
	m.Model("a", 1, 0, 0)
	if s := m.Snapshot(); s.Models[0].Waits != "rpm" {
		t.Errorf("waits %q, want rpm", s.Models[0].Waits)
	}
}

// TestPauseHasNoFinish checks that no view announces an end while the user has paused all lanes.
func TestPauseHasNoFinish(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 2, 14, 2, 0, 0, time.Local)
	s := live.Snapshot{PausedSince: since, Models: []live.ModelState{{
		Name: "a", Planned: 10, Done: 5, Left: live.Left{Expected: time.Hour},
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

// TestPlainNamesAttentionOnce checks that plain lines mention what needs attention when it appears,
// and again if it comes back, but not with each line.
func TestPlainNamesAttentionOnce(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	view := &live.Plain{W: &b}
	stall := func(text string) live.Snapshot {
		return live.Snapshot{Attention: []live.Attention{{Cause: "stalled", Text: text, Trials: 3}}}
	}
	for _, s := range []live.Snapshot{stall("for 1m"), stall("for 2m"), {}, stall("for 1m")} {
		view.Show(s)
	}
	if n := strings.Count(b.String(), "attention: for 1m (trials: 3)\n"); n != 2 ||
		strings.Contains(b.String(), "for 2m") {
		t.Errorf("plain lines:\n%s", b.String())
	}
}
