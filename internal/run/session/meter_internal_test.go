package session

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/live"
)

// failure returns an attempt that failed.
func failure(model string) *assay.Attempt {
	a := &assay.Attempt{Outcome: assay.Outcome{Level: assay.Failure}}
	a.Model = model
	return a
}

func TestRatesCoverTheLastMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMeter(time.Now())
		m.model("a", 1000, 0, 0)
		want := func(tokens float64) {
			t.Helper()
			if got := m.progress().Models[0].TokensPerMinute; got != tokens {
				t.Errorf("after %v: %v tokens per minute, want %v",
					m.progress().Elapsed, got, tokens)
			}
		}
		use := func(tokens int) { m.request(lane.Exchange{Model: "a", Usage: assay.Usage{InputTokens: tokens}}, "") }
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
		m := newMeter(time.Now())
		m.model("a", 1000, 0, 0)
		for range 3000 {
			time.Sleep(100 * time.Millisecond)
			m.request(lane.Exchange{Model: "a", Usage: assay.Usage{OutputTokens: 10}}, "")
			s := m.progress()
			if s.Elapsed < 1 {
				continue
			}
			if got := s.Models[0].TokensPerMinute; got < 5990 || got > 6020 {
				t.Fatalf("after %v: %v tokens per minute, want about 6000", s.Elapsed, got)
			}
		}
	})
}

// TestMeterCountsEvents compares the meter with the events of a random run
// after each event. No count is ever negative.
func TestMeterCountsEvents(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newMeter(time.Now())
		var want []live.ModelState
		for i := range rapid.IntRange(1, 3).Draw(t, "models") {
			s := live.ModelState{
				Model: fmt.Sprint("m", i), Faults: map[assay.FaultKind]int{},
			}
			s.Planned = rapid.IntRange(0, 20).Draw(t, "planned")
			s.Done = rapid.IntRange(0, s.Planned).Draw(t, "done")
			s.Pending = s.Planned - s.Done
			m.model(s.Model, s.Planned, s.Done, 0)
			want = append(want, s)
		}
		m.started("unknown")
		m.settled(failure("unknown"))
		for range rapid.IntRange(0, 100).Draw(t, "events") {
			step(t, m, &want[rapid.IntRange(0, len(want)-1).Draw(t, "model")])
			got := m.progress()
			for i := range got.Models {
				got.Models[i].TokensPerMinute = 0 // covered by other tests
			}
			if diff := cmp.Diff(want, got.Models); diff != "" {
				t.Fatalf("models (-want +got):\n%s", diff)
			}
			checkTotal(t, got)
			if total := got.Total(); m.Requests != total.Requests || !maps.Equal(m.RequestFaults, total.Faults) {
				t.Fatalf("usage %+v, want that of %+v", m.Usage, total)
			}
		}
	})
}

// step makes one event happen that an engine could cause.
func step(t *rapid.T, m *meter, s *live.ModelState) {
	running, pending := s.InFlight > 0, s.Pending > s.InFlight
	switch event := rapid.IntRange(0, 4).Draw(t, "event"); {
	case event == 0 && pending:
		m.started(s.Model)
		s.InFlight++
	case event == 1 && running:
		m.settled(failure(s.Model))
		s.InFlight--
		s.Done++
		s.Pending--
	case event == 2 && running:
		parked := rapid.Bool().Draw(t, "parked")
		m.faulted(s.Model, parked)
		s.InFlight--
		if parked {
			s.Parked++
			s.Pending--
		}
	case event == 3:
		kinds := append([]assay.FaultKind{""}, assay.FaultKinds...)
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		m.request(lane.Exchange{Model: s.Model, Usage: assay.Usage{InputTokens: 3}}, kind)
		s.Requests++
		if kind != "" {
			s.Faults[kind]++
		}
	case event == 4:
		m.closed(s.Model, "why")
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
	m := newMeter(time.Now())
	m.model("a", 2, 0, 0)
	m.note("first")
	m.request(lane.Exchange{Model: "a"}, assay.Timeout)
	s := m.progress()
	before := s.Models[0]
	before.Faults = maps.Clone(before.Faults)

	m.started("a")
	m.request(lane.Exchange{Model: "a"}, assay.Timeout)
	m.note("second")
	m.stop()
	diff := cmp.Diff([]live.ModelState{before}, s.Models)
	if diff != "" || len(s.Notes) != 1 || s.Stopping {
		t.Errorf("the meter changed an earlier progress: %+v\n%s", s, diff)
	}

	later := m.progress()
	later.Models[0].Faults[assay.Timeout] = 99
	later.Models[0].Model = "x"
	later.Notes[0] = "x"
	if s := m.progress(); s.Models[0].Faults[assay.Timeout] != 2 || s.Models[0].Model != "a" ||
		s.Notes[0] != "first" {
		t.Errorf("progress changed the meter: %+v", s)
	}
}

func TestNotesAreBoundedAndUnique(t *testing.T) {
	t.Parallel()
	m := newMeter(time.Now())
	m.note("one\r\n two\x1b[31m\tthree\u009b ")
	m.note("one two [31m three")
	if got, want := m.progress().Notes, []string{"one two [31m three"}; !cmp.Equal(got, want) {
		t.Errorf("notes %q, want %q", got, want)
	}
	for i := range 1000 {
		m.note(fmt.Sprint("note ", i))
	}
	notes := m.progress().Notes
	if len(notes) != 51 || !strings.HasPrefix(notes[50], "further notes") {
		t.Errorf("%d notes, the last %q; want 50 and one about further notes",
			len(notes), notes[len(notes)-1])
	}
}
