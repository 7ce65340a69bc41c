package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/model/simserver"
)

// plainVerb makes this program act as the plain server.
const plainVerb = "plain-server"

// plainReply ends an episode in its first turn.
const plainReply = `{"id":"1","object":"chat.completion","created":1,"model":"claimer",` +
	`"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant",` +
	`"content":"All steps are done. TASK_COMPLETED"}}],` +
	`"usage":{"prompt_tokens":1000,"completion_tokens":10,"total_tokens":1010}}`

// plain is a server that reads a request, waits, and sends the same reply to all. It takes as
// little from the machine as a server can.
type plain struct {
	latency time.Duration

	mu    sync.Mutex // guards the fields below
	stats simserver.Stats
	hangs *hangs
}

func (p *plain) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	p.mu.Lock()
	if p.stats.Requests++; p.stats.Requests == 1 {
		p.stats.FirstRequest = time.Now()
	}
	p.stats.InFlight++
	p.stats.MaxInFlight = max(p.stats.MaxInFlight, p.stats.InFlight)
	hang := p.hangs.next()
	p.mu.Unlock()
	defer p.left()
	_, _ = io.Copy(io.Discard, req.Body)
	if hang {
		<-req.Context().Done() // the client left
		return
	}
	time.Sleep(p.latency)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, plainReply)
	p.mu.Lock()
	p.stats.LastResponse = time.Now()
	p.mu.Unlock()
}

func (p *plain) left() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stats.InFlight--
}

func (p *plain) serveStats(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = json.NewEncoder(w).Encode(p.stats)
}

// runPlainServer serves until ctx ends or the process is killed. It prints its address like
// `assay sim serve`.
func runPlainServer(ctx context.Context, args []string, out io.Writer) error {
	p := &plain{}
	var share float64
	var seed uint64
	flags := flag.NewFlagSet(plainVerb, flag.ContinueOnError)
	flags.DurationVar(&p.latency, "latency", 0, "time to each reply")
	flags.Float64Var(&share, "hang", 0, "share of requests that are never answered")
	flags.Uint64Var(&seed, "seed", 1, "decides which requests these are")
	certificate := flags.String("tls", "", "serve https and HTTP/2, and write the certificate to "+
		"this `file`")
	if err := flags.Parse(args); err != nil {
		return errUsage
	}
	p.hangs = newHangs(share, seed)
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /v1/chat/completions", p)
	mux.HandleFunc("GET /stats", p.serveStats)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	serve, scheme := server.Serve, "http"
	if *certificate != "" {
		if server.TLSConfig, err = ownTLS(*certificate); err != nil {
			return err
		}
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
		scheme = "https"
	}
	fmt.Fprintf(out, "base_url: %s://%s/v1\n", scheme, listener.Addr())
	if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return context.Cause(ctx)
}

// A load is a number of one-turn attempts.
type load struct {
	trials, slots int
	latency       time.Duration
	walls, bare   []float64 // seconds of whole processes
	shares        []float64 // of the ideal, as the server saw it
	cpu, bareCPU  []float64 // seconds of whole processes
}

// oneTurn is measurement 2h: attempts of one turn beside a bare client, each round anew.
func (b *bench) oneTurn(ctx context.Context) ([]row, error) {
	const short = 100 * time.Millisecond
	loads := []load{
		{trials: b.size(5000, 500), slots: b.size(200, 50), latency: short},
		{trials: b.size(5000, 500), slots: b.size(1000, 100), latency: short},
		{trials: b.size(20_000, 1000), slots: b.size(1000, 100), latency: short},
		{trials: b.size(10_000, 1000), slots: b.size(1000, 100), latency: time.Second},
	}
	bodies, err := b.record(ctx, scenario{model: sim.Claimer})
	if err != nil {
		return nil, err
	}
	rounds, undone := b.size(5, 1), 0
	for range rounds {
		for i := range loads {
			n, err := b.play(ctx, &loads[i], bodies)
			if err != nil {
				return nil, err
			}
			undone += n
		}
	}
	return append(oneTurnRows(loads, rounds), countRow("trials not done", undone).zero()), nil
}

// play adds a run and a bare client to a load. It returns how many trials were not done.
func (b *bench) play(ctx context.Context, l *load, bodies string) (undone int, err error) {
	s := scenario{
		plain: l.latency, model: sim.Claimer, trials: l.trials, limits: concurrency(l.slots),
	}
	bare, err := b.runBareClient(ctx, s, bodies, l.trials, l.slots)
	if err != nil {
		return 0, err
	}
	m, err := b.runScenario(ctx, s)
	if err != nil {
		return 0, err
	}
	l.walls = append(l.walls, m.wall.Seconds())
	l.bare = append(l.bare, bare.wall.Seconds())
	l.cpu = append(l.cpu, m.cpu.Seconds())
	l.bareCPU = append(l.bareCPU, bare.cpu.Seconds())
	ideal := (time.Duration(l.trials/l.slots) * l.latency).Seconds()
	l.shares = append(l.shares,
		quotient(ideal, m.stats.LastResponse.Sub(m.stats.FirstRequest).Seconds()))
	return m.undone(), nil
}

func oneTurnRows(loads []load, rounds int) (rows []row) {
	note := fmt.Sprintf("whole processes; median of %d rounds", rounds)
	few, many := &loads[1], &loads[2]
	perAttempt := func(few, many []float64, n int) float64 {
		return 1e6 * (median(many...) - median(few...)) / float64(n)
	}
	extra := many.trials - few.trials
	rows = append(rows, newRow("CPU per attempt", micros, perAttempt(few.cpu, many.cpu, extra)).
		below(250).beside(perAttempt(few.bareCPU, many.bareCPU, extra)).
		because("that of %d attempts without that of %d, so without start and planning",
			many.trials, few.trials))
	for i, l := range loads {
		what := fmt.Sprintf("%d × %v, %d at once: ", l.trials, l.latency, l.slots)
		ideal := (time.Duration(l.trials/l.slots) * l.latency).Seconds()
		switch i {
		case 1, 2:
			slower := newRow(what+"wall time ÷ bare client's", share,
				quotient(median(l.walls...), median(l.bare...)))
			rows = append(rows, slower.below([]float64{2, 2.5}[i-1]).because(
				"%.2f and %.2f s; %s", median(l.walls...), median(l.bare...), note))
		default:
			used := newRow(what+"share of the ideal", share, median(l.shares...))
			rows = append(rows, used.atLeast(map[int]float64{0: 0.90, 3: 0.96}[i]).
				beside(quotient(ideal, median(l.bare...))).because(
				"from the first request to the last response; %.2f with start and end",
				quotient(ideal, median(l.walls...))))
		}
	}
	return rows
}
