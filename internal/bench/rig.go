package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/assay-eval/assay/internal/model/simserver"
)

// keyName is the environment variable with the key of all providers.
const keyName = "SIM_KEY"

// A Rig starts the program that it measures, and the servers that this talks
// to, as processes of their own. They end with the context that starts them.
type Rig struct {
	// Program is the executable.
	Program string
	// Dir is for all files; whoever made it removes it.
	Dir   string
	files int // made so far
}

// A Measured is what became of a scenario.
type Measured struct {
	Usage
	Display
	Started time.Time
	// Stats are the server's at the end, or when the run was stopped, and
	// Before those at [Scenario.From].
	Stats, Before simserver.Stats
}

// PerSecond is how many calls the server answered in a second.
func (m Measured) PerSecond() float64 {
	return Quotient(float64(m.Stats.Requests), m.Stats.LastResponse.Sub(m.Stats.FirstRequest).Seconds())
}

// PerCall is the CPU time of a call, in µs.
func (m Measured) PerCall() float64 {
	return Quotient(float64(m.CPU.Microseconds()), float64(m.Stats.Requests))
}

// UntilFirst is the time from the start of the process to its first request.
func (m Measured) UntilFirst() time.Duration { return m.Stats.FirstRequest.Sub(m.Started) }

// Phases says in a few words where the wall time went.
func (m Measured) Phases() string {
	last := m.Started.Add(m.Wall).Sub(m.Stats.LastResponse)
	return fmt.Sprintf("%.2f s from the start of the process to its end, of which %.2f s before the first request and %.2f s after the last response",
		m.Wall.Seconds(), m.UntilFirst().Seconds(), last.Seconds())
}

// Traffic is what each deployment let through between [Scenario.From] and the
// end.
func (m Measured) Traffic() map[string]Traffic {
	all := make(map[string]Traffic)
	for _, l := range m.Stats.PerLane {
		all[l.Deployment] = Traffic{l.Requests, l.Tokens}
	}
	for _, l := range m.Before.PerLane {
		all[l.Deployment] = Traffic{all[l.Deployment].Requests - l.Requests, all[l.Deployment].Tokens - l.Tokens}
	}
	return all
}

// Path is the name of a new file.
func (r *Rig) Path(name string) string {
	r.files++
	return filepath.Join(r.Dir, fmt.Sprintf("%d-%s", r.files, name))
}

func (r *Rig) write(name, text string) (string, error) {
	path := r.Path(name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

func (r *Rig) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.Program, args...)
	cmd.Env = append(os.Environ(), keyName+"=bench")
	return cmd
}

// Files writes the two files of a scenario and returns the experiment's path.
func (r *Rig) Files(s Scenario, url string) (string, error) {
	providers, err := r.write("providers.yaml", s.providers(url))
	if err != nil {
		return "", err
	}
	return r.write("bench.yaml", s.experiment(providers))
}

// Run carries out a scenario against a server of its own.
func (r *Rig) Run(ctx context.Context, s Scenario) (Measured, error) {
	server, err := r.Serve(ctx, s)
	if err != nil {
		return Measured{}, err
	}
	defer server.Stop()
	return r.RunAt(ctx, s, server.URL)
}

// RunAt carries out a scenario against the server at an address.
func (r *Rig) RunAt(ctx context.Context, s Scenario, url string) (m Measured, err error) {
	process, err := r.start(ctx, s, url, &m)
	if err != nil {
		return m, err
	}
	if s.Stop == 0 {
		if m.Usage, err = process.Wait(); err == nil {
			m.Stats, err = statsOf(ctx, url)
		}
		return m, err
	}
	err = m.follow(ctx, s, url)
	process.Kill()
	m.Usage, _ = process.Wait() // it was killed
	return m, err
}

// KillAt starts a run and kills it so long after its start.
func (r *Rig) KillAt(ctx context.Context, s Scenario, url string, after time.Duration) (m Measured, err error) {
	process, err := r.start(ctx, s, url, &m)
	if err != nil {
		return m, err
	}
	err = sleep(ctx, after)
	process.Kill()
	m.Usage, _ = process.Wait() // it was killed
	return m, err
}

func (r *Rig) start(ctx context.Context, s Scenario, url string, m *Measured) (*Process, error) {
	experiment, err := r.Files(s, url)
	if err != nil {
		return nil, err
	}
	if s.Store == "" {
		s.Store = r.Path("results.db")
	}
	process, err := Start(r.command(ctx, "run", experiment, "--store", s.Store, "--display", "json"), m.read)
	if err != nil {
		return nil, err
	}
	m.Started = process.Started
	return process, nil
}

// follow waits for the first request and then until it is time to stop.
func (m *Measured) follow(ctx context.Context, s Scenario, url string) (err error) {
	for m.Stats.FirstRequest.IsZero() {
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
		if m.Stats, err = statsOf(ctx, url); err != nil {
			return err
		}
	}
	first := m.Stats.FirstRequest
	if s.From > 0 {
		if err := sleep(ctx, time.Until(first.Add(s.From))); err != nil {
			return err
		}
		if m.Before, err = statsOf(ctx, url); err != nil {
			return err
		}
	}
	if err := sleep(ctx, time.Until(first.Add(s.Stop))); err != nil {
		return err
	}
	m.Stats, err = statsOf(ctx, url)
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

// A Server is `assay sim serve`.
type Server struct {
	URL     string
	process *Process
}

// Stop kills the server.
func (s *Server) Stop() {
	s.process.Kill()
	_, _ = s.process.Wait() // it was killed
}

// Serve starts the server of a scenario.
func (r *Rig) Serve(ctx context.Context, s Scenario) (*Server, error) {
	address := make(chan string, 1) // it is printed once
	process, err := Start(r.command(ctx, s.serverArgs()...), func(line []byte) {
		if _, rest, ok := strings.Cut(string(line), "base_url: "); ok {
			address <- strings.TrimSuffix(strings.TrimSpace(rest), "/v1")
		}
	})
	if err != nil {
		return nil, err
	}
	select {
	case url := <-address:
		return &Server{url, process}, nil
	case <-time.After(time.Minute):
		err = fmt.Errorf("`assay %s` tells no address", strings.Join(s.serverArgs(), " "))
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	process.Kill()
	_, _ = process.Wait() // it was killed
	return nil, err
}

func statsOf(ctx context.Context, url string) (s simserver.Stats, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/stats", nil)
	if err != nil {
		return s, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	return s, json.NewDecoder(resp.Body).Decode(&s)
}

// Record returns a file with the bodies of the requests that some trials of a
// scenario send.
func (r *Rig) Record(ctx context.Context, s Scenario) (string, error) {
	server, err := r.Serve(ctx, Scenario{})
	if err != nil {
		return "", err
	}
	defer server.Stop()
	recorder, err := NewRecorder(server.URL)
	if err != nil {
		return "", err
	}
	proxy := httptest.NewServer(recorder)
	defer proxy.Close()
	s.Trials, s.Limits, s.Store = 100, "concurrency: 32", ""
	if _, err := r.RunAt(ctx, s, proxy.URL); err != nil {
		return "", err
	}
	text, err := json.Marshal(recorder.Bodies())
	if err != nil {
		return "", err
	}
	return r.write("bodies.json", string(text))
}

// Limit has a bare client, `assay bench limit`, send n recorded requests to a
// server like that of a scenario.
func (r *Rig) Limit(ctx context.Context, s Scenario, bodies string, n, connections int) (m Measured, err error) {
	server, err := r.Serve(ctx, s)
	if err != nil {
		return m, err
	}
	defer server.Stop()
	var done Replayed
	process, err := Start(r.command(ctx, "bench", "limit", bodies, "--url", server.URL+"/v1/chat/completions",
		"--requests", fmt.Sprint(n), "--connections", fmt.Sprint(connections)),
		func(line []byte) { _ = json.Unmarshal(line, &done) })
	if err != nil {
		return m, err
	}
	if m.Usage, err = process.Wait(); err != nil {
		return m, err
	}
	if done.Requests != n || done.Failed > 0 {
		return m, fmt.Errorf("the bare client did %d of %d requests, and %d failed", done.Requests, n, done.Failed)
	}
	m.Stats, err = statsOf(ctx, server.URL)
	return m, err
}
