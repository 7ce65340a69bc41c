package session

import (
	"cmp"
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

// complete adds to a snapshot what the meter cannot count.
func (s *Session) complete(snapshot *live.Snapshot) {
	for i := range snapshot.Models {
		m := &snapshot.Models[i]
		m.Success, m.Lost = s.interval(m.Name), s.lostShare(m.Name)
	}
	snapshot.Success = s.interval(s.Experiment.Models...)
	snapshot.Workers = liveWorkers(s.workers())
	s.mu.Lock()
	snapshot.PausedSince = s.heldSince
	s.mu.Unlock()
	s.addLeft(snapshot)
	for _, a := range s.attention(*snapshot) {
		snapshot.Attention = append(snapshot.Attention, a.Attention)
	}
}

// interval returns the interval that a report has for models together. It is zero if no trial is
// done.
func (s *Session) interval(models ...string) live.Interval {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.success.Rate(models...)
	if r.Trials == 0 {
		return live.Interval{}
	}
	return live.Interval(r.Interval)
}

// lostShare returns the share of the time of a model's lanes that produced no reply, as far as
// requests have ended.
func (s *Session) lostShare(model string) float64 {
	lanes, _ := s.pools.ByModel[model].Status()
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
func (s *Session) addLeft(snapshot *live.Snapshot) {
	if snapshot.Stopping || !snapshot.PausedSince.IsZero() {
		return
	}
	type work struct {
		pending, inFlight int
		silence           time.Duration
	}
	all := make(map[*lane.Pool]work)
	for _, m := range snapshot.Models {
		p := s.pools.ByModel[m.Name]
		lanes, _ := p.Status()
		all[p] = work{
			all[p].pending + m.Pending(), all[p].inFlight + m.InFlight, job.Silence(lanes),
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range snapshot.Models {
		m := &snapshot.Models[i]
		p := s.pools.ByModel[m.Name]
		if pace := s.paces[p]; pace != nil && m.Pending() > 0 && m.Closed == "" {
			w := all[p]
			left, ok := pace.Left(time.Since(s.started), w.silence, w.pending, w.inFlight)
			if m.Left = (live.Left{Expected: left.Expected, Low: left.Low, High: left.High}); !ok {
				m.Left = s.plannedLeft(p)
			}
		}
	}
}

// plannedLeft returns what is left of the forecast of the models that share lanes. It returns zero
// once the run takes longer than that.
func (s *Session) plannedLeft(p *lane.Pool) live.Left {
	var wall, low, high float64
	for _, m := range s.forecast.Models {
		if s.pools.ByModel[m.Model] == p {
			wall += m.Wall
			low += cmp.Or(m.Low, m.Wall)
			high += cmp.Or(m.High, m.Wall)
		}
	}
	left := func(wall float64) time.Duration {
		return max(0, seconds(wall)-time.Since(s.started))
	}
	l := live.Left{Expected: left(wall)}
	if high > wall { // the endpoint is unknown, so the run may go on
		l = live.Left{
			Expected: cmp.Or(left(wall), left(high)), Low: left(low), High: left(high),
		}
	}
	l.ByPlan = l.Expected > 0
	return l
}
