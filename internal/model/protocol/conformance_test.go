package protocol_test

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/protocol"
	"github.com/assay-eval/assay/internal/model/simserver"
	"github.com/assay-eval/assay/internal/model/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	model     = "sim/listed"
	key       = "sk-canary-0123456789"
	elsewhere = "sim/direct" // another model of the server
)

// A column is a protocol, with the facts that its stories need.
type column struct {
	*wire.Protocol
	// path is the part of the base URL after the address of a simulated server.
	path string
	// usage returns the part of u that the protocol can report.
	usage func(u assay.Usage) assay.Usage
	// refusal is the fault after a model's own refusal, or "" if the refusal is an answer.
	refusal assay.FaultKind
}

var columns = []column{
	{Protocol: find(protocol.OpenAI), path: "/v1", usage: withoutCacheWrites},
	{Protocol: find(protocol.Azure), usage: withoutCacheWrites},
	{Protocol: find(protocol.Responses), path: "/v1", usage: everything},
	{Protocol: find(protocol.Anthropic), usage: everything},
	{Protocol: find(protocol.Gemini), path: "/v1beta", usage: withoutCacheWrites},
}

func find(name string) *wire.Protocol {
	p, _ := protocol.Find(name)
	return p
}

func everything(u assay.Usage) assay.Usage { return u }

func withoutCacheWrites(u assay.Usage) assay.Usage {
	u.CacheWriteTokens = 0
	return u
}

// stories lists the duties of every protocol. Each story plays against its own server.
var stories = []struct {
	name string
	tell func(t *testing.T, c column)
}{
	{"Conversation", tellConversation},
	{"SeveralCalls", tellSeveralCalls},
	{"Texts", tellTexts},
	{"Thinking", tellThinking},
	{"Forgotten", tellForgotten},
	{"Refusal", tellRefusal},
	{"Faults", tellFaults},
	{"Limits", tellLimits},
	{"Usage", tellUsage},
	{"Truncated", tellTruncated},
	{"Settings", tellSettings},
	{"Forms", tellForms},
	{"Readable", tellReadable},
	{"Identity", tellIdentity},
	{"WrongKey", tellWrongKey},
	{"WrongModel", tellWrongModel},
	{"RoundTrip", tellRoundTrip},
	{"Episodes", tellEpisodes},
}

// TestConformance runs every story with every protocol over HTTP.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, name := range protocol.Names() {
		known := func(c column) bool { return c.Name == name }
		if !slices.ContainsFunc(columns, known) {
			t.Errorf("protocol %s has no column", name)
		}
	}
	for _, story := range stories {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range columns {
				t.Run(c.Name, func(t *testing.T) {
					t.Parallel()
					story.tell(t, c)
				})
			}
		})
	}
}

// A script is a provider that gives its replies in order, and the last one again and again.
type script struct {
	mu      sync.Mutex
	replies []assay.Response // guarded by mu
	// seen holds the requests.
	seen []assay.Request // guarded by mu
}

func (s *script) Chat(_ context.Context, req *assay.Request) (*assay.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := *req
	asked.Messages = slices.Clone(req.Messages)
	s.seen = append(s.seen, asked)
	resp := &s.replies[0]
	if len(s.replies) > 1 {
		s.replies = s.replies[1:]
	}
	return resp, nil
}

// latest returns the latest request.
func (s *script) latest() assay.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[len(s.seen)-1]
}

func reply(content string, calls ...assay.ToolCall) assay.Response {
	return assay.Response{
		Message: assay.Message{Role: assay.Assistant, Content: content, Calls: calls},
		Usage:   assay.Usage{InputTokens: 10, OutputTokens: 5},
	}
}

// A stage is a server whose model follows a script, and a client.
type stage struct {
	*script
	url    string
	server *simserver.Server
	client *wire.Provider
}

func (c column) stage(t testing.TB, cfg simserver.Config, replies ...assay.Response) *stage {
	t.Helper()
	s := &stage{script: &script{replies: replies}}
	if cfg.Provider == nil {
		cfg.Provider, cfg.Models = s.script, []string{model, elsewhere}
	}
	if cfg.Keys == nil {
		cfg.Keys = []string{key}
	}
	var err error
	if s.server, err = simserver.New(cfg); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.server)
	t.Cleanup(func() {
		if err := s.server.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	})
	s.url = server.URL
	s.client = c.open(t, server.URL, model)
	return s
}

func (c column) open(t testing.TB, url, deployment string) *wire.Provider {
	t.Helper()
	shared := wire.NewClient(wire.ClientOptions{})
	t.Cleanup(shared.CloseIdleConnections)
	client, err := c.New(wire.Config{
		BaseURL: url + c.path, Key: wire.NewSecret(key), KeyName: "CANARY_KEY",
		Deployment: deployment, Client: shared,
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// say sends a conversation and appends the reply to it.
func (s *stage) say(t testing.TB, req *assay.Request) *assay.Response {
	t.Helper()
	resp, err := s.client.Chat(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, resp.Message)
	return resp
}

// fault sends a conversation that has to fail.
func (s *stage) fault(t testing.TB, req assay.Request) *assay.Fault {
	t.Helper()
	resp, err := s.client.Chat(t.Context(), &req)
	f := assay.AsFault(err)
	if f == nil {
		t.Fatalf("Chat() = %+v, want a fault", resp)
	}
	return f
}

func question() assay.Request {
	return assay.Request{Model: model, Messages: []assay.Message{
		{Role: assay.System, Content: "You have tools."},
		{Role: assay.User, Content: "Do it."},
	}, Functions: []assay.Function{
		{
			Name: "read", Description: "Reads a file.",
			Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
		},
		{Name: "stop", Parameters: json.RawMessage(`{"type":"object"}`)},
	}, Sampling: assay.Sampling{
		MaxTokens: new(300), // a limit that some protocols require
	}}
}

func call(id, arguments string) assay.ToolCall {
	return assay.ToolCall{ID: id, Name: "read", Arguments: arguments}
}

func answer(id, content string) assay.Message {
	return assay.Message{Role: assay.ToolRole, CallID: id, Content: content}
}

// withoutThinking compares conversations except for the model's thoughts.
var withoutThinking = cmp.Options{
	cmpopts.IgnoreFields(assay.Message{}, "State", "Reasoning"), cmpopts.EquateEmpty(),
	cmp.FilterValues(func(x, y json.RawMessage) bool { return len(x) > 0 && len(y) > 0 },
		cmp.Transformer("JSON", func(raw json.RawMessage) (v any) {
			_ = json.Unmarshal(raw, &v)
			return v
		})),
}

func checkSeen(t testing.TB, s *stage, want assay.Request) {
	t.Helper()
	if d := cmp.Diff(want, s.latest(), withoutThinking); d != "" {
		t.Errorf("the server saw another request (-sent +seen):\n%s", d)
	}
}

func checkMessage(t testing.TB, want, got assay.Message) {
	t.Helper()
	if d := cmp.Diff(want, got, withoutThinking); d != "" {
		t.Errorf("the client saw another reply (-written +seen):\n%s", d)
	}
}

func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// TestOrigins checks which lanes can continue a conversation: lanes of the same protocol and host,
// unless a state belongs to a key.
func TestOrigins(t *testing.T) {
	t.Parallel()
	for _, p := range protocol.All {
		origin := func(url, key, deployment string) string {
			client, err := p.New(wire.Config{
				BaseURL: url, Key: wire.NewSecret("sk-0123456789"), KeyName: key,
				Deployment: deployment, Client: wire.NewClient(wire.ClientOptions{}),
			})
			if err != nil {
				t.Fatal(err)
			}
			return client.Origin()
		}
		home := origin("https://a.example.com", "ONE", "m")
		if origin("https://a.example.com", "ONE", "m-2") != home {
			t.Errorf("%s: another deployment has another origin", p.Name)
		}
		if origin("https://b.example.com", "ONE", "m") == home {
			t.Errorf("%s: another host has the origin %s, too", p.Name, home)
		}
		another := origin("https://a.example.com", "TWO", "m")
		if own := another != home; own != (p.Name == protocol.Responses) {
			t.Errorf("%s: the origin with another key is %s after %s", p.Name, another, home)
		}
	}
}

// TestResponsesOnAzure checks the address that Azure gives the API.
func TestResponsesOnAzure(t *testing.T) {
	t.Parallel()
	tellConversation(t, column{Protocol: find(protocol.Responses), path: "/openai/v1"})
}
