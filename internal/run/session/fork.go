package session

import (
	"context"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
)

// A continued attempt is a fork, whose later replies come from its gate.
type continued struct {
	assay.Provider
	*gated
}

// Chat implements [assay.Provider].
func (c continued) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	return c.Provider.Chat(ctx, req)
}

// provider returns the provider of an attempt: its gate, or one that begins as another attempt did.
func (s *Session) provider(ctx context.Context, g *gated) (assay.Provider, error) {
	if g.trial.Of == "" {
		return g, nil
	}
	at, err := g.trial.Point()
	if err != nil {
		return nil, err
	}
	tr, err := s.db.Transcript(ctx, at.Trial, at.Attempt)
	if err != nil {
		return nil, err
	}
	p, err := episode.Continue(g, g.trial.Fork, &tr)
	return continued{p, g}, err
}
