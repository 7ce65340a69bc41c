package telemetry

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/run/session"
)

// hanging is an exporter that never answers.
type hanging struct{}

func (hanging) ExportSpans(ctx context.Context, _ []sdktrace.ReadOnlySpan) error {
	<-ctx.Done()
	return ctx.Err()
}

func (hanging) Shutdown(context.Context) error { return nil }

// TestHungCollectorSlowsNothing gives attempts to a collector that hangs. They take no time, the
// queue stays bounded, and the end of the run waits half a minute.
func TestHungCollectorSlowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, err := newTraces(t.Context(), hanging{}, "v1", false)
		if err != nil {
			t.Fatal(err)
		}
		var notes []string
		tr.Begin(session.Start{}, session.Live{Note: func(s string) { notes = append(notes, s) }})
		began := time.Now()
		attempt := func() {
			tr.Attempt(session.Episode{
				Attempt: &assay.Attempt{FaultKind: assay.Server, StartedAt: began, FinishedAt: began},
				Saving:  assay.Span{Began: began, Ended: began}, Transcript: &assay.Transcript{},
			})
		}
		for range batchSize / 2 { // two spans each, so that the worker hangs after these
			attempt()
		}
		synctest.Wait()
		for range maxEpisodes + 100 {
			attempt()
		}
		if took := time.Since(began); took > 0 || len(tr.queue) != maxEpisodes {
			t.Errorf("attempts took %v, %d wait", took, len(tr.queue))
		}
		tr.End(&session.Summary{})
		if took := time.Since(began); took != flushWithin {
			t.Errorf("the end took %v, want %v", took, flushWithin)
		}
		lost := batchSize + 2*maxEpisodes + 1 // with the span of the run
		if tr.lost != lost || tr.dropped.Load() != 100 || len(notes) != 2 ||
			!strings.Contains(tr.Missed(), "1153 spans and 100 attempts: it does not answer") {
			t.Errorf("lost %d, want %d; notes %q; missed %q", tr.lost, lost, notes, tr.Missed())
		}
	})
}

// TestStoppedRunWaitsLess ends runs whose collector hangs, and checks what their spans say of them.
func TestStoppedRunWaitsLess(t *testing.T) {
	for _, c := range []struct {
		sum    session.Summary
		within time.Duration
		status string
	}{
		{session.Summary{Trials: job.Trials{Done: 4, Planned: 4}}, flushWithin, "success"},
		{session.Summary{Trials: job.Trials{Done: 3, Planned: 4}}, flushWithin, "failure"},
		{session.Summary{Trials: job.Trials{Done: 3, Planned: 4}, Stopped: true}, stoppedWithin, "aborted"},
	} {
		synctest.Test(t, func(t *testing.T) {
			tr, err := newTraces(t.Context(), hanging{}, "v1", false)
			if err != nil {
				t.Fatal(err)
			}
			tr.Begin(session.Start{}, session.Live{Note: func(string) {}})
			began := time.Now()
			tr.End(&c.sum)
			if took := time.Since(began); took != c.within || statusOf(&c.sum) != c.status {
				t.Errorf("%s took %v, want %s and %v", statusOf(&c.sum), took, c.status, c.within)
			}
		})
	}
}
