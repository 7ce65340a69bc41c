package session

import (
	"maps"
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
	// The judges' part of both.
	JudgeTokens int     `json:"judge_tokens,omitempty"`
	JudgeCost   float64 `json:"judge_cost_usd,omitempty"`
	// Unpriced names the models with requests of unknown cost, which Cost leaves out, and the agents
	// that made no request through the gateway.
	Unpriced []string `json:"unpriced,omitempty"`
}

// LaneUse adds up the requests of a run for a model on a lane.
type LaneUse struct {
	Model, Lane string
	Requests    int
	// Faults counts the failed requests, without interrupted ones.
	Faults map[assay.FaultKind]int
	assay.Spend
	// User is the simulated user's part, and Judge that of judging.
	User, Judge assay.Spend

	replied, lost time.Duration // spent on requests with and without a reply
}

// A meter counts the requests of a run, and what the user is told. It is safe for concurrent use.
type meter struct {
	start time.Time

	mu       sync.Mutex // guards the fields below
	lanes    []*LaneUse
	rates    map[string]*tokenRate // by model
	stopping bool
	notes    []string
	success  report.Progress
	longest  time.Duration        // working time of an episode
	latest   time.Time            // end of the latest request, or the start of the run
	answered map[string]time.Time // by model
	// unmetered names the agents that made no request through the gateway.
	unmetered []string
}

func newMeter(start time.Time) *meter {
	return &meter{
		start: start, latest: start,
		rates: make(map[string]*tokenRate), answered: make(map[string]time.Time),
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
	if a.Unmetered && !slices.Contains(m.unmetered, a.Model) {
		m.unmetered = append(m.unmetered, a.Model)
	}
	if a.Requests <= a.Outcome.Turns { // otherwise a part of the time was lost
		m.longest = max(m.longest, time.Duration(a.WorkingMS)*time.Millisecond)
	}
}

// request counts a request that has ended. The kind of its fault is "" if the user need not know.
func (m *meter) request(x lane.Exchange, kind assay.FaultKind) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.latest = time.Now()
	u := m.laneLocked(x.Model, x.Lane)
	u.Requests++
	u.Spend = u.Add(x.Spend)
	if x.User {
		u.User = u.User.Add(x.Spend)
	}
	if x.Judge {
		u.Judge = u.Judge.Add(x.Spend)
	}
	if kind != "" {
		u.Faults[kind]++
	}
	if x.Fault == nil {
		u.replied += x.Took
		m.answered[x.Model] = m.latest
	} else {
		u.lost += x.Took
	}
	if m.rates[x.Model] == nil {
		m.rates[x.Model] = new(tokenRate)
	}
	m.rates[x.Model].add(m.latest.Sub(m.start), x.Total())
}

func (m *meter) laneLocked(model, lane string) *LaneUse {
	for _, u := range m.lanes {
		if u.Model == model && u.Lane == lane {
			return u
		}
	}
	u := &LaneUse{Model: model, Lane: lane, Faults: make(map[assay.FaultKind]int)}
	m.lanes = append(m.lanes, u)
	return u
}

// byLane returns a copy of the counts.
func (m *meter) byLane() (all []LaneUse) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.lanes {
		c := *u
		c.Faults = maps.Clone(u.Faults)
		all = append(all, c)
	}
	return all
}

// usage adds up the requests of all lanes.
func (m *meter) usage() Usage {
	sum := Usage{RequestFaults: make(map[assay.FaultKind]int)}
	for _, u := range m.byLane() {
		sum.Requests += u.Requests
		sum.Tokens += u.Total()
		sum.Cost = assay.RoundUSD(sum.Cost + u.CostUSD)
		sum.UserTokens += u.User.Total()
		sum.UserCost = assay.RoundUSD(sum.UserCost + u.User.CostUSD)
		sum.JudgeTokens += u.Judge.Total()
		sum.JudgeCost = assay.RoundUSD(sum.JudgeCost + u.Judge.CostUSD)
		for kind, n := range u.Faults {
			sum.RequestFaults[kind] += n
		}
		if u.AtLeast() {
			sum.Unpriced = append(sum.Unpriced, u.Model)
		}
	}
	m.mu.Lock()
	sum.Unpriced = append(sum.Unpriced, m.unmetered...)
	m.mu.Unlock()
	slices.Sort(sum.Unpriced)
	sum.Unpriced = slices.Compact(sum.Unpriced)
	return sum
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
	u := m.usage()
	m.mu.Lock()
	defer m.mu.Unlock()
	return terminal.Progress{
		Elapsed: time.Since(m.start).Seconds(), Stopping: m.stopping, Tokens: u.Tokens, Cost: u.Cost,
		UserTokens: u.UserTokens, UserCost: u.UserCost, JudgeTokens: u.JudgeTokens, JudgeCost: u.JudgeCost,
		Unpriced: u.Unpriced,
		Notes:    slices.Clone(m.notes), Models: []terminal.ModelState{},
	}
}

// requests returns how many requests for a model have ended, and the tokens that they use in a minute.
func (m *meter) requests(model string) (n int, tokensPerMinute float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.lanes {
		if u.Model == model {
			n += u.Requests
		}
	}
	if r := m.rates[model]; r != nil {
		tokensPerMinute = r.perMinute(time.Since(m.start))
	}
	return n, tokensPerMinute
}

// repliedAt returns when a model replied last, or the zero time.
func (m *meter) repliedAt(model string) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answered[model]
}

// idle returns the time since the latest request ended.
func (m *meter) idle(now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return now.Sub(m.latest)
}

// spent returns the time that lanes spent on requests that got a reply, and on others.
func (m *meter) spent(lanes ...string) (replied, lost time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.lanes {
		if slices.Contains(lanes, u.Lane) {
			replied += u.replied
			lost += u.lost
		}
	}
	return replied, lost
}

// lost returns the time that a lane spent on requests that got no reply.
func (m *meter) lost(lane string) time.Duration {
	_, lost := m.spent(lane)
	return lost
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
