package terminal_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/run/terminal"
)

func TestTotalLeftIsTheSlowest(t *testing.T) {
	t.Parallel()
	fast := terminal.ModelState{Counts: counts(10, 5, 0, 0), Left: &terminal.TimeLeft{Seconds: 60}}
	slow := terminal.ModelState{Counts: counts(10, 5, 0, 0), Left: &terminal.TimeLeft{Seconds: 3600}}
	unknown := terminal.ModelState{Counts: counts(10, 5, 0, 0)}
	done := terminal.ModelState{Counts: counts(10, 8, 2, 0)}
	closed := terminal.ModelState{Counts: counts(10, 0, 0, 0), Closed: "no key"}
	for _, tc := range []struct {
		name   string
		models []terminal.ModelState
		want   *terminal.TimeLeft
	}{
		{"no models", nil, nil},
		{"slowest", []terminal.ModelState{fast, slow, done, closed}, slow.Left},
		{"unknown", []terminal.ModelState{fast, unknown}, nil},
		{"none working", []terminal.ModelState{done, closed}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := (&terminal.Progress{Models: tc.models}).Total().Left
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Total().Left (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPauseHasNoFinish checks that no view announces an end while the user has paused all lanes.
func TestPauseHasNoFinish(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 2, 14, 2, 0, 0, time.Local)
	s := terminal.Progress{PausedSince: since, Models: []terminal.ModelState{{
		Model: "a", Counts: counts(10, 5, 0, 0), Left: &terminal.TimeLeft{Seconds: 3600},
	}}}
	var b bytes.Buffer
	(&terminal.Plain{W: &b}).Show(s)
	views := map[string]string{"live": plain(terminal.Draw(s, 0, 0)), "plain": b.String()}
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
	view := &terminal.Plain{W: &b}
	stall := func(text string) terminal.Progress {
		return terminal.Progress{Attention: []terminal.Attention{{Cause: "stalled", Text: text, Trials: 3}}}
	}
	for _, s := range []terminal.Progress{stall("for 1m"), stall("for 2m"), {}, stall("for 1m")} {
		view.Show(s)
	}
	if n := strings.Count(b.String(), "attention: for 1m (trials: 3)\n"); n != 2 ||
		strings.Contains(b.String(), "for 2m") {
		t.Errorf("plain lines:\n%s", b.String())
	}
}
