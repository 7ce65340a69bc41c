package bridge_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
	"github.com/assay-eval/assay/internal/task/child"
)

// silent is a model that never replies.
type silent struct{ asked chan struct{} }

func (s silent) Chat(ctx context.Context, _ *assay.Request) (*assay.Response, error) {
	close(s.asked)
	<-ctx.Done()
	return &assay.Response{}, ctx.Err()
}

// A program that gives up waiting for its model is a fault, also if we notice that it has ended before
// we notice that it has hung up.
func TestProgramsThatGiveUpWaitingAreAFault(t *testing.T) {
	t.Parallel()
	p := silent{make(chan struct{})}
	hangUp, cancel := context.WithCancel(t.Context())
	place := bridge.Place{Program: func(
		_ context.Context, c child.Command, _ string, read func(io.Reader),
	) (bridge.Exit, error) {
		set := make(map[string]string)
		for _, v := range c.Plain {
			name, value, _ := strings.Cut(v, "=")
			set[name] = value
		}
		r, err := http.NewRequestWithContext(hangUp, http.MethodPost, "http://unused", http.NoBody)
		if err != nil {
			return bridge.Exit{}, err
		}
		go ask(r, set["OPENAI_BASE_URL"]+"/chat/completions", set["OPENAI_API_KEY"], map[string]any{
			"model": "m", "messages": []any{map[string]any{"role": "user", "content": "hi"}},
		})
		<-p.asked
		read(strings.NewReader(""))
		return bridge.Exit{Code: 3, State: "exit status 3"}, nil
	}}
	s := open(t)
	b, err := place.Open(func(text string) { t.Error(text) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	trial, task := s.trial(0, assay.Discover)
	a, _ := b.Runner(s.episodes, bridge.Agent{
		Name: "agent", Command: []string{"anything"}, Model: "m", Timeout: time.Minute,
	}).Run(t.Context(), p, trial, task)
	if a.FaultKind != assay.Timeout || !strings.Contains(a.FaultDetail, "gave up waiting") {
		t.Errorf("ended %q, fault %q: %s", a.Ended, a.FaultKind, a.FaultDetail)
	}
}
