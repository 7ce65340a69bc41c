package check_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/model/simserver"
	"github.com/assay-eval/assay/internal/run/check"
	"github.com/assay-eval/assay/internal/task/library"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "check")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", dir) // for the built-in library
	code := m.Run()
	os.RemoveAll(dir)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// serve starts a simulated server behind a filter of its responses, which may be nil.
func serve(t *testing.T, cfg simserver.Config, filter func(turn int, body []byte) []byte) string {
	t.Helper()
	lib, err := library.Builtin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lib.Close() })
	cfg.Provider, cfg.Models = sim.New(lib.Catalog(), sim.Latency{}), sim.Names
	handler, err := simserver.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var turn atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if filter == nil {
			handler.ServeHTTP(w, r)
			return
		}
		inner := httptest.NewRecorder()
		handler.ServeHTTP(inner, r)
		body := filter(int(turn.Add(1)), inner.Body.Bytes())
		status := inner.Code
		if bytes.Contains(body, []byte(`{"error"`)) {
			status = http.StatusBadRequest
		}
		inner.Header().Del("Content-Length")
		for name, values := range inner.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}))
	t.Cleanup(func() { handler.Close(); server.Close() })
	return server.URL
}

// run checks the models of a providers file.
func run(t *testing.T, providers string, timeout time.Duration, models ...string) []check.Result {
	t.Helper()
	path := filepath.Join(t.TempDir(), "providers.yaml")
	if err := os.WriteFile(path, []byte(providers), 0o600); err != nil {
		t.Fatal(err)
	}
	e := plan.Quickstart()
	if err := e.SetModels(models); err != nil {
		t.Fatal(err)
	}
	e.SetProviders(path)
	j, err := job.Open(t.Context(), e, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	env := func(name string) (string, bool) { return "value-of-" + name, true }
	pools, err := j.Pools(env, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pools.Close()
	results, err := check.Run(t.Context(), j, pools, timeout)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func file(base, serve string) string {
	return "providers:\n  p:\n    base_url: " + base + "/v1\n    keys: [KEY]\n    models:\n   " +
		"   sim/optimal: {" + serve + "}\n"
}

// TestEveryProtocolIsFine checks servers that do everything right, with models that insist on
// their thoughts.
func TestEveryProtocolIsFine(t *testing.T) {
	base := serve(t, simserver.Config{
		Thinking: gateway.ThinkingContent, Limits: []simserver.Limit{{RPM: 60}},
	}, nil)
	text := "providers:\n"
	for i, p := range []struct{ name, path, more string }{
		{"openai", "/v1", ""},
		{"azure", "", "    api_version: 2024-10-21\n"},
		{"responses", "/v1", ""},
		{"anthropic", "", ""},
		{"gemini", "/v1beta", ""},
	} {
		text += fmt.Sprintf("  %s:\n    protocol: %[1]s\n    base_url: %s%s\n%s    keys: "+
			"[KEY_%[5]s]\n    models:\n      m-%[1]s: {deployments: [sim-optimal-%[6]d], "+
			"serves: [sim/optimal]}\n",
			p.name, base, p.path, p.more, strings.ToUpper(p.name), i)
	}
	results := run(t, text, 0, "m-openai", "m-azure", "m-responses", "m-anthropic",
		"m-gemini")
	for _, r := range results {
		if r.Fault != nil || r.Turns != 2 || r.Calls != check.Parsed || r.State != check.Accepted ||
			r.Usage.Total() == 0 || len(r.Changes) > 0 || r.Served != "sim/optimal" {
			t.Errorf("%+v, want everything to be fine", r)
		}
	}
	if n := results[0].Limits.RPM; len(results) != 5 || n != 60 {
		t.Errorf("%d results, the first with rpm %d, want 5 and 60", len(results), n)
	}
}

// TestWhatToChange checks servers that have one thing wrong, each on its own lane.
func TestWhatToChange(t *testing.T) {
	always := func(kind string) simserver.Config {
		return simserver.Config{Faults: []simserver.Fault{{Kind: kind, Share: 1}}}
	}
	replace := func(pattern, with string) func(int, []byte) []byte {
		re := regexp.MustCompile(pattern)
		return func(_ int, b []byte) []byte { return re.ReplaceAll(b, []byte(with)) }
	}
	short, long := 3*time.Second, time.Minute
	for _, tc := range []struct {
		name   string
		server simserver.Config
		filter func(int, []byte) []byte
		serve  string // of the providers file
		limit  time.Duration
		kind   string // of the fault
		want   string // in a change or a note
	}{
		{"fine", simserver.Config{}, nil, "", long, "", ""},
		{
			"sometimes busy",
			simserver.Config{
				Faults: []simserver.Fault{{Kind: "500", Share: .5}}, Seed: 3,
			},
			nil, "", long, "", "",
		},
		{
			"key",
			simserver.Config{Keys: []string{"another"}},
			nil, "", long, "auth",
			"the endpoint refuses the key in KEY",
		},
		{"forbidden", always("403"), nil, "", long, "auth", "the endpoint refuses the key in KEY"},
		{"credit", always("quota"), nil, "", long, "quota", "has no credit left"},
		{
			"deployment",
			simserver.Config{},
			nil, "deployments: [sim-optimum]", long, "not_found",
			`does not know "sim-optimum": write the endpoint's own name, deployments: [NAME]`,
		},
		{
			"another model", always("wrong-model"), nil, "", long, "identity",
			"write serves: [\"sim/listed\"] below model sim/optimal",
		},
		{
			"no model",
			simserver.Config{},
			replace(`"model":"[^"]*"`, `"model":""`), "", long, "identity",
			`write serves: [""] below model sim/optimal`,
		},
		{
			"hang", always("hang"), nil, "", short, "timeout",
			"needs a longer --timeout",
		},
		{
			"busy", always("429"), nil, "", short, "rate_limited", "the endpoint was busy all " +
				"the time",
		},
		{"down", always("500"), nil, "", short, "server", "correct protocol or base_url"},
		{"page", always("html"), nil, "", short, "malformed", "correct protocol or base_url"},
		{"reset", always("reset"), nil, "", short, "network", "no connection to provider p"},
		{"refusal", always("400"), nil, "", long, "bad_request", "take the setting that it " +
			"names out"},
		{
			"state",
			simserver.Config{Thinking: gateway.ThinkingContent},
			func(turn int, b []byte) []byte {
				if turn == 1 {
					return b
				}
				return []byte(`{"error":{"message":"reasoning is not valid","type":"invalid_request_error"}}`)
			},
			"", long, "bad_request", "the endpoint refuses the state of its own reply",
		},
		{
			"result of a tool",
			simserver.Config{},
			func(turn int, b []byte) []byte {
				if turn == 1 {
					return b
				}
				return []byte(`{"error":{"message":"role tool is unknown","type":"invalid_request_error"}}`)
			},
			"", long, "bad_request", "refuses a conversation with the result of a tool",
		},
		{
			"calls as text",
			simserver.Config{},
			func(_ int, b []byte) []byte {
				call := strconv.Quote("<tool_call>{\"name\": \"execute_tool\", \"arguments\": " +
					"{}}</tool_call>")
				b = regexp.MustCompile(`"content":(null|"[^"]*")`).ReplaceAll(b, []byte(`"content":`+call))
				return regexp.MustCompile(`,?"tool_calls":\[.*?\}\}\]`).ReplaceAll(b, nil)
			},
			"", long, "", "the endpoint leaves calls of tools in the text",
		},
		{
			"broken call",
			simserver.Config{},
			replace(`"arguments":"`, `"arguments":"<`), "", long, "",
			"arguments that are not a JSON object",
		},
		{
			"no usage",
			simserver.Config{},
			replace(`"usage":\{([^{}]|\{[^{}]*\})*\}`, `"usage":null`),
			"", long, "", "does not report how many tokens replies use",
		},
		{
			"no usage but a price",
			simserver.Config{},
			replace(`"usage":\{([^{}]|\{[^{}]*\})*\}`, `"usage":null`),
			"price: {input: 1, output: 2}", long, "", "dollars and limits on tokens are estimates",
		},
		{
			"stated too high",
			simserver.Config{Limits: []simserver.Limit{{RPM: 600}}},
			nil,
			"limits: {rpm: 6000}", long, "", "write limits: {rpm: 600} below model sim/optimal",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			base := serve(t, tc.server, tc.filter)
			r := run(t, file(base, tc.serve), tc.limit, "sim/optimal")[0]
			kind := ""
			if r.Fault != nil {
				kind = string(r.Fault.Kind)
			}
			if kind != tc.kind {
				t.Errorf("fault %q, want %q: %+v", kind, tc.kind, r.Fault)
			}
			words := strings.Join(append(r.Changes, r.Notes...), "\n")
			if tc.want == "" && words != "" || !strings.Contains(words, tc.want) {
				t.Errorf("advice %q, want %q", words, tc.want)
			}
			if out := fmt.Sprintf("%+v %v", r, r.Fault); strings.Contains(out, "value-of-KEY") {
				t.Errorf("the result has the key: %s", out)
			}
			if kind != "" && len(r.Changes) == 0 {
				t.Errorf("the fault %s has no advice", kind)
			}
		})
	}
}
