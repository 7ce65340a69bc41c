package dashboard

import (
	"fmt"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// Sentence answers the first question of an operator: will the run end well, and does it need
// somebody?
func (m *moment) Sentence() string {
	done := fmt.Sprintf("%s of %s done", count(m.Done), count(m.Planned))
	if m.Skipped > 0 {
		done += fmt.Sprintf(" (%s skipped)", count(m.Skipped))
	}
	parts := []string{done}
	if !m.Loaded {
		return fmt.Sprintf("reading %s of %s attempts", count(m.Attempts), count(m.Total))
	}
	switch {
	case m.Run != nil:
		parts = append(parts, m.finish())
	case m.Unfinished() == 0:
		parts = append(parts, "complete")
	case m.Runs == 0:
		parts = append(parts, "no run has begun")
	case m.Last.FinishedAt.IsZero():
		parts = append(parts, "no run is working: the latest one was killed or could not write to its store")
	default:
		parts = append(parts, "no run is working")
	}
	switch {
	case m.Run != nil && m.Run.Budget.USD > 0:
		parts = append(parts, fmt.Sprintf("%s of $%.2f",
			dollars(m.Run.Cost, len(m.Run.Unpriced) > 0), m.Run.Budget.USD))
	case m.Spent.USD > 0:
		parts = append(parts, m.Cost()+" spent")
	}
	switch n := len(m.Attention()); {
	case n == 0 && m.Over() && m.Unfinished() > 0 && m.Runs > 0:
		parts = append(parts, "run it again to finish it")
	case n == 0:
		parts = append(parts, "nothing needs you")
	case n == 1:
		parts = append(parts, "one thing needs you")
	default:
		parts = append(parts, fmt.Sprintf("%d things need you", n))
	}
	return strings.Join(parts, " · ")
}

// Over reports whether no run is working.
func (m *moment) Over() bool { return m.Run == nil }

// State describes in a few words whether a run is working, or else how the latest one ended.
func (m *moment) State() string {
	switch {
	case m.Run != nil:
		return "live"
	case m.Runs == 0:
		return "no run has begun"
	case m.Last.FinishedAt.IsZero():
		return "no run is working: the latest one was killed or could not write to its store"
	}
	how := "finished"
	switch {
	case m.Ended.Stopped:
		how = "interrupted"
	case m.Ended.Unfinished() > 0:
		how = "with trials left"
	}
	return fmt.Sprintf("ended %s: %s", ago(m.At.Sub(m.Last.FinishedAt)), how)
}

// A need is something that somebody has to look at.
type need struct {
	terminal.Attention
	// Link leads to the trials, or is empty.
	Link string
}

// OrderURL returns the address of the order that helps.
func (n need) OrderURL() string {
	pairs := []string{"do", n.Order.Do}
	for _, name := range n.Order.Names {
		pairs = append(pairs, "name", name)
	}
	return orderURL(pairs...)
}

// Rate returns the rate of full success so far, if there is one model. A mean of several models says
// nothing about any of them.
func (m *moment) Rate() string {
	if !m.OneModel {
		return ""
	}
	return rate(m.Full, m.Done)
}

// Cost spells what the attempts on disk cost. What a run that was killed spent last may be unknown.
func (m *moment) Cost() string {
	return dollars(m.Spent.USD, m.Spent.AtLeast() || m.Killed > 0 && m.Spent.USD > 0)
}

// Failed counts the outcomes that were not full success.
func (m *moment) Failed() int { return m.Done - m.Full }

// FaultsOfProviders counts the attempts that ended in a fault that is not an error of Assay.
func (m *moment) FaultsOfProviders() int { return m.FaultCount.Attempts() - m.OwnErrors() }

// RetriedRequests counts the requests that failed and were sent again.
func (m *moment) RetriedRequests() (n int) {
	for _, k := range m.Retried {
		n += k
	}
	return n
}

// OwnErrors counts the attempts that ended in an error of Assay.
func (m *moment) OwnErrors() int { return m.FaultCount.Ended[assay.Harness] }

// OldestFlights returns the episodes that have been in flight for longest.
func (m *moment) OldestFlights() []session.Flight { return m.Flights[:min(12, len(m.Flights))] }

// Attention lists the things that need somebody, the most trials at stake first: the reports of the
// run itself, or the problems that the latest run left behind.
func (m *moment) Attention() (all []need) {
	add := func(link, cause string, trials int, text string) {
		a := terminal.Attention{}
		a.Cause, a.Trials, a.Text = cause, trials, text
		all = append(all, need{a, link})
	}
	if m.Trouble != "" {
		add("", "page", 0, "this page may be behind: "+m.Trouble)
	}
	if m.Unread+m.UnreadRows > 0 {
		add("", "store", 0, unreadText(m.Unread, m.UnreadRows))
		all[len(all)-1].Advice = m.Rescue
	}
	links := map[string]string{
		session.CauseParked:  filter{State: stateParked, Run: string(m.Last.ID)}.URL(),
		session.CauseHarness: filter{Fault: string(assay.Harness)}.URL(),
	}
	if m.Run != nil {
		for _, a := range m.Run.Attention {
			all = append(all, need{a, links[a.Cause]})
		}
		return all
	}
	if m.Ended.Stillness != "" {
		add("", "stillness", 0, m.Ended.Stillness)
	}
	for _, b := range m.Ended.Exhausted {
		add("", session.CauseBudget, m.Pending, b.String())
	}
	for _, l := range m.Lanes {
		if l.Closed != "" {
			add("", session.CauseClosed, 0, l.Name()+" was closed: "+firstLine(l.Closed))
		}
	}
	if m.Parked > 0 {
		add(links[session.CauseParked], session.CauseParked, m.Parked,
			"parked: the run gave up on them because of faults; the next run tries them again")
	}
	if n := m.OwnErrors(); n > 0 {
		add(links[session.CauseHarness], session.CauseHarness, n,
			"attempts ended in errors of Assay itself, which are worth a report")
	}
	return all
}

// unreadText describes the attempts and rows that the numbers of a page leave out.
func unreadText(attempts, rows int) string {
	what, pending := count(attempts)+" attempts", " and count as pending"
	switch {
	case attempts == 0:
		what, pending = count(rows)+" rows beside the attempts", ""
	case rows > 0:
		what += " and " + count(rows) + " other rows"
	}
	return what + " cannot be read or proved" + pending
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// finish describes when the run will end, with the range that the run announces.
func (m *moment) finish() string {
	elapsed := time.Duration(m.Run.Elapsed * float64(time.Second))
	switch left := m.Run.Left; {
	case !m.Run.PausedSince.IsZero():
		return "paused since " + clock(m.Run.PausedSince)
	case m.Run.Pending == 0:
		return "ending"
	case m.Run.Stopping:
		return "stopping"
	case left == nil:
		return "running for " + took(elapsed)
	case left.High > left.Low:
		return fmt.Sprintf("finishes about %s (%s to %s)", clock(m.in(left.Seconds)),
			clock(m.in(left.Low)), clock(m.in(left.High)))
	default:
		return "finishes about " + clock(m.in(left.Seconds))
	}
}

// in returns the time after some seconds.
func (m *moment) in(seconds float64) time.Time {
	return m.At.Add(time.Duration(seconds * float64(time.Second)))
}

// LastResult returns when the latest attempt ended.
func (m *moment) LastResult() time.Time { return m.Newest }
