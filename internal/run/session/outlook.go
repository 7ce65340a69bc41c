package session

import (
	"cmp"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// An outlook estimates how long a run still takes, first by the forecast and then by the pace of
// the lanes.
type outlook struct {
	started time.Time
	pools   *job.Pools

	mu        sync.Mutex // guards the fields below
	forecast  job.Forecast
	paces     map[*lane.Pool]*job.Pace
	heldSince time.Time // when the user paused all lanes, or zero
	// revised is the forecast of what was left when the user changed lanes, at revisedAt. It counts
	// until there is a pace again.
	revised   *job.Forecast
	revisedAt time.Time
}

// expect sets the forecast and begins to learn how fast the lanes of each model are.
func (o *outlook) expect(f job.Forecast) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forecast, o.paces = f, make(map[*lane.Pool]*job.Pace)
	for _, m := range f.Models {
		if m.Trials > 0 {
			turns := float64(m.Requests) / float64(m.Trials)
			o.paces[o.pools.ByModel[m.Model]] = &job.Pace{Turns: turns}
		}
	}
}

// revise takes a forecast of what is left with the lanes as they are now.
func (o *outlook) revise(f *job.Forecast) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.revised, o.revisedAt = f, time.Now()
}

// changePace forgets the pace of all lanes, because the user has changed them.
func (o *outlook) changePace() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range o.paces {
		p.Forget(time.Since(o.started))
	}
}

// replied counts a reply of a model.
func (o *outlook) replied(model string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p := o.paces[o.pools.ByModel[model]]; p != nil {
		p.Replied(time.Since(o.started))
	}
}

// outcome counts the outcome of a trial.
func (o *outlook) outcome(a *assay.Attempt) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if p := o.paces[o.pools.ByModel[a.Model]]; p != nil {
		p.Ended(a.FinishedAt.Sub(a.StartedAt))
	}
}

// noteHeld remembers since when the user has paused all lanes.
func (o *outlook) noteHeld(now time.Time) {
	held := true
	for _, p := range o.pools.ByModel {
		lanes, _ := p.Status()
		for _, l := range lanes {
			held = held && (l.Held || l.Closed != nil)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case !held:
		o.heldSince = time.Time{}
	case o.heldSince.IsZero():
		o.heldSince = now
	}
}

// A poolWork is what the models that share lanes still have to do.
type poolWork struct {
	pending, inFlight int
	// silence is how long no lane can start a request, and never true if the user has paused them.
	silence time.Duration
	never   bool
	// wait is how long a request has to wait, as an endpoint has announced, and daily the shortest time
	// that daily limits allow for the work.
	wait, daily time.Duration
}

// complete adds the forecast and the time that each model still takes. Models that share lanes are
// done together.
func (o *outlook) complete(progress *terminal.Progress) {
	o.mu.Lock()
	defer o.mu.Unlock()
	progress.Forecast, progress.ForecastRange = o.forecast.Wall, o.forecast.Range
	progress.PausedSince = o.heldSince
	if progress.Stopping || !progress.PausedSince.IsZero() {
		return
	}
	all := make(map[*lane.Pool]*poolWork)
	for _, m := range progress.Models {
		p := o.pools.ByModel[m.Model]
		if all[p] == nil {
			all[p] = new(poolWork)
		}
		all[p].pending += m.Pending
		all[p].inFlight += m.InFlight
	}
	for p, w := range all {
		lanes, waiting := p.Status()
		silence, ok := job.Silence(lanes)
		w.silence, w.never = silence, !ok
		if pace := o.paces[p]; pace != nil {
			w.wait = max(silence, time.Until(waiting.Until))
			w.daily = p.DailyWait(pace.Requests(w.pending, w.inFlight))
		}
	}
	for i := range progress.Models {
		m := &progress.Models[i]
		p := o.pools.ByModel[m.Model]
		if m.Pending > 0 && m.Closed == "" && !all[p].never {
			m.Left = o.left(p, all[p])
		}
	}
}

// left returns the time that the models that share lanes still take, or nil if it is unknown.
func (o *outlook) left(p *lane.Pool, w *poolWork) *terminal.TimeLeft {
	pace := o.paces[p]
	if pace == nil {
		return nil
	}
	left, ok := pace.Left(time.Since(o.started), w.silence, w.pending, w.inFlight)
	if !ok {
		return o.planned(p, w)
	}
	if left <= 0 {
		return nil
	}
	return &terminal.TimeLeft{Seconds: max(left, w.wait, w.daily).Seconds(), Basis: terminal.ByPace}
}

// planned returns the time left in the latest forecast of the models that share lanes. It returns nil once
// the run takes longer than that. After a wait, the work that is pending takes its share of the
// forecast.
func (o *outlook) planned(p *lane.Pool, w *poolWork) *terminal.TimeLeft {
	var wall, low, high float64
	trials := 0
	forecast, since := &o.forecast, o.started
	if o.revised != nil {
		forecast, since = o.revised, o.revisedAt
	}
	for _, m := range forecast.Models {
		if o.pools.ByModel[m.Model] == p {
			wall += m.Wall
			low += cmp.Or(m.Low, m.Wall)
			high += cmp.Or(m.High, m.Wall)
			trials += m.Trials
		}
	}
	left := func(wall float64) float64 {
		left := max(wall-time.Since(since).Seconds(), w.daily.Seconds())
		if w.wait > 0 {
			left = max(left, w.wait.Seconds()+wall*min(1, float64(w.pending)/float64(max(1, trials))))
		}
		return left
	}
	l := &terminal.TimeLeft{Seconds: left(wall), Basis: terminal.ByPlan}
	if high > wall { // the endpoint is unknown, so the run may go on
		l.Seconds, l.Low, l.High = cmp.Or(left(wall), left(high)), left(low), left(high)
	}
	if l.Seconds == 0 {
		return nil
	}
	return l
}
