package telemetry_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/telemetry"
)

// A receiver is a collector that speaks OTLP over HTTP.
type receiver struct {
	answer *collector.ExportTraceServiceResponse
	status int

	mu       sync.Mutex
	spans    []*tracepb.Span
	resource map[string]string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	b, _ := io.ReadAll(req.Body)
	var m collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(b, &m); err != nil || req.URL.Path != "/v1/traces" {
		http.Error(w, "not traces", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rs := range m.ResourceSpans {
		r.resource = attributes(rs.Resource.Attributes)
		for _, ss := range rs.ScopeSpans {
			r.spans = append(r.spans, ss.Spans...)
		}
	}
	answer, err := proto.Marshal(r.answer)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	w.WriteHeader(r.status)
	_, _ = w.Write(answer)
}

func attributes(all []*common.KeyValue) map[string]string {
	out := make(map[string]string)
	for _, kv := range all {
		text := kv.Value.String()
		_, text, _ = strings.Cut(text, ":")
		out[kv.Key] = strings.Trim(text, `"`)
	}
	return out
}

// collect traces episodes and returns the collector's spans, and a report of missed ones.
func collect(t *testing.T, r *receiver, content bool, all ...session.Episode) string {
	t.Helper()
	server := httptest.NewServer(r)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization="+canary)
	tr, err := telemetry.OpenTraces(t.Context(), "v1", content)
	if err != nil {
		t.Fatal(err)
	}
	tr.Begin(start, (&troubles{}).live())
	for _, e := range all {
		tr.Attempt(e)
	}
	tr.End(&session.Summary{Trials: job.Trials{Done: 3, Planned: 4}})
	return tr.Missed()
}

// start is a run with one provider. Tests change it.
var start = session.Start{
	Experiment: "e", Run: "r",
	Endpoints: map[string]string{"gw/KEY/m-1": "https://generativelanguage.googleapis.com/v1beta"},
}

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func at(from, to int) assay.Span {
	second := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Second) }
	return assay.Span{Began: second(from), Ended: second(to)}
}

// played is an attempt with a call that met a fault of its tool, and a last reply.
func played() session.Episode {
	call := assay.ToolCall{ID: "call-7", Name: "call_tool", Arguments: `{"name":"reader","x":1}`}
	first := assay.Message{Role: assay.Assistant, Content: "secret plan", Calls: []assay.ToolCall{call}}
	last := assay.Message{Role: assay.Assistant, Content: "done"}
	settings := assay.Sampling{
		Temperature: new(0.5), TopP: new(0.9), MaxTokens: new(100), Seed: new(int64(7)), Effort: "high",
	}
	return session.Episode{
		Attempt: &assay.Attempt{
			Trial: assay.Trial{
				ID: "t1", Cell: assay.Cell{Model: "m", Variant: "optimal"}, Task: "k",
				Setting: assay.Setting{Sampling: settings},
			},
			Number: 2, Experiment: "e", Run: "r", Lane: "gw/KEY/m-1", Deviations: "no top_p",
			Spend:     assay.NewSpend(assay.Usage{InputTokens: 30, OutputTokens: 3}, 0),
			Outcome:   assay.Outcome{Level: assay.Failure, ErrorCategory: assay.CategoryOther},
			StartedAt: at(0, 0).Began, FinishedAt: at(0, 9).Ended,
		},
		Transcript: &assay.Transcript{
			Messages: []assay.Message{
				{Role: assay.User, Content: "secret prompt"},
				first,
				{Role: assay.ToolRole, CallID: "call-7", Content: "secret error"},
				last,
			},
			Calls: []assay.CallRecord{{
				Turn: 1, Tool: "reader", Arguments: `{"secret":1}`, Code: "TIMEOUT", Output: `{"error":1}`,
			}},
			Turns: []assay.TurnRecord{{Finish: "tool_calls"}, {Finish: "stop"}},
			Spans: []assay.Span{at(4, 5)},
		},
		Chats: []session.Chat{
			{Span: at(1, 4), Request: assay.Request{
				Sampling: settings, Functions: []assay.Function{{
					Name: "call_tool", Description: "secret tool", Parameters: []byte(`{"type":"object"}`),
				}},
			}, Response: assay.Response{
				Message: first, Lane: "gw/KEY/m-1", ServedModel: "m-1-0805", ID: "resp-1",
				Finish: "tool_calls", Deviations: []string{"no top_p"},
				Usage: assay.Usage{InputTokens: 10, OutputTokens: 1, CachedTokens: 4, ReasoningTokens: 1},
			}},
			{Span: at(5, 9), Response: assay.Response{
				Message: last, Lane: "gw/KEY/m-1", ServedModel: "m-1-0805", Finish: "stop",
				Usage: assay.Usage{InputTokens: 20, OutputTokens: 2},
			}},
		},
		Saving: at(9, 10),
	}
}

// tree lists spans in the order of their beginning, with their depth and seconds.
func tree(spans []*tracepb.Span) (lines []string) {
	byID := make(map[string]*tracepb.Span)
	for _, s := range spans {
		byID[string(s.SpanId)] = s
	}
	depth := func(s *tracepb.Span) (n int) {
		for ; byID[string(s.ParentSpanId)] != nil; n++ {
			s = byID[string(s.ParentSpanId)]
		}
		return n
	}
	slices.SortStableFunc(spans, func(a, b *tracepb.Span) int {
		if a.StartTimeUnixNano == b.StartTimeUnixNano {
			return depth(a) - depth(b)
		}
		return int(int64(a.StartTimeUnixNano) - int64(b.StartTimeUnixNano))
	})
	for _, s := range spans {
		seconds := func(n uint64) float64 { return time.Unix(0, int64(n)).Sub(noon).Seconds() }
		lines = append(lines, fmt.Sprintf("%s%s %g-%g", strings.Repeat(" ", depth(s)), s.Name,
			seconds(s.StartTimeUnixNano), seconds(s.EndTimeUnixNano)))
	}
	return lines
}

// TestTraceOfTrial checks the spans of a trial: their tree, times, names and attributes.
func TestTraceOfTrial(t *testing.T) {
	r := &receiver{status: http.StatusOK}
	if missed := collect(t, r, false, played()); missed != "" {
		t.Error(missed)
	}
	if r.resource["service.name"] != "assay" || r.resource["service.version"] != "v1" {
		t.Errorf("resource %v", r.resource)
	}
	run := r.spans[slices.IndexFunc(r.spans, func(s *tracepb.Span) bool {
		return s.Name == "experiment e"
	})]
	trial := slices.DeleteFunc(slices.Clone(r.spans), func(s *tracepb.Span) bool { return s == run })
	want := []string{
		"trial 0-10", " invoke_agent m 0-9", "  chat m 1-4", "  execute_tool reader 4-5", "  chat m 5-9",
	}
	if diff := cmp.Diff(want, tree(trial)); diff != "" {
		t.Fatalf("spans (-want +got):\n%s", diff)
	}
	for _, s := range trial {
		if hex.EncodeToString(s.TraceId) != hex.EncodeToString(trial[0].TraceId) {
			t.Errorf("%s is in another trace", s.Name)
		}
	}
	if len(trial[0].Links) != 1 || string(trial[0].Links[0].SpanId) != string(run.SpanId) {
		t.Errorf("the trial has links %v", trial[0].Links)
	}
	for i, want := range []map[string]string{
		{
			"assay.trial": "t1", "assay.attempt": "2", "assay.experiment": "e", "assay.variant": "optimal",
			"assay.model": "m", "gen_ai.request.model": "", "test.suite.name": "e", "test.case.name": "k",
			"test.case.result.status": "fail",
		},
		{
			"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "m",
			"gen_ai.conversation.id": "t1/2", "gen_ai.usage.input_tokens": "30",
			"gen_ai.request.temperature": "0.5", "gen_ai.request.top_p": "", "gen_ai.agent.version": "",
		},
		{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "gcp.gemini",
			"gen_ai.request.model": "m", "gen_ai.response.id": "resp-1",
			"server.address": "generativelanguage.googleapis.com", "server.port": "443",
			"gen_ai.request.temperature": "0.5", "gen_ai.request.top_p": "",
			"gen_ai.request.max_tokens": "100", "gen_ai.request.seed": "7",
			"gen_ai.request.reasoning.level": "high",
			"gen_ai.response.model":          "m-1-0805", "gen_ai.usage.input_tokens": "10",
			"gen_ai.usage.output_tokens": "1", "gen_ai.usage.cache_read.input_tokens": "4",
			"gen_ai.usage.reasoning.output_tokens": "1", "gen_ai.conversation.id": "t1/2",
		},
		{
			"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "reader",
			"gen_ai.tool.call.id": "call-7", "error.type": "TIMEOUT", "assay.tool.fault": "before",
			"gen_ai.agent.name": "m", "mcp.method.name": "",
		},
	} {
		got := attributes(trial[i].Attributes)
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s has %s %q, want %q", trial[i].Name, name, got[name], value)
			}
		}
	}
	// printf r/t1/2 | sha256sum | cut -c 1-32
	if id := hex.EncodeToString(trial[0].TraceId); id != "09b77023e744ed5d74800385e62a6a6a" {
		t.Errorf("the trace is %s", id)
	}
	if got := attributes(run.Attributes); got["test.suite.name"] != "e" ||
		got["test.suite.run.status"] != "failure" { // 3 of 4
		t.Errorf("the run has %v", got)
	}
	if len(trial[1].Events) != 1 {
		t.Fatalf("events %v", trial[1].Events)
	}
	event := trial[1].Events[0]
	got := attributes(event.Attributes)
	if event.Name != "gen_ai.evaluation.result" || got["gen_ai.evaluation.score.value"] != "0" ||
		got["gen_ai.evaluation.score.label"] != "failure" {
		t.Errorf("event %s %v", event.Name, got)
	}
}

// TestTracesHaveContentOnlyIfAsked looks for the text of messages.
func TestTracesHaveContentOnlyIfAsked(t *testing.T) {
	for _, content := range []bool{false, true} {
		r := &receiver{status: http.StatusOK}
		collect(t, r, content, played())
		text := fmt.Sprint(r.spans)
		for _, said := range []string{"secret prompt", "secret plan", "secret error", "secret tool"} {
			if strings.Contains(text, said) != content {
				t.Errorf("content %v: %q is in the spans: %v", content, said, !content)
			}
		}
		if strings.Contains(text, "gen_ai.tool.call.arguments") != content ||
			strings.Contains(text, canary) {
			t.Errorf("content %v: %s", content, text)
		}
		if !content {
			continue
		}
		unquoted := func(s *tracepb.Span, name string) string {
			return strings.ReplaceAll(attributes(s.Attributes)[name], `\"`, `"`)
		}
		for _, s := range r.spans {
			if s.Name == "invoke_agent m" {
				got := unquoted(s, "gen_ai.input.messages") + unquoted(s, "gen_ai.output.messages")
				want := `[{"role":"user","parts":[{"type":"text","content":"secret prompt"}]}]` +
					`[{"role":"assistant","parts":[{"type":"text","content":"done"}],"finish_reason":"stop"}]`
				if got != want {
					t.Errorf("the episode has %s, want %s", got, want)
				}
			}
			if s.Name == "chat m" && s.EndTimeUnixNano == uint64(at(1, 4).Ended.UnixNano()) {
				got, want := unquoted(s, "gen_ai.tool.definitions"), `[{"type":"function","name":"call_tool",`+
					`"description":"secret tool","parameters":{"type":"object"}}]`
				if got != want {
					t.Errorf("tools %s, want %s", got, want)
				}
				got = unquoted(s, "gen_ai.output.messages")
				want = `[{"role":"assistant","parts":[{"type":"text","content":"secret plan"},` +
					`{"type":"tool_call","id":"call-7","name":"call_tool",` +
					`"arguments":{"name":"reader","x":1}}],"finish_reason":"tool_calls"}]`
				if got != want {
					t.Errorf("output %s, want %s", got, want)
				}
			}
		}
	}
}

// TestFaultIsTraced checks the spans of an attempt whose request failed.
func TestFaultIsTraced(t *testing.T) {
	e := played()
	e.Attempt.Outcome, e.Attempt.FaultKind = assay.Outcome{}, assay.Server
	e.Chats[1].Err = &assay.Fault{Kind: assay.Server, Detail: "HTTP 500"}
	r := &receiver{status: http.StatusOK}
	collect(t, r, false, e)
	failed := make(map[string]int)
	for _, s := range r.spans {
		if attributes(s.Attributes)["error.type"] == "server" &&
			s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR {
			failed[s.Name]++
		}
		if len(s.Events) > 0 {
			t.Errorf("%s has an event although there is no verdict", s.Name)
		}
	}
	want := map[string]int{"trial": 1, "invoke_agent m": 1, "chat m": 1}
	if diff := cmp.Diff(want, failed); diff != "" {
		t.Errorf("failed spans (-want +got):\n%s", diff)
	}
}

// TestRefusedSpansAreCounted checks the count of missed spans if the collector refuses spans.
func TestRefusedSpansAreCounted(t *testing.T) {
	for _, tc := range []struct {
		receiver *receiver
		want     string
	}{
		{
			&receiver{status: http.StatusForbidden},
			"the collector of traces did not get 6 spans: HTTP 403 Forbidden",
		},
		{
			&receiver{status: http.StatusOK, answer: &collector.ExportTraceServiceResponse{
				PartialSuccess: &collector.ExportTracePartialSuccess{
					RejectedSpans: 2, ErrorMessage: canary,
				},
			}}, "the collector of traces did not get 2 spans: it rejected spans",
		},
	} {
		if got := collect(t, tc.receiver, false, played()); got != tc.want {
			t.Errorf("missed %q, want %q", got, tc.want)
		}
	}
}

// TestForeignAgentIsTraced checks the spans of a foreign agent, whose tools are behind a server of
// MCP, and which an attacker has misled.
func TestForeignAgentIsTraced(t *testing.T) {
	defer func(s session.Start) { start = s }(start)
	e := played()
	e.Attempt.AgentModel, e.Attempt.Sampling.Revision, e.Attempt.Security = "served", "v7", assay.Broken
	e.Chats[1].Request.Form.Type = assay.AnyObject
	for _, c := range []struct {
		server *assay.MCPServer
		want   map[string]string
	}{
		{nil, map[string]string{"network.transport": "", "server.address": ""}},
		{&assay.MCPServer{OpenEnv: true}, map[string]string{"network.transport": ""}},
		{&assay.MCPServer{Command: []string{"x"}}, map[string]string{"network.transport": "pipe"}},
		{&assay.MCPServer{URL: "http://[::1]/mcp"}, map[string]string{
			"network.transport": "tcp", "server.address": "::1", "server.port": "80",
		}},
	} {
		start.Server = c.server
		r := &receiver{status: http.StatusOK}
		collect(t, r, false, e)
		c.want["mcp.method.name"] = "tools/call"
		seen := 0
		for _, s := range r.spans {
			got := attributes(s.Attributes)
			switch {
			case s.Name == "execute_tool reader":
				for name, value := range c.want {
					if got[name] != value {
						t.Errorf("%+v: %s is %q, want %q", c.server, name, got[name], value)
					}
				}
			case s.Name == "invoke_agent m":
				if s.Kind != tracepb.Span_SPAN_KIND_CLIENT || got["gen_ai.agent.version"] != "v7" ||
					got["gen_ai.request.model"] != "served" || len(s.Events) != 2 {
					t.Errorf("invoke_agent is %v", s)
				}
				event := attributes(s.Events[1].Attributes)
				if event["gen_ai.evaluation.name"] != "security" ||
					event["gen_ai.evaluation.score.label"] != "broken" {
					t.Errorf("the second event is %v", event)
				}
			case s.Name == "chat served" && s.EndTimeUnixNano == uint64(at(5, 9).Ended.UnixNano()):
				if got["gen_ai.output.type"] != "json" {
					t.Errorf("chat is %v", got)
				}
			default:
				continue
			}
			seen++
		}
		if seen != 3 {
			t.Errorf("saw %d spans of 3", seen)
		}
	}
}

// TestKnownProvidersAreNamed checks the names of providers that the conventions know.
func TestKnownProvidersAreNamed(t *testing.T) {
	defer func(s session.Start) { start = s }(start)
	for address, want := range map[string]string{
		"https://api.openai.com/v1":                              "openai",
		"https://me.openai.azure.com":                            "azure.ai.openai",
		"https://europe-west1-aiplatform.googleapis.com/v1":      "gcp.vertex_ai",
		"https://bedrock-runtime.eu-west-1.amazonaws.com/openai": "aws.bedrock",
		"https://api.openai.com.example.net/v1":                  "gw",
		"http://localhost:8080":                                  "gw",
		"https://api.moonshot.cn/v1":                             "moonshot_ai",
	} {
		start.Endpoints = map[string]string{"gw/KEY/m-1": address}
		r := &receiver{status: http.StatusOK}
		collect(t, r, false, played())
		for _, s := range r.spans {
			if got := attributes(s.Attributes)["gen_ai.provider.name"]; s.Name == "chat m" && got != want {
				t.Errorf("%s is %q, want %q", address, got, want)
			}
		}
	}
}
