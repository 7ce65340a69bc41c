package session

import (
	"fmt"
	"sync"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/run/engine"
)

// maxUnstarted is how many attempts of an agent in a row may end before their first action. Then
// the run gives the agent up, because its program does not work.
const maxUnstarted = 5

// starters has the starter of each agent by its name.
type starters struct {
	agents map[string]job.Agent // by the listed name

	mu    sync.Mutex
	names map[string]*starter
}

func newStarters(agents map[string]job.Agent) *starters {
	return &starters{agents: agents, names: make(map[string]*starter)}
}

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

// of returns the starter of the agent that is listed as model, or nil for a bare model. The caller
// holds mu.
func (s *starters) of(model string) *starter {
	a, ok := s.agents[model]
	if !ok {
		return nil
	}
	if s.names[a.Name] == nil {
		s.names[a.Name] = new(starter)
	}
	return s.names[a.Name]
}

// acted notes that an attempt of the agent has got as far as an action.
func (s *starters) acted(model string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.of(model); st != nil {
		st.failed = 0
	}
}

// givenUp returns why the run has given up the agent that is listed as model, or nil.
func (s *starters) givenUp(model string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.of(model); st != nil {
		return st.givenUp
	}
	return nil
}

// ended counts an attempt if it ended before its first action.
func (s *starters) ended(a *assay.Attempt) {
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
	st := s.of(a.Model)
	st.failed, st.how = st.failed+1, how
	if st.failed >= maxUnstarted && st.givenUp == nil {
		st.givenUp = st.err()
	}
}

// neverStarted returns why an agent has outcomes of no trial at the end of a run: the run has
// given it up, or there were so few trials that each was parked before that.
func (s *starters) neverStarted(model string) error {
	err := s.givenUp(model)
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.of(model); err == nil && st != nil && st.failed >= engine.MaxAttempts {
		return st.err()
	}
	return err
}
