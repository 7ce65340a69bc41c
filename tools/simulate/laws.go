package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/agent/judge"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/run/dashboard"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/store"
)

// statedLimits are the limits of an endpoint's lanes as the user states them, from some time on.
type statedLimits struct {
	from   time.Time
	limits lane.Limits
}

// stated has the limits of an endpoint's lanes, oldest first.
type stated struct {
	mu  sync.Mutex
	all map[string][]statedLimits
}

// restate notes that a run begins, which has the limits in the file.
func (w *world) restate() {
	w.limits.mu.Lock()
	defer w.limits.mu.Unlock()
	if w.limits.all == nil {
		w.limits.all = make(map[string][]statedLimits)
	}
	for _, l := range w.lanes {
		w.limits.all[l.endpoint] = append(w.limits.all[l.endpoint], statedLimits{time.Now(), lane.Limits{
			Concurrency: l.concurrency, RPS: l.rps, RPM: l.rpm, RPD: l.rpd,
		}})
	}
}

func (w *world) restated(endpoint string, b assay.Bucket, n int) {
	w.limits.mu.Lock()
	defer w.limits.mu.Unlock()
	all := w.limits.all[endpoint]
	next := all[len(all)-1]
	next.from = time.Now()
	*next.limits.Of(b) = n
	w.limits.all[endpoint] = append(all, next)
}

// permitted returns the largest limit in the span before now, or 0 if there was a time without.
func (w *world) permitted(endpoint string, b assay.Bucket, now time.Time, span time.Duration) (most int) {
	w.limits.mu.Lock()
	defer w.limits.mu.Unlock()
	all := w.limits.all[endpoint]
	for i, s := range all {
		if i+1 < len(all) && all[i+1].from.Before(now.Add(-span)) {
			continue
		}
		n := *s.limits.Of(b)
		if n == 0 {
			return 0
		}
		most = max(most, n)
	}
	return most
}

// checkStated checks that a request that has just arrived keeps the limits that were stated.
func (q *request) checkStated(t *traffic, now time.Time) {
	for _, l := range []struct {
		bucket assay.Bucket
		span   time.Duration
	}{{assay.RequestsPerSecond, time.Second}, {assay.Requests, time.Minute}, {assay.RequestsPerDay, 24 * time.Hour}} {
		n := q.permitted(q.name, l.bucket, now, l.span)
		if n == 0 || len(t.arrivals) <= n {
			continue
		}
		first := t.arrivals[len(t.arrivals)-1-n]
		if took := now.Sub(first.at); took < l.span && !q.forgets(first.at, first.life) {
			q.violated("law 2: lane %s sent %d requests within %v, but %s is %d", t.name, n+1, took, l.bucket, n)
		}
	}
	if n := q.permitted(q.name, assay.Concurrency, now, q.shape.request); n > 0 && t.inFlight[q.life] > n {
		q.violated("law 2: lane %s has %d requests in flight, but its concurrency is %d", t.name, t.inFlight[q.life], n)
	}
}

// maxOver is how much more than stated the tokens of a minute may be, because those of a reply are
// only known when it has come.
const maxOver = 1.1

// checkTokens checks that replies keep the limits on tokens that were stated.
func (w *world) checkTokens() {
	for _, l := range w.lanes {
		e := w.ends[l.endpoint]
		e.mu.Lock()
		for _, t := range e.lanes {
			slices.SortFunc(t.replied, func(a, b replied) int { return a.at.Compare(b.at) })
			first, sum := 0, 0
			for _, r := range t.replied {
				for sum += r.tokens; r.at.Sub(t.replied[first].at) >= time.Minute; first++ {
					sum -= t.replied[first].tokens
				}
				if l.tpm > 0 && float64(sum) > maxOver*float64(l.tpm) {
					w.violated("law 2: lane %s used %d tokens in a minute, but tpm is %d", t.name, sum, l.tpm)
				}
			}
		}
		e.mu.Unlock()
	}
}

// outcomeOf spells what an attempt came to. It does not depend on what disturbed the attempt. If an agent
// asks more often at once than it may, its last requests may fail after that has ended the attempt.
func outcomeOf(a *assay.Attempt) string {
	if a.Model == agentName && a.Ended == assay.TurnLimit {
		return fmt.Sprintf("%s %s %d calls %v %.4f", a.Level, a.Ended, a.ToolCalls, a.ExecutedTools, a.Best)
	}
	return fmt.Sprintf("%s %s %d turns %d calls %v %.4f", a.Level, a.Ended, a.Turns, a.ToolCalls, a.ExecutedTools, a.Best)
}

// checkLife checks a run that has ended by itself.
func (w *world) checkLife(ctx context.Context, db *store.DB, sum *session.Summary) {
	if sum.Unfinished() > 0 && !sum.Stopped && sum.Cancelled == 0 && len(sum.NotRun)+len(sum.Closed)+len(sum.ParkedFor)+
		len(sum.Exhausted)+len(sum.GivenUp) == 0 {
		w.violated("law 1: a run ends with %d trials unfinished and gives no reason", sum.Unfinished())
	}
	n := max(sum.Cancelled, sum.NotRun["cancelled"])
	if n > sum.Unfinished() {
		w.violated("law 4: %d trials did not start, but only %d are unfinished", n, sum.Unfinished())
	}
	if n > 0 && !w.hasCancelled() {
		w.violated("law 4: the summary has %d cancelled trials, but all are requeued", n)
	}
	e, err := experiment(ctx, db)
	if err != nil {
		w.violated("law 4: the store has no experiment: %v", err)
		return
	}
	status, err := session.StatusOf(ctx, db, e)
	if err != nil {
		w.violated("law 4: status: %v", err)
		return
	}
	if status.Trials != sum.Trials {
		w.violated("law 4: status says %+v, the summary %+v", status.Trials, sum.Trials)
	}
	w.mu.Lock()
	shown := maps.Clone(w.shown)
	w.mu.Unlock()
	settled, spent := 0, assay.Bill{}
	for a, err := range db.Verdicts(ctx, store.Filter{All: true}) {
		if err != nil {
			w.violated("law 1: read: %v", err)
			return
		}
		spent.Add(a.Bill())
		if a.Settles() {
			settled++
			delete(shown, a.ID)
		}
	}
	left, err := db.Left(ctx)
	if err != nil {
		w.violated("law 4: the journal: %v", err)
	}
	for i := range left.Attempts {
		spent.Add(left.Attempts[i].Bill())
	}
	if settled != sum.Done {
		w.violated("law 4: the store has %d outcomes, the summary %d", settled, sum.Done)
	}
	for id := range shown {
		w.violated("law 1: the outcome of trial %s was shown and is lost", id)
	}
	if status.Spent != spent {
		w.violated("law 4: status says %+v were spent, the store %+v", status.Spent, spent)
	}
	switch pages, err := w.viewed(ctx, db, e); {
	case err != nil:
		w.violated("law 4: view: %v", err)
	case pages.Trials != sum.Trials || pages.Spent != spent:
		w.violated("law 4: view says %+v and %+v, the summary %+v and the store %+v",
			pages.Trials, pages.Spent, sum.Trials, spent)
	}
}

// viewed returns what the pages of `assay view` say of an experiment that nobody works on.
func (w *world) viewed(ctx context.Context, db *store.DB, e store.Experiment) (job.Standing, error) {
	s, err := dashboard.Open(ctx, db, e, dashboard.Options{Store: w.path, Token: "t"})
	if err != nil {
		return job.Standing{}, err
	}
	standing, err := s.Standing(ctx)
	return standing, errors.Join(err, s.Close())
}

// enough is how many of the dearest trials a budget pays for at least if a run must settle one of them.
const enough = 6

// checkSpent checks that no request is sent when a budget is spent, not even one that has waited for a lane.
func (l *life) checkSpent() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.spent.IsZero() && time.Since(l.spent) > 0 {
		l.violated("law 3: a request is sent %v after the budget of $%.3f was spent", time.Since(l.spent), l.budget)
	}
}

// checkBudget checks what a run that has ended by itself has done with its budget.
func (l *life) checkBudget(sum *session.Summary) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.budget == 0 {
		return
	}
	if most := l.budget + float64(l.crowd+1)*l.dearest; l.usd > most+1e-6 {
		l.violated("law 3: a run with a budget of $%.3f was billed $%.3f; its %d requests in flight justify $%.3f",
			l.budget, l.usd, l.crowd, most)
	}
	alone := l.lonely()
	// An agent that never asks its model costs nothing.
	if most := l.budget / alone.cheapest; alone.cheapest > 0 && float64(l.trials) > max(1, most) {
		l.violated("law 3: %d trials were in flight, but $%.3f pay for %.0f at most, because each costs at least $%.4f",
			l.trials, l.budget, most, alone.cheapest)
	}
	// What lost replies may have cost counts against a budget, too.
	ended := sum.Settled + sum.Faulted + sum.Parked
	if l.usd >= l.budget && float64(ended)*alone.dearest+l.lostUSD < l.usd/2 && !sum.Stopped && !l.cancels() &&
		l.workers == 0 && l.budget > enough*alone.dearest {
		l.violated("law 1: a run has spent $%.3f of $%.3f, but only %d of its trials ended by themselves, which cost at most $%.3f",
			l.usd, l.budget, ended, float64(ended)*alone.dearest)
	}
}

// cancels reports whether the user has cancelled trials in this life.
func (l *life) cancels() bool {
	return slices.ContainsFunc(l.items, func(i item) bool {
		return i.Kind == "cancel" && !l.began.Add(i.At).Before(l.start) && i.At <= l.since()
	})
}

func experiment(ctx context.Context, db *store.DB) (e store.Experiment, err error) {
	all, err := db.Experiments(ctx)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%d experiments", len(all))
	}
	if err != nil {
		return e, err
	}
	return all[0], nil
}

// negative finds waits that cannot be.
var negative = regexp.MustCompile(`(waited|within|for|after|in) -\d`)

// checkEnd checks the store in the end.
func (w *world) checkEnd(ctx context.Context, path string, j *job.Job) error {
	db, err := store.OpenReadOnly(ctx, path)
	if err != nil {
		return err
	}
	defer db.Close()
	var spent assay.Bill
	outcomes, times := make(map[assay.TrialID]string), make(map[assay.TrialID]int)
	var made made
	for a, err := range db.Attempts(ctx, store.Filter{All: true}) {
		if err != nil {
			return err
		}
		w.checkAttempt(&a)
		spent.Add(a.Bill())
		made.add(&a)
		if a.Settles() {
			outcomes[a.ID] = outcomeOf(&a)
			times[a.ID]++
		}
	}
	left, err := db.Left(ctx)
	if err != nil {
		return err
	}
	for i := range left.Attempts {
		u := &left.Attempts[i]
		spent.Add(u.Bill())
		made.turns.bare += u.Replies
		if plans[w.plan].stop == "" || times[u.ID] > 0 { // nobody goes on with trials that a stop rule skips
			w.violated("law 1: all is done, but an attempt at trial %s with %d replies is in the journal", u.ID, u.Replies)
		}
	}
	for id, n := range times {
		if n > 1 {
			w.violated("law 1: trial %s settled %d times", id, n)
		}
	}
	w.checkOutcomes(outcomes, j)
	w.checkMoney(spent)
	w.checkTokens()
	w.checkTurns(&made)
	w.checkAgents(&made)
	return w.checkReport(ctx, db, j, len(outcomes))
}

func (w *world) checkAttempt(a *assay.Attempt) {
	if err := a.Check(); err != nil {
		w.violated("law 2: %v", err)
	}
	if a.QueuedMS < 0 || a.WorkingMS < 0 || negative.MatchString(a.FaultDetail) {
		w.violated("law 5: a negative time: queued %d ms, worked %d ms, %s", a.QueuedMS, a.WorkingMS, a.FaultDetail)
	}
	if a.FaultKind == assay.Harness {
		w.violated("law 2: an error of our own: %s", a.FaultDetail)
	}
	if strings.Contains(a.FaultDetail, "waited ") && a.FaultKind == assay.Timeout {
		if waited := time.Duration(a.QueuedMS)*time.Millisecond - w.held(a); waited < lane.DefaultQueue {
			w.violated("law 2: a fault that never was: %s, but a lane could be asked for %v only", a.FaultDetail, waited)
		}
	}
}

// held returns for how long during an attempt the user had paused all lanes. If clocks were set, nobody can say
// for sure when it was, and it is the least of what is possible.
func (w *world) held(a *assay.Attempt) time.Duration {
	offsets := []time.Duration{0} // of the wall clock, one after the other
	for _, j := range w.jumps {
		offsets = append(offsets, offsets[len(offsets)-1]+j.by)
	}
	least := time.Duration(-1)
	for k, before := range offsets {
		for _, after := range offsets[k:] {
			from, to := a.StartedAt.Add(-before), a.FinishedAt.Add(-after)
			if to.Sub(from).Milliseconds() < int64(a.QueuedMS) {
				continue
			}
			if held := w.pausedWithin(from, to); least < 0 || held < least {
				least = held
			}
		}
	}
	return max(0, least)
}

// pausedWithin returns for how long the user had paused all lanes between two times of the monotonic clock.
func (w *world) pausedWithin(from, to time.Time) (sum time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pauses {
		began, ended := w.began.Add(p.began+w.request), w.began.Add(p.ended) // until then it may be asking
		if began.Before(from) {
			began = from
		}
		if ended.After(to) {
			ended = to
		}
		sum += max(0, ended.Sub(began))
	}
	return sum
}

// A lonely is what the trials of a plan come to if nothing is between episodes and models.
type lonely struct {
	outcomes map[assay.TrialID]string
	// cheapest and dearest are the dollars of a trial.
	cheapest, dearest float64
}

// A rehearsal names what trials come to if nothing disturbs them.
type rehearsal struct {
	plan    int
	more    int
	agent   string
	variant uint64
}

// variants is how many different things agents do with a prompt.
const variants = 2

var undisturbed = make(map[rehearsal]*lonely)

func (w *world) lonely() *lonely { return undisturbed[rehearsal{w.plan, w.more, w.agent, w.variant()}] }

func (w *world) variant() uint64 {
	if w.agent == "" {
		return 0
	}
	return w.seed % variants
}

// rehearse carries the trials of the world's plan out without a run, unless that is done.
func (w *world) rehearse() (err error) {
	if w.lonely() != nil {
		return nil
	}
	all := &lonely{outcomes: make(map[assay.TrialID]string), cheapest: math.Inf(1)}
	undisturbed[rehearsal{w.plan, w.more, w.agent, w.variant()}] = all
	synctest.Test(w.t, func(*testing.T) {
		var j *job.Job
		if j, err = w.open(context.Background()); err == nil {
			err = errors.Join(w.rehearseAll(j, all), j.Close())
		}
	})
	return err
}

// An attempter carries out attempts.
type attempter interface {
	Run(context.Context, assay.Provider, *assay.Trial, *assay.Task) (*assay.Attempt, *assay.Transcript)
}

func (w *world) rehearseAll(j *job.Job, all *lonely) error {
	bare, court := episode.NewRunner(j.Library.Catalog(), 0), judge.New(j.Library.Catalog(), 0)
	runners := map[string]attempter{w.names[0]: bare, w.names[1]: bare}
	if w.agent != "" {
		b, err := newCrew(w.variant(), nil).at(nil).Open(func(string) {})
		if err != nil {
			return err
		}
		defer b.Close()
		runners[agentName] = b.Runner(bare, w.described())
	}
	for trial := range j.Trials() {
		task, err := j.Library.TaskOf(context.Background(), &trial)
		if err != nil {
			return err
		}
		serving := serving{models(w.plan), plans[w.plan].models[1]}
		a, t := runners[trial.Model].Run(context.Background(), serving, &trial, &task)
		spent := a.Spend
		if court.Attend(context.Background(), serving, a, &task, t); t.Opinion != nil {
			spent = spent.Add(t.Opinion.OfJudge())
		}
		if !a.Settles() {
			return fmt.Errorf("undisturbed, trial %s is a fault: %s", trial.ID, a.FaultDetail)
		}
		all.outcomes[trial.ID] = outcomeOf(a)
		usd := dollars(spent.InputTokens, spent.OutputTokens)
		all.cheapest, all.dearest = min(all.cheapest, usd), max(all.dearest, usd)
	}
	return nil
}

// serving lets a model serve the agent.
type serving struct {
	models assay.Provider
	model  string
}

func (s serving) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	if req.Model == agentName {
		other := *req
		other.Model, req = s.model, &other
	}
	return s.models.Chat(ctx, req)
}

// checkOutcomes compares the outcomes with those of undisturbed trials.
func (w *world) checkOutcomes(outcomes map[assay.TrialID]string, j *job.Job) {
	want := w.lonely().outcomes
	for trial := range j.Trials() {
		got, done := outcomes[trial.ID]
		switch {
		case !done && plans[w.plan].stop == "":
			w.violated("law 1: trial %s has no outcome", trial.ID)
		case done && want[trial.ID] != "" && got != want[trial.ID]:
			w.violated("law 6: trial %s came to %s; undisturbed, to %s", trial.ID, got, want[trial.ID])
		}
	}
}

// checkReport compares what a report counts with the outcomes in the store.
func (w *world) checkReport(ctx context.Context, db *store.DB, j *job.Job, done int) error {
	e, err := experiment(ctx, db)
	if err != nil {
		return err
	}
	x, err := query.Plan(ctx, db, j, e, export.Where{})
	if err != nil {
		return err
	}
	r, err := x.Analyze(ctx, db)
	if err != nil {
		return err
	}
	if r.Planned != j.Planned() || r.Done != done || r.Planned-r.Done-r.Skipped != 0 {
		w.violated("law 4: the report has %d of %d trials and skips %d; the store has %d outcomes",
			r.Done, r.Planned, r.Skipped, done)
	}
	return nil
}

// A made is what the attempts in a store have made of replies.
type made struct {
	turns replyCount // at most
	lost  bool       // turns of bare models are unknown
	// What became of the attempts of agents: outcomes, faults because they did not start, and because they
	// did not wait.
	agents, unstarted, left int
}

func (m *made) add(a *assay.Attempt) {
	turns := a.Turns
	if a.ConfidenceInputTokens > 0 {
		turns++
	}
	switch {
	case !a.Settles():
		turns += a.Requests + a.JudgeRequests // which may have had replies
	case a.JudgeRequests > 0:
		turns++ // its judge understands the question at once
	}
	if a.Model != agentName {
		m.turns.bare += turns
		m.lost = m.lost || !a.Settles() && a.Requests == 0 && a.InputTokens > 0 // with the worker that asked
		return
	}
	m.turns.agent += turns
	switch {
	case a.Settles():
		m.agents++
	case a.FaultKind == assay.AgentEnded:
		m.unstarted++
	case strings.Contains(a.FaultDetail, "the agent gave up waiting"):
		m.left++
	}
}

// checkTurns checks that kills cost the requests in flight and nothing else.
func (w *world) checkTurns(m *made) {
	needed := m.turns
	var replies replyCount
	for _, e := range w.ends {
		e.mu.Lock()
		replies.bare, replies.agent = replies.bare+e.bill.Replies.bare, replies.agent+e.bill.Replies.agent
		needed.bare, needed.agent = needed.bare+e.bill.Again.bare, needed.agent+e.bill.Again.agent
		e.mu.Unlock()
	}
	if w.save == "turns" && !m.lost && replies.bare > needed.bare {
		w.violated("law 7: endpoints replied %d times, but only %d replies were needed", replies.bare, needed.bare)
	}
	if w.crew == nil || w.workers > 0 || w.has("disk") {
		return
	}
	for _, p := range w.crew.all {
		if p.cut {
			needed.agent += p.replies
		}
	}
	if replies.agent > needed.agent {
		w.violated("law 7: endpoints replied to agents %d times, but only %d replies were of attempts that ended or were cut",
			replies.agent, needed.agent)
	}
}

// checkAgents checks that what agents did is their doing, and nothing else is. One that ended by itself
// and got all replies has an outcome, unless the machine stood still or could not save it.
func (w *world) checkAgents(m *made) {
	if w.crew == nil {
		return
	}
	ended, unstarted, quit := 0, 0, 0
	for _, p := range w.crew.all {
		switch {
		case p.quits:
			quit++
		case p.acted && !p.refused && !p.cut:
			ended++
		}
		if !p.acted {
			unstarted++
		}
	}
	if m.unstarted > unstarted {
		w.violated("law 2: %d attempts are faults because an agent did not start, but only %d did not", m.unstarted, unstarted)
	}
	if m.left > quit {
		w.violated("law 2: %d attempts are faults because an agent did not wait, but only %d do not", m.left, quit)
	}
	if ended > m.agents && w.workers == 0 && !w.has("disk") && !w.has("suspend") && !w.has("clock") {
		w.violated("law 2: %d agents ended by themselves, but only %d have outcomes", ended, m.agents)
	}
}

// checkMoney compares the store with the endpoints' ledgers.
func (w *world) checkMoney(store assay.Bill) {
	var sum ledger
	for _, e := range w.ends {
		e.mu.Lock()
		sum.Tokens += e.bill.Tokens
		sum.Read += e.bill.Read
		sum.Excused += e.bill.Excused
		sum.USD += e.bill.USD
		e.mu.Unlock()
	}
	tolerance := 1e-6 + 1e-8*float64(w.asked())
	switch {
	case store.USD > sum.USD+tolerance || store.Tokens > sum.Tokens:
		w.violated("law 3: the store has %d tokens and $%.6f, the endpoints billed only %d and $%.6f",
			store.Tokens, store.USD, sum.Tokens, sum.USD)
	case store.Tokens < sum.Read:
		w.violated("law 3: the store has %d tokens, but replies named %d", store.Tokens, sum.Read)
	case sum.Tokens-store.Tokens > store.Unpriced+sum.Excused:
		w.violated("law 3: the endpoints billed %d tokens; the store has %d, and only %d of unknown cost",
			sum.Tokens, store.Tokens, store.Unpriced)
	}
}
