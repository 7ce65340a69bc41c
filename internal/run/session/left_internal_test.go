package session

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// TestLeftIsThePlansUntilRepliesCome checks where the announced end of a run comes from: the plan,
// marked as such, then the pace of the slowest pool, and no end during a pause.
func TestLeftIsThePlansUntilRepliesCome(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := troubled(t, silent{}, silent{}, plan.Budgets{}, plan.StopRules{})
		s.outlook.expect(job.Forecast{Models: []job.ModelForecast{
			{Model: "m", Trials: 100, Requests: 200, Wall: 3000},
			{
				Model: "n", Trials: 100, Requests: 200, Wall: 60,
				Range: job.Range{Low: 10, High: 6000, Unknown: "the endpoint's speed is unknown"},
			},
		}})
		left := func() *terminal.TimeLeft { return s.progress().Left }
		time.Sleep(14 * time.Second)
		want := &terminal.TimeLeft{Seconds: 2986, High: 5986, Basis: "plan"}
		if diff := cmp.Diff(want, left()); diff != "" {
			t.Errorf("after 14 s (-want +got):\n%s", diff)
		}

		// In fact, m gives a reply a second, and n one every five seconds. A trial needs two.
		reply := func(model string, ends bool) {
			s.observe(lane.Exchange{Model: model, Lane: "gw/K/" + model})
			if ends {
				s.outcome(failure(model))
				s.outlook.paces[s.pools.ByModel[model]].Ended(2 * time.Second)
			}
		}
		for i := range 120 {
			reply("m", i%2 == 1)
			if i%5 == 0 {
				reply("n", i%10 == 5)
			}
			time.Sleep(time.Second)
		}
		const truth = 88 * 2 * 5
		if l := left(); l == nil || l.Basis != "pace" || l.Seconds < truth/2 || l.Seconds > 2*truth {
			t.Errorf("after two minutes: %+v, want about %d s", l, truth)
		}

		hold := func(hold bool, model string) {
			s.pools.ByModel[model].Hold(hold, func(string) bool { return true })
			s.outlook.noteHeld(time.Now())
		}
		hold(true, "m")
		hold(true, "n")
		if got := s.progress(); got.Left != nil || !got.PausedSince.Equal(time.Now()) {
			t.Errorf("paused: left %v, since %v", got.Left, got.PausedSince)
		}
		hold(false, "m")
		if got := s.progress().PausedSince; !got.IsZero() {
			t.Errorf("one model works, but all are paused since %v", got)
		}
	})
}

// TestStateHasTheRateOfSuccess checks the counts of a model and of all models, which have no common
// rate.
func TestStateHasTheRateOfSuccess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := troubled(t, silent{}, silent{}, plan.Budgets{}, plan.StopRules{})
		for i := range 40 {
			a := assay.Attempt{Outcome: assay.Outcome{Level: assay.Failure}}
			if a.Model, a.Task = "m", assay.TaskID(fmt.Sprint(i)); i < 10 {
				a.Level = assay.FullSuccess
			}
			s.outcome(&a)
		}
		s.observe(lane.Exchange{Model: "m", Spend: assay.NewSpend(assay.Usage{InputTokens: 7}, 0.5)})
		state := s.progress()
		if state.Models[1].Success != nil {
			t.Errorf("n has the rate %v without any outcome", state.Models[1].Success)
		}
		c := state.Models[0].Counts
		if c.Done != 40 || c.Full != 10 || c.Success == nil || c.Success.Rate != 0.25 ||
			c.Success.Interval.Low > 0.15 || c.Success.Interval.High < 0.40 {
			t.Errorf("%+v, success %+v", c, c.Success)
		}
		if state.Done != 40 || state.Full != 10 || state.Success != nil {
			t.Errorf("all: %+v, success %+v; want no mean over models", state.Counts, state.Success)
		}
		if state.Tokens != 7 || state.Cost != 0.5 {
			t.Errorf("%d tokens, $%v", state.Tokens, state.Cost)
		}
	})
}

// TestLeftKnowsWaits checks that the time left is never shorter than a wait that an endpoint has
// announced, or than daily limits allow, and unknown while the user has paused a model.
func TestLeftKnowsWaits(t *testing.T) {
	t.Parallel()
	forecast := job.Forecast{Models: []job.ModelForecast{{Model: "m", Trials: 100, Requests: 200, Wall: 3}}}
	begin := func(t *testing.T, p assay.Provider, l lane.Limits) (*Session, func() *terminal.TimeLeft) {
		s := troubled(t, silent{}, silent{}, plan.Budgets{}, plan.StopRules{})
		s.pools.ByModel["m"] = lane.NewPool("m", []lane.Config{{
			Name: "gw/K/m", Provider: p, Orders: "m", Limits: l,
		}}, lane.Options{Request: time.Hour, Observe: s.observe})
		s.outlook.expect(forecast)
		return s, func() *terminal.TimeLeft { return s.progress().Models[0].Left }
	}
	t.Run("an announced minute", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, left := begin(t, busy{}, lane.Limits{Concurrency: 2})
			ctx, cancel := context.WithCancel(t.Context())
			go func() { _, _ = s.pools.ByModel["m"].Chat(ctx, &assay.Request{}) }()
			time.Sleep(2 * time.Second)
			if l := left(); l == nil || l.Seconds < 58 {
				t.Errorf("left %+v, but the endpoint asks for a minute", l)
			}
			cancel()
			synctest.Wait()
		})
	})
	t.Run("a daily limit", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, left := begin(t, silent{}, lane.Limits{RPD: 50})
			const day = 24 * 3600
			if l := left(); l == nil || l.Seconds < 3*day || l.Seconds > 4*day {
				t.Errorf("left %+v, but 200 requests take three days at 50 a day", l)
			}
		})
	})
	t.Run("lanes that the user has changed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, left := begin(t, silent{}, lane.Limits{})
			time.Sleep(time.Minute)
			s.outlook.revise(&job.Forecast{Models: []job.ModelForecast{{Model: "m", Trials: 100, Wall: 7200}}})
			time.Sleep(time.Hour)
			if l := left(); l == nil || l.Seconds != 3600 {
				t.Errorf("left %+v, an hour after two hours were left with the changed lanes", l)
			}
		})
	})
	t.Run("a pause", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, left := begin(t, silent{}, lane.Limits{})
			if left() == nil {
				t.Error("nothing is left before the pause")
			}
			s.pools.ByModel["m"].Hold(true, func(string) bool { return true })
			if l := left(); l != nil {
				t.Errorf("left %+v although the model is paused", l)
			}
		})
	})
}
