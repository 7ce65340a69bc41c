package assay1

import (
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/verdict"
)

// An ending is how an episode ended that called tools but did not complete the plan.
type ending struct {
	*course
	calls []assay.CallRecord
	uses  []verdict.Use
	from  int    // the rest are calls[from:]
	step  string // the first required tool that has not succeeded in its place

	claimed bool // the model claimed to be done
	gaveUp  bool // the last call before the rest was unlucky
}

// category asks the rules 4 to 9 of [course.category]. It returns "" if no rule applies.
func (e *ending) category(w *verdict.Witness) string {
	early := e.tooEarly()
	if w.Ask("the missing step succeeded too early, in a call that nothing needed", early >= 0,
		func() string { return e.missing(early) }) {
		return assay.CategorySequenceOrder
	}

	wrong := e.within(lastIndex(e.uses[e.from:], func(u verdict.Use) bool {
		return u == verdict.Mistaken || u == verdict.Unsound
	}))
	if w.Ask("after all progress and bad luck came a wanted call that was a mistake, or had the "+
		"wrong data or values", wrong >= 0, func() string { return e.rest(wrong) }) {
		if e.uses[wrong] == verdict.Unsound {
			return assay.CategoryParameterConfig
		}
		return e.fault(e.calls, wrong, w)
	}

	latest := lastIndex(e.calls, func(r assay.CallRecord) bool { return r.Tool == e.step })
	if w.Ask(
		"the latest call of the missing step was a mistake, and no bad luck came after all progress",
		latest >= 0 && e.calls[latest].Mistake && !e.gaveUp, func() string {
			return e.latest(latest)
		}) {
		return e.fault(e.calls, latest, w)
	}

	strayed := e.within(verdict.Strayed(e.Catalog, e.Required, e.calls[e.from:]))
	if w.Ask("after all progress and bad luck came a tool that the task has no use for",
		strayed >= 0, func() string { return e.rest(strayed) }) {
		return assay.CategoryToolSelection
	}
	if w.Ask("the model was done without a call of the missing step, "+
		"and no bad luck came after all progress",
		e.claimed && !e.gaveUp && latest < 0, func() string {
			return e.claim() + "; " + e.latest(latest)
		}) {
		return assay.CategoryToolSelection
	}

	hurried := e.within(e.hurried())
	if w.Ask("after all progress and bad luck came a tool that is required later", hurried >= 0,
		func() string { return e.rest(hurried) }) {
		return assay.CategorySequenceOrder
	}
	return ""
}

// leftOff returns the category if the model claimed to be done and no call explains the reason.
func (e *ending) leftOff(w *verdict.Witness) string {
	if w.Ask("bad luck came after all progress, so it gave up", e.gaveUp, e.progress) {
		return assay.CategoryOther
	}
	inserted := func(r assay.CallRecord) bool { return r.Tool == e.step && r.Happened() }
	if w.Ask("the missing step had succeeded as a dependency", slices.Contains(e.Done, e.step),
		func() string { return e.missing(slices.IndexFunc(e.calls, inserted)) }) {
		return assay.CategorySequenceOrder
	}
	return w.Remains(assay.CategoryToolSelection)
}

// tooEarly returns the index of the first call in which the step succeeded although it was not
// wanted, or -1.
func (e *ending) tooEarly() int {
	for i, call := range e.calls {
		if call.Tool == e.step && call.Happened() && e.uses[i] == verdict.Idle {
			return i
		}
	}
	return -1
}

// hurried returns the index in the rest of the first tool that is required after the step, or -1.
func (e *ending) hurried() int {
	return slices.IndexFunc(e.calls[e.from:], func(call assay.CallRecord) bool {
		return slices.Contains(e.Required[e.Next+1:], call.Tool)
	})
}

// within turns an index in the rest into one among all calls.
func (e *ending) within(i int) int {
	if i < 0 {
		return -1
	}
	return e.from + i
}

// missing names the call in which the missing step succeeded.
func (e *ending) missing(i int) string {
	if i >= 0 {
		return verdict.Nth(e.calls, i)
	}
	return e.step + " had no such success"
}

// rest names a call of the rest. If i is -1, it describes the rest instead.
func (e *ending) rest(i int) string {
	switch n := len(e.calls) - e.from; {
	case i >= 0:
		return verdict.Nth(e.calls, i)
	case n == 0:
		return e.progress() + "; no call followed"
	default:
		return e.progress() + "; " + verdict.Counted(n, "call") + " followed, none like that"
	}
}

// progress describes the last useful or unlucky call.
func (e *ending) progress() string {
	switch {
	case e.from == 0:
		return "there was neither"
	case e.gaveUp:
		return "the last was bad luck, " + verdict.Nth(e.calls, e.from-1)
	}
	return "the last was progress, " + verdict.Nth(e.calls, e.from-1)
}

// latest describes the latest call of the missing step.
func (e *ending) latest(i int) string {
	switch {
	case i < 0:
		return e.step + " was never called; " + e.progress()
	case e.calls[i].Mistake:
		return verdict.Nth(e.calls, i) + " was a mistake; " + e.progress()
	}
	return verdict.Nth(e.calls, i) + " was not a mistake"
}

func (e *ending) claim() string {
	if e.claimed {
		return "it said so"
	}
	return "it did not say so"
}
