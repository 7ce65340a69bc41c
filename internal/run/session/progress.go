package session

import (
	"cmp"
	"slices"
	"time"

	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/live"
)

// setPaces begins to learn how fast the lanes of each model are.
func (s *Session) setPaces() {
	s.paces = make(map[*lane.Pool]*job.Pace)
	for _, m := range s.forecast.Models {
		if m.Trials > 0 {
			turns := float64(m.Requests) / float64(m.Trials)
			s.paces[s.pools.ByModel[m.Model]] = &job.Pace{Turns: turns}
		}
	}
}

// changePace forgets the pace of all lanes, because the user has changed them.
func (s *Session) changePace() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.paces {
		p.Forget(time.Since(s.started))
	}
}

// complete adds to the progress what the meter cannot count.
func (s *Session) complete(p *live.Progress) {
	p.Run, p.Experiment, p.Budget = s.id, s.Experiment.Name, s.stopper.Budgets()
	p.Forecast, p.ForecastRange = s.forecast.Wall, s.forecast.Range
	for i := range p.Models {
		s.completeModel(&p.Models[i])
	}
	if s.coordinator != nil {
		p.Workers = s.coordinator.Workers()
	}
	s.mu.Lock()
	p.Tokens, p.Cost, p.Unpriced = s.tokens, s.cost, slices.Clone(s.unpriced)
	p.PausedSince = s.heldSince
	s.mu.Unlock()
	s.addLeft(p)

	total := p.Total()
	p.Counts, p.Left = total.Counts, total.Left
	p.Success = s.rate(total, s.Experiment.Models...)
	p.Attention = s.attention(p)
}

// completeModel adds what a model's lanes and agents are doing.
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
	m.Agents, m.Lost = s.agentStates(m.Model), s.lostShare(lanes)
	m.Success = s.rate(*m, m.Model)
}

// rate returns the rate of full success with the interval that a report has for models together.
// It is nil if no trial is done.
func (s *Session) rate(of live.ModelState, models ...string) *live.Success {
	if of.Done == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &live.Success{
		Rate:     float64(of.Full) / float64(of.Done),
		Interval: s.success.Rate(models...).Interval,
	}
}

// lostShare returns the share of the lanes' time that produced no reply, as far as requests have
// ended.
func (s *Session) lostShare(lanes []lane.Status) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum spending
	for _, l := range lanes {
		sum.replied += s.spent[l.Name].replied
		sum.lost += s.spent[l.Name].lost
	}
	return share(sum.lost, sum.lost+sum.replied)
}

// addLeft adds the time that each model still takes. Models that share lanes are done together.
func (s *Session) addLeft(progress *live.Progress) {
	if progress.Stopping || !progress.PausedSince.IsZero() {
		return
	}
	type work struct {
		pending, inFlight int
		silence           time.Duration
	}
	all := make(map[*lane.Pool]work)
	for _, m := range progress.Models {
		p := s.pools.ByModel[m.Model]
		lanes, _ := p.Status()
		all[p] = work{
			all[p].pending + m.Pending, all[p].inFlight + m.InFlight, job.Silence(lanes),
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range progress.Models {
		m := &progress.Models[i]
		p := s.pools.ByModel[m.Model]
		if pace := s.paces[p]; pace != nil && m.Pending > 0 && m.Closed == "" {
			w := all[p]
			left, ok := pace.Left(time.Since(s.started), w.silence, w.pending, w.inFlight)
			if !ok {
				m.Left = s.plannedLeft(p)
			} else if left.Expected > 0 {
				m.Left = &live.Left{
					Seconds: left.Expected.Seconds(), Basis: live.ByPace,
					Low: left.Low.Seconds(), High: left.High.Seconds(),
				}
			}
		}
	}
}

// plannedLeft returns what is left of the forecast of the models that share lanes. It returns nil
// once the run takes longer than that.
func (s *Session) plannedLeft(p *lane.Pool) *live.Left {
	var wall, low, high float64
	for _, m := range s.forecast.Models {
		if s.pools.ByModel[m.Model] == p {
			wall += m.Wall
			low += cmp.Or(m.Low, m.Wall)
			high += cmp.Or(m.High, m.Wall)
		}
	}
	left := func(wall float64) float64 { return max(0, wall-time.Since(s.started).Seconds()) }
	l := &live.Left{Seconds: left(wall), Basis: live.ByPlan}
	if high > wall { // the endpoint is unknown, so the run may go on
		l.Seconds, l.Low, l.High = cmp.Or(left(wall), left(high)), left(low), left(high)
	}
	if l.Seconds == 0 {
		return nil
	}
	return l
}
