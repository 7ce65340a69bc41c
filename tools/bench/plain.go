package main

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
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

// runPlainServer serves until the process is killed. It prints its address like `assay sim serve`.
func runPlainServer(ctx context.Context, args []string) error {
	p := &plain{}
	flags := flag.NewFlagSet(plainVerb, flag.ExitOnError)
	flags.DurationVar(&p.latency, "latency", 0, "time to each reply")
	share := flags.Float64("hang", 0, "share of requests that are never answered")
	seed := flags.Uint64("seed", 1, "decides which requests these are")
	certificate := flags.String("tls", "", "serve HTTP/2, and write the certificate to this `file`")
	_ = flags.Parse(args) // ends the program if it fails
	p.hangs = newHangs(*share, *seed)
	mux := http.NewServeMux()
	mux.Handle("POST /v1/chat/completions", p)
	mux.HandleFunc("GET /stats", p.serveStats)
	server := httptest.NewUnstartedServer(mux)
	if *certificate == "" {
		server.Start()
	} else {
		server.EnableHTTP2 = true
		server.StartTLS()
		block := pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
		if err := os.WriteFile(*certificate, pem.EncodeToMemory(&block), 0o600); err != nil {
			return err
		}
	}
	fmt.Printf("base_url: %s/v1\n", server.URL)
	<-ctx.Done()
	return nil
}

// A load is a number of one-turn attempts.
type load struct {
	trials, slots int
	latency       time.Duration
	// bound is the greatest wall time ÷ the bare client's if it is above 1, else the least share of
	// the ideal.
	bound        float64
	walls, bare  []float64 // seconds of whole processes
	shares       []float64 // of the ideal, as the server saw it
	cpu, bareCPU []float64 // seconds of whole processes
}

func (l *load) ideal() float64 {
	return (time.Duration(l.trials/l.slots) * l.latency).Seconds()
}

// oneTurn is measurement 2h: attempts of one turn beside a bare client, each round anew.
func (b *bench) oneTurn(ctx context.Context) ([]figure, error) {
	const short = 100 * time.Millisecond
	few := load{trials: b.size(5000, 500), slots: b.size(1000, 100), latency: short, bound: 2}
	loads := []*load{
		{trials: few.trials, slots: b.size(200, 50), latency: short, bound: .90},
		&few,
		{trials: b.size(20_000, 1000), slots: few.slots, latency: short, bound: 2.5},
		{trials: b.size(10_000, 1000), slots: few.slots, latency: time.Second, bound: .96},
	}
	bodies, err := b.record(ctx, workload{model: sim.Claimer})
	if err != nil {
		return nil, err
	}
	rounds, undone := b.size(5, 1), 0
	for range rounds {
		for _, l := range loads {
			n, err := b.play(ctx, l, bodies)
			if err != nil {
				return nil, err
			}
			undone += n
		}
	}
	many := loads[2]
	perAttempt := func(few, many []float64, n int) float64 {
		return 1e6 * (median(many...) - median(few...)) / float64(n)
	}
	extra := many.trials - few.trials
	rows := []figure{
		countRow("trials not done", undone).zero(),
		newRow("CPU per attempt", micros, perAttempt(few.cpu, many.cpu, extra)).
			below(250).beside(perAttempt(few.bareCPU, many.bareCPU, extra)).
			because("of %d attempts without the CPU of %d, so without start and planning; medians "+
				"of %d rounds", many.trials, few.trials, rounds),
	}
	for _, l := range loads {
		what := fmt.Sprintf("%d × %v, %d at once: ", l.trials, l.latency, l.slots)
		wall, bare := median(l.walls...), median(l.bare...)
		if l.bound > 1 {
			rows = append(rows, newRow(what+"wall time ÷ bare client's", share, quotient(wall, bare)).
				below(l.bound).because("%.2f and %.2f s of whole processes", wall, bare))
			continue
		}
		rows = append(rows, newRow(what+"share of the ideal", share, median(l.shares...)).
			atLeast(l.bound).beside(quotient(l.ideal(), bare)).because(
			"from the first request to the last response; %.2f with start and end",
			quotient(l.ideal(), wall)))
	}
	return rows, nil
}

// play adds a run and a bare client to a load. It returns how many trials were not done.
func (b *bench) play(ctx context.Context, l *load, bodies string) (undone int, err error) {
	s := workload{
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
	l.walls, l.cpu = append(l.walls, m.wall.Seconds()), append(l.cpu, m.cpu.Seconds())
	l.bare, l.bareCPU = append(l.bare, bare.wall.Seconds()), append(l.bareCPU, bare.cpu.Seconds())
	served := m.stats.LastResponse.Sub(m.stats.FirstRequest).Seconds()
	l.shares = append(l.shares, quotient(l.ideal(), served))
	return m.undone(), nil
}
