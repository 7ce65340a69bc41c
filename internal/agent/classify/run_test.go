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

// How a case of the tests ends. Its task's description contains the name.
const (
	good       = "good"
	late       = "late" // good after a minute
	unreadable = "unreadable"
	overloaded = "overloaded"
	auth       = "auth"
)

// court answers each case as its description demands, after one second per request. inside counts
// the requests in flight, and most is its maximum.
type court struct{ inside, most atomic.Int32 }

func (c *court) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	c.most.Store(max(c.most.Load(), c.inside.Add(1)))
	defer c.inside.Add(-1)
	how := func(name string) bool {
		return strings.Contains(req.Messages[1].Content, `"`+name+`"`)
	}
	wait := time.Second
	if how(late) {
		wait = time.Minute
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		f := *assay.AsFault(ctx.Err())
		f.Err = context.Cause(ctx)
		return &assay.Response{Usage: assay.Usage{InputTokens: 1}}, &f
	}
	switch {
	case how(unreadable):
		return said("Well."), nil
	case how(overloaded):
		return &assay.Response{}, &assay.Fault{Kind: assay.Overloaded}
	case how(auth):
		return &assay.Response{}, &assay.Fault{Kind: assay.Auth, Detail: "no such key"}
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

// A session holds the results of a run.
type session struct {
	summary classify.Summary
	err     error
	saved   []int    // numbers of saved cases, in order
	heard   []string // calls of progress
	took    time.Duration
	most    int // maximum number of requests in flight
}

// hold runs cases in virtual time. If save is set, it is called before a case counts as saved.
func hold(
	t *testing.T, ctx func(context.Context) context.Context, cases iter.Seq2[classify.Case, error],
	workers int, save func(int) error,
) (s session) {
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
			s.heard = append(s.heard, fmt.Sprintf("%d %s (%d/%d/%d)",
				k.Attempt.Number, word, sum.Answered, sum.Unreadable, sum.Faulted))
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
	want := classify.Summary{
		Answered: 3, Unreadable: 1, Faulted: 1,
		Spend: assay.NewSpend(assay.Usage{InputTokens: 50, OutputTokens: 10}, 2.5),
	}
	if diff := cmp.Diff(want, s.summary); diff != "" || s.err != nil {
		t.Errorf("error %v, summary (-want +got):\n%s", s.err, diff)
	}
	if diff := cmp.Diff([]int{0, 2, 4}, s.saved); diff != "" {
		t.Errorf("saved (-want +got):\n%s", diff)
	}
	heard := []string{
		"0 saved (1/0/0)", "1 unreadable (1/1/0)", "2 saved (2/1/0)", "3 overloaded (2/1/1)",
		"4 saved (3/1/1)",
	}
	if diff := cmp.Diff(heard, s.heard); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if s.took != 6*time.Second { // the unreadable case takes two requests
		t.Errorf("took %v, want 6s", s.took)
	}
}

// TestWorkers checks that there are as many requests in flight as workers, and never more.
func TestWorkers(t *testing.T) {
	t.Parallel()
	for workers, want := range map[int]time.Duration{
		-1: 10, 0: 10, 1: 10, 2: 5, 3: 4, 10: 1, 50: 1,
	} {
		s := hold(t, nil, docket(slices.Repeat([]string{good}, 10)...), workers, nil)
		most := min(10, max(1, workers))
		if s.took != want*time.Second || s.most != most || s.summary.Answered != 10 ||
			s.err != nil {
			t.Errorf("%d workers: %d answered in %v, %d at once, error %v",
				workers, s.summary.Answered, s.took, s.most, s.err)
		}
	}
}

// TestRunLaw checks that each case is saved or counted exactly once, however it ends and for any
// number of workers.
func TestRunLaw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		how := rapid.SampledFrom([]string{good, late, unreadable, overloaded})
		words := rapid.SliceOfN(how, 0, 20).Draw(rt, "cases")
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
			want.InputTokens += 10 * requests
			want.OutputTokens += 2 * requests
			want.CostUSD += .5 * float64(requests)
		}
		slices.Sort(s.saved)
		diff := cmp.Diff(want, s.summary) + cmp.Diff(saved, s.saved)
		if diff != "" || s.err != nil || len(s.heard) != len(words) {
			rt.Fatalf("error %v, progress %v, summary and saved (-want +got):\n%s",
				s.err, s.heard, diff)
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

// TestStop checks that a run that is stopped cancels the cases in flight and keeps its results.
// Cancelled cases are not counted.
func TestStop(t *testing.T) {
	t.Parallel()
	s := hold(t, stopAfter(2500*time.Millisecond), docket(good, late, good, good, good), 2, nil)
	if s.took != 2500*time.Millisecond || !errors.Is(s.err, errStop) {
		t.Errorf("ended after %v with %v", s.took, s.err)
	}
	if diff := cmp.Diff([]string{"0 saved (1/0/0)", "2 saved (2/0/0)"}, s.heard); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	want := classify.Summary{
		Answered: 2, Spend: assay.NewSpend(assay.Usage{InputTokens: 22, OutputTokens: 4}, 1),
	}
	if diff := cmp.Diff(want, s.summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}

	// The same is true if there are no cases left. A deadline is not a fault of the last case.
	s = hold(t, func(ctx context.Context) context.Context {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		context.AfterFunc(ctx, cancel)
		return ctx
	}, docket(late), 1, nil)
	if s.took != 10*time.Second || !errors.Is(s.err, context.DeadlineExceeded) ||
		s.summary.Faulted != 0 || s.heard != nil {
		t.Errorf("ended after %v with %v, %+v, %v", s.took, s.err, s.summary, s.heard)
	}

	// If cases end silently because the run is stopped, the run is not complete.
	s = hold(t, stopAfter(5*time.Second), func(yield func(classify.Case, error) bool) {
		yield(trialOf(0, good), nil)
		time.Sleep(10 * time.Second)
	}, 1, nil)
	if !errors.Is(s.err, errStop) || s.summary.Answered != 1 {
		t.Errorf("ended with %v, %+v", s.err, s.summary)
	}

	// A run that was complete before the stop has no error.
	s = hold(t, stopAfter(5*time.Second), docket(good), 1, nil)
	if s.err != nil || s.summary.Answered != 1 {
		t.Errorf("ended with %v, %+v", s.err, s.summary)
	}
}

// TestStopWhileSaving checks that an answer that has arrived is saved even if the run is stopped
// while another is being saved.
func TestStopWhileSaving(t *testing.T) {
	t.Parallel()
	s := hold(t, stopAfter(1500*time.Millisecond), docket(good, good, good), 2, func(int) error {
		time.Sleep(time.Second)
		return nil
	})
	slices.Sort(s.saved)
	diff := cmp.Diff([]int{0, 1}, s.saved)
	if diff != "" || !errors.Is(s.err, errStop) || s.took != 3*time.Second {
		t.Errorf("ended after %v with %v, saved (-want +got):\n%s", s.took, s.err, diff)
	}
}

// TestSaveFails checks that the run ends with the error and cancels the cases in flight.
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

// TestCasesFail checks that cases handed out before the error are still answered.
func TestCasesFail(t *testing.T) {
	t.Parallel()
	damaged := errors.New("store is damaged")
	s := hold(t, nil, func(yield func(classify.Case, error) bool) {
		if yield(trialOf(0, late), nil) && yield(trialOf(1, good), nil) &&
			yield(classify.Case{}, damaged) {
			t.Error("Run asks for cases after an error")
		}
	}, 2, nil)
	if s.err != damaged || s.summary.Answered != 2 || s.took != time.Minute {
		t.Errorf("ended after %v with %v, %+v", s.took, s.err, s.summary)
	}
}

// TestClosingFaults checks that three lane-closing faults in a row end the run. Other faults in
// between do not matter, but a reply does.
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
		counted := s.summary.Answered + s.summary.Unreadable + s.summary.Faulted
		if s.summary.Faulted != tc.faulted || (s.err != nil) != tc.ends || len(s.heard) != counted {
			t.Errorf("%s: ended with %v, %+v, %v", tc.cases, s.err, s.summary, s.heard)
		}
		if !tc.ends {
			continue
		}
		if f := assay.AsFault(s.err); f.Kind != assay.Auth || s.took > 10*time.Second ||
			!strings.Contains(s.err.Error(), "no such key") {
			t.Errorf("%s: ended after %v with %v", tc.cases, s.took, s.err)
		}
	}
}
