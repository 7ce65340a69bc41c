package lane

import (
	"fmt"
	"time"

	"github.com/assay-eval/assay"
)

// How a lane reacts to faults and refusals.
const (
	// A lane pauses after breakAfter faults in a row. If faults are frequent, so
	// that such a row may be bad luck, it takes up to breakAfterMost.
	breakAfter, breakAfterMost = 5, 10
	// firstPause doubles with each pause in a row, up to longestPause.
	firstPause   = 5 * time.Second
	longestPause = 5 * time.Minute
	// A lane that never worked closes after closeAfterNever pauses, or half a minute, because its
	// address or name is probably wrong.
	closeAfterNever = 3
	// A key or a deployment that the endpoint refuses is probed after deniedAfter requests in a
	// row. If the lane never worked, it closes when the first probe is refused.
	deniedAfter = 2
	// A bad request or an answer from another model suggests a mistake in the
	// configuration. A lane that never worked closes after mistakenAfter of
	// them in a row. One that worked pauses after mistakenAfterWorking, so that
	// the run does not pay for more useless requests, and closes after an outage.
	mistakenAfter        = 5
	mistakenAfterWorking = 50
	// A lane that is refused without an announced wait closes after closesAfter, which is longer than
	// any limit's period, and after outage if its endpoint is overloaded. A lane that worked once
	// and then fails closes after outage, too.
	closesAfter = 25 * time.Hour
	outage      = 10 * time.Minute
)

// DefaultFirstReply is how long a lane waits for an endpoint that is busy or loads
// its model, if it has never replied.
const DefaultFirstReply = 10 * time.Minute

func (l *lane) countMistake(now time.Time, t heldSlot, fault *assay.Fault) {
	if l.mistakes[t.later] == 0 {
		l.mistakenSince[t.later] = now
	}
	l.mistakes[t.later]++
	n := l.mistakes[t.later]
	outlasts := now.Sub(l.mistakenSince[t.later]) >= outage
	switch {
	case !l.worked[t.later] && n >= mistakenAfter, n >= mistakenAfterWorking && outlasts:
		l.close(fault)
	case n >= mistakenAfterWorking && !l.sentBeforePause(t):
		l.breakOff(now, fault)
	}
}

// sentBeforePause reports whether a request was sent before the latest pause
// began. The pause already accounts for its failure.
func (l *lane) sentBeforePause(t heldSlot) bool {
	return !l.pausedSince.IsZero() && !t.started.After(l.pausedSince)
}

// denied reacts to a refusal of the key or the deployment. A single one may be a slip of a gateway,
// and several one of a deployment that is not ready, so the lane is probed before it closes.
func (l *lane) denied(now time.Time, t heldSlot, fault *assay.Fault) {
	l.denial = fault
	l.failed(t)
	patient := l.hasWorked() || starting(fault)
	switch {
	case l.pausesInRow == 0 && l.history.row(t.number, deniedAfter) < deniedAfter:
	case l.pausesInRow > 0 && l.sentBeforePause(t):
	case l.pausesInRow > 0 && (!patient || now.Sub(l.failingSince) >= outage):
		l.close(fault)
	default:
		l.breakOff(now, fault)
	}
}

// failed notes that a request failed.
func (l *lane) failed(t heldSlot) {
	l.history.fail(t.number)
	if l.failingSince.IsZero() {
		l.failingSince = later(t.started, l.repliedAt)
	}
}

func (l *lane) faulted(now time.Time, t heldSlot, fault *assay.Fault) {
	l.failed(t)
	needed := improbableRow(l.faults.of, breakAfter, breakAfterMost)
	l.faultsInDoubt++
	switch {
	case l.pausesInRow == 0 && l.history.row(t.number, needed) < needed:
	case l.outlasted(now):
		l.close(fault)
	case l.pausesInRow > 0 && l.sentBeforePause(t):
	case l.givesUp(fault):
		l.close(fault)
	default:
		l.breakOff(now, fault)
	}
}

// outlasted reports whether a lane has failed for so long that it is given up, however few
// requests that were.
func (l *lane) outlasted(now time.Time) bool {
	failing := now.Sub(l.failingSince)
	if l.hasWorked() {
		return l.pausesInRow > 0 && failing >= outage
	}
	return failing >= l.firstReply()
}

// givesUp reports whether a lane that never worked has been probed often enough. Its server may
// still be starting.
func (l *lane) givesUp(fault *assay.Fault) bool {
	return !l.hasWorked() && l.FirstReply == 0 && !starting(fault) && l.pausesInRow >= closeAfterNever
}

// firstReply returns how long a lane that never worked is waited for.
func (l *lane) firstReply() time.Duration {
	if l.FirstReply > 0 {
		return l.FirstReply
	}
	return DefaultFirstReply
}

// breakOff pauses the lane. Then a single request probes it.
func (l *lane) breakOff(now time.Time, fault *assay.Fault) {
	wait := doubled(firstPause, longestPause, l.pausesInRow)
	l.pausesInRow++
	l.pause(now, wait, fmt.Sprintf("down (%s)", fault.Kind), fault.Detail)
}

func (l *lane) pause(now time.Time, wait time.Duration, reason, words string) {
	l.pausedSince = now
	if until := now.Add(wait); until.After(l.pausedUntil) {
		l.pausedUntil, l.pauseReason, l.pauseWords = until, reason, words
	}
}

func (l *lane) close(fault *assay.Fault) {
	if l.closed == nil {
		l.closed = fault
	}
}

// loseHope closes a lane that is refused for too long, unless the endpoint announces
// a longer wait.
func (l *lane) loseHope(now time.Time, fault *assay.Fault) {
	if l.refusedSince.IsZero() {
		l.refusedSince = now
	}
	longest := closesAfter
	switch {
	case !l.hasWorked():
		longest = l.firstReply()
	case fault.Kind == assay.Overloaded:
		longest = outage
	}
	if fault.RetryAfter <= longest && now.Sub(l.refusedSince) > longest {
		l.close(&assay.Fault{
			Kind: fault.Kind, Lane: l.Name, Status: fault.Status,
			Detail: fmt.Sprintf("the endpoint has refused everything for %v: %s",
				now.Sub(l.refusedSince).Round(time.Second), fault.Detail),
		})
	}
}
