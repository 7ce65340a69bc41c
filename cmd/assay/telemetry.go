package main

import (
	"context"
	"net/http"
	"strings"

	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/telemetry"
)

// followers are the programs that follow a run.
type followers struct {
	metrics  *telemetry.Metrics
	notifier *telemetry.Notifier
	traces   *telemetry.Traces
}

// openFollowers connects the programs that an experiment names. It fails only if a name is wrong.
func openFollowers(
	ctx context.Context, d *display, e *plan.Experiment,
) (all followers, err error) {
	if e.Notify != "" {
		if all.notifier, err = openNotifier(d.process, e); err != nil {
			return all, err
		}
	}
	if e.Metrics != "" {
		if all.metrics, err = telemetry.Listen(ctx, e.Metrics); err != nil {
			return all, e.FieldError("metrics", err.Error(), "")
		}
		if d.mode != "none" {
			d.warn("metrics: %s", all.metrics.URL())
		}
	}
	all.traces = openTraces(ctx, d)
	return all, nil
}

// openTraces returns the sender of traces to the collector that the environment names. It returns
// nil without such a collector. Variables that are meant for other programs do not stop a run.
func openTraces(ctx context.Context, d *display) *telemetry.Traces {
	env := func(names ...string) string {
		for _, name := range names {
			if value, _ := d.process.env(name); value != "" {
				return value
			}
		}
		return ""
	}
	if env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT") == "" ||
		strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") || env("OTEL_TRACES_EXPORTER") == "none" {
		return nil
	}
	if env("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL") == "grpc" {
		d.warn("assay: there are no traces, because OTEL_EXPORTER_OTLP_PROTOCOL is grpc\n" +
			"hint: http/protobuf works, at port 4318 of most collectors")
		return nil
	}
	t, err := telemetry.OpenTraces(ctx, version(), env(telemetry.CaptureContent) == "true")
	if err != nil {
		d.warn("assay: there are no traces: %s", err)
		return nil
	}
	return t
}

// openNotifier returns a notifier for the URL in an environment variable. Errors do not show the
// URL, because it is a secret.
func openNotifier(p *process, e *plan.Experiment) (*telemetry.Notifier, error) {
	address, _ := p.env(e.Notify)
	if address == "" {
		return nil, e.FieldError("notify", "that environment variable is not set",
			"notify is the name of a variable that has the URL of the webhook")
	}
	n, err := telemetry.NewNotifier(address, http.DefaultTransport.(*http.Transport).Clone())
	if err != nil {
		return nil, e.FieldError("notify", err.Error(), "")
	}
	return n, nil
}

func (f *followers) observers() (all []session.Observer) {
	if f.metrics != nil {
		all = append(all, f.metrics)
	}
	if f.notifier != nil {
		all = append(all, f.notifier)
	}
	if f.traces != nil {
		all = append(all, f.traces)
	}
	return all
}

// close stops the server of metrics, and warns of undelivered messages and traces.
func (f *followers) close(d *display) error {
	if f.notifier != nil && f.notifier.Missed() != "" {
		d.warn("assay: %s", f.notifier.Missed())
	}
	if f.traces != nil && f.traces.Missed() != "" {
		d.warn("assay: %s", f.traces.Missed())
	}
	if f.metrics != nil {
		return f.metrics.Close()
	}
	return nil
}
