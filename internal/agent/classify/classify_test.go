package classify_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/classify"
)

// chat is a provider.
type chat func(ctx context.Context, req *assay.Request) (*assay.Response, error)

func (f chat) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	return f(ctx, req)
}

const readable = `{"category": "dependency", "confidence": 0.75, "reason": "filter before reader"}`

var opinion = classify.Opinion{
	Category: "dependency", Confidence: .75, Reason: "filter before reader",
}

// said returns a response with a text, 10 and 2 tokens and a cost of 0.5.
func said(text string) *assay.Response {
	return &assay.Response{
		Message: assay.Message{Role: assay.Assistant, Content: text}, Lane: "p/key/m",
		Usage: assay.Usage{InputTokens: 10, OutputTokens: 2}, Cost: .5,
	}
}

// saying answers with the texts in order and records the requests.
func saying(asked *[]assay.Request, texts ...string) chat {
	return func(_ context.Context, req *assay.Request) (*assay.Response, error) {
		copied := *req
		copied.Messages = slices.Clone(req.Messages)
		*asked = append(*asked, copied)
		return said(texts[len(*asked)-1]), nil
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	var asked []assay.Request
	zero := 0.0
	c := classify.Classifier{
		Provider: saying(&asked, readable), Model: "judge",
		Sampling: assay.Sampling{Temperature: &zero}, Budget: time.Minute,
	}
	k := partial()
	got, err := c.Classify(t.Context(), k)
	want := classify.Answer{
		Opinion: opinion, Raw: readable, Spend: assay.NewSpend(assay.Usage{InputTokens: 10, OutputTokens: 2}, .5),
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, answer (-want +got):\n%s", err, diff)
	}
	request := assay.Request{
		Model: "judge", Messages: classify.Prompt(k.Attempt, k.Task, k.Transcript),
		Sampling: assay.Sampling{Temperature: &zero}, Budget: time.Minute,
	}
	if diff := cmp.Diff([]assay.Request{request}, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestCorrection checks that an unreadable reply is answered once with the reason.
func TestCorrection(t *testing.T) {
	t.Parallel()
	for first, shown := range map[string]string{
		`{"category": "dependency"}`: `{"category": "dependency"}`,
		"  ":                         "(no text)",
		strings.Repeat("long ", 999): "left out",
	} {
		var asked []assay.Request
		c := classify.Classifier{Provider: saying(&asked, first, readable), Model: "judge"}
		got, err := c.Classify(t.Context(), partial())
		want := classify.Answer{
			Opinion: opinion, Raw: readable, Spend: assay.NewSpend(assay.Usage{InputTokens: 20, OutputTokens: 4}, 1),
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("error %v, answer (-want +got):\n%s", err, diff)
		}
		if len(asked) != 2 || len(asked[1].Messages) != 4 || asked[1].Lane != "p/key/m" {
			t.Fatalf("requests = %+v, want two, the second with a correction on the same lane",
				asked)
		}
		again := asked[1].Messages
		if diff := cmp.Diff(asked[0].Messages, again[:2]); diff != "" {
			t.Errorf("the question has changed:\n%s", diff)
		}
		if again[2].Role != assay.Assistant || !strings.Contains(again[2].Content, shown) ||
			len(again[2].Content) > 1000 {
			t.Errorf("the reply is shown as %+v", again[2])
		}
		_, parse := classify.Parse(first)
		want3 := "That answer could not be read: " + parse.Error() + ". Answer with one JSON object"
		if again[3].Role != assay.User || !strings.HasPrefix(again[3].Content, want3) {
			t.Errorf("the correction is %+v", again[3])
		}
	}
}

func TestUnreadableTwice(t *testing.T) {
	t.Parallel()
	var asked []assay.Request
	c := classify.Classifier{Provider: saying(&asked, "Well.", "It was a timeout."), Model: "judge"}
	got, err := c.Classify(t.Context(), partial())
	want := classify.Answer{
		Raw: "It was a timeout.", Spend: assay.NewSpend(assay.Usage{InputTokens: 20, OutputTokens: 4}, 1),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if !errors.Is(err, classify.ErrUnreadable) ||
		!strings.Contains(err.Error(), `"It was a timeout."`) {
		t.Errorf("error %v, want %v with the reply", err, classify.ErrUnreadable)
	}
	if len(asked) != 2 {
		t.Errorf("got %d requests, want 2", len(asked))
	}
}

// TestFault checks that a provider's fault is passed on, with the cost so far.
func TestFault(t *testing.T) {
	t.Parallel()
	fault := &assay.Fault{Kind: assay.Overloaded, Lane: "p/key/m", Status: 503}
	for _, after := range []int{0, 1} {
		n := 0
		c := classify.Classifier{Model: "judge", Provider: chat(func(context.Context, *assay.Request) (*assay.Response, error) {
			if n++; n > after {
				return &assay.Response{Usage: assay.Usage{InputTokens: 5}}, fault
			}
			return said("Well."), nil
		})}
		got, err := c.Classify(t.Context(), partial())
		if assay.AsFault(err) != fault || errors.Is(err, classify.ErrUnreadable) {
			t.Errorf("error %v, want the provider's", err)
		}
		want := assay.Usage{InputTokens: 5 + 10*after, OutputTokens: 2 * after}
		if got.Usage() != want || got.Opinion != (classify.Opinion{}) {
			t.Errorf("answer = %+v, want only the usage %v", got, want)
		}
	}
}
