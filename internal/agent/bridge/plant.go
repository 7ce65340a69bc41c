package bridge

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/model/gateway"
)

// hangsFor is how long a request hangs that a trial lets hang.
const hangsFor = 30 * time.Second

// planted are the refusals of planted faults, by status.
var planted = map[int]gateway.Refusal{
	http.StatusTooManyRequests: {
		Message: "Rate limit reached. Please try again later.", Kind: "requests", Code: "rate_limit_exceeded",
	},
	http.StatusServiceUnavailable: {
		Message: "The model is overloaded. Please try again later.", Kind: "server_error", Code: "overloaded",
	},
}

// cutOff is the reply that a fault cuts off. It has no call, since an agent might carry it out.
const cutOff = "I will look at the task first, and then go on step by step, as far as the tools let me. "

// fail answers a request with a planted fault for which the model is not asked.
func (a *attempt) fail(
	w http.ResponseWriter, r *http.Request, d gateway.Dialect, p *gateway.Prompt, asking *episode.Asking,
) {
	asking.Met(r.Context().Err() == nil)
	rule := asking.Fault.Rule()
	switch {
	case rule.Status > 0:
		refusal := planted[rule.Status]
		refusal.Status = rule.Status
		if rule.Waits {
			w.Header().Set("Retry-After", "1")
		}
		refuse(w, d, refusal)
	case rule.Kind == assay.ModelHang:
		timer := time.NewTimer(hangsFor)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		case <-a.ctx.Done():
		}
		panic(http.ErrAbortHandler)
	case rule.Kind == assay.ModelCut:
		body := encode(w, d, p, a.made(d, p, cutOff))
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	default:
		_, _ = w.Write(encode(w, d, p, a.made(d, p, "")))
	}
}

// made returns a reply that no model has made.
func (a *attempt) made(d gateway.Dialect, p *gateway.Prompt, text string) gateway.Reply {
	reply := replyOf(&assay.Response{Message: assay.Message{Content: text}}, a.nameIn(p))
	a.items.Keep(d, reply)
	return reply
}

// A spoiler is a provider. If it spoils, the first call of its reply cannot be read, and it is spoiled
// once that was so.
type spoiler struct {
	assay.Provider
	spoils, spoiled bool
}

// Chat implements [assay.Provider].
func (s *spoiler) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	resp, err := s.Provider.Chat(ctx, req)
	if err != nil || !s.spoils || len(resp.Message.Calls) == 0 {
		return resp, err
	}
	broken := *resp
	broken.Message.Calls = append([]assay.ToolCall(nil), resp.Message.Calls...)
	broken.Message.Calls[0].Arguments = unreadable(resp.Message.Calls[0].Arguments)
	s.spoiled = true
	return &broken, nil
}

// unreadable cuts the arguments of a call off, so that they are no JSON.
func unreadable(arguments string) string {
	if runes := []rune(arguments); len(runes) > 1 {
		if half := string(runes[:(len(runes)+1)/2]); !json.Valid([]byte(half)) {
			return half
		}
	}
	return `{"`
}
