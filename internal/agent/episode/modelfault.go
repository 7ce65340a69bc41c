package episode

import "github.com/assay-eval/assay"

// An Asking is a request of a foreign agent for a reply.
type Asking struct {
	// Fault is the fault of the model that the trial plants in the request, or "".
	Fault assay.ModelFault

	stage *Stage
	// number counts the requests from 1, and earlier the planted faults before this one.
	number, earlier int
}

// Asks numbers a request. Requests that a limit refuses meet no planted fault.
func (s *Stage) Asks() *Asking {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &Asking{stage: s, earlier: len(s.planted)}
	if s.isOver() || s.e.spent() != "" || s.usedUp() {
		return a
	}
	a.Fault = s.rates.At(s.e.trial.Seed, s.requests)
	s.requests++
	a.number = s.requests
	return a
}

// Met records that the agent gets the fault now. If it no longer listens, the fault is not delivered.
func (a *Asking) Met(listens bool) {
	s := a.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.Fault == assay.ModelEmpty { // which the agent may send back
		s.seen[hashOf(&assay.Message{Role: assay.Assistant})] = true
	}
	s.planted = append(s.planted, assay.ModelFaultRecord{
		Kind: a.Fault, Request: a.number, Turn: s.turn(), Delivered: listens,
	})
}

// Answered records that the agent gets a whole reply: it has recovered from the faults before.
func (a *Asking) Answered() {
	s := a.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.planted[:a.earlier] {
		s.planted[i].Recovered = s.planted[i].Delivered
	}
}

// Met returns the number of planted faults of its model that the agent has met.
func (s *Stage) Met() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.planted)
}
