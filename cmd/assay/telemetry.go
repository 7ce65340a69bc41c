package main

import (
	"context"
	"net/http"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/telemetry"
)

// telemetryFlags name the programs that follow a run.
type telemetryFlags struct{ metrics, notify string }

func (f *telemetryFlags) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.metrics, "metrics", "",
		"serve metrics for Prometheus at `ADDRESS`, such as :9464 (only this machine can reach it)")
	cmd.Flags().StringVar(&f.notify, "notify", "",
		"post to a webhook when the run ends or needs you: its `URL`, or the name of an environment "+
			"variable that has it")
}

// followers are the programs that follow a run.
type followers struct {
	metrics  *telemetry.Metrics
	notifier *telemetry.Notifier
	traces   *telemetry.Traces
}

// open connects the programs that the flags name. It fails only if a flag is wrong.
func (f *telemetryFlags) open(ctx context.Context, d *display) (all followers, err error) {
	if f.notify != "" {
		if all.notifier, err = openNotifier(d.process, f.notify); err != nil {
			return all, err
		}
	}
	if f.metrics != "" {
		if all.metrics, err = telemetry.Listen(ctx, f.metrics); err != nil {
			return all, usageError("--metrics: %w", err)
		}
		if d.mode != "none" {
			d.warn("metrics: %s", all.metrics.URL())
		}
	}
	all.traces = openTraces(ctx, d)
	return all, nil
}

// openTraces returns what sends traces to the collector that the environment names. It is nil if
// there is none. Variables that are meant for other programs do not stop a run.
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

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// openNotifier returns a notifier for a URL, or the environment variable that has one. Errors do
// not show the URL, because it is a secret.
func openNotifier(p *process, address string) (*telemetry.Notifier, error) {
	if variableName.MatchString(address) {
		if address, _ = p.env(address); address == "" {
			return nil, usageError("--notify: that environment variable is not set\n" +
				"hint: give the URL of the webhook, or the name of a variable that has it")
		}
	}
	n, err := telemetry.NewNotifier(address, http.DefaultTransport.(*http.Transport).Clone())
	if err != nil {
		return nil, usageError("--notify: %w", err)
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

// close ends what still serves, and warns of what was not delivered.
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
