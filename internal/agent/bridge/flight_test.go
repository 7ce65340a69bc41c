package bridge_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
)

// slowSpeaker replies once it is released. It bills each reply.
type slowSpeaker struct{ released chan struct{} }

func (s slowSpeaker) Chat(ctx context.Context, _ *assay.Request) (*assay.Response, error) {
	select {
	case <-s.released:
	case <-ctx.Done():
		return &assay.Response{}, ctx.Err()
	}
	r := assay.Response{Usage: assay.Usage{InputTokens: 20, OutputTokens: 3}, Cost: .01}
	r.Message = assay.Message{Role: assay.Assistant, Content: "Let me look."}
	return &r, nil
}

// An agent that asks in parallel is stopped by the limit of turns, and all replies are counted.
func TestRequestsInFlightAreCounted(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := slowSpeaker{make(chan struct{})}
	service := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body := bodyOf(r)
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel() // it gives up all requests when one is refused
		refused := make(chan struct{}, 20)
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				_, status := ask(r.WithContext(ctx), body["model_url"]+"/v1/chat/completions",
					body["token"], map[string]any{"model": "m", "messages": []any{
						map[string]any{"role": "user", "content": "hi"},
					}})
				if status == "503 Service Unavailable" {
					refused <- struct{}{}
				}
			})
		}
		for range 5 {
			<-refused
		}
		cancel()
		wg.Wait()
		time.AfterFunc(50*time.Millisecond, func() { close(p.released) })
		w.WriteHeader(http.StatusInternalServerError)
	})
	trial, task := s.trial(0, assay.Discover)
	a, _ := s.Runner(s.episodes, bridge.Agent{
		Name: "agent", URL: service, Model: "m", Timeout: time.Minute,
	}).Run(t.Context(), p, trial, task)
	if a.Ended != assay.TurnLimit || a.Outcome.Turns != 15 || a.Unmetered {
		t.Errorf("ended %q %s with %d turns, unmetered %v", a.Ended, a.FaultDetail, a.Outcome.Turns,
			a.Unmetered)
	}
	if a.InputTokens != 300 || a.OutputTokens != 45 || a.CostUSD != .15 {
		t.Errorf("%d + %d tokens, $%v; want those of 15 replies", a.InputTokens, a.OutputTokens,
			a.CostUSD)
	}
}
