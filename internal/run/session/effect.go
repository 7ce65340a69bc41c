package session

import (
	"context"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

// An Effect has the changes that an order for lanes would make, if the endpoints stay as they are.
type Effect struct {
	Lanes []string `json:"lanes"`
	// InFlight counts the requests in flight on these lanes.
	InFlight int `json:"in_flight"`
	// Times is the factor by which the rest of the run would take longer. It is 0 if that is
	// unknown, or if models would stand still.
	Times float64 `json:"times"`
	// Still has the models with pending trials that no lane would serve.
	Still []string `json:"still,omitempty"`
}

// effect simulates the rest of the run in virtual time, with the lanes as they are and as they
// would be after an order.
func (s *Session) effect(ctx context.Context, o Order) (*Effect, error) {
	e := &Effect{Lanes: []string{}}
	now, then := *s.pools, *s.pools
	now.Configs, then.Configs = make(map[string][]lane.Config), make(map[string][]lane.Config)
	pending := make(map[string]int)
	for _, m := range s.progress().Models {
		pending[m.Model] = m.Pending
		states, _ := s.pools.ByModel[m.Model].Status()
		for i, c := range s.pools.Configs[m.Model] {
			l := states[i]
			c.Limits, c.Spent = presentLimits(l), nil
			matches := Matches(o, m.Model, l.Name)
			if matches && !slices.Contains(e.Lanes, l.Name) {
				e.Lanes = append(e.Lanes, l.Name)
				e.InFlight += l.InFlight
			}
			if l.Closed == nil && !l.Held {
				now.Configs[m.Model] = append(now.Configs[m.Model], c)
			}
			if changed, open := changeLane(o, l, c, matches); open {
				then.Configs[m.Model] = append(then.Configs[m.Model], changed)
			}
		}
		if m.Pending > 0 && len(then.Configs[m.Model]) == 0 {
			e.Still = append(e.Still, m.Model)
		}
		if len(now.Configs[m.Model]) == 0 || len(then.Configs[m.Model]) == 0 {
			pending[m.Model] = 0 // it would take for ever
		}
	}
	before, err := s.Forecast(ctx, s.db, &now, pending, s.options.SimLatency)
	if err != nil {
		return nil, err
	}
	after, err := s.Forecast(ctx, s.db, &then, pending, s.options.SimLatency)
	if err == nil && before.Wall > 0 && len(e.Still) == 0 {
		e.Times = after.Wall / before.Wall
	}
	return e, err
}

// presentLimits returns the limits of a lane. Learned limits replace the configured ones.
func presentLimits(l lane.Status) lane.Limits {
	limits := l.Limits
	for _, b := range lane.Buckets {
		if n := *l.Learned.Of(b); n > 0 {
			*limits.Of(b) = n
		}
	}
	return limits
}

// changeLane returns a lane as an order would leave it, and whether it would serve requests.
func changeLane(o Order, l lane.Status, c lane.Config, matches bool) (lane.Config, bool) {
	open := l.Closed == nil && !l.Held
	if !matches || l.Closed != nil {
		return c, open
	}
	switch o.Do {
	case "pause":
		return c, false
	case "resume":
		return c, true
	case "set":
		for b, n := range o.Limits {
			if to := c.Limits.Of(assay.Bucket(b)); to != nil {
				*to = n
			}
		}
	}
	return c, open
}
