package score

import (
	"fmt"
	"slices"

	"github.com/assay-eval/assay"
)

// An ending is how an episode of assay-1 ended that did call tools, and did
// not come to the end of the plan.
type ending struct {
	*course
	calls []assay.CallRecord
	uses  []use
	from  int    // the rest are calls[from:]
	step  string // the first required tool that has not succeeded in its place

	claimed bool // the model said that it was done
	gaveUp  bool // the last call before the rest was unlucky
}

// category asks the rules 3 to 8 of [course.category]; empty where none fits.
func (e *ending) category(w *witness) string {
	if i := e.tooEarly(); w.ask("the missing step succeeded too early, in a call that nothing needed", i >= 0, func() string { return e.missing(i) }) {
		return assay.CategorySequenceOrder
	}
	wrong := e.within(lastIndex(e.uses[e.from:], func(u use) bool { return u == mistaken }))
	if w.ask("after all progress and bad luck came a mistake in a wanted call", wrong >= 0, func() string { return e.rest(wrong) }) {
		return e.fault(e.calls, wrong, w)
	}
	latest := lastIndex(e.calls, func(r assay.CallRecord) bool { return r.Tool == e.step })
	if w.ask("the latest call of the missing step was a mistake, and no bad luck came after all progress",
		latest >= 0 && e.calls[latest].Mistake && !e.gaveUp, func() string { return e.latest(latest) }) {
		return e.fault(e.calls, latest, w)
	}
	if i := e.within(strayed(e.catalog, e.required, e.calls[e.from:])); w.ask("after all progress and bad luck came a tool for which the task has no use",
		i >= 0, func() string { return e.rest(i) }) {
		return assay.CategoryToolSelection
	}
	if w.ask("the model was done without a call of the missing step, and no bad luck came after all progress",
		e.claimed && !e.gaveUp && latest < 0, func() string { return e.claim() + "; " + e.latest(latest) }) {
		return assay.CategoryToolSelection
	}
	if i := e.within(e.hurried()); w.ask("after all progress and bad luck came a tool that is required later", i >= 0, func() string { return e.rest(i) }) {
		return assay.CategorySequenceOrder
	}
	return ""
}

// leftOff is the category where the model said that it was done, and no call
// tells the reason.
func (e *ending) leftOff(w *witness) string {
	switch {
	case w.ask("bad luck came after all progress, so it gave up", e.gaveUp, e.progress):
		return assay.CategoryOther
	case w.ask("the missing step had succeeded as a dependency", slices.Contains(e.done, e.step), func() string {
		return e.missing(slices.IndexFunc(e.calls, func(r assay.CallRecord) bool { return r.Tool == e.step && r.OK }))
	}):
		return assay.CategorySequenceOrder
	}
	return w.remains(assay.CategoryToolSelection)
}

// tooEarly returns the first call, -1 without one, in which the step succeeded
// although it was not wanted.
func (e *ending) tooEarly() int {
	for i, call := range e.calls {
		if call.Tool == e.step && call.OK && e.uses[i].wasted() {
			return i
		}
	}
	return -1
}

// hurried returns the place in the rest of the first tool that is required
// after the step, -1 without one.
func (e *ending) hurried() int {
	return slices.IndexFunc(e.calls[e.from:], func(call assay.CallRecord) bool {
		return slices.Contains(e.required[e.next+1:], call.Tool)
	})
}

// within turns a place in the rest into one among all calls.
func (e *ending) within(i int) int {
	if i < 0 {
		return -1
	}
	return e.from + i
}

// missing names the missing step, and the call in which it succeeded.
func (e *ending) missing(i int) string {
	if i >= 0 {
		return nth(e.calls, i)
	}
	return "no such success of " + e.step
}

// rest names a call of the rest, or says what the rest is where i is -1.
func (e *ending) rest(i int) string {
	switch n := len(e.calls) - e.from; {
	case i >= 0:
		return nth(e.calls, i)
	case n == 0:
		return e.progress() + "; no call followed"
	default:
		return e.progress() + "; " + counted(n, "call") + " followed, none such"
	}
}

// progress tells of the last useful or unlucky call.
func (e *ending) progress() string {
	switch {
	case e.from == 0:
		return "there was neither"
	case e.gaveUp:
		return "the last was bad luck, " + nth(e.calls, e.from-1)
	}
	return "the last was progress, " + nth(e.calls, e.from-1)
}

// latest tells of the latest call of the missing step.
func (e *ending) latest(i int) string {
	switch {
	case i < 0:
		return e.step + " was never called; " + e.progress()
	case e.calls[i].Mistake:
		return nth(e.calls, i) + " was a mistake; " + e.progress()
	}
	return nth(e.calls, i) + " was no mistake"
}

func (e *ending) claim() string {
	if e.claimed {
		return "it said so"
	}
	return "it did not say so"
}

// nth names a call by its number, from 1.
func nth(calls []assay.CallRecord, i int) string {
	return fmt.Sprintf("call %d (%s)", i+1, calls[i].Tool)
}
