package telemetry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/session"
)

const (
	// maxEpisodes is how many attempts wait for the collector. Further ones are dropped.
	maxEpisodes = 512
	// batchSize and batchEvery are how many spans are sent at once, and how often. MLflow may take 40 ms
	// for a span, and has to answer within the ten seconds of the exporter.
	batchSize  = 128
	batchEvery = 5 * time.Second
	// flushWithin is how long the end of a run waits for the collector, as in the SDKs, and
	// stoppedWithin how long if the user stopped the run.
	flushWithin   = 30 * time.Second
	stoppedWithin = 5 * time.Second
)

// Traces sends a trace of each attempt to a collector of OpenTelemetry. Spans are made from
// attempts that are on disk, by a separate goroutine.
type Traces struct {
	exporter sdktrace.SpanExporter
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	content  bool // spans have the messages
	start    session.Start
	live     session.Live
	run      trace.Span
	queue    chan session.Episode
	ending   chan *session.Summary
	cancel   context.CancelFunc
	worker   sync.WaitGroup
	dropped  atomic.Int64 // attempts

	// The worker has these. After End, Missed reads them.
	spans batch
	lost  int // spans
	why   error
}

// OpenTraces connects to the collector that the OTEL_* variables of the environment name, once
// there is something to send.
func OpenTraces(ctx context.Context, version string, content bool) (*Traces, error) {
	// The SDK's own messages would tear the live view, and may quote the headers.
	otel.SetLogger(logr.Discard())
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
		Enabled: true, InitialInterval: time.Second, MaxInterval: 5 * time.Second,
		MaxElapsedTime: 30 * time.Second,
	}))
	if err != nil {
		return nil, errors.New("the OTEL_* variables cannot be used") // err may quote the headers
	}
	return newTraces(ctx, exporter, version, content)
}

func newTraces(
	ctx context.Context, exporter sdktrace.SpanExporter, version string, content bool,
) (*Traces, error) {
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "assay"),
			attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, errors.New("OTEL_RESOURCE_ATTRIBUTES cannot be used")
	}
	t := &Traces{
		exporter: exporter, content: content,
		queue: make(chan session.Episode, maxEpisodes), ending: make(chan *session.Summary, 1),
	}
	t.provider = sdktrace.NewTracerProvider(sdktrace.WithResource(about),
		sdktrace.WithSpanProcessor(&t.spans), sdktrace.WithIDGenerator(ids{}))
	t.tracer = t.provider.Tracer("github.com/assay-eval/assay",
		trace.WithInstrumentationVersion(version))
	return t, nil
}

// ids derives the ID of a trace from the identity of what it shows, so that it can be found from an
// exported attempt: docs/telemetry.md has the formula. The IDs of spans are random.
type ids struct{}

type identityKey struct{}

// withTrace returns a context for the first span of the trace that shows what has an identity.
func withTrace(ctx context.Context, identity string) context.Context {
	return context.WithValue(ctx, identityKey{}, identity)
}

// NewIDs implements [sdktrace.IDGenerator].
func (i ids) NewIDs(ctx context.Context) (id trace.TraceID, first trace.SpanID) {
	identity, _ := ctx.Value(identityKey{}).(string)
	sum := sha256.Sum256([]byte(identity))
	return trace.TraceID(sum[:len(id)]), i.NewSpanID(ctx, id)
}

// NewSpanID implements [sdktrace.IDGenerator].
func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	_, _ = rand.Read(id[:]) // it never fails
	return id
}

// A batch collects spans that have ended. Only the worker ends spans.
type batch []sdktrace.ReadOnlySpan

func (b *batch) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (b *batch) OnEnd(s sdktrace.ReadOnlySpan)                   { *b = append(*b, s) }
func (b *batch) Shutdown(context.Context) error                  { return nil }
func (b *batch) ForceFlush(context.Context) error                { return nil }

var _ session.Observer = (*Traces)(nil)

// Begin implements [session.Observer].
func (t *Traces) Begin(s session.Start, l session.Live) {
	t.start, t.live = s, l
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	_, t.run = t.tracer.Start(withTrace(ctx, string(s.Run)), "experiment "+s.Experiment,
		trace.WithAttributes(experimentName.String(s.Experiment), runID.String(string(s.Run)),
			suiteName.String(s.Experiment)))
	t.worker.Go(func() { t.work(ctx) })
}

// Request implements [session.Observer].
func (*Traces) Request(lane.Exchange) {}

// Attempt implements [session.Observer].
func (t *Traces) Attempt(e session.Episode) {
	select {
	case t.queue <- e:
	default:
		if t.dropped.Add(1) == 1 {
			t.live.Note("the collector of traces is slower than the run, so some trials have no trace")
		}
	}
}

// End implements [session.Observer]. It takes half a minute at most.
func (t *Traces) End(sum *session.Summary) {
	within := flushWithin
	if sum.Stopped {
		within = stoppedWithin
	}
	timer := time.AfterFunc(within, t.cancel)
	defer timer.Stop()
	t.ending <- sum
	t.worker.Wait()
	t.cancel()
}

// Missed describes the spans that the collector did not get. It returns "" if it got all.
func (t *Traces) Missed() string {
	dropped := t.dropped.Load()
	if t.lost == 0 && dropped == 0 {
		return ""
	}
	text := fmt.Sprintf("the collector of traces did not get %d spans", t.lost)
	if dropped > 0 {
		text += fmt.Sprintf(" and %d attempts", dropped)
	}
	if t.why != nil {
		text += ": " + t.why.Error()
	}
	return text
}

// work makes spans and sends them until the run has ended.
func (t *Traces) work(ctx context.Context) {
	tick := time.NewTicker(batchEvery)
	defer tick.Stop()
	for {
		select {
		case e := <-t.queue:
			t.record(ctx, e)
		case <-tick.C:
			t.export(ctx)
		case sum := <-t.ending:
			for len(t.queue) > 0 {
				t.record(ctx, <-t.queue)
			}
			t.run.SetAttributes(trialsDone.Int(sum.Done), trialsPlanned.Int(sum.Planned),
				suiteStatus.String(statusOf(sum)))
			t.run.End()
			t.export(ctx)
			return
		}
	}
}

// statusOf says whether the run has all outcomes, whatever they are.
func statusOf(sum *session.Summary) string {
	switch {
	case sum.Stopped:
		return "aborted"
	case sum.Done < sum.Planned:
		return "failure"
	}
	return "success"
}

// record makes the spans of an attempt, and sends them when there are enough.
func (t *Traces) record(ctx context.Context, e session.Episode) {
	t.trial(ctx, e)
	if len(t.spans) >= batchSize {
		t.export(ctx)
	}
}

// export sends the spans. The exporter tries again for a while.
func (t *Traces) export(ctx context.Context) {
	if len(t.spans) == 0 {
		return
	}
	spans := t.spans
	t.spans = nil
	err := t.exporter.ExportSpans(ctx, spans)
	if err == nil {
		return
	}
	if m := rejected.FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1])
		t.lost += n
		err = errors.New("it rejected spans")
	} else {
		t.lost += len(spans)
		err = exportError(err)
	}
	if t.why == nil {
		t.why = err
		t.live.Note("traces do not reach the collector: " + t.why.Error())
	}
}

var (
	statusText = regexp.MustCompile(`\b[45]\d\d [A-Z][a-z]+`)
	rejected   = regexp.MustCompile(`\((\d+) spans rejected\)`)
)

// exportError returns an error without the address and the headers, which may have a secret.
func exportError(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	if status := statusText.FindString(err.Error()); status != "" {
		return errors.New("HTTP " + status)
	}
	return errors.New("it does not answer")
}
