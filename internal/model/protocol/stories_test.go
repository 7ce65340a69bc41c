package protocol_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/simserver"
)

func tellConversation(t *testing.T, c column) {
	first, second := reply("Reading.", call("c1", `{"n":1}`)), reply("Done.")
	s := c.stage(t, simserver.Config{}, first, second)
	req := question()
	req.Sampling.Temperature = new(0.25)
	sent := req
	resp := s.say(t, &req)
	checkSeen(t, s, sent)
	checkMessage(t, first.Message, resp.Message)

	req.Messages = append(req.Messages, answer("c1", `{"text":"x"}`))
	sent = req
	checkMessage(t, second.Message, s.say(t, &req).Message)
	checkSeen(t, s, sent)
}

func tellSeveralCalls(t *testing.T, c column) {
	three := reply("", call("a", `{"n":1}`), call("b", `{"n":1}`), call("c", `{}`))
	s := c.stage(t, simserver.Config{}, three, reply("Done."))
	req := question()
	checkMessage(t, three.Message, s.say(t, &req).Message)
	req.Messages = append(req.Messages, answer("a", "1"), answer("b", ""), answer("c", "3"),
		assay.Message{Role: assay.User, Content: "Go on."})
	sent := req
	s.say(t, &req)
	checkSeen(t, s, sent)
}

func tellTexts(t *testing.T, c column) {
	for _, text := range []string{
		" spaces ", "<a href=\"x\">&\u2028", "日本語 🙂", "{}", "null",
		strings.Repeat("long ", 50_000),
	} {
		written := reply(text)
		s := c.stage(t, simserver.Config{}, written)
		req := question()
		req.Messages[1].Content = text
		sent := req
		checkMessage(t, written.Message, s.say(t, &req).Message)
		checkSeen(t, s, sent)
	}
}

// thinkingStyles are the ways in which a simulated model thinks.
var thinkingStyles = slices.DeleteFunc(gateway.ThinkingStyles(), func(style string) bool {
	return style == gateway.ThinkingNone
})

// tellThinking plays three turns with a model that insists on its thoughts.
func tellThinking(t *testing.T, c column) {
	for _, style := range thinkingStyles {
		first := reply("Reading.", call("a", `{"n":1}`), call("b", `{}`))
		second := reply("", call("c", `{"n":2}`))
		s := c.stage(t, simserver.Config{Thinking: style}, first, second, reply("Done."))
		req := question()
		for _, calls := range [][]string{{"a", "b"}, {"c"}} {
			resp := s.say(t, &req)
			if resp.Message.State == nil || resp.Message.State.Origin != s.client.Origin() {
				t.Fatalf("with %s, State = %+v", style, resp.Message.State)
			}
			if strings.Contains(resp.Message.Content, "decide on") {
				t.Errorf("with %s, a thought is part of the answer %q", style, resp.Message.Content)
			}
			for _, id := range calls {
				req.Messages = append(req.Messages, answer(id, "x"))
			}
			req = stored(t, req)
		}
		reported := c.usage(thoughtful).ReasoningTokens > 0
		if u := s.say(t, &req).Usage; reported != (u.ReasoningTokens > 0) {
			t.Errorf("with %s, usage = %+v", style, u)
		}
		checkMessage(t, reply("Done.").Message, req.Messages[len(req.Messages)-1])
	}
}

// thoughtful is usage with thinking.
var thoughtful = assay.Usage{OutputTokens: 2, ReasoningTokens: 1}

// stored returns a conversation as a transcript keeps it.
func stored(t testing.TB, req assay.Request) assay.Request {
	t.Helper()
	text := encoded(req.Messages)
	req.Messages = nil
	if err := json.Unmarshal(text, &req.Messages); err != nil {
		t.Fatal(err)
	}
	return req
}

// tellForgotten checks that the server insists on thoughts, and that a client does not send another
// endpoint's thoughts.
func tellForgotten(t *testing.T, c column) {
	for _, style := range thinkingStyles {
		for name, forget := range map[string]func(m *assay.Message){
			"lost":      func(m *assay.Message) { m.State = nil },
			"elsewhere": func(m *assay.Message) { m.State.Origin = c.Name + " other.example.com" },
			"changed": func(m *assay.Message) {
				m.State.Data = bytes.ReplaceAll(m.State.Data, []byte("0"), []byte("1"))
			},
		} {
			cfg := simserver.Config{Thinking: style}
			s := c.stage(t, cfg, reply("", call("a", "{}")), reply("x"))
			req := question()
			s.say(t, &req)
			forget(&req.Messages[len(req.Messages)-1])
			req.Messages = append(req.Messages, answer("a", "x"))
			if f := s.fault(t, req); f.Kind != assay.BadRequest || f.Status != 400 {
				t.Errorf("with %s %s, fault = %+v", style, name, f)
			}
		}
	}
}

// tellRefusal checks that a model that declines has given an answer, or that a filter has.
func tellRefusal(t *testing.T, c column) {
	for finish, want := range map[string]assay.FaultKind{
		"refusal": c.refusal, "content_filter": assay.ContentFilter,
	} {
		declined := reply("I will not.")
		declined.Finish = finish
		s := c.stage(t, simserver.Config{}, declined)
		if want != "" {
			if f := s.fault(t, question()); f.Kind != want {
				t.Errorf("after %s, fault = %+v", finish, f)
			}
			continue
		}
		req := question()
		checkMessage(t, declined.Message, s.say(t, &req).Message)
	}
}

// faults lists the fault that a client returns for each fault of a simulated server. A status of 0
// stands for the status that the protocol uses.
var faults = map[string]assay.Fault{
	"400":       {Kind: assay.BadRequest, Status: 400},
	"401":       {Kind: assay.Auth, Status: 401},
	"403":       {Kind: assay.Auth, Status: 403},
	"404":       {Kind: assay.NotFound, Status: 404},
	"408":       {Kind: assay.Timeout, Status: 408},
	"409":       {Kind: assay.Server, Status: 409},
	"413":       {Kind: assay.BadRequest, Status: 413},
	"422":       {Kind: assay.BadRequest, Status: 422},
	"423":       {Kind: assay.Server, Status: 423},
	"425":       {Kind: assay.Server, Status: 425},
	"429":       {Kind: assay.RateLimited, Status: 429, RetryAfter: time.Second},
	"498":       {Kind: assay.Overloaded, Status: 498},
	"499":       {Kind: assay.Server, Status: 499},
	"500":       {Kind: assay.Server, Status: 500},
	"502":       {Kind: assay.Server, Status: 502},
	"503":       {Kind: assay.Overloaded, Status: 503},
	"504":       {Kind: assay.Server, Status: 504},
	"529":       {Kind: assay.Overloaded, Status: 529},
	"quota":     {Kind: assay.Quota},
	"redirect":  {Kind: assay.Network, Status: 307},
	"html":      {Kind: assay.Malformed, Status: 200},
	"oversized": {Kind: assay.Malformed, Status: 200},

	"content-filter": {Kind: assay.ContentFilter},
	"hang":           {Kind: assay.Timeout},
	"hang-body":      {Kind: assay.Timeout},
	"drip":           {Kind: assay.Timeout},
	"reset":          {Kind: assay.Network},
	"truncate":       {Kind: assay.Network, Status: 200},
	"bad-json":       {Kind: assay.Malformed, Status: 200},
	"empty":          {Kind: assay.Malformed, Status: 200},
	"error-inside":   {Kind: assay.Server, Status: 502},
	"wrong-model":    {}, // a reply; see tellIdentity
}

// lost lists the faults after which the endpoint may have billed a request although no usage came.
var lost = []string{
	"408", "499", "502", "504", "html", "oversized", "hang", "hang-body", "drip", "reset", "truncate",
	"bad-json",
}

func tellFaults(t *testing.T, c column) {
	for _, kind := range simserver.FaultKinds() {
		want, ok := faults[kind]
		if !ok {
			t.Errorf("the fault %s has no test", kind)
		}
		if want.Kind == "" {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			tellFault(t, c, kind, want)
		})
	}
}

func tellFault(t *testing.T, c column, kind string, want assay.Fault) {
	billed := reply("x")
	billed.Usage = assay.Usage{InputTokens: 10, OutputTokens: 2}
	s := c.stage(t, simserver.Config{
		Faults: []simserver.Fault{{Kind: kind, Share: 1}}, Tariff: simserver.Tariff{Input: 1, Output: 1},
	}, billed)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hangs := want.Kind == assay.Timeout && want.Status == 0
	if hangs {
		ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
	}
	resp, err := s.client.Chat(ctx, new(question()))
	f := assay.AsFault(err)
	if f == nil {
		t.Fatalf("Chat() = %+v, want a fault", resp)
	}
	got := assay.Fault{Kind: f.Kind, Status: f.Status, RetryAfter: f.RetryAfter}
	if want.Status == 0 {
		got.Status = 0
	}
	if got != want {
		t.Errorf("fault = %+v, want %+v", f, want)
	}
	bills := len(s.server.Stats().Bills)
	if bills > 0 && resp.Usage.Total() == 0 && resp.Lost.Requests == 0 {
		t.Errorf("the endpoint billed the request, but it counts nowhere: %+v", resp)
	}
	if want := slices.Contains(lost, kind); !hangs && (resp.Lost.Requests == 1) != want {
		t.Errorf("Lost = %+v, want a lost request: %v", resp.Lost, want)
	}
	// On a busy machine the deadline may expire before the request arrives.
	if got := s.server.Stats(); !hangs && (got.Requests != 1 || got.Faults[kind] != 1) {
		t.Errorf("Stats() = %+v", got)
	}
}

func tellLimits(t *testing.T, c column) {
	for _, style := range simserver.HeaderStyles() {
		s := c.stage(t, simserver.Config{
			Limits: []simserver.Limit{{RPM: 1}}, Headers: style,
		}, reply("x"))
		req := question()
		resp := s.say(t, &req)
		if reported := len(resp.Quotas) > 0; reported != (style != simserver.HeadersNone) {
			t.Errorf("with headers %s, Quotas = %+v", style, resp.Quotas)
		}
		f := s.fault(t, question())
		near := f.RetryAfter > 50*time.Second && f.RetryAfter <= time.Minute
		if f.Kind != assay.RateLimited || f.Bucket != assay.Requests || f.Limit != 1 || !near {
			t.Errorf("with headers %s, fault = %+v", style, f)
		}
	}
}

func tellUsage(t *testing.T, c column) {
	billed := reply("x")
	billed.Usage = assay.Usage{
		InputTokens: 1000, OutputTokens: 200,
		CachedTokens: 600, CacheWriteTokens: 150, ReasoningTokens: 70,
	}
	s := c.stage(t, simserver.Config{}, billed)
	req := question()
	if d := cmp.Diff(c.usage(billed.Usage), s.say(t, &req).Usage); d != "" {
		t.Errorf("usage differs (-billed +got):\n%s", d)
	}
}

func tellIdentity(t *testing.T, c column) {
	for fault, want := range map[string]string{"": model, "wrong-model": elsewhere} {
		var cfg simserver.Config
		if fault != "" {
			cfg.Faults = []simserver.Fault{{Kind: fault, Share: 1}}
		}
		s := c.stage(t, cfg, reply("x"))
		req := question()
		if got := s.say(t, &req); got.ServedModel != want || got.ID == "" {
			t.Errorf("ServedModel = %q, want %q; ID = %q", got.ServedModel, want, got.ID)
		}
	}
}

func tellWrongKey(t *testing.T, c column) {
	s := c.stage(t, simserver.Config{Keys: []string{"sk-another-0123"}}, reply("x"))
	f := s.fault(t, question())
	text := fmt.Sprintf("%+v %#v", f, f)
	if f.Kind != assay.Auth || !strings.Contains(text, "check the variable CANARY_KEY") {
		t.Errorf("fault = %+v", f)
	}
	if strings.Contains(text, key) || !strings.Contains(text, "[redacted]") {
		t.Errorf("the fault contains the key: %s", text)
	}
}

func tellWrongModel(t *testing.T, c column) {
	s := c.stage(t, simserver.Config{}, reply("x"))
	s.client = c.open(t, s.url, "sim/typo")
	f := s.fault(t, question())
	if f.Kind != assay.NotFound || !strings.Contains(f.Detail, `check the deployment "sim/typo"`) {
		t.Errorf("fault = %+v", f)
	}
}

// tellRoundTrip sends random conversations. The server has to see the conversation as it was sent,
// whatever the model wrote before.
func tellRoundTrip(t *testing.T, c column) {
	s := c.stage(t, simserver.Config{}, reply("x"))
	rapid.Check(t, func(t *rapid.T) {
		req := conversations.Draw(t, "conversation")
		if _, err := s.client.Chat(context.Background(), &req); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(req, s.latest(), withoutThinking); d != "" {
			t.Errorf("the server saw another request (-sent +seen):\n%s", d)
		}
	})
}

var (
	// texts are never only white space, because protocols cannot all carry that.
	texts = rapid.Map(rapid.OneOf(
		rapid.String(), rapid.Just("<a href=\"x\">&\u2028"), rapid.Just("null"),
	), func(s string) string { return "." + s })
	names   = rapid.StringMatching(`[A-Za-z_][A-Za-z0-9_-]{0,63}`)
	objects = rapid.Map(rapid.MapOf(rapid.String(), rapid.String()),
		func(m map[string]string) string { return string(encoded(m)) })
	conversations = rapid.Custom(func(t *rapid.T) assay.Request {
		req := question()
		for turn := range rapid.IntRange(0, 4).Draw(t, "turns") {
			m := assay.Message{Role: assay.Assistant, Content: texts.Draw(t, "content")}
			for i := range rapid.IntRange(0, 3).Draw(t, "calls") {
				m.Calls = append(m.Calls, assay.ToolCall{
					ID: fmt.Sprintf("call_%d_%d", turn, i), Name: names.Draw(t, "name"),
					Arguments: objects.Draw(t, "arguments"),
				})
			}
			if len(m.Calls) > 0 && rapid.Bool().Draw(t, "calls only") {
				m.Content = ""
			}
			req.Messages = append(req.Messages, m)
			for _, c := range m.Calls {
				req.Messages = append(req.Messages, answer(c.ID, texts.Draw(t, "answer")))
			}
			if len(m.Calls) == 0 {
				next := assay.Message{Role: assay.User, Content: texts.Draw(t, "user")}
				req.Messages = append(req.Messages, next)
			}
		}
		return req
	})
)
