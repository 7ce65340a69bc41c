package session

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

func TestRatesCoverTheLastMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMeter(time.Now())
		want := func(tokens float64) {
			t.Helper()
			if _, got := m.requests("a"); got != tokens {
				t.Errorf("after %v: %v tokens per minute, want %v",
					m.progress().Elapsed, got, tokens)
			}
		}
		use := func(tokens int) {
			m.request(lane.Exchange{Model: "a", Spend: assay.NewSpend(assay.Usage{InputTokens: tokens}, 0)}, "")
		}
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
		for range 3000 {
			time.Sleep(100 * time.Millisecond)
			m.request(lane.Exchange{Model: "a", Spend: assay.NewSpend(assay.Usage{OutputTokens: 10}, 0)}, "")
			s := m.progress()
			if s.Elapsed < 1 {
				continue
			}
			if _, got := m.requests("a"); got < 5990 || got > 6020 {
				t.Fatalf("after %v: %v tokens per minute, want about 6000", s.Elapsed, got)
			}
		}
	})
}

func TestProgressIsACopy(t *testing.T) {
	t.Parallel()
	m := newMeter(time.Now())
	m.note("first")
	s := m.progress()
	m.note("second")
	m.stop()
	if len(s.Notes) != 1 || s.Stopping {
		t.Errorf("the meter changed an earlier progress: %+v", s)
	}
	m.progress().Notes[0] = "x"
	if s := m.progress(); s.Notes[0] != "first" {
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
