package session

import "github.com/assay-eval/assay/internal/run/live"

// progress returns how the run stands now.
func (s *Session) progress() live.Progress {
	p := s.meter.progress()
	p.Run, p.Experiment, p.Budget = s.id, s.Experiment.Name, s.stopper.Budgets()
	for i := range p.Models {
		s.completeModel(&p.Models[i])
	}
	if s.coordinator != nil {
		p.Workers = s.coordinator.Workers()
	}
	s.outlook.complete(&p)

	total := p.Total()
	p.Counts, p.Left = total.Counts, total.Left
	p.Success = s.meter.rate(total, s.Experiment.Models...)
	p.Attention = s.attention(&p)
	return p
}

// completeModel adds the states of a model's lanes and agents.
func (s *Session) completeModel(m *live.ModelState) {
	lanes, waiting := s.pools.ByModel[m.Model].Status()
	m.Waiting, m.Lanes = waiting.Requests, []live.LaneState{}
	for _, l := range lanes {
		m.Lanes = append(m.Lanes, live.LaneState{
			Lane: l.Name, InFlight: l.InFlight, Limits: l.Limits, Found: l.Found,
			Waits: l.Waits, Words: l.Words, Paused: l.Held,
		})
	}
	if waiting.Requests > 0 {
		m.Waits = waitText(lanes)
	}
	m.Agents, m.Lost = s.agentStates(m.Model), s.meter.lostShare(lanes)
	m.Success = s.meter.rate(*m, m.Model)
}
