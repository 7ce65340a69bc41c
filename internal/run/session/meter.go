package session

import (
	"slices"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// Usage adds up the requests of a run.
type Usage struct {
	// RequestFaults counts the failed requests, without interrupted ones.
	RequestFaults map[assay.FaultKind]int `json:"request_faults"`
	Requests      int                     `json:"requests"`

	Tokens int     `json:"tokens"`
	Cost   float64 `json:"cost_usd"`
	// The simulated user's part of both.
	UserTokens int     `json:"user_tokens,omitempty"`
	UserCost   float64 `json:"user_cost_usd,omitempty"`
	// Unpriced names the models with requests of unknown cost, which Cost leaves out.
	Unpriced []string `json:"unpriced,omitempty"`
}

// A meter counts the events of a run. It is safe for concurrent use.
type meter struct {
	start time.Time

	mu sync.Mutex // guards the fields below
	Usage
	models   map[string]*gauge
	stopping bool
	notes    []string
	success  report.Progress
	longest  time.Duration        // working time of an episode
	latest   time.Time            // end of the latest request, or the start of the run
	replied  map[string]time.Time // by model
	spent    map[string]spending  // by lane
}

// A gauge counts the requests for one model.
type gauge struct {
	requests int
	tokens   tokenRate
}

// A spending is the time that a lane spent on requests with and without a reply.
type spending struct{ replied, lost time.Duration }

func newMeter(start time.Time) *meter {
	return &meter{
		start: start, models: make(map[string]*gauge),
		Usage: Usage{RequestFaults: make(map[assay.FaultKind]int)}, latest: start,
		replied: make(map[string]time.Time), spent: make(map[string]spending),
	}
}

// recall counts the outcomes of earlier runs at a task, for the interval of the rate of success.
func (m *meter) recall(model string, task assay.TaskID, tools []string, g stat.Group) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.success.Add(model, task, tools, g)
}

// settled counts an outcome.
func (m *meter) settled(a *assay.Attempt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	outcome := stat.Group{N: 1}
	if a.Level == assay.FullSuccess {
		outcome.Full = 1
	}
	m.success.Add(a.Model, a.Task, a.RequiredTools, outcome)
	if a.Requests <= a.Outcome.Turns { // otherwise a part of the time was lost
		m.longest = max(m.longest, time.Duration(a.WorkingMS)*time.Millisecond)
	}
}

// request counts a request that has ended. The kind of its fault is "" if the user need not know.
func (m *meter) request(x lane.Exchange, kind assay.FaultKind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.latest = time.Now()
	m.Requests++
	m.Cost = assay.RoundUSD(m.Cost + x.Cost)
	m.Tokens += x.Usage.Total()
	if x.User {
		m.UserTokens += x.Usage.Total()
		m.UserCost = assay.RoundUSD(m.UserCost + x.Cost)
	}
	if i, known := slices.BinarySearch(m.Unpriced, x.Model); !known && x.Usage.UnpricedTokens > 0 {
		m.Unpriced = slices.Insert(m.Unpriced, i, x.Model)
	}
	spent := m.spent[x.Lane]
	if x.Fault == nil {
		spent.replied += x.Took
		m.replied[x.Model] = m.latest
	} else {
		spent.lost += x.Took
	}
	m.spent[x.Lane] = spent
	if kind != "" {
		m.RequestFaults[kind]++
	}
	g := m.models[x.Model]
	if g == nil {
		g = new(gauge)
		m.models[x.Model] = g
	}
	g.requests++
	g.tokens.add(m.latest.Sub(m.start), x.Usage.Total())
}

// maxNotes is the maximum number of notes in a run.
const maxNotes = 50

// note adds a note unless it is already there. Its text may come from an endpoint, so it becomes
// one line without control characters.
func (m *meter) note(text string) {
	text = terminal.OneLine(text)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(m.notes) > maxNotes || slices.Contains(m.notes, text):
	case len(m.notes) == maxNotes:
		m.notes = append(m.notes, "further notes are not shown")
	default:
		m.notes = append(m.notes, text)
	}
}

// stop records that the run starts no new trials.
func (m *meter) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopping = true
}

// progress returns a copy of the counts.
func (m *meter) progress() terminal.Progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	elapsed := time.Since(m.start)
	p := terminal.Progress{
		Elapsed: elapsed.Seconds(), Stopping: m.stopping, Tokens: m.Tokens, Cost: m.Cost,
		UserTokens: m.UserTokens, UserCost: m.UserCost, Unpriced: slices.Clone(m.Unpriced),
		Notes: slices.Clone(m.notes), Models: []terminal.ModelState{},
	}
	return p
}

// requests returns how many requests for a model have ended, and the tokens that they use in a minute.
func (m *meter) requests(model string) (n int, tokensPerMinute float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.models[model]
	if g == nil {
		return 0, 0
	}
	return g.requests, g.tokens.perMinute(time.Since(m.start))
}

// repliedAt returns when a model replied last, or the zero time.
func (m *meter) repliedAt(model string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.replied[model]
}

// idle returns the time since the latest request ended.
func (m *meter) idle(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Sub(m.latest)
}

// lost returns the time that a lane spent on requests that got no reply.
func (m *meter) lost(lane string) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spent[lane].lost
}

// lostShare returns the share of the lanes' time that produced no reply, as far as requests have
// ended.
func (m *meter) lostShare(lanes []lane.Status) float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var sum spending
	for _, l := range lanes {
		sum.replied += m.spent[l.Name].replied
		sum.lost += m.spent[l.Name].lost
	}
	return share(sum.lost, sum.lost+sum.replied)
}

// rate returns a model's rate of full success with the interval that a report has. It is nil if no
// trial is done.
func (m *meter) rate(of terminal.ModelState) *terminal.Success {
	if of.Done == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return &terminal.Success{
		Rate:     float64(of.Full) / float64(of.Done),
		Interval: m.success.Rate(of.Model).Interval,
	}
}

// A tokenRate sums amounts over the last minute in cells of one second. Times are
// measured from the start of the run and never decrease.
type tokenRate struct {
	cells [60]int
	last  int // second of the newest cell
}

func (r *tokenRate) add(at time.Duration, n int) {
	r.advance(at)
	r.cells[r.last%60] += n
}

func (r *tokenRate) advance(to time.Duration) {
	second := int(to / time.Second)
	if second-r.last >= 60 {
		r.cells, r.last = [60]int{}, second
	}
	for r.last < second {
		r.last++
		r.cells[r.last%60] = 0
	}
}

// perMinute returns the rate over the time that the cells cover. It is 0 in the
// first second, which is too short for an estimate.
func (r *tokenRate) perMinute(now time.Duration) float64 {
	r.advance(now)
	sum := 0
	for _, n := range r.cells {
		sum += n
	}
	covered := now - time.Duration(max(0, r.last-59))*time.Second
	if covered < time.Second {
		return 0
	}
	return float64(sum) * float64(time.Minute) / float64(covered)
}
