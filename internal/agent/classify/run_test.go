package classify_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/classify"
)

// How a case of the tests ends: the name is in its task's description.
const (
	good       = "good"
	late       = "late" // good, after a minute
	unreadable = "unreadable"
	overloaded = "overloaded"
	auth       = "auth"
)

// court answers each case as its description says, after a second a request.
// Inside counts the requests in flight, and most is the highest count.
type court struct{ inside, most atomic.Int32 }

func (c *court) Chat(ctx context.Context, req assay.Request) (assay.Response, error) {
	c.most.Store(max(c.most.Load(), c.inside.Add(1)))
	defer c.inside.Add(-1)
	how := func(name string) bool { return strings.Contains(req.Messages[1].Content, `"`+name+`"`) }
	wait := time.Second
	if how(late) {
		wait = time.Minute
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		f := *assay.AsFault(ctx.Err())
		f.Err = context.Cause(ctx)
		return assay.Response{Usage: assay.Usage{InputTokens: 1}}, &f
	}
	switch {
	case how(unreadable):
		return said("Well."), nil
	case how(overloaded):
		return assay.Response{}, &assay.Fault{Kind: assay.Overloaded}
	case how(auth):
		return assay.Response{}, &assay.Fault{Kind: assay.Auth, Detail: "no such key"}
	}
	return said(readable), nil
}

// docket yields a case for each word.
func docket(words ...string) iter.Seq2[classify.Case, error] {
	return func(yield func(classify.Case, error) bool) {
		for i, w := range words {
			if !yield(trialOf(i, w), nil) {
				return
			}
		}
	}
}

func trialOf(number int, how string) classify.Case {
	k := partial()
	k.Attempt.Number = number
	k.Task.Description = how
	return k
}

// A session is what a run did.
type session struct {
	summary classify.Summary
	err     error
	saved   []int    // the numbers of cases that were saved, in order
	heard   []string // what progress heard of each case
	took    time.Duration
	most    int // requests in flight at once
}

// hold runs cases inside of a bubble of time. Save, if set, is asked too.
func hold(t *testing.T, ctx func(context.Context) context.Context, cases iter.Seq2[classify.Case, error], workers int, save func(int) error) (s session) {
	synctest.Test(t, func(t *testing.T) {
		provider := new(court)
		c := classify.Classifier{Provider: provider, Model: "judge"}
		start := time.Now()
		inside := t.Context()
		if ctx != nil {
			inside = ctx(inside)
		}
		s.summary, s.err = c.Run(inside, cases, workers, func(k classify.Case, a classify.Answer) error {
			if a.Opinion != opinion || a.Raw != readable {
				t.Errorf("saved %+v", a)
			}
			if save != nil {
				if err := save(k.Attempt.Number); err != nil {
					return err
				}
			}
			s.saved = append(s.saved, k.Attempt.Number)
			return nil
		}, func(sum classify.Summary, k classify.Case, err error) {
			word := "saved"
			switch {
			case errors.Is(err, classify.ErrUnreadable):
				word = "unreadable"
			case err != nil:
				word = string(assay.AsFault(err).Kind)
			}
			s.heard = append(s.heard, fmt.Sprintf("%d %s (%d/%d/%d)", k.Attempt.Number, word, sum.Answered, sum.Unreadable, sum.Faulted))
		})
		s.took = time.Since(start)
		s.most = int(provider.most.Load())
		if n := provider.inside.Load(); n != 0 {
			t.Errorf("%d requests are still in flight", n)
		}
	})
	return s
}

func TestRun(t *testing.T) {
	t.Parallel()
	s := hold(t, nil, docket(good, unreadable, good, overloaded, good), 1, nil)
	want := classify.Summary{Answered: 3, Unreadable: 1, Faulted: 1, Usage: assay.Usage{InputTokens: 50, OutputTokens: 10}, Cost: 2.5}
	if diff := cmp.Diff(want, s.summary); diff != "" || s.err != nil {
		t.Errorf("error %v, summary (-want +got):\n%s", s.err, diff)
	}
	if diff := cmp.Diff([]int{0, 2, 4}, s.saved); diff != "" {
		t.Errorf("saved (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"0 saved (1/0/0)", "1 unreadable (1/1/0)", "2 saved (2/1/0)", "3 overloaded (2/1/1)", "4 saved (3/1/1)"}, s.heard); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if s.took != 6*time.Second { // the unreadable one takes two requests
		t.Errorf("took %v, want 6s", s.took)
	}
}

// TestWorkers: as many requests as workers are in flight, and no more.
func TestWorkers(t *testing.T) {
	t.Parallel()
	for workers, want := range map[int]time.Duration{-1: 10, 0: 10, 1: 10, 2: 5, 3: 4, 10: 1, 50: 1} {
		s := hold(t, nil, docket(slices.Repeat([]string{good}, 10)...), workers, nil)
		if s.took != want*time.Second || s.most != min(10, max(1, workers)) || s.summary.Answered != 10 || s.err != nil {
			t.Errorf("%d workers: %d answered in %v, %d at once, error %v", workers, s.summary.Answered, s.took, s.most, s.err)
		}
	}
}

// TestRunLaw: each case is saved or counted once, whatever becomes of them and
// however many workers there are.
func TestRunLaw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{good, late, unreadable, overloaded}), 0, 20).Draw(rt, "cases")
		s := hold(t, nil, docket(words...), rapid.IntRange(1, 5).Draw(rt, "workers"), nil)
		var want classify.Summary
		var saved []int
		for i, w := range words {
			requests := 1
			switch w {
			case unreadable:
				want.Unreadable++
				requests = 2
			case overloaded:
				want.Faulted++
				requests = 0
			default:
				want.Answered++
				saved = append(saved, i)
			}
			want.Usage.InputTokens += 10 * requests
			want.Usage.OutputTokens += 2 * requests
			want.Cost += .5 * float64(requests)
		}
		slices.Sort(s.saved)
		if diff := cmp.Diff(want, s.summary) + cmp.Diff(saved, s.saved); diff != "" || s.err != nil || len(s.heard) != len(words) {
			rt.Fatalf("error %v, progress %v, summary and saved (-want +got):\n%s", s.err, s.heard, diff)
		}
	})
}

var errStop = errors.New("stopped by hand")

func stopAfter(d time.Duration) func(context.Context) context.Context {
	return func(ctx context.Context) context.Context {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(d, func() { cancel(errStop) })
		return ctx
	}
}

// TestStop: a run that is stopped cuts off what is in flight, and keeps what it
// has. Cases that were cut off are counted nowhere.
func TestStop(t *testing.T) {
	t.Parallel()
	s := hold(t, stopAfter(2500*time.Millisecond), docket(good, late, good, good, good), 2, nil)
	if s.took != 2500*time.Millisecond || !errors.Is(s.err, errStop) {
		t.Errorf("ended after %v with %v", s.took, s.err)
	}
	if diff := cmp.Diff([]string{"0 saved (1/0/0)", "2 saved (2/0/0)"}, s.heard); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	want := classify.Summary{Answered: 2, Usage: assay.Usage{InputTokens: 22, OutputTokens: 4}, Cost: 1}
	if diff := cmp.Diff(want, s.summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}

	// With no case left to hand out, too; a deadline is no fault of the last.
	s = hold(t, func(ctx context.Context) context.Context {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		context.AfterFunc(ctx, cancel)
		return ctx
	}, docket(late), 1, nil)
	if s.took != 10*time.Second || !errors.Is(s.err, context.DeadlineExceeded) || s.summary.Faulted != 0 || s.heard != nil {
		t.Errorf("ended after %v with %v, %+v, %v", s.took, s.err, s.summary, s.heard)
	}

	// Cases that end without a word when the run is stopped are not all.
	s = hold(t, stopAfter(5*time.Second), func(yield func(classify.Case, error) bool) {
		yield(trialOf(0, good), nil)
		time.Sleep(10 * time.Second)
	}, 1, nil)
	if !errors.Is(s.err, errStop) || s.summary.Answered != 1 {
		t.Errorf("ended with %v, %+v", s.err, s.summary)
	}

	// What was complete before the end is complete.
	s = hold(t, stopAfter(5*time.Second), docket(good), 1, nil)
	if s.err != nil || s.summary.Answered != 1 {
		t.Errorf("ended with %v, %+v", s.err, s.summary)
	}
}

// TestStopWhileSaving: an answer that came is saved, also when the run is
// stopped while another one is.
func TestStopWhileSaving(t *testing.T) {
	t.Parallel()
	s := hold(t, stopAfter(1500*time.Millisecond), docket(good, good, good), 2, func(int) error {
		time.Sleep(time.Second)
		return nil
	})
	slices.Sort(s.saved)
	if diff := cmp.Diff([]int{0, 1}, s.saved); diff != "" || !errors.Is(s.err, errStop) || s.took != 3*time.Second {
		t.Errorf("ended after %v with %v, saved (-want +got):\n%s", s.took, s.err, diff)
	}
}

// TestSaveFails: the run ends with the error, and what is in flight is cut off.
func TestSaveFails(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	s := hold(t, nil, docket(good, late, good, good, good), 2, func(number int) error {
		if number == 2 {
			return full
		}
		return nil
	})
	if s.err != full || s.took != 2*time.Second || s.summary.Answered != 1 || len(s.heard) != 1 {
		t.Errorf("ended after %v with %v, %+v, %v", s.took, s.err, s.summary, s.heard)
	}
}

// TestCasesFail: what was handed out before is still answered.
func TestCasesFail(t *testing.T) {
	t.Parallel()
	damaged := errors.New("store is damaged")
	s := hold(t, nil, func(yield func(classify.Case, error) bool) {
		if yield(trialOf(0, late), nil) && yield(trialOf(1, good), nil) && yield(classify.Case{}, damaged) {
			t.Error("cases after an error are asked for")
		}
	}, 2, nil)
	if s.err != damaged || s.summary.Answered != 2 || s.took != time.Minute {
		t.Errorf("ended after %v with %v, %+v", s.took, s.err, s.summary)
	}
}

// TestClosingFaults: three in a row of a kind that closes a lane end the run;
// other faults between them do not matter, a reply does.
func TestClosingFaults(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		cases   string
		workers int
		faulted int
		ends    bool
	}{
		{"auth auth good auth auth good", 1, 4, false},
		{"auth auth unreadable auth auth", 1, 4, false},
		{"good auth auth auth good good", 1, 3, true},
		{"auth overloaded auth overloaded auth good", 1, 5, true},
		{"overloaded overloaded overloaded overloaded good", 1, 4, false},
		{"auth auth auth", 1, 3, true},
		{"auth auth auth auth auth late good good good good good", 6, 3, true},
	} {
		s := hold(t, nil, docket(strings.Fields(tc.cases)...), tc.workers, nil)
		if s.summary.Faulted != tc.faulted || (s.err != nil) != tc.ends || len(s.heard) != s.summary.Answered+s.summary.Unreadable+s.summary.Faulted {
			t.Errorf("%s: ended with %v, %+v, %v", tc.cases, s.err, s.summary, s.heard)
		}
		if f := assay.AsFault(s.err); tc.ends && (f.Kind != assay.Auth || s.took > 10*time.Second || !strings.Contains(s.err.Error(), "no such key")) {
			t.Errorf("%s: ended after %v with %v", tc.cases, s.took, s.err)
		}
	}
}
