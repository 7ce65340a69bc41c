//go:build strangers

package bridge_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	anthropic "github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/task/library"
)

// A said is the content of a reply as a client reads it.
type said struct {
	text, tool, arguments string
	tokens                int64
}

// clients ask for one reply each, with the official clients of each protocol.
var clients = map[string]func(ctx context.Context, url, token string) (said, error){
	"chat": func(ctx context.Context, url, token string) (s said, err error) {
		client := openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey(token))
		r, err := client.Chat.Completions.New(ctx, chatParams)
		if err == nil {
			s = fromChat(r)
		}
		return s, err
	},
	"chat stream": func(ctx context.Context, url, token string) (said, error) {
		client := openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey(token))
		params := chatParams
		params.StreamOptions.IncludeUsage = openai.Bool(true)
		stream := client.Chat.Completions.NewStreaming(ctx, params)
		var all openai.ChatCompletionAccumulator
		for stream.Next() {
			all.AddChunk(stream.Current())
		}
		if stream.Err() != nil {
			return said{}, stream.Err()
		}
		return fromChat(&all.ChatCompletion), nil
	},
	"responses": func(ctx context.Context, url, token string) (s said, err error) {
		client := openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey(token))
		r, err := client.Responses.New(ctx, responsesParams)
		if err == nil {
			s = fromResponse(r)
		}
		return s, err
	},
	"responses stream": func(ctx context.Context, url, token string) (s said, err error) {
		client := openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey(token))
		stream := client.Responses.NewStreaming(ctx, responsesParams)
		deltas := ""
		for stream.Next() {
			switch e := stream.Current().AsAny().(type) {
			case responses.ResponseTextDeltaEvent:
				deltas += e.Delta
			case responses.ResponseCompletedEvent:
				s = fromResponse(&e.Response)
			}
		}
		s.text = deltas
		return s, stream.Err()
	},
	"messages": func(ctx context.Context, url, token string) (s said, err error) {
		client := anthropic.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey(token))
		r, err := client.Messages.New(ctx, messageParams)
		if err == nil {
			s = fromMessage(r)
		}
		return s, err
	},
	"messages stream": func(ctx context.Context, url, token string) (said, error) {
		client := anthropic.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey(token))
		stream := client.Messages.NewStreaming(ctx, messageParams)
		var all anthropic.Message
		for stream.Next() {
			if err := all.Accumulate(stream.Current()); err != nil {
				return said{}, err
			}
		}
		return fromMessage(&all), stream.Err()
	},
	"gemini": func(ctx context.Context, url, token string) (s said, err error) {
		client, err := geminiClient(ctx, url, token)
		if err != nil {
			return s, err
		}
		r, err := client.Models.GenerateContent(ctx, "m", genai.Text("hi"), nil)
		if err == nil {
			s = fromGemini(r)
		}
		return s, err
	},
	"gemini stream": func(ctx context.Context, url, token string) (s said, err error) {
		client, err := geminiClient(ctx, url, token)
		if err != nil {
			return s, err
		}
		for r, err := range client.Models.GenerateContentStream(ctx, "m", genai.Text("hi"), nil) {
			if err != nil {
				return s, err
			}
			s = fromGemini(r)
		}
		return s, nil
	},
}

var (
	chatParams = openai.ChatCompletionNewParams{
		Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
	}
	responsesParams = responses.ResponseNewParams{
		Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hi")},
	}
	messageParams = anthropic.MessageNewParams{
		Model: "m", MaxTokens: 99,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("hi"))},
	}
)

func geminiClient(ctx context.Context, url, token string) (*genai.Client, error) {
	return genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: token, Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: url},
	})
}

func fromChat(r *openai.ChatCompletion) said {
	if len(r.Choices) == 0 {
		return said{}
	}
	m := r.Choices[0].Message
	s := said{text: m.Content, tokens: r.Usage.TotalTokens}
	for _, c := range m.ToolCalls {
		s.tool, s.arguments = c.Function.Name, c.Function.Arguments
	}
	return s
}

func fromResponse(r *responses.Response) said {
	s := said{text: r.OutputText(), tokens: r.Usage.TotalTokens}
	for _, item := range r.Output {
		if item.Type == "function_call" {
			s.tool, s.arguments = item.Name, item.AsFunctionCall().Arguments
		}
	}
	return s
}

func fromMessage(m *anthropic.Message) said {
	s := said{tokens: m.Usage.InputTokens + m.Usage.OutputTokens}
	for _, b := range m.Content {
		s.text += b.Text
		if b.Type == "tool_use" {
			s.tool, s.arguments = b.Name, string(b.Input)
		}
	}
	return s
}

func fromGemini(r *genai.GenerateContentResponse) said {
	s := said{tokens: int64(r.UsageMetadata.TotalTokenCount)}
	if len(r.Candidates) == 0 || r.Candidates[0].Content == nil {
		return s
	}
	for _, p := range r.Candidates[0].Content.Parts {
		s.text += p.Text
		if p.FunctionCall != nil {
			s.tool = p.FunctionCall.Name
			if p.FunctionCall.Args["query"] == "ü" {
				s.arguments = `{"query":"ü"}`
			}
		}
	}
	return s
}

// open returns a bridge with the built-in library, and a trial of its first task.
func open(t *testing.T) (*bridge.Bridge, *episode.Runner, *assay.Trial, *assay.Task) {
	t.Helper()
	lib, err := library.Builtin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := bridge.Open(func(text string) { t.Error(text) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		_ = lib.Close()
	})
	refs, err := lib.Refs(t.Context(), "simple_task", "easy")
	if err != nil {
		t.Fatal(err)
	}
	task, err := lib.Task(t.Context(), refs[0].ID, "easy")
	if err != nil {
		t.Fatal(err)
	}
	trial := assay.NewTrial(
		assay.Cell{Model: "sim/listed", Variant: assay.Optimal, Reliability: .8}, assay.TaskRef{ID: task.ID},
		assay.Setting{World: "assay-1", Protocol: assay.Native, Tools: assay.Discover, Turns: 15, Calls: 10}, 7, 0)
	return b, episode.NewRunner(lib.Catalog(), 0), &trial, &task
}

// speaker replies with a call to the first request and with a text to the second.
type speaker struct{ n int }

func (s *speaker) Chat(_ context.Context, req *assay.Request) (*assay.Response, error) {
	s.n++
	r := assay.Response{Usage: assay.Usage{InputTokens: 20, OutputTokens: 3}}
	if s.n == 1 {
		r.Message.Content = "Let me look."
		r.Message.Calls = []assay.ToolCall{{ID: "call_1", Name: "find", Arguments: `{"query":"ü"}`}}
	} else {
		r.Message.Content = "TASK_COMPLETED"
	}
	r.Message.Role = assay.Assistant
	return &r, nil
}

// The official clients read the gateway's replies, whole and as streams.
func TestOfficialClientsReadReplies(t *testing.T) {
	t.Parallel()
	b, episodes, trial, task := open(t)
	for name, ask := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var body map[string]string
				_ = json.NewDecoder(r.Body).Decode(&body)
				for _, want := range []said{
					{"Let me look.", "find", `{"query":"ü"}`, 23}, {text: "TASK_COMPLETED", tokens: 23},
				} {
					got, err := ask(r.Context(), body["model_url"], body["token"])
					if err != nil || got != want {
						t.Errorf("%+v, %v; want %+v", got, err, want)
					}
				}
				_, _ = w.Write([]byte(`{"text": "TASK_COMPLETED"}`))
			}))
			t.Cleanup(service.Close)
			a, _ := b.Runner(episodes, bridge.Agent{
				Name: "agent", URL: service.URL, Model: "m", Timeout: time.Minute,
			}).Run(t.Context(), new(speaker), trial, task)
			if a.Ended != assay.Finished || a.InputTokens != 40 || a.Outcome.Turns != 2 {
				t.Errorf("ended %q %s, %d tokens, %d turns", a.Ended, a.FaultDetail, a.InputTokens,
					a.Outcome.Turns)
			}
		})
	}
}

// Every official client notices a planted fault of its model, or asks again by itself, and reads the replies
// that follow. Nothing of it is a fault of a provider.
func TestOfficialClientsMeetModelFaults(t *testing.T) {
	t.Parallel()
	b, episodes, trial, task := open(t)
	want := []said{{"Let me look.", "find", `{"query":"ü"}`, 23}, {text: "TASK_COMPLETED", tokens: 23}}
	for _, kind := range assay.ModelFaults {
		if kind == assay.ModelHang { // the clients wait for ten minutes
			continue
		}
		trial := planted(trial, kind)
		for name, ask := range clients {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				t.Parallel()
				var heard []said
				service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					var body map[string]string
					_ = json.NewDecoder(r.Body).Decode(&body)
					for range 2 {
						got, err := ask(r.Context(), body["model_url"], body["token"])
						if err != nil {
							got = said{text: err.Error()}
						}
						heard = append(heard, got)
					}
					_, _ = w.Write([]byte(`{"text": "TASK_COMPLETED"}`))
				}))
				t.Cleanup(service.Close)
				a, script := b.Runner(episodes, bridge.Agent{
					Name: "agent", URL: service.URL, Model: "m", Timeout: time.Minute,
				}).Run(t.Context(), new(speaker), trial, task)
				if met := script.ModelFaults(); len(met) != 1 || !met[0].Delivered || !met[0].Recovered || a.FaultKind != "" {
					t.Errorf("faults %+v; ended %q %s", met, a.Ended, a.FaultDetail)
				}
				spoils := kind.Rule().Spoils // the model was asked, and its reply is lost
				last := want[0]
				if spoils || slices.Contains(heard[:1], want[0]) {
					last = want[1]
				}
				if heard[0] == want[0] && spoils || heard[1] != last {
					t.Errorf("the client read %+v", heard)
				}
			})
		}
	}
}

// planted returns a trial like another one that plants a fault in the first request of its agent, and none in
// the next ones.
func planted(like *assay.Trial, kind assay.ModelFault) *assay.Trial {
	rates := assay.ModelFaultRates{kind: .5}
	for n := 0; ; n++ {
		cell, set := like.Cell, like.Setting
		cell.Reliability, set.ModelFaults = 1, rates.String()
		trial := assay.NewTrial(cell, assay.TaskRef{ID: like.Task}, set, 7, n)
		met := func(request int) bool { return rates.At(trial.Seed, request) != "" }
		if rates.At(trial.Seed, 0) == kind && !met(1) && !met(2) && !met(3) {
			return &trial
		}
	}
}
