package episode_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/task/score"
)

// one returns replies that call the tools one at a time.
func one(setting string, steps []step) []assay.Message {
	var replies []assay.Message
	for _, s := range steps {
		replies = append(replies, calling(setting, s.tool))
	}
	return replies
}

func TestEndings(t *testing.T) {
	t.Parallel()
	done := saying("All of it works. TASK_COMPLETED")
	both := worked(reader, parser)
	for _, tc := range []struct {
		name    string
		luck    []step
		replies func(setting string) []assay.Message
		limit   int
		ended   assay.Ended
		level   assay.Level
		turns   int
		calls   int
	}{
		{
			"Finished", both,
			func(s string) []assay.Message { return append(one(s, both), done) },
			10, assay.Finished, assay.FullSuccess, 3, 2,
		},
		{
			"FinishedInTheLastTurn", both,
			func(s string) []assay.Message { return append(one(s, both), done) },
			3, assay.Finished, assay.FullSuccess, 3, 2,
		},
		{
			"TurnLimitWithAllDone", both,
			func(s string) []assay.Message { return append(one(s, both), saying("What now?")) },
			6, assay.TurnLimit, assay.FullSuccess, 6, 2,
		},
		{
			"TurnLimitWithNothing", nil,
			func(string) []assay.Message { return []assay.Message{saying("I am thinking.")} },
			4, assay.TurnLimit, assay.Failure, 4, 0,
		},
		{
			"FailureStreak", failed(repeat(reader, 5)...),
			func(s string) []assay.Message { return one(s, failed(reader)) },
			10, assay.FailureStreak, assay.Failure, 5, 5,
		},
		{
			"FailureStreakWithinAReply", failed(repeat(reader, 7)...),
			func(s string) []assay.Message {
				return []assay.Message{calling(s, repeat(reader, 7)...)}
			},
			10, assay.FailureStreak, assay.Failure, 1, 7,
		},
		{
			"FailureStreakBroken", slices.Concat(failed(repeat(reader, 4)...), worked(reader)),
			func(s string) []assay.Message {
				return []assay.Message{calling(s, repeat(reader, 5)...), saying("Hm.")}
			},
			2, assay.TurnLimit, assay.Failure, 2, 5,
		},
		{
			"Loop", worked(repeat(pinger, 5)...),
			func(s string) []assay.Message { return one(s, worked(pinger)) },
			10, assay.Loop, assay.Failure, 5, 5,
		},
		{
			"LoopOverFailures",
			slices.Concat(worked(pinger, pinger), failed(pinger), worked(repeat(pinger, 3)...)),
			func(s string) []assay.Message { return one(s, worked(pinger)) },
			10, assay.Loop, assay.Failure, 6, 6,
		},
		{
			"CallLimit", worked(slices.Repeat([]string{reader, pinger}, 8)...),
			func(s string) []assay.Message {
				many := slices.Repeat([]string{reader, pinger}, 7)
				return []assay.Message{calling(s, many...), calling(s, reader), calling(s, pinger)}
			},
			10, assay.CallLimit, assay.Failure, 3, 16,
		},
	} {
		for _, setting := range []string{assay.Discover, assay.Listed} {
			t.Run(tc.name+"/"+setting, func(t *testing.T) {
				t.Parallel()
				const reliability = .8
				trial := trial(setting, reliability, seedFor(t, reliability, tc.luck))
				trial.Setting.Turns = tc.limit
				a, tr := run(t, scripted(tc.replies(setting)...), trial)
				if a.Ended != tc.ended || tr.Ended != tc.ended || a.Level != tc.level ||
					a.Turns != tc.turns || a.ToolCalls != tc.calls {
					t.Errorf("ended %s (transcript %s), level %s, %d turns, %d calls; want %s, %s, %d, %d",
						a.Ended, tr.Ended, a.Level, a.Turns, a.ToolCalls, tc.ended, tc.level, tc.turns, tc.calls)
				}
				if a.FaultKind != "" || a.FaultDetail != "" {
					t.Errorf("fault %q %q next to an outcome", a.FaultKind, a.FaultDetail)
				}
				want := score.New(catalog).Outcome(&trial, new(task()), tr)
				if !cmp.Equal(a.Outcome, want) {
					t.Errorf("outcome differs from the transcript's score:\n%s",
						cmp.Diff(want, a.Outcome))
				}
			})
		}
	}
}

// TestClaimEndsBeforeItsCalls checks that a claim to be done ends the episode once all required
// tools have succeeded, and that calls in the same reply are not executed.
func TestClaimEndsBeforeItsCalls(t *testing.T) {
	t.Parallel()
	last := calling(assay.Listed, pinger)
	last.Content = "The task is complete."
	trial := trial(assay.Listed, .8, seedFor(t, .8, worked(reader, parser)))
	a, tr := run(t, scripted(calling(assay.Listed, reader, parser), last), trial)
	if a.Ended != assay.Finished || a.Level != assay.FullSuccess || a.ToolCalls != 2 ||
		a.Assisted != 0 {
		t.Errorf("ended %s, level %s, %d calls, assisted %d",
			a.Ended, a.Level, a.ToolCalls, a.Assisted)
	}
	if got := tr.Messages[len(tr.Messages)-1]; got.Role != assay.Assistant ||
		got.Content != last.Content {
		t.Errorf("the conversation ends with %+v, want the claim", got)
	}
}

// TestEarlyClaim checks that a claim before the required tools have succeeded is answered by a
// nudge, which counts as assistance. Calls in the same reply are executed.
func TestEarlyClaim(t *testing.T) {
	t.Parallel()
	claim := calling(assay.Listed, parser)
	claim.Content = "TASK_COMPLETED"
	trial := trial(assay.Listed, .8, seedFor(t, .8, worked(reader, parser)))
	f := scripted(calling(assay.Listed, reader), saying("TASK_COMPLETED"), claim,
		saying("task completed"))
	a, tr := run(t, f, trial)
	if a.Ended != assay.Finished || a.Level != assay.FullSuccess || a.Turns != 4 ||
		a.ToolCalls != 2 || a.Assisted != 1 {
		t.Errorf("ended %s, level %s, %d turns, %d calls, assisted %d",
			a.Ended, a.Level, a.Turns, a.ToolCalls, a.Assisted)
	}
	var assisted []bool
	for _, turn := range tr.Turns {
		assisted = append(assisted, turn.Assisted)
	}
	if want := []bool{false, true, false, false}; !slices.Equal(assisted, want) {
		t.Errorf("assisted turns: %v, want %v", assisted, want)
	}
	nudge := f.asked[2].Messages[len(f.asked[2].Messages)-1]
	if nudge.Role != assay.User || !strings.Contains(nudge.Content, "not recognised as complete") ||
		!strings.HasSuffix(nudge.Content, "Replies left: 8.") {
		t.Errorf("the claim is answered by %+v", nudge)
	}
}

func TestCallsBeyondLimitAreRefused(t *testing.T) {
	t.Parallel()
	trial := trial(assay.Listed, .8, 1)
	trial.Setting.Turns = 1
	many := calling(assay.Listed, repeat(reader, episode.MaxCallsPerReply+2)...)
	a, tr := run(t, scripted(many), trial)
	if a.ToolCalls != episode.MaxCallsPerReply || a.Assisted != 1 {
		t.Errorf("%d calls executed, assisted %d; want %d, 1",
			a.ToolCalls, a.Assisted, episode.MaxCallsPerReply)
	}
	got, want := tr.Messages[len(tr.Messages)-1].Content, "at most 64 calls"
	if !strings.Contains(got, want) {
		t.Errorf("the answer to the last call is %s, want it to contain %q", got, want)
	}
}

// TestFaults breaks off an episode in its second turn. The attempt is a fault without a verdict,
// and the transcript holds everything up to that point.
func TestFaults(t *testing.T) {
	t.Parallel()
	type faultCase struct {
		err  error
		want assay.FaultKind
	}
	cases := []faultCase{
		{errors.New("unheard of"), assay.Harness},
		{fmt.Errorf("wrapped: %w", &assay.Fault{Kind: assay.Quota}), assay.Quota},
		{context.Canceled, assay.Interrupted},
		{context.DeadlineExceeded, assay.Timeout},
	}
	for _, kind := range assay.FaultKinds {
		fault := &assay.Fault{Kind: kind, Lane: "east/key/one", Status: 599, Detail: "so it goes"}
		cases = append(cases, faultCase{fault, kind})
	}
	trial := trial(assay.Listed, .8, seedFor(t, .8, worked(reader)))
	for _, tc := range cases {
		f := &fake{chat: func(_ context.Context, n int) (*assay.Response, error) {
			if n == 1 {
				return &assay.Response{
					Message: calling(assay.Listed, reader), Lane: "west/key/one",
					ServedModel: "fake-1",
					Usage:       assay.Usage{InputTokens: 100, OutputTokens: 10}, Cost: .25,
					Waits: assay.Waits{Working: time.Second, Requests: 1},
				}, nil
			}
			return &assay.Response{
				ServedModel: "other", Usage: assay.Usage{InputTokens: 7},
				Waits: assay.Waits{
					Queued: 3 * time.Second, Working: 2 * time.Second,
					Requests: 4, Retried: map[assay.FaultKind]int{assay.Server: 3},
				},
			}, tc.err
		}}
		a, tr := run(t, f, trial)
		if a.FaultKind != tc.want || a.FaultDetail == "" {
			t.Errorf("%v: fault %q %q, want %s", tc.err, a.FaultKind, a.FaultDetail, tc.want)
		}
		if a.Settles() || a.Level != "" || a.Ended != "" || a.ErrorCategory != "" ||
			tr.Ended != "" {
			t.Errorf("%v: level %q, ended %q %q, category %q next to a fault",
				tc.err, a.Level, a.Ended, tr.Ended, a.ErrorCategory)
		}
		if len(tr.Messages) != 4 || len(tr.Turns) != 1 || len(tr.Calls) != 1 || a.Turns != 1 ||
			a.ToolCalls != 1 {
			t.Errorf("%v: kept %d messages, %d turns, %d calls; want 4, 1, 1",
				tc.err, len(tr.Messages), len(tr.Turns), len(tr.Calls))
		}
		if a.Requests != 5 || a.Retried[assay.Server] != 3 || a.QueuedMS != 3000 ||
			a.WorkingMS != 3000 ||
			a.InputTokens != 107 || a.CostUSD != .25 {
			t.Errorf("%v: usage of the failed turn is not counted: %+v", tc.err, a)
		}
		lane := "west/key/one"
		if f, ok := errors.AsType[*assay.Fault](tc.err); ok && f.Lane != "" {
			lane = f.Lane
		}
		if a.Lane != lane || a.ServedModel != "fake-1, other" {
			t.Errorf("%v: lane %q, served model %q; want %q, fake-1 and other",
				tc.err, a.Lane, a.ServedModel, lane)
		}
	}
}

// TestUsageAddsUp adds up time, tokens and cost of all turns.
func TestUsageAddsUp(t *testing.T) {
	t.Parallel()
	f := &fake{chat: func(_ context.Context, n int) (*assay.Response, error) {
		return &assay.Response{
			Message: saying(fmt.Sprint("thought ", n)), Lane: fmt.Sprint("lane/", n),
			ServedModel: "fake-1",
			Usage: assay.Usage{
				InputTokens: 100 * n, OutputTokens: n, CachedTokens: 10 * n,
				CacheWriteTokens: 5 * n, ReasoningTokens: 2 * n,
			},
			Cost: .5, Finish: []string{"tool_calls", "length", "length"}[n-1],
			Deviations: []string{"no temperature", fmt.Sprint("no top_p, ", n/3)},
			Reported:   map[string]string{"effort": "low", "tier": fmt.Sprint(n / 2)},
			Waits: assay.Waits{
				Queued: 2 * time.Millisecond, Working: 30 * time.Millisecond,
				Requests: n, Retried: map[assay.FaultKind]int{assay.RateLimited: n - 1},
			},
		}, nil
	}}
	temperature := .3
	trial := trial(assay.Discover, .8, 1)
	trial.Setting.Turns, trial.Sampling.Temperature = 3, &temperature
	a, tr := run(t, f, trial)
	if a.InputTokens != 600 || a.OutputTokens != 6 || a.CostUSD != 1.5 || a.QueuedMS != 6 ||
		a.WorkingMS != 90 ||
		a.Requests != 6 || a.Retried[assay.RateLimited] != 3 {
		t.Errorf("the sums are wrong: %+v", a)
	}
	if a.CachedTokens != 60 || a.CacheWriteTokens != 30 || a.ReasoningTokens != 12 {
		t.Errorf("%+v, want the sums of all kinds of tokens", a.Usage())
	}
	if a.Finish != "tool_calls, length" || a.Truncated != 2 ||
		a.Deviations != "no temperature, no top_p,0, no top_p,1" ||
		a.Reported != "effort=low, tier=0, tier=1" {
		t.Errorf("finish %q, %d truncated, deviations %q, reported %q",
			a.Finish, a.Truncated, a.Deviations, a.Reported)
	}
	if a.Lane != "lane/3" || a.ServedModel != "fake-1" || a.Templates != episode.TemplatesHash ||
		!cmp.Equal(a.Trial, trial) {
		t.Errorf("lane %q, served model %q, templates %q", a.Lane, a.ServedModel, a.Templates)
	}
	if a.StartedAt.IsZero() || a.FinishedAt.Before(a.StartedAt) ||
		a.StartedAt.Location() != time.UTC || a.FinishedAt.Location() != time.UTC {
		t.Errorf("from %v to %v", a.StartedAt, a.FinishedAt)
	}
	want := assay.TurnRecord{
		Lane: "lane/2", ServedModel: "fake-1", Usage: assay.Usage{
			InputTokens: 200, OutputTokens: 2, CachedTokens: 20, CacheWriteTokens: 10,
			ReasoningTokens: 4,
		},
		Finish: "length", Deviations: []string{"no temperature", "no top_p, 0"},
		Reported: map[string]string{"effort": "low", "tier": "1"},
		QueuedMS: 2, WorkingMS: 30, Requests: 2, Assisted: true,
	}
	if diff := cmp.Diff(want, tr.Turns[1]); diff != "" {
		t.Errorf("second turn:\n%s", diff)
	}
	for _, req := range f.asked {
		if req.Model != "fake" || req.Sampling.Temperature != &temperature || req.Budget != 0 {
			t.Errorf("request for %q, sampling %v, budget %v", req.Model, req.Sampling, req.Budget)
		}
	}
}

// TestBudget checks that each request gets the remaining working time, and that the trial is a
// fault once it is used up. Time in a queue does not count.
func TestBudget(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		working time.Duration
		want    []time.Duration
	}{
		{4 * time.Second, []time.Duration{10 * time.Second, 6 * time.Second, 2 * time.Second}},
		{5 * time.Second, []time.Duration{10 * time.Second, 5 * time.Second}},
		{time.Minute, []time.Duration{10 * time.Second}},
	} {
		f := &fake{chat: func(context.Context, int) (*assay.Response, error) {
			waits := assay.Waits{Working: tc.working, Queued: time.Hour}
			return &assay.Response{Message: saying("Hm."), Waits: waits}, nil
		}}
		runner := episode.NewRunner(catalog, 10*time.Second)
		a, tr := runner.Run(t.Context(), f, new(trial(assay.Discover, .8, 1)), new(task()))
		var budgets []time.Duration
		for _, req := range f.asked {
			budgets = append(budgets, req.Budget)
		}
		if !slices.Equal(budgets, tc.want) {
			t.Errorf("%v per turn: budgets %v, want %v", tc.working, budgets, tc.want)
		}
		if a.FaultKind != assay.Timeout ||
			!strings.Contains(a.FaultDetail, "working time of 10s") ||
			a.Settles() || len(tr.Turns) != len(tc.want) {
			t.Errorf("%v per turn: fault %q %q, level %q, %d turns; want a timeout",
				tc.working, a.FaultKind, a.FaultDetail, a.Level, len(tr.Turns))
		}
	}
}

// TestBudgetSpentByTheEnd checks that an episode that ends exactly when its time is used up has an
// outcome.
func TestBudgetSpentByTheEnd(t *testing.T) {
	t.Parallel()
	f := &fake{chat: func(context.Context, int) (*assay.Response, error) {
		return &assay.Response{Message: saying("Hm."), Waits: assay.Waits{Working: 5 * time.Second}}, nil
	}}
	trial := trial(assay.Discover, .8, 1)
	trial.Setting.Turns = 2
	a, _ := episode.NewRunner(catalog, 10*time.Second).Run(t.Context(), f, new(trial), new(task()))
	if a.Ended != assay.TurnLimit {
		t.Errorf("ended %q, fault %q %q; want the turn limit", a.Ended, a.FaultKind, a.FaultDetail)
	}
}

// TestInterrupted cancels the context at each point of an episode, with a cause.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	why := errors.New("the plug was pulled")
	answer := func(context.Context) (*assay.Response, error) {
		return &assay.Response{Message: saying("Hm.")}, nil
	}
	wait := func(ctx context.Context) (*assay.Response, error) {
		<-ctx.Done()
		return &assay.Response{}, &assay.Fault{Kind: assay.Interrupted, Detail: context.Cause(ctx).Error()}
	}
	for _, tc := range []struct {
		name         string
		early        bool // before the first request
		then         func(ctx context.Context) (*assay.Response, error)
		asked, turns int
	}{
		{"before the first request", true, answer, 0, 0},
		{"while the provider waits", false, wait, 1, 0},
		{"between two turns", false, answer, 1, 1},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if tc.early {
			cancel(why)
		}
		f := &fake{chat: func(ctx context.Context, _ int) (*assay.Response, error) {
			cancel(why)
			return tc.then(ctx)
		}}
		runner := episode.NewRunner(catalog, 0)
		a, tr := runner.Run(ctx, f, new(trial(assay.Discover, .8, 1)), new(task()))
		if a.FaultKind != assay.Interrupted || a.Settles() {
			t.Errorf("%s: fault %q, level %q; want an interruption", tc.name, a.FaultKind, a.Level)
		}
		if !strings.Contains(a.FaultDetail, why.Error()) {
			t.Errorf("%s: fault %q does not contain the cause", tc.name, a.FaultDetail)
		}
		if len(f.asked) != tc.asked || len(tr.Turns) != tc.turns {
			t.Errorf("%s: %d requests, %d turns; want %d, %d",
				tc.name, len(f.asked), len(tr.Turns), tc.asked, tc.turns)
		}
	}
}

// TestRunnerIsShared runs many episodes with one runner at the same time.
func TestRunnerIsShared(t *testing.T) {
	t.Parallel()
	runner := episode.NewRunner(catalog, time.Minute)
	search := assay.ToolCall{ID: "a", Name: "tool_search", Arguments: `{"query":"rows"}`}
	query := assay.Message{Calls: []assay.ToolCall{search}}
	type result struct {
		seed    uint64
		outcome assay.Outcome
	}
	results := make(chan result)
	const n = 16
	play := func(seed uint64) assay.Outcome {
		f := scripted(query, calling(assay.Discover, reader), calling(assay.Discover, parser))
		a, _ := runner.Run(t.Context(), f, new(trial(assay.Discover, .8, seed)), new(task()))
		return a.Outcome
	}
	for seed := range uint64(n) {
		go func() { results <- result{seed, play(seed)} }()
	}
	for range n {
		r := <-results
		if diff := cmp.Diff(play(r.seed), r.outcome); diff != "" {
			t.Errorf("seed %d gives another outcome in parallel:\n%s", r.seed, diff)
		}
	}
}
