package openai_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

// A critic is an endpoint that refuses requests for which objects returns a message.
type critic struct {
	t        *testing.T
	objects  func(r request) string
	requests []request
}

// request has the fields that a critic reads.
type request struct {
	Messages []struct {
		Role    string  `json:"role"`
		Content *string `json:"content"`
	} `json:"messages"`
	Temperature *float64 `json:"temperature"`
	TopP        *float64 `json:"top_p"`
}

func (c *critic) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req request
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		c.t.Error(err)
	}
	c.requests = append(c.requests, req)
	if message := c.objects(req); message != "" {
		writeJSON(w, 400, openaiError(message, "invalid_request_error", "", ""))
		return
	}
	writeJSON(w, 200, hello)
}

// turn is a conversation that has a system message and a call without text.
func turn() assay.Request {
	req := wiretest.Hi()
	req.Sampling = assay.Sampling{Temperature: new(0.7), TopP: new(0.9)}
	req.Messages = []assay.Message{
		{Role: assay.System, Content: "Be brief."},
		{Role: assay.User, Content: "hi"},
		{Role: assay.Assistant, Calls: []assay.ToolCall{{ID: "a", Name: "read", Arguments: "{}"}}},
		{Role: assay.ToolRole, CallID: "a", Content: "x"},
	}
	return req
}

// TestRefusedFormIsLearned plays endpoints that do not accept a form of the request. The first
// refusal teaches it, and every reply names the difference.
func TestRefusedFormIsLearned(t *testing.T) {
	t.Parallel()
	hasNull := func(r request) bool { return r.Messages[len(r.Messages)-2].Content == nil }
	hasSystem := func(r request) bool { return r.Messages[0].Role == "system" }
	hasBoth := func(r request) bool { return r.Temperature != nil && r.TopP != nil }
	for _, test := range []struct {
		message string
		refused func(request) bool
		want    string
	}{
		{"messages.2.content: content must be a string", hasNull, "empty content for none"},
		{"body.messages.content.str - Input should be a valid string", hasNull, "empty content for none"},
		{"Invalid value for 'content': expected a string, got null.", hasNull, "empty content for none"},
		{"'content' is a required property - 'messages.2'", hasNull, "empty content for none"},
		{"System role not supported", hasSystem, "system message as part of the user's"},
		{
			"Developer instruction is not enabled for models/gemma-3-27b-it", hasSystem,
			"system message as part of the user's",
		},
		{
			"Unsupported value: 'messages[0].role' does not support 'system' with this model.",
			hasSystem, "system message as part of the user's",
		},
		{
			"Only user and assistant roles are supported!", hasSystem,
			"system message as part of the user's",
		},
		{
			"`temperature` and `top_p` cannot both be specified for this model. " +
				"Please use only one.", hasBoth, "no top_p",
		},
	} {
		t.Run(test.message, func(t *testing.T) {
			t.Parallel()
			c := &critic{t: t, objects: func(r request) string {
				if test.refused(r) {
					return test.message
				}
				return ""
			}}
			p := serve(t, c, wire.Config{})
			for range 3 {
				resp, err := p.Chat(t.Context(), new(turn()))
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff([]string{test.want}, resp.Deviations); d != "" {
					t.Errorf("deviations differ (-want +got):\n%s", d)
				}
			}
			if len(c.requests) != 4 {
				t.Errorf("%d requests for three turns, want 4", len(c.requests))
			}
			var texts []string
			for _, m := range c.requests[3].Messages {
				if m.Content != nil {
					texts = append(texts, *m.Content)
				}
			}
			for _, text := range []string{"Be brief.", "hi", "x"} {
				if !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, text) }) {
					t.Errorf("%q is not among the texts %q", text, texts)
				}
			}
		})
	}
}

// TestSeveralRefusals checks that an endpoint may refuse one thing after another.
func TestSeveralRefusals(t *testing.T) {
	t.Parallel()
	c := &critic{t: t, objects: func(r request) string {
		switch {
		case r.Messages[0].Role == "system":
			return "System role not supported"
		case r.Temperature != nil:
			return "Unsupported parameter: temperature"
		}
		return ""
	}}
	p := serve(t, c, wire.Config{})
	for range 2 {
		resp, err := p.Chat(t.Context(), new(turn()))
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"no temperature", "system message as part of the user's"}
		if d := cmp.Diff(want, resp.Deviations); d != "" {
			t.Errorf("deviations differ (-want +got):\n%s", d)
		}
	}
	if len(c.requests) != 4 {
		t.Errorf("%d requests for two turns, want 4", len(c.requests))
	}
}

// TestOtherRefusalsOfContentTeachNothing checks that a refusal is not repeated forever.
func TestOtherRefusalsOfContentTeachNothing(t *testing.T) {
	t.Parallel()
	c := &critic{t: t, objects: func(request) string { return "the content is missing a field" }}
	p := serve(t, c, wire.Config{})
	for range 2 {
		if _, err := p.Chat(t.Context(), new(turn())); assay.AsFault(err).Kind != assay.BadRequest {
			t.Errorf("Chat() = %v, want a bad request", err)
		}
	}
	if len(c.requests) != 4 {
		t.Errorf("%d requests for two turns, want 4", len(c.requests))
	}
}
