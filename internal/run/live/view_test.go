package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/live"
	"gotest.tools/v3/golden"
)

// story returns the snapshots of a run from start to end.
func story() []live.Snapshot {
	notes := []string{
		"gateway/KEY_0/m: rate_limited (HTTP 429): slow down",
		"model-b is closed: auth (HTTP 401)",
	}
	faults := map[assay.FaultKind]int{assay.RateLimited: 12, assay.Timeout: 3, assay.Auth: 3}
	none := map[assay.FaultKind]int{}
	return []live.Snapshot{
		{},
		{Models: []live.ModelState{
			{
				Name: "model-a", Planned: 450, Done: 20, InFlight: 5, Faults: none,
				Left: live.Left{Expected: 65 * time.Minute, ByPlan: true},
			},
			{
				Name: "model-b", Planned: 450, Faults: none,
				Left: live.Left{Expected: time.Minute, ByPlan: true},
			},
		}},
		{
			Elapsed: 65 * time.Second,
			Models: []live.ModelState{
				{
					Name: "model-a", Planned: 450, Done: 120, InFlight: 5, Requests: 700,
					Faults:          faults,
					TokensPerMinute: 34_567,
					Full:            80, Success: live.Interval{Low: .578, High: .745}, Lost: .08,
					Left: live.Left{
						Expected: 185 * time.Second, Low: 150 * time.Second, High: 4 * time.Minute,
					},
					Waits: "rpm of gateway/KEY_0/m, next in 4s",
				},
				{
					Name: "model-b", Planned: 450, Done: 449, InFlight: 1, Requests: 2100,
					Faults: none, TokensPerMinute: 1_200_000, Full: 449,
					Success: live.Interval{Low: .992, High: 1},
					Left:    live.Left{Expected: time.Second, High: 3 * time.Second},
				},
			},
			Success: live.Interval{Low: .901, High: .943},
			Notes:   notes[:1],
			Attention: []live.Attention{
				{Cause: "closed", Text: "model-c closed: auth", Trials: 300, Mend: "mend the key"},
				{Cause: "setting", Text: "model-a: temperature is 1 instead of 0"},
			},
		},
		{
			Elapsed: 3*time.Hour + 5*time.Minute,
			Models: []live.ModelState{
				{
					Name: "model-a", Planned: 450, Done: 447, Parked: 3, Requests: 2400,
					Faults: faults,
				},
				{
					Name: "model-b", Planned: 450, Done: 449, Requests: 2100, Faults: none,
					Closed: "auth (HTTP 401)",
				},
			},
			Stopping: true,
			Notes:    notes,
		},
	}
}

// tell shows the story and then closes the view with its last snapshot.
func tell(v live.View) {
	for _, s := range story() {
		v.Show(s)
	}
	v.Close(story()[3])
}

func TestPlain(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	tell(&live.Plain{W: &b})
	golden.Assert(t, b.String(), "plain.txt")
}

func TestJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	tell(&live.JSON{W: &b})
	golden.Assert(t, b.String(), "json.txt")

	names := map[string][]string{
		"note":     {"event", "text"},
		"progress": {"attention", "elapsed_s", "event", "models", "stopping"},
	}
	modelNames := []string{
		"closed", "done", "faults", "full_success", "in_flight", "left_high_s", "left_low_s",
		"left_s", "lost", "model", "parked", "pending", "planned", "requests", "skipped",
		"success_high", "success_low", "tokens_per_minute", "waits",
	}
	notes := 0
	for line := range strings.Lines(b.String()) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		event, _ := object["event"].(string)
		if diff := cmp.Diff(names[event], slices.Sorted(maps.Keys(object))); diff != "" {
			t.Errorf("names of %q (-want +got):\n%s", event, diff)
		}
		if event == "note" {
			notes++
			continue
		}
		for _, m := range object["models"].([]any) {
			if diff := cmp.Diff(modelNames,
				slices.Sorted(maps.Keys(m.(map[string]any)))); diff != "" {
				t.Errorf("names of a model (-want +got):\n%s", diff)
			}
		}
	}
	if notes != 2 {
		t.Errorf("%d notes, want each of two once", notes)
	}
}

// recorder is a view that records when it was called.
type recorder struct {
	shown []time.Duration
	last  *live.Snapshot
}

func (r *recorder) Show(s live.Snapshot)  { r.shown = append(r.shown, s.Elapsed) }
func (r *recorder) Close(s live.Snapshot) { r.last = &s }

func TestRunShowsAtIntervalsAndCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := live.NewMeter(nil)
		m.Model("a", 1, 0, 0)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(9500*time.Millisecond, func() {
			m.Started("a")
			m.Settled("a", false)
			cancel()
		})
		r := &recorder{}
		every := func(elapsed time.Duration) time.Duration { return max(time.Second, elapsed) }
		live.Run(ctx, m, r, every)
		want := []time.Duration{
			0, 1 * time.Second, 2 * time.Second, 4 * time.Second,
			8 * time.Second,
		}
		if diff := cmp.Diff(want, r.shown); diff != "" {
			t.Errorf("shown at (-want +got):\n%s", diff)
		}
		if r.last == nil || r.last.Elapsed != 9500*time.Millisecond || r.last.Models[0].Done != 1 {
			t.Errorf("closed with %+v, want the state at 9.5 s", r.last)
		}
	})
}

// stuck is a writer whose output nobody reads.
type stuck chan struct{}

func (s stuck) Write(p []byte) (int, error) {
	<-s
	return len(p), nil
}

func TestRunEndsIfViewIsStuck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w := make(stuck)
		defer close(w)
		start := time.Now()
		live.Run(ctx, live.NewMeter(nil), &live.Plain{W: w},
			func(time.Duration) time.Duration { return time.Second })
		if took := time.Since(start); took != 65*time.Second {
			t.Errorf("Run took %v, want a minute plus the close timeout", took)
		}
	})
}

func TestNoneShowsNothing(t *testing.T) {
	t.Parallel()
	tell(live.None{})
}

// TestEndOfUnknownEndpointIsARange checks the words about the end of a run before it is measured.
func TestEndOfUnknownEndpointIsARange(t *testing.T) {
	t.Parallel()
	for low, want := range map[time.Duration]string{
		time.Minute: "1m00s to 2h00m left by the plan", 0: "up to 2h00m left by the plan",
	} {
		left := live.Left{Expected: time.Hour, Low: low, High: 2 * time.Hour, ByPlan: true}
		s := live.Snapshot{Models: []live.ModelState{{Planned: 9, Left: left}}}
		if got := s.EndText(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
