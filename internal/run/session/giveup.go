package session

import (
	"fmt"

	"github.com/assay-eval/assay/internal/agent/bridge"
	"github.com/assay-eval/assay/internal/run/engine"
)

// mostUnstarted is how many attempts of an agent in a row may end before their first action. Then
// the run gives the agent up, because its program does not work.
const mostUnstarted = 5

// A starter counts the attempts of an agent in a row that ended before their first action. All
// levels and revisions of the agent share it.
type starter struct {
	failed  int
	how     string // the latest of them ended
	givenUp error  // nil if the run has not given the agent up
}

func (st *starter) err() error {
	return fmt.Errorf("%d attempts in a row ended before their first action, the last with %s",
		st.failed, st.how)
}

// starter returns the starter of the agent that is listed as model, or nil for a bare model. The
// caller holds mu.
func (s *Session) starter(model string) *starter {
	a, ok := s.pools.Agents[model]
	if !ok {
		return nil
	}
	if s.starters[a.Name] == nil {
		s.starters[a.Name] = new(starter)
	}
	return s.starters[a.Name]
}

// acted notes that an attempt of the agent has got as far as an action.
func (s *Session) acted(model string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.starter(model); st != nil {
		st.failed = 0
	}
}

// givenUp returns why the run has given up the agent that is listed as model, or nil.
func (s *Session) givenUp(model string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.starter(model); st != nil {
		return st.givenUp
	}
	return nil
}

// countStarts counts the attempts that ended before their first action.
func (s *Session) countStarts(e engine.Event) {
	a := e.Attempt
	if a == nil {
		return
	}
	if a.Requests+a.ToolCalls > 0 {
		s.acted(a.Model)
		return
	}
	how := bridge.Unstarted(a)
	if how == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.starter(a.Model)
	st.failed, st.how = st.failed+1, how
	if st.failed >= mostUnstarted && st.givenUp == nil {
		st.givenUp = st.err()
	}
}

// neverStarted returns why an agent has outcomes of no trial at the end of a run: the run has
// given it up, or there were so few trials that each was parked before that.
func (s *Session) neverStarted(model string) error {
	err := s.givenUp(model)
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.starter(model); err == nil && st != nil && st.failed >= engine.MaxAttempts {
		return st.err()
	}
	return err
}

// mendAgent is what to do about an agent that a run has given up.
const mendAgent = "`assay check` shows what it prints; mend it, and `assay run` tries it again"
