package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/assay-eval/assay/internal/model/simserver"
)

// keyName is the environment variable with the key of all providers.
const keyName = "SIM_KEY"

// rig starts assay, simulated servers and bare clients as child processes. They
// end with the context that started them.
type rig struct {
	assay string // path of the program to measure
	self  string // path of this program, which also is the bare client
	dir   string // holds all files
	files int    // number of files named so far
}

// measured is the result of running a scenario.
type measured struct {
	usage
	displayEvents
	started time.Time
	// stats are the server's at the end, or when the run was stopped. before are its stats at
	// [workload.from].
	stats, before simserver.Stats
}

// perSecond returns how many calls the server answered per second.
func (m measured) perSecond() float64 {
	span := m.stats.LastResponse.Sub(m.stats.FirstRequest)
	return quotient(float64(m.stats.Requests), span.Seconds())
}

// perCall returns the CPU time per call in µs.
func (m measured) perCall() float64 {
	return quotient(float64(m.cpu.Microseconds()), float64(m.stats.Requests))
}

// untilFirst returns the time from the start of the process to its first request.
func (m measured) untilFirst() time.Duration { return m.stats.FirstRequest.Sub(m.started) }

// phases describes how the wall time was spent.
func (m measured) phases() string {
	last := m.started.Add(m.wall).Sub(m.stats.LastResponse)
	return fmt.Sprintf("the process took %.2f s, %.2f s of it before the first request "+
		"and %.2f s after the last response",
		m.wall.Seconds(), m.untilFirst().Seconds(), last.Seconds())
}

// traffic returns the traffic that each deployment let through between [workload.from] and the end.
func (m measured) traffic() map[string]traffic {
	all := make(map[string]traffic)
	for _, l := range m.stats.PerLane {
		all[l.Deployment] = traffic{l.Requests, l.Tokens}
	}
	for _, l := range m.before.PerLane {
		end := all[l.Deployment]
		all[l.Deployment] = traffic{end.requests - l.Requests, end.tokens - l.Tokens}
	}
	return all
}

// path returns the path of a new file.
func (r *rig) path(name string) string {
	r.files++
	return filepath.Join(r.dir, fmt.Sprintf("%d-%s", r.files, name))
}

func (r *rig) write(name, text string) (string, error) {
	path := r.path(name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

func (r *rig) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), keyName+"=bench")
	return cmd
}

// writeFiles writes the two files of a scenario and returns the path of the
// experiment file.
func (r *rig) writeFiles(s workload, url string) (string, error) {
	providers, err := r.write("providers.yaml", s.providers(url))
	if err != nil {
		return "", err
	}
	return r.write("bench.yaml", s.experiment(providers))
}

// runScenario runs a scenario against a new server.
func (r *rig) runScenario(ctx context.Context, s workload) (measured, error) {
	server, err := r.serve(ctx, s)
	if err != nil {
		return measured{}, err
	}
	defer server.stop()
	return r.runAt(ctx, s, server.url)
}

// runAt runs a scenario against an existing server.
func (r *rig) runAt(ctx context.Context, s workload, url string) (m measured, err error) {
	process, err := r.startRun(ctx, s, url, &m)
	if err != nil {
		return m, err
	}
	if s.stop == 0 {
		if m.usage, err = process.wait(); err == nil {
			m.stats, err = statsOf(ctx, url)
		}
		return m, err
	}
	err = m.follow(process.whileRunning(ctx), s, url)
	process.kill()
	var failed error // or killed
	if m.usage, failed = process.wait(); errors.Is(err, errEnded) {
		return m, errors.Join(err, failed)
	}
	return m, err
}

// killAfter starts a run and kills it after a delay.
func (r *rig) killAfter(
	ctx context.Context, s workload, url string, delay time.Duration,
) (m measured, err error) {
	process, err := r.startRun(ctx, s, url, &m)
	if err != nil {
		return m, err
	}
	err = sleep(ctx, delay)
	process.kill()
	m.usage, _ = process.wait() // the error only reports the kill
	return m, err
}

func (r *rig) startRun(
	ctx context.Context, s workload, url string, m *measured,
) (*childProcess, error) {
	experiment, err := r.writeFiles(s, url)
	if err != nil {
		return nil, err
	}
	if s.store == "" {
		s.store = r.path("results.db")
	}
	args := []string{"run", experiment, "--store", s.store, "--display", "json"}
	command := r.command(ctx, r.assay, args...)
	if s.certificate != "" {
		command.Env = append(command.Env, certificateVariable+"="+s.certificate)
	}
	process, err := start(command, m.read)
	if err != nil {
		return nil, err
	}
	m.started = process.started
	return process, nil
}

// follow waits for the first request and then until the run is to be stopped. It
// returns the cause if the context ends before.
func (m *measured) follow(ctx context.Context, s workload, url string) (err error) {
	for m.stats.FirstRequest.IsZero() {
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
		if m.stats, err = statsOf(ctx, url); err != nil {
			return err
		}
	}
	first := m.stats.FirstRequest
	if s.from > 0 {
		if err := sleep(ctx, time.Until(first.Add(s.from))); err != nil {
			return err
		}
		if m.before, err = statsOf(ctx, url); err != nil {
			return err
		}
	}
	if err := sleep(ctx, time.Until(first.Add(s.stop))); err != nil {
		return err
	}
	m.stats, err = statsOf(ctx, url)
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// serve starts the server of a scenario.
func (r *rig) serve(ctx context.Context, s workload) (*server, error) {
	if s.plain > 0 {
		return listen(ctx, r.command(ctx, r.self, plainVerb, "--latency", s.plain.String(),
			"--hang", fmt.Sprint(s.hang), "--seed", fmt.Sprint(s.seed), "--tls", s.certificate))
	}
	return listen(ctx, r.command(ctx, r.assay, s.serverArgs()...))
}

// observer reads statistics. It trusts any certificate, because servers make their own.
var observer = http.Client{Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13},
}}

// statsOf returns the statistics of a server.
func statsOf(ctx context.Context, url string) (stats simserver.Stats, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/stats", nil)
	if err != nil {
		return stats, err
	}
	resp, err := observer.Do(req)
	if err != nil {
		return stats, err
	}
	defer resp.Body.Close()
	return stats, json.NewDecoder(resp.Body).Decode(&stats)
}

// record runs some trials of a scenario and returns the path of a file with the bodies of their
// requests.
func (r *rig) record(ctx context.Context, s workload) (string, error) {
	var mu sync.Mutex
	var bodies [][]byte
	recorder := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err == nil && req.Method == http.MethodPost {
			mu.Lock()
			bodies = append(bodies, body)
			mu.Unlock()
		}
		_, _ = io.WriteString(w, plainReply)
	}))
	defer recorder.Close()
	s.trials, s.limits, s.store = 100, concurrency(32), ""
	if _, err := r.runAt(ctx, s, recorder.URL); err != nil {
		return "", err
	}
	text, err := json.Marshal(bodies)
	if err != nil {
		return "", err
	}
	return r.write("bodies.json", string(text))
}

// runBareClient sends n recorded requests with a bare client to a server like
// the one of a scenario.
func (r *rig) runBareClient(
	ctx context.Context, s workload, bodies string, n, connections int,
) (m measured, err error) {
	server, err := r.serve(ctx, s)
	if err != nil {
		return m, err
	}
	defer server.stop()

	cmd := r.command(ctx, r.self, bareClientVerb,
		"--url", server.url+"/v1/chat/completions",
		"--requests", fmt.Sprint(n), "--connections", fmt.Sprint(connections), bodies)
	var result replayed
	process, err := start(cmd, func(line []byte) { _ = json.Unmarshal(line, &result) })
	if err != nil {
		return m, err
	}
	if m.usage, err = process.wait(); err != nil {
		return m, err
	}
	if result.Requests != n || result.Failed > 0 {
		return m, fmt.Errorf("the bare client sent %d of %d requests, and %d failed",
			result.Requests, n, result.Failed)
	}
	m.stats, err = statsOf(ctx, server.url)
	return m, err
}
