package session

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/assay-eval/assay/internal/model/lane"
)

// besideIsAsked reports whether the model behind a simulated user, or one that judges, is working on a
// request, or will.
func (s *Session) besideIsAsked() bool {
	busy := func(l lane.Status) bool { return l.InFlight > 0 }
	return slices.ContainsFunc(s.Experiment.Beside(), func(model string) bool {
		lanes, waiting := s.pools.ByModel[model].Status()
		return waiting.Requests > 0 || slices.ContainsFunc(lanes, busy)
	})
}

// unaskable returns why a model, or one that its trials need besides, cannot be asked any more, or nil.
func (s *Session) unaskable(model string) error {
	return cmp.Or(s.pools.ByModel[model].Closed(), s.besideClosed())
}

// besideClosed returns why such a model cannot serve any more, or nil. Then no attempt can get an outcome
// that needs it, so none is worth its cost.
func (s *Session) besideClosed() error {
	for _, model := range s.Experiment.Beside() {
		if err := s.pools.ByModel[model].Closed(); err != nil {
			what := "the judge"
			if model == s.Experiment.User {
				what = "the simulated user"
			}
			return fmt.Errorf("%s %s: %w", what, model, err)
		}
	}
	return nil
}
