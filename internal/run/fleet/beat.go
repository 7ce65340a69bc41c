package fleet

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/assay-eval/assay"
)

// beats reports the state of this worker to the coordinator every second, and obeys the reply.
func (s *session) beats(ctx context.Context) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	heard := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		var r beatReply
		err := s.call(ctx, beatLimit, callBeat, s.state(), &r)
		switch {
		case err == nil:
			heard = time.Now()
			s.obey(&r)
		case ctx.Err() == nil && time.Since(heard) > aloneFor*s.lease:
			s.end(errAlone)
			s.leaves()
		}
	}
}

// state returns the present state of this worker.
func (s *session) state() *beat {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &beat{Worker: s.id, Run: s.job.Run, Leaving: s.left}
	for model := range s.agents {
		if b.Agents == nil {
			b.Agents = make(map[string]map[assay.AgentState]int)
		}
		b.Agents[model] = s.bridge.States(model)
	}
	for h := range s.running {
		b.Assignments = append(b.Assignments, h)
	}
	slices.SortFunc(b.Assignments, func(x, y held) int {
		return cmp.Compare(x.Assignment, y.Assignment)
	})
	return b
}

// obey follows a reply of the coordinator.
func (s *session) obey(r *beatReply) {
	s.mu.Lock()
	for _, h := range r.Over {
		if cancel := s.running[h]; cancel != nil {
			cancel(errOver)
		}
	}
	s.ended = s.ended || r.Ended
	s.mu.Unlock()
	switch {
	case r.Unknown:
		s.end(errAlone)
		s.leaves()
	case r.Ended || r.Drain:
		s.leaves()
	}
}
