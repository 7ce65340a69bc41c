package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/model/simserver"
	"github.com/assay-eval/assay/internal/task/library"
)

type simFlags struct {
	addr    string
	library string
	keys    []string
	limits  []string
	faults  []string
	latency time.Duration
	sigma   float64
	seed    uint64
	headers string
	waits   string
	think   string
	tariff  string
}

func newSim(p *process) *cobra.Command {
	return group("sim", "Serve the simulated models",
		"  assay sim serve\n  assay sim serve --help            limits, latency and faults",
		newSimServe(p))
}

func newSimServe(p *process) *cobra.Command {
	var f simFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the simulated models behind the APIs of hosted models",
		Long: `Serve puts the built-in models behind a real HTTP server that speaks every protocol of a
providers file, with rate limits per key and deployment, latency, faults, and models that
think. Use it to rehearse an experiment before paying for it.

A model's deployment can be written with dashes and a number: sim-optimal-2 is a second
deployment of sim/optimal and has its own limits. GET /stats returns counters of the
requests, and with --tariff what each model has cost.

Limits: concurrency, rpm, rpd, tpm, itpm, otpm. They hold in every span of a minute, and rpd
in every span of a day.

Faults: ` + wrapped(simserver.FaultKinds()) + `.
Without --fault there are none. A 429 announces a wait of one second, as --retry-after says.`,
		Example: `  assay sim serve
  assay sim serve --limit rpm=600,concurrency=8 --limit sim/optimal:rpm=60
  assay sim serve --limit tpm=200000 --limit-headers none --retry-after silent
  assay sim serve --latency 800ms --fault hang=1% --fault 500=3% --fault 429=3%
  assay sim serve --tariff input=1.25,cached=0.125,output=10`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return serveSim(cmd.Context(), p, f) },
	}
	cmd.Flags().StringVar(&f.addr, "addr", "127.0.0.1:8080",
		"the address to listen on; port 0 picks a free one")
	cmd.Flags().StringVar(&f.library, "library", library.BuiltinName,
		"the library whose tools sim/expert knows, and whose tasks sim/made knows")
	cmd.Flags().StringArrayVar(&f.keys, "key", nil,
		"accept only the keys in these environment `variables`; the default is any key")
	cmd.Flags().StringArrayVar(&f.limits, "limit", nil,
		"`limits` for each key and deployment: [MODEL:]rpm=N,tpm=N,...")
	cmd.Flags().StringVar(&f.headers, "limit-headers", simserver.HeadersOpenAI,
		"how responses report the limits: "+strings.Join(simserver.HeaderStyles(), ", "))
	cmd.Flags().StringVar(&f.waits, "retry-after", simserver.RetryAfterBoth,
		"how a refusal reports the wait: "+strings.Join(simserver.RetryAfters(), ", "))
	cmd.Flags().StringVar(&f.think, "thinking", gateway.ThinkingNone,
		"let the models think and insist on their thoughts; the style is for chat completions: "+
			strings.Join(gateway.ThinkingStyles(), ", "))
	cmd.Flags().StringVar(&f.tariff, "tariff", "",
		"`prices` in dollars per million tokens: input=N,output=N,cached=N,cache_write=N; with "+
			"cached, the server caches prompts")
	choice(cmd, "thinking", gateway.ThinkingStyles()...)
	choice(cmd, "limit-headers", simserver.HeaderStyles()...)
	choice(cmd, "retry-after", simserver.RetryAfters()...)
	cmd.Flags().StringArrayVar(&f.faults, "fault", nil,
		"misbehave in this `share` of the requests, such as 500=3%")
	cmd.Flags().DurationVar(&f.latency, "latency", 0, "median time until a reply")
	cmd.Flags().Float64Var(&f.sigma, "latency-sigma", 0.4,
		"standard deviation of the logarithm of the latency")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1,
		"decides the latencies and which requests meet a fault")
	return cmd
}

// wrapped lists names in lines that fit a terminal. The first line starts with a word.
func wrapped(names []string) string {
	var b strings.Builder
	width := len("Faults: ")
	for i, n := range names {
		switch width += len(n) + len(", "); {
		case i > 0 && width > 80:
			b.WriteString(",\n")
			width = len(n)
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(n)
	}
	return b.String()
}

func (f simFlags) config(p *process) (simserver.Config, error) {
	cfg := simserver.Config{
		Models: sim.Names, Seed: f.seed, Headers: f.headers, RetryAfter: f.waits,
		Thinking: f.think,
		Latency:  simserver.Latency{Median: f.latency, Sigma: f.sigma},
	}
	for _, s := range f.limits {
		l, err := simserver.ParseLimit(s)
		if err != nil {
			return cfg, usageError("--limit %s: %w", s, err)
		}
		cfg.Limits = append(cfg.Limits, l)
	}
	for _, s := range f.faults {
		x, err := simserver.ParseFault(s)
		if err != nil {
			return cfg, usageError("--fault %s: %w", s, err)
		}
		cfg.Faults = append(cfg.Faults, x)
	}
	if f.tariff != "" {
		var err error
		if cfg.Tariff, err = simserver.ParseTariff(f.tariff); err != nil {
			return cfg, usageError("--tariff: %w", err)
		}
	}
	for _, name := range f.keys {
		value, ok := p.env(name)
		if !ok || value == "" {
			return cfg, usageError("--key %s: the environment variable is not set", name)
		}
		cfg.Keys = append(cfg.Keys, value)
	}
	return cfg, nil
}

func serveSim(ctx context.Context, p *process, f simFlags) error {
	cfg, err := f.config(p)
	if err != nil {
		return err
	}
	lib, err := library.OpenNamed(ctx, f.library)
	if err != nil {
		return err
	}
	defer lib.Close()
	cfg.Provider = sim.New(lib.Catalog(), sim.Latency{}).
		Knowing(lib.Answer).KnowingTasks(lib.Described)
	handler, err := simserver.New(cfg)
	if err != nil {
		return usageError("%w", err)
	}
	listener, err := net.Listen("tcp", f.addr)
	if err != nil {
		return fmt.Errorf("%w\nhint: --addr 127.0.0.1:0 takes a free port", err)
	}
	server := &http.Server{
		Handler: handler, ConnState: handler.ConnState, ReadHeaderTimeout: 10 * time.Second,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	addr := listener.Addr().String()
	fmt.Fprintf(p.err, "serving simulated models on http://%s; Ctrl-C stops the server\n"+
		"export SIM_KEY=any, and use this as a providers file:\n\n", addr)
	fmt.Fprint(p.out, simserver.ProvidersFile(addr, f.tariff))
	select {
	case err = <-failed:
	case <-p.signals:
		fmt.Fprintln(p.err, "stopping")
		// Close ends delayed responses, so Shutdown has little to wait for.
		stop, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		err = errors.Join(handler.Close(), server.Shutdown(stop))
		<-failed
	}
	stats := handler.Stats()
	fmt.Fprintf(p.err, "%d requests, %d over a limit, at most %d at once\n",
		stats.Requests, stats.OverLimit, stats.MaxInFlight)
	for _, model := range slices.Sorted(maps.Keys(stats.Bills)) {
		fmt.Fprintf(p.err, "%s cost $%.6f\n", model, float64(stats.Bills[model].MicroUSD)/1e6)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
