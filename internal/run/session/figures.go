package session

import (
	"slices"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
	"github.com/assay-eval/assay/internal/run/live"
)

// Usage adds up the requests of a run.
type Usage struct {
	// RequestFaults counts the failed requests.
	RequestFaults map[assay.FaultKind]int `json:"request_faults"`
	Requests      int                     `json:"requests"`
	// SecondRequests counts the requests that were sent because the first one for the same turn was
	// late, and SecondReplies counts the answered ones.
	SecondRequests int `json:"second_requests"`
	SecondReplies  int `json:"second_replies"`

	Tokens int     `json:"tokens"`
	Cost   float64 `json:"cost_usd"`
	// The simulated user's part of both.
	UserTokens int     `json:"user_tokens,omitempty"`
	UserCost   float64 `json:"user_cost_usd,omitempty"`
	// Unpriced names the models with replies of unknown cost, which Cost leaves out.
	Unpriced []string `json:"unpriced,omitempty"`
}

// figures add up the usage and the results of a run so far.
type figures struct {
	mu sync.Mutex // guards the fields below
	Usage
	success report.Progress
	longest time.Duration        // working time of an episode
	latest  time.Time            // end of the latest request, or the start of the run
	replied map[string]time.Time // by model
	spent   map[string]spending  // by lane
}

// A spending is the time that a lane spent on requests with and without a reply.
type spending struct{ replied, lost time.Duration }

func newFigures(started time.Time) *figures {
	return &figures{
		Usage: Usage{RequestFaults: make(map[assay.FaultKind]int)}, latest: started,
		replied: make(map[string]time.Time), spent: make(map[string]spending),
	}
}

// request counts a request that has ended. The kind of its fault is "" if the user need not know.
func (f *figures) request(x lane.Exchange, kind assay.FaultKind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.latest = time.Now()
	f.Requests++
	f.Cost = assay.RoundUSD(f.Cost + x.Cost)
	f.Tokens += x.Usage.Total()
	if x.User {
		f.UserTokens += x.Usage.Total()
		f.UserCost = assay.RoundUSD(f.UserCost + x.Cost)
	}
	if i, known := slices.BinarySearch(f.Unpriced, x.Model); !known && x.Usage.UnpricedTokens > 0 {
		f.Unpriced = slices.Insert(f.Unpriced, i, x.Model)
	}
	spent := f.spent[x.Lane]
	if x.Fault == nil {
		spent.replied += x.Took
		f.replied[x.Model] = f.latest
	} else {
		spent.lost += x.Took
	}
	f.spent[x.Lane] = spent
	if kind != "" {
		f.RequestFaults[kind]++
	}
	if x.Second {
		f.SecondRequests++
		if x.Fault == nil {
			f.SecondReplies++
		}
	}
}

// outcome counts the outcome of a trial.
func (f *figures) outcome(a *assay.Attempt) {
	g := stat.Group{N: 1}
	if a.Level == assay.FullSuccess {
		g.Full = 1
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.success.Add(a.Model, a.Task, a.RequiredTools, g)
	if a.Requests <= a.Outcome.Turns { // otherwise a part of the time was lost
		f.longest = max(f.longest, time.Duration(a.WorkingMS)*time.Millisecond)
	}
}

// repliedAt returns when a model replied last, or the zero time.
func (f *figures) repliedAt(model string) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.replied[model]
}

// idle returns the time since the latest request ended.
func (f *figures) idle(now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return now.Sub(f.latest)
}

// lost returns the time that a lane spent on requests that got no reply.
func (f *figures) lost(lane string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.spent[lane].lost
}

// lostShare returns the share of the lanes' time that produced no reply, as far as requests have
// ended.
func (f *figures) lostShare(lanes []lane.Status) float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	var sum spending
	for _, l := range lanes {
		sum.replied += f.spent[l.Name].replied
		sum.lost += f.spent[l.Name].lost
	}
	return share(sum.lost, sum.lost+sum.replied)
}

// rate returns the rate of full success with the interval that a report has for models together.
// It is nil if no trial is done.
func (f *figures) rate(of live.ModelState, models ...string) *live.Success {
	if of.Done == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return &live.Success{
		Rate:     float64(of.Full) / float64(of.Done),
		Interval: f.success.Rate(models...).Interval,
	}
}
