package session

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/engine"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// refusing is a provider that refuses every key.
type refusing struct{}

func (refusing) Chat(context.Context, *assay.Request) (*assay.Response, error) {
	return &assay.Response{}, &assay.Fault{Kind: assay.Auth, Detail: "HTTP 401: no such key"}
}

// troubled returns a session with two models, m and n, which have 100 pending trials each.
func troubled(t *testing.T, m, n assay.Provider, b plan.Budgets, r plan.StopRules) *Session {
	t.Helper()
	e := &plan.Experiment{Models: []string{"m", "n"}, Budget: b, Stop: r}
	pools := &job.Pools{ByModel: make(map[string]*lane.Pool)}
	s := newSession(&job.Job{Experiment: e},
		Options{Store: filepath.Join(t.TempDir(), "s.db"), Words: func(h assay.Hint, facts ...any) string {
			return fmt.Sprint(h, facts)
		}}, pools)
	for model, p := range map[string]assay.Provider{"m": m, "n": n} {
		s.pools.ByModel[model] = lane.NewPool(model, []lane.Config{{
			Name: "gw/K/" + model, Provider: p, Orders: model, Limits: lane.Limits{Concurrency: 2},
		}}, lane.Options{Request: time.Hour})
	}
	s.tally = job.NewTally(s.stopper, maps.All(map[assay.Cell]int{{Model: "m"}: 100, {Model: "n"}: 100}))
	return s
}

// fault counts an attempt at a trial that ended with a fault.
func (s *Session) fault(kind engine.EventKind, f assay.FaultKind, id assay.TrialID, model string) {
	words := "the words of " + string(f)
	a := &assay.Attempt{Trial: assay.Trial{ID: id}, FaultKind: f, FaultDetail: words}
	a.Model, a.Parked = model, kind == engine.Parked
	s.tally.Begin(a.Cell)
	s.tally.Save(a)
	s.event(engine.Event{Kind: kind, Model: model, Attempt: a})
}

// outcome counts an attempt that settles its trial.
func (s *Session) outcome(a *assay.Attempt) {
	s.tally.Begin(a.Cell)
	s.tally.Save(a)
	s.meter.settled(a)
}

// failure returns an attempt that failed.
func failure(model string) *assay.Attempt {
	a := &assay.Attempt{Outcome: assay.Outcome{Level: assay.Failure}}
	a.Model = model
	return a
}

// TestAttentionNamesEachCause checks that each kind of trouble is listed with the number of trials
// at stake and the order that helps, and that the most expensive one comes first.
func TestAttentionNamesEachCause(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		budgets plan.Budgets
		rules   plan.StopRules
		trouble func(t *testing.T, s *Session)
		want    []terminal.Attention
	}{
		{"nothing", plan.Budgets{}, plan.StopRules{}, func(*testing.T, *Session) {}, nil},
		{
			"refused key",
			plan.Budgets{},
			plan.StopRules{},
			func(t *testing.T, s *Session) {
				_, _ = s.pools.ByModel["m"].Chat(t.Context(), &assay.Request{})
			},
			[]terminal.Attention{{
				Cause: CauseClosed, Trials: 100,
				Text: "lane closed: gw/K/m: auth: HTTP 401: no such key", Advice: runAgain,
			}},
		},
		{
			"parked and requeued",
			plan.Budgets{},
			plan.StopRules{},
			func(_ *testing.T, s *Session) {
				s.fault(engine.Parked, assay.Server, "a", "m")
				s.fault(engine.Parked, assay.Server, "b", "m")
				s.fault(engine.Parked, assay.Server, "c", "m")
				s.fault(engine.Parked, assay.Timeout, "d", "n")
				trial := assay.Trial{ID: "a"}
				s.event(engine.Event{
					Kind: engine.Requeued, Model: "m", Trial: &trial, WasParked: true,
				})
			},
			[]terminal.Attention{
				{
					Cause: CauseParked, Trials: 2, Advice: "order[requeue m]",
					Text: "parked trials of m after faults of kind server: the words of server",
				},
				{
					Cause: CauseParked, Trials: 1, Advice: "order[requeue n]",
					Text: "parked trials of n after faults of kind timeout: the words of timeout",
				},
			},
		},
		{
			"paused",
			plan.Budgets{},
			plan.StopRules{},
			func(t *testing.T, s *Session) {
				o := Order{Do: "pause", Names: []string{"m"}}
				if _, err := s.pause(t.Context(), o); err != nil {
					t.Error(err)
				}
			},
			[]terminal.Attention{{
				Cause: CausePaused, Trials: 100, Advice: "order[resume gw/K/m]",
				Text: "paused by the user: gw/K/m",
			}},
		},
		{
			"all lanes of a model paused",
			plan.Budgets{},
			plan.StopRules{},
			func(t *testing.T, s *Session) {
				lanes := []lane.Config{{Name: "gw/K1/m", Provider: silent{}}, {Name: "gw/K2/m", Provider: silent{}}}
				s.pools.ByModel["m"] = lane.NewPool("m", lanes, lane.Options{Request: time.Hour})
				if _, err := s.pause(t.Context(), Order{Do: "pause"}); err != nil {
					t.Error(err)
				}
			},
			[]terminal.Attention{{
				Cause: CausePaused, Trials: 100, Advice: "order[resume gw/K1/m gw/K2/m]",
				Text: "paused by the user: gw/K1/m, gw/K2/m",
			}},
		},
		{
			"budget",
			plan.Budgets{Budget: plan.Budget{USD: 10}},
			plan.StopRules{},
			func(_ *testing.T, s *Session) {
				for range 20 {
					s.outcome(failure("m"))
				}
				s.stopper.Spend(&assay.Trial{Cell: assay.Cell{Model: "m"}}, assay.Usage{}, 4, assay.Lost{}) // leaves room for 30 of 180
			},
			[]terminal.Attention{{
				Cause: CauseBudget, Trials: 150,
				Text:   "the budget does not last: $4.00 of $10 are spent after 20 trials",
				Advice: "raise the budget in the experiment file and run it again",
			}},
		},
		{
			"stall",
			plan.Budgets{},
			plan.StopRules{},
			func(_ *testing.T, _ *Session) { time.Sleep(61 * time.Second) },
			[]terminal.Attention{{
				Cause: CauseStalled, Trials: 200, Advice: "wait, or pause the lane that hangs",
				Text: "no request has finished for 1m1s: results are being saved or tasks read, " +
					"because no request is in flight or waiting",
			}},
		},
		{
			"agents that start",
			plan.Budgets{},
			plan.StopRules{},
			func(_ *testing.T, s *Session) {
				s.pools.Agents = map[string]job.Agent{"n": {}}
				s.agents = func(string) map[assay.AgentState]int {
					return map[assay.AgentState]int{assay.AgentStarting: 3, assay.AgentAsking: 1}
				}
				time.Sleep(61 * time.Second)
			},
			[]terminal.Attention{{
				Cause: CauseStalled, Trials: 200, Advice: "wait, or pause the lane that hangs",
				Text: "no request has finished for 1m1s: n: 3 agents are starting",
			}},
		},
		{
			"own error",
			plan.Budgets{},
			plan.StopRules{},
			func(_ *testing.T, s *Session) { s.fault(engine.Faulted, assay.Harness, "a", "m") },
			[]terminal.Attention{{
				Cause: CauseHarness, Trials: 1, Text: "attempts ended with an error of Assay: 1",
				Advice: "report it with the log of the run",
			}},
		},
		{
			"locked store",
			plan.Budgets{},
			plan.StopRules{},
			func(_ *testing.T, s *Session) {
				since := time.Now()
				s.locked = func() time.Time { return since }
				s.options.Store = "dir/assay.db"
				trial := assay.Trial{ID: "a"}
				s.flights.begin(&trial)
				s.flights.does("a", Saving)
				time.Sleep(25 * time.Second)
			},
			[]terminal.Attention{{
				Cause: CauseLocked, Trials: 200, Advice: "close that program",
				Text: "another program, such as sqlite3, a database browser or a backup, has locked " +
					"assay.db for 25s (`fuser assay.db` names it); the run keeps 1 result in memory until it " +
					"ends, for an hour at most",
			}},
		},
		{
			"stop rule and setting",
			plan.Budgets{},
			plan.StopRules{Malformed: &plan.StopRule{After: 5, Above: 0.5, Per: plan.PerModel}},
			func(_ *testing.T, s *Session) {
				for range 5 {
					s.outcome(failure("m")) // which makes no call
				}
				for range 2 {
					a := failure("n")
					a.Sampling.Effort, a.Reported = "high", "effort=low"
					s.outcome(a)
				}
			},
			[]terminal.Attention{
				{
					Cause: CauseStopped, Trials: 95,
					Text: "m stopped early: 5 of 5 outcomes made no valid call, more than 50 %",
				},
				{
					Cause: CauseSetting, Trials: 2,
					Text: "n: effort low instead of high, according to the endpoint",
				},
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := troubled(t, refusing{}, silent{}, tc.budgets, tc.rules)
				tc.trouble(t, s)
				got := s.progress().Attention
				for i, a := range got {
					a.Advice = strings.Replace(a.Advice, " "+s.options.Store, "", 1)
					got[i].Advice = a.Advice
					if o := a.Order; o != nil && a.Advice != fmt.Sprintf("order[%s %s]", o.Do, strings.Join(o.Names, " ")) {
						t.Errorf("order %v, but the words %q", *o, a.Advice)
					}
					got[i].Order = nil
				}
				if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("attention (-want +got):\n%s", diff)
				}
			})
		})
	}
}
