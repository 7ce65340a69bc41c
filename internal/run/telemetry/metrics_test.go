package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/telemetry"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// progress describes a run with two models, one of them an agent.
func progress() terminal.Progress {
	return terminal.Progress{
		Models: []terminal.ModelState{
			{Model: "m", Counts: terminal.Counts{Standing: job.Standing{
				Trials:   job.Trials{Planned: 10, Done: 4, Parked: 1, Pending: 5},
				InFlight: 2, Full: 3,
			}}, InRun: &job.RunCount{
				Outcomes: map[assay.Level]int{assay.Failure: 1}, Faults: map[assay.FaultKind]int{assay.Server: 1},
			}},
			{
				Model: "robot", Counts: terminal.Counts{Standing: job.Standing{
					Trials: job.Trials{Planned: 10, Skipped: 10},
				}},
				Agents: map[assay.AgentState]int{assay.AgentAsking: 7}, InRun: job.NewRunCount(),
			},
		},
		Attention: []terminal.Attention{{Cause: "closed", Trials: 5}, {Cause: "closed", Trials: 6}},
	}
}

// lanes is a lane with limits.
func lanes() []session.LaneReading {
	return []session.LaneReading{{
		Model: "m",
		Status: lane.Status{
			Name: "gw/KEY/m", InFlight: 2, Width: 5, Held: true,
			Limits: lane.Limits{Concurrency: 5, RPM: 600},
		},
		Ledger: lane.Ledger{
			Used: time.Minute, Available: 2 * time.Minute,
			Waited: map[string]time.Duration{"rpm": 30 * time.Second},
		},
	}}
}

// requests are two on that lane.
func requests() []session.LaneUse {
	return []session.LaneUse{{
		Model: "m", Lane: "gw/KEY/m", Requests: 2, Faults: map[assay.FaultKind]int{assay.RateLimited: 1},
		Spend: assay.NewSpend(assay.Usage{
			InputTokens: 100, CachedTokens: 60, CacheWriteTokens: 10,
			OutputTokens: 50, ReasoningTokens: 20,
		}, 0.5),
	}}
}

// serve returns metrics of a run with some requests and attempts.
func serve(t *testing.T) *telemetry.Metrics {
	t.Helper()
	m, err := telemetry.Listen(t.Context(), ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	m.Begin(session.Start{Experiment: "e", Run: "r", Program: "v1"},
		session.Live{Progress: progress, Lanes: lanes, Requests: requests})
	m.Request(lane.Exchange{Model: "m", Took: 300 * time.Millisecond})
	m.Request(lane.Exchange{Model: "m", Fault: &assay.Fault{Kind: assay.RateLimited}})
	now := time.Now()
	saving := assay.Span{Began: now.Add(-3 * time.Millisecond), Ended: now}
	m.Attempt(session.Episode{Saving: saving})
	m.Attempt(session.Episode{Saving: saving})
	return m
}

func get(t *testing.T, address string) string {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v\n%s", address, resp.Status, err, b)
	}
	return string(b)
}

// TestMetricsCount compares every kind of metric with the events of a run.
func TestMetricsCount(t *testing.T) {
	m := serve(t)
	if !strings.HasPrefix(m.URL(), "http://127.0.0.1:") {
		t.Errorf("the address %s is not loopback", m.URL())
	}
	text := get(t, m.URL())
	for _, want := range []string{
		`assay_run_info{experiment="e",program="v1",run="r"} 1`,
		`assay_trials{model="m",state="done"} 4`,
		`assay_trials{model="m",state="parked"} 1`,
		`assay_trials{model="m",state="pending"} 5`,
		`assay_trials{model="robot",state="skipped"} 10`,
		`assay_full_success_trials{model="m"} 3`,
		`assay_episodes_in_flight{model="m"} 2`,
		`assay_agents{model="robot",state="asking"} 7`,
		`assay_attention_trials{cause="closed"} 11`,
		`assay_attempts_total{model="m",result="failure"} 1`,
		`assay_attempts_total{model="m",result="fault"} 1`,
		`assay_attempt_faults_total{fault="server",model="m"} 1`,
		`assay_requests_total{lane="gw/KEY/m",model="m"} 2`,
		`assay_request_faults_total{fault="rate_limited",lane="gw/KEY/m",model="m"} 1`,
		`assay_tokens_total{kind="input",lane="gw/KEY/m",model="m"} 30`,
		`assay_tokens_total{kind="cached_input",lane="gw/KEY/m",model="m"} 60`,
		`assay_tokens_total{kind="cache_write",lane="gw/KEY/m",model="m"} 10`,
		`assay_tokens_total{kind="output",lane="gw/KEY/m",model="m"} 30`,
		`assay_tokens_total{kind="reasoning",lane="gw/KEY/m",model="m"} 20`,
		`assay_cost_dollars_total{lane="gw/KEY/m",model="m"} 0.5`,
		`assay_request_duration_seconds_bucket{model="m",le="0.4"} 2`,
		`assay_store_save_seconds_bucket{le="0.004"} 2`,
		`assay_lane_requests_in_flight{lane="gw/KEY/m",model="m"} 2`,
		`assay_lane_width{lane="gw/KEY/m",model="m"} 5`,
		`assay_lane_limit{lane="gw/KEY/m",limit="rpm",model="m"} 600`,
		`assay_lane_used_seconds_total{lane="gw/KEY/m",model="m"} 60`,
		`assay_lane_available_seconds_total{lane="gw/KEY/m",model="m"} 120`,
		`assay_lane_waited_seconds_total{lane="gw/KEY/m",model="m",reason="rpm"} 30`,
		`assay_lane_closed{lane="gw/KEY/m",model="m"} 0`,
		`assay_lane_paused{lane="gw/KEY/m",model="m"} 1`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("there is no %s", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// TestPromtoolAcceptsMetrics checks names and help texts by the rules of Prometheus.
func TestPromtoolAcceptsMetrics(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed; `make programs` installs it")
	}
	cmd := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	cmd.Stdin = strings.NewReader(get(t, serve(t).URL()))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// TestPrometheusScrapesMetrics starts a Prometheus server and asks it for the scraped metrics.
func TestPrometheusScrapesMetrics(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: starts Prometheus")
	}
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not installed; `make programs` installs it")
	}
	target, err := url.Parse(serve(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 200ms, scrape_timeout: 200ms}\n"+
		"scrape_configs:\n  - {job_name: assay, static_configs: [{targets: [%q]}]}\n", target.Host)
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	address := freeAddress(t)
	cmd := exec.CommandContext(t.Context(), program, "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // the context of the test has ended
		if t.Failed() {
			t.Log(out.String())
		}
	})
	query := "http://" + address + "/api/v1/query?query=" +
		url.QueryEscape(`sum(assay_tokens_total) + sum(assay_trials{state="done"})`)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		value, err := ask(query)
		if err == nil {
			if value != "154" {
				t.Errorf("Prometheus has %s, want 154", value)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// freeAddress returns a loopback address that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	m, err := telemetry.Listen(t.Context(), ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	u, err := url.Parse(m.URL())
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// ask returns the value of a Prometheus query. It fails until there is one.
func ask(query string) (string, error) {
	resp, err := http.Get(query)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any }
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return "", err
	}
	if len(answer.Data.Result) == 0 {
		return "", errors.New("Prometheus has no value yet")
	}
	return fmt.Sprint(answer.Data.Result[0].Value[1]), nil
}

// TestListenRefuses checks addresses that cannot be listened at.
func TestListenRefuses(t *testing.T) {
	m := serve(t)
	u, err := url.Parse(m.URL())
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]string{
		"9464": "is not an address", ":http": "is not an address", u.Host: "in use",
	} {
		if _, err := telemetry.Listen(t.Context(), addr); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", addr, err, want)
		}
	}
}
