package session

import (
	"fmt"
	"slices"

	"github.com/assay-eval/assay/internal/model/lane"
)

// userIsAsked reports whether the model behind a simulated user is working on a request, or will.
func (s *Session) userIsAsked() bool {
	pool := s.pools.ByModel[s.Experiment.User]
	if pool == nil {
		return false
	}
	lanes, waiting := pool.Status()
	busy := func(l lane.Status) bool { return l.InFlight > 0 }
	return waiting.Requests > 0 || slices.ContainsFunc(lanes, busy)
}

// userClosed returns why the model behind the simulated user cannot serve any more, or nil.
func (s *Session) userClosed() error {
	pool := s.pools.ByModel[s.Experiment.User]
	if pool == nil || pool.Closed() == nil {
		return nil
	}
	return fmt.Errorf("the simulated user %s: %w", s.Experiment.User, pool.Closed())
}
