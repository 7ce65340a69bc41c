package session

import "github.com/assay-eval/assay/internal/run/terminal"

// progress returns how the run stands now.
func (s *Session) progress() terminal.Progress {
	p := s.meter.progress()
	p.Run, p.Experiment, p.Budget = s.id, s.Experiment.Name, s.stopper.Budgets()
	s.tally.Begun(s.begun(true))
	for _, m := range s.Experiment.Models {
		p.Models = append(p.Models, s.modelState(m))
	}
	if s.coordinator != nil {
		p.Workers = s.coordinator.Workers()
	}
	s.outlook.complete(&p)

	total := p.Total()
	p.Counts, p.Left = total.Counts, total.Left
	p.Attention = s.attention(&p)
	return p
}

// modelState returns how a model and its lanes and agents stand.
func (s *Session) modelState(model string) terminal.ModelState {
	m := terminal.ModelState{Model: model, Lanes: []terminal.LaneState{}, Closed: s.tally.Closed(model)}
	m.Standing, m.InRun = s.tally.Standing(model), s.tally.InRun(model)
	m.Requests, m.TokensPerMinute = s.meter.requests(model)
	lanes, waiting := s.pools.ByModel[model].Status()
	m.Waiting = waiting.Requests
	var names []string
	for _, l := range lanes {
		names = append(names, l.Name)
		m.Lanes = append(m.Lanes, terminal.LaneState{
			Lane: l.Name, InFlight: l.InFlight, Limits: l.Limits, Found: l.Found,
			Waits: l.Waits, Words: l.Words, Paused: l.Held,
		})
	}
	if waiting.Requests > 0 {
		m.Waits = waitText(lanes)
	}
	replied, lost := s.meter.spent(names...)
	m.Agents, m.Lost = s.agentStates(model), share(lost, lost+replied) // of requests that have ended
	m.Success = s.meter.rate(m)
	return m
}
