package terminal_test

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
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/stat"
	"github.com/assay-eval/assay/internal/run/terminal"
	"gotest.tools/v3/golden"
)

// story returns the progress of a run from start to end.
func story() []terminal.Progress {
	notes := []string{
		"gateway/KEY_0/m: rate_limited (HTTP 429): slow down",
		"model-b is closed: auth (HTTP 401)",
	}
	faults := assay.FaultCount{
		Ended:   map[assay.FaultKind]int{assay.Auth: 3},
		Retried: map[assay.FaultKind]int{assay.RateLimited: 12, assay.Timeout: 3},
	}
	faulted := func(c terminal.Counts) terminal.Counts { c.FaultCount = faults; return c }
	return []terminal.Progress{
		{},
		{Models: []terminal.ModelState{
			{
				Model: "model-a", Counts: counts(450, 20, 0, 5),
				Left: &terminal.TimeLeft{Seconds: 65 * 60, Basis: terminal.ByPlan},
			},
			{
				Model: "model-b", Counts: counts(450, 0, 0, 0),
				Left: &terminal.TimeLeft{Seconds: 60, Basis: terminal.ByPlan},
			},
		}},
		{
			Elapsed: 65,
			Models: []terminal.ModelState{
				{
					Model: "model-a", Counts: faulted(succeeded(counts(450, 120, 0, 5), 80, .578, .745)),
					Requests: 700, TokensPerMinute: 34_567, Lost: .08,
					Left:  &terminal.TimeLeft{Seconds: 185, Low: 150, High: 240, Basis: terminal.ByPace},
					Waits: "rpm of gateway/KEY_0/m, next in 4s",
				},
				{
					Model: "model-b", Counts: succeeded(counts(450, 449, 0, 1), 449, .992, 1),
					Requests: 2100, TokensPerMinute: 1_200_000,
					Left: &terminal.TimeLeft{Seconds: 1, High: 3, Basis: terminal.ByPace},
				},
			},
			Counts: counts(900, 569, 0, 6),
			Notes:  notes[:1],
			Attention: []terminal.Attention{
				{Cause: "closed", Text: "model-c closed: auth", Trials: 300, Advice: "correct the key"},
				{Cause: "setting", Text: "model-a: temperature is 1 instead of 0"},
			},
		},
		{
			Elapsed: 3*3600 + 5*60,
			Models: []terminal.ModelState{
				{Model: "model-a", Counts: faulted(counts(450, 447, 3, 0)), Requests: 2400},
				{
					Model: "model-b", Counts: counts(450, 449, 0, 0), Requests: 2100,
					Closed: "auth (HTTP 401)",
				},
			},
			Stopping: true,
			Notes:    notes,
		},
	}
}

// counts returns counts in which all other trials are pending.
func counts(planned, done, parked, inFlight int) terminal.Counts {
	return terminal.Counts{Standing: job.Standing{InFlight: inFlight, Trials: job.Trials{
		Planned: planned, Done: done, Parked: parked, Pending: planned - done - parked,
	}}}
}

// succeeded returns counts with full successes and the interval of their rate.
func succeeded(c terminal.Counts, full int, low, high float64) terminal.Counts {
	c.Full = full
	c.Success = &terminal.Success{
		Rate: float64(full) / float64(c.Done), Interval: stat.Interval{Low: low, High: high},
	}
	return c
}

// tell plays the story and then closes the view with its last progress.
func tell(v terminal.View) {
	for _, s := range story() {
		v.Show(s)
	}
	v.Close(story()[3])
}

func TestPlain(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	tell(&terminal.Plain{W: &b})
	golden.Assert(t, b.String(), "plain.txt")
}

func TestJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	tell(&terminal.JSON{W: &b})
	golden.Assert(t, b.String(), "json.txt")

	names := map[string][]string{
		"note": {"event", "text"},
		"progress": {
			"attention", "cost_usd", "done", "elapsed_s", "event", "experiment", "faults", "forecast_s",
			"full_success", "in_flight", "models", "parked", "partial_success", "pending", "planned",
			"retried", "run", "skipped", "spent", "stopping", "tokens",
		},
	}
	modelNames := []string{
		"closed", "done", "faults", "full_success", "in_flight", "lanes", "left_high_s",
		"left_low_s", "left_s", "lost", "model", "parked", "partial_success", "pending", "planned",
		"requests", "retried", "skipped", "spent", "success_high", "success_low",
		"tokens_per_minute", "waiting", "waits",
	}
	optional := []string{"left", "success", "waits_for"}
	notes := 0
	for line := range strings.Lines(b.String()) {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		event, _ := object["event"].(string)
		if diff := cmp.Diff(names[event], namesOf(object, optional)); diff != "" {
			t.Errorf("names of %q (-want +got):\n%s", event, diff)
		}
		if event == "note" {
			notes++
			continue
		}
		for _, m := range object["models"].([]any) {
			if diff := cmp.Diff(modelNames, namesOf(m.(map[string]any), optional)); diff != "" {
				t.Errorf("names of a model (-want +got):\n%s", diff)
			}
		}
	}
	if notes != 2 {
		t.Errorf("%d notes, want each of two once", notes)
	}
}

// namesOf returns the names of an object without optional ones, in order.
func namesOf(object map[string]any, optional []string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(object)), func(name string) bool {
		return slices.Contains(optional, name)
	})
}

// recorder is a view that records when it was called.
type recorder struct {
	shown []float64
	last  *terminal.Progress
}

func (r *recorder) Show(s terminal.Progress)  { r.shown = append(r.shown, s.Elapsed) }
func (r *recorder) Close(s terminal.Progress) { r.last = &s }

func TestRunShowsAtIntervalsAndCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		progress := func() terminal.Progress { return terminal.Progress{Elapsed: time.Since(began).Seconds()} }
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(9500*time.Millisecond, cancel)
		r := &recorder{}
		every := func(elapsed time.Duration) time.Duration { return max(time.Second, elapsed) }
		terminal.Run(ctx, progress, r, every)
		want := []float64{0, 1, 2, 4, 8}
		if diff := cmp.Diff(want, r.shown); diff != "" {
			t.Errorf("shown at (-want +got):\n%s", diff)
		}
		if r.last == nil || r.last.Elapsed != 9.5 {
			t.Errorf("closed with %+v, want the state at 9.5 s", r.last)
		}
	})
}

// stuck is a writer whose output is not read.
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
		terminal.Run(ctx, func() terminal.Progress { return terminal.Progress{} }, &terminal.Plain{W: w},
			func(time.Duration) time.Duration { return time.Second })
		if took := time.Since(start); took != 65*time.Second {
			t.Errorf("Run took %v, want a minute plus the close timeout", took)
		}
	})
}

// TestEndOfUnknownEndpointIsARange checks the words about the end of a run before it is measured.
func TestEndOfUnknownEndpointIsARange(t *testing.T) {
	t.Parallel()
	for low, want := range map[float64]string{
		60: "1m00s to 2h00m left by the plan", 0: "up to 2h00m left by the plan",
	} {
		left := &terminal.TimeLeft{Seconds: 3600, Low: low, High: 7200, Basis: terminal.ByPlan}
		p := terminal.Progress{Models: []terminal.ModelState{{Counts: counts(9, 0, 0, 0), Left: left}}}
		if got := p.EndText(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
