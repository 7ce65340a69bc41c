package session

import (
	"time"

	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/result/stat"
	"github.com/assay-eval/assay/internal/run/job"
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
	interval := func(m live.ModelState) live.Interval {
		if m.Done == 0 {
			return live.Interval{}
		}
		return live.Interval(stat.Wilson(m.Full, m.Done, stat.Z95))
	}
	for i := range snapshot.Models {
		m := &snapshot.Models[i]
		m.Success, m.Lost = interval(*m), s.lostShare(m.Name)
	}
	snapshot.Success = interval(snapshot.Total())
	snapshot.Workers = liveWorkers(s.workers())
	s.mu.Lock()
	snapshot.PausedSince = s.heldSince
	s.mu.Unlock()
	s.addLeft(snapshot)
	for _, a := range s.attention(*snapshot) {
		snapshot.Attention = append(snapshot.Attention, a.Attention)
	}
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
	s.mu.Lock()
	defer s.mu.Unlock()
	type work struct{ pending, inFlight int }
	all := make(map[*lane.Pool]work)
	for _, m := range snapshot.Models {
		p := s.pools.ByModel[m.Name]
		all[p] = work{all[p].pending + m.Pending(), all[p].inFlight + m.InFlight}
	}
	for i := range snapshot.Models {
		m := &snapshot.Models[i]
		p := s.pools.ByModel[m.Name]
		if pace := s.paces[p]; pace != nil && m.Pending() > 0 && m.Closed == "" {
			left, ok := pace.Left(time.Since(s.started), all[p].pending, all[p].inFlight)
			if m.Left = (live.Left{Expected: left.Expected, Low: left.Low, High: left.High}); !ok {
				m.Left = s.plannedLeft(p)
			}
		}
	}
}

// plannedLeft returns what is left of the forecast of the models that share lanes. It returns zero
// once the run takes longer than that.
func (s *Session) plannedLeft(p *lane.Pool) live.Left {
	var wall float64
	for _, m := range s.forecast.Models {
		if s.pools.ByModel[m.Model] == p {
			wall += m.Wall
		}
	}
	left := time.Duration(wall*float64(time.Second)) - time.Since(s.started)
	return live.Left{Expected: max(0, left), ByPlan: left > 0}
}
