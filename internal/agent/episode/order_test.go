package episode_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/task/world"
)

// spread is less than the time for which calls wait for earlier ones.
const spread = 1900 * time.Millisecond

// A played is what the attempt of an agent came to.
type played struct {
	outcome    assay.Outcome
	deviations string
	transcript *assay.Transcript
	answers    []string // of the calls of the first reply, by their place in it
	took       time.Duration
}

// An errand is an agent's way to carry out the calls of a reply: each after a delay, or never if that
// is negative. Sequential agents wait for each answer before they make the next call.
type errand struct {
	delays     []time.Duration
	sequential []int // the places of the calls, in the agent's order
	change     func(assay.ToolCall) assay.ToolCall
}

// play lets an agent carry out the first reply, ask again, and end.
func play(t *testing.T, trial assay.Trial, reply assay.Message, e errand) (p played) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { p = playNow(t, trial, reply, e) })
	return p
}

func playNow(t *testing.T, trial assay.Trial, reply assay.Message, e errand) played {
	t.Helper()
	runner := episode.NewRunner(catalog, 0)
	stage, err := runner.Stage(context.Background(), &trial, new(task()))
	if err != nil {
		t.Fatal(err)
	}
	model := scripted(reply, saying("TASK_COMPLETED"))
	messages := []assay.Message{{Role: assay.User, Content: stage.Prompt()}}
	if _, err := stage.Chat(context.Background(), model, assay.Request{Messages: messages}); err != nil {
		t.Fatal(err)
	}
	p := played{answers: make([]string, len(reply.Calls))}
	began := time.Now()
	call := func(i int) {
		c := reply.Calls[i]
		if e.change != nil {
			c = e.change(c)
		}
		p.answers[i], _, _ = stage.Call(c.Name, c.Arguments)
	}
	var wg sync.WaitGroup
	for i, d := range e.delays {
		if d >= 0 {
			wg.Go(func() { time.Sleep(d); call(i) })
		}
	}
	wg.Wait()
	for _, i := range e.sequential {
		call(i)
	}
	p.took = time.Since(began)
	for i, c := range reply.Calls { // of two equal calls, nobody knows which is which
		for j, d := range reply.Calls[:i] {
			if c.Name == d.Name && c.Arguments == d.Arguments && p.answers[i] > p.answers[j] {
				p.answers[i], p.answers[j] = p.answers[j], p.answers[i]
			}
		}
	}
	messages = append(messages, reply)
	for i, answer := range p.answers {
		messages = append(messages, assay.Message{
			Role: assay.ToolRole, CallID: reply.Calls[i].ID, Content: answer,
		})
	}
	_, _ = stage.Chat(context.Background(), model, assay.Request{Messages: messages}) // perhaps it is over
	a, tr := stage.Conclude(assay.Finished, "TASK_COMPLETED", new(assay.AgentRecord), nil)
	p.outcome, p.deviations, p.transcript = a.Outcome, a.Deviations, tr
	return p
}

// anyCalls draws a reply with calls of the tools, of others and of the framework's own, perhaps
// twice the same.
func anyCalls(t *rapid.T, setting string) assay.Message {
	tools := rapid.SliceOfN(rapid.SampledFrom([]string{reader, parser, writer, pinger, "no_tool"}), 1, 6)
	reply := calling(setting, tools.Draw(t, "calls")...)
	for i := range reply.Calls {
		c := &reply.Calls[i]
		if strings.Contains(c.Arguments, reader) || c.Name == reader {
			c.Arguments = strings.Replace(c.Arguments, "{}", `{"source":"inbox/week-07.csv"}`, 1)
		}
		if rapid.IntRange(0, 9).Draw(t, "own") == 0 {
			c.Name = "write_todos"
		}
	}
	return reply
}

// TestOneReplyHasOneVerdict checks that the calls of a reply have the same answers, transcript,
// outcome and luck, whatever the order in which they arrive, and that the order is the reply's.
func TestOneReplyHasOneVerdict(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) { oneVerdict(t, rt) })
}

func oneVerdict(outer *testing.T, t *rapid.T) {
	setting := rapid.SampledFrom(assay.ToolSettings).Draw(t, "setting")
	trial := trial(setting, rapid.SampledFrom([]float64{.5, 1}).Draw(t, "reliability"),
		rapid.Uint64().Draw(t, "seed"))
	trial.World = rapid.SampledFrom(world.Simulated).Draw(t, "world")
	trial.Calls = rapid.SampledFrom([]int{0, 2, 10}).Draw(t, "limit")
	reply := anyCalls(t, setting)
	var e errand
	if rapid.Bool().Draw(t, "changed") {
		e.change = func(c assay.ToolCall) assay.ToolCall {
			c.Arguments = strings.Replace(c.Arguments, "week", "WEEK", 1)
			return c
		}
	}
	inOrder, anyOrder := e, e
	for i, c := range reply.Calls {
		if c.Name == "write_todos" || rapid.IntRange(0, 9).Draw(t, "lost") == 0 {
			inOrder.delays, anyOrder.delays = append(inOrder.delays, -1), append(anyOrder.delays, -1)
			continue
		}
		first, then := i+1, rapid.IntRange(1, int(spread.Milliseconds())).Draw(t, "delay")
		if c.Name == "no_tool" { // which looks like the framework's own, for which nobody waits
			first, then = 0, 0
		}
		inOrder.delays = append(inOrder.delays, time.Duration(first)*time.Millisecond)
		anyOrder.delays = append(anyOrder.delays, time.Duration(then)*time.Millisecond)
	}
	want, got := play(outer, trial, reply, inOrder), play(outer, trial, reply, anyOrder)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(played{}), cmpopts.IgnoreFields(played{}, "took"),
		cmpopts.IgnoreFields(assay.Transcript{}, "Spans")); diff != "" {
		t.Fatalf("in the order of the reply (-) and in another (+):\n%s", diff)
	}
	if got.took > 2*2*time.Second {
		t.Fatalf("the reply took %v", got.took)
	}
	for _, l := range got.transcript.Agent.Lost {
		if l.Late {
			t.Fatalf("a call that arrived with the others was late: %v", l)
		}
	}
}

// An agent that waits for each answer before it makes the next call gets one soon, whatever its
// order is. The record says that the order is not the model's, and so is the cause.
func TestOtherOrderOfAFrameworkIsNotTheModels(t *testing.T) {
	t.Parallel()
	for _, setting := range assay.ToolSettings {
		rapid.Check(t, func(rt *rapid.T) {
			trial := trial(setting, 1, 7)
			trial.World = "assay-1"
			reply := calling(setting, reader, parser, writer, pinger)
			reply.Calls[0].Arguments = strings.Replace(reply.Calls[0].Arguments, "{}",
				`{"source":"inbox/week-07.csv"}`, 1)
			order := rapid.Permutation([]int{0, 1, 2, 3}).Draw(rt, "order")
			p := play(t, trial, reply, errand{sequential: order})
			sorted := slices.IsSorted(order)
			if sorted && p.took > 0 || p.took > 2*time.Second {
				rt.Fatalf("%v took %v", order, p.took)
			}
			if sorted != (p.deviations == "") || sorted && len(p.transcript.Agent.Lost) > 0 {
				rt.Fatalf("%v: %q, %v", order, p.deviations, p.transcript.Agent.Lost)
			}
			if slices.Index(order, 0) > slices.Index(order, 1) && p.outcome.Cause != assay.ByFramework {
				rt.Fatalf("%v: %s, the cause is %s", order, p.outcome.Level, p.outcome.Cause)
			}
		})
	}
}

// A call that waits is executed once the agent goes on without the calls before it.
func TestCallsDoNotWaitForOnesThatWereLeftOut(t *testing.T) {
	t.Parallel()
	reply := calling(assay.Listed, reader, pinger)
	for name, goOn := range map[string]func(*episode.Stage){
		"it asks its model": func(s *episode.Stage) {
			_, _ = s.Chat(t.Context(), scripted(saying("")), assay.Request{Messages: []assay.Message{
				reply, {Role: assay.ToolRole, CallID: reply.Calls[0].ID, Content: "denied"},
			}})
		},
		"it ends": func(s *episode.Stage) {
			_, _ = s.Conclude(assay.Finished, "", new(assay.AgentRecord), nil)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			trial := trial(assay.Listed, 1, 7)
			s, err := episode.NewRunner(catalog, 0).Stage(t.Context(), &trial, new(task()))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Chat(t.Context(), scripted(reply), assay.Request{}); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			answer := make(chan string)
			go func() {
				text, _, _ := s.Call(pinger, "{}")
				answer <- text
			}()
			synctest.Wait()
			go goOn(s)
			if text := <-answer; !strings.Contains(text, `"success":true`) || time.Since(began) > 0 {
				t.Errorf("%s: after %v, the answer is %s", name, time.Since(began), text)
			}
			_, tr := s.Conclude(assay.Finished, "", new(assay.AgentRecord), nil)
			want := []assay.LostCall{{Turn: 1, Tool: reader, Arguments: "{}"}}
			if diff := cmp.Diff(want, tr.Agent.Lost); diff != "" && name == "it asks its model" {
				t.Errorf("%s: lost (-want +got):\n%s", name, diff)
			}
		})
	}
}

// A reply that was on its way when the agent gave up is paid and is no turn: the agent asks again, and
// would have two turns for what it heard once.
func TestRepliesToNobodyAreNoTurns(t *testing.T) {
	t.Parallel()
	trial := trial(assay.Listed, 1, 7)
	s, err := episode.NewRunner(catalog, 0).Stage(t.Context(), &trial, new(task()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, giveUp := context.WithCancel(t.Context())
	model := &fake{chat: func(_ context.Context, n int) (*assay.Response, error) {
		if n == 1 {
			giveUp()
		}
		return &assay.Response{Message: saying("TASK_COMPLETED"), Usage: assay.Usage{InputTokens: 7}}, nil
	}}
	if _, err := s.Chat(ctx, model, assay.Request{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a reply to nobody is answered with %v", err)
	}
	if _, err := s.Chat(t.Context(), model, assay.Request{}); err != nil {
		t.Fatal(err)
	}
	a, tr := s.Conclude(assay.Finished, "TASK_COMPLETED", new(assay.AgentRecord), nil)
	if len(tr.Turns) != 1 || a.Turns != 1 || a.InputTokens != 14 {
		t.Errorf("%d turns in the transcript, %d in the attempt, and %d tokens; want 1, 1 and those of both replies, 14",
			len(tr.Turns), a.Turns, a.InputTokens)
	}
}
