// Package terminal shows the progress of a run on a terminal, as plain lines or as JSON. A slow view shows
// it less often, and cannot slow the run down.
package terminal

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/assay-eval/assay"
)

// A View shows the progress of a run. Its methods are called by a single goroutine.
type View interface {
	Show(Progress)
	// Close shows the last progress and releases the screen.
	Close(last Progress)
}

// closeTimeout is how long Run waits for a stuck view after ctx has ended.
const closeTimeout = 5 * time.Second

// Run shows the present progress until ctx ends, and then once more. Every returns the
// time until it is shown again, given the time since the start.
//
// A view is stuck if its output is not read. In this case, Run returns a few seconds after the end
// of ctx and leaves the view's goroutine behind.
func Run(
	ctx context.Context, progress func() Progress, view View,
	every func(elapsed time.Duration) time.Duration,
) {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		show(ctx, progress, view, every)
	}()
	<-ctx.Done()
	select {
	case <-closed:
	case <-time.After(closeTimeout):
	}
}

func show(
	ctx context.Context, progress func() Progress, view View,
	every func(elapsed time.Duration) time.Duration,
) {
	for {
		p := progress()
		view.Show(p)
		timer := time.NewTimer(every(duration(p.Elapsed)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			view.Close(progress())
			return
		}
	}
}

// None is a view without output.
type None struct{}

// Show implements [View].
func (None) Show(Progress) {}

// Close implements [View].
func (None) Close(Progress) {}

// OneLine returns a text as one line without control characters.
func OneLine(text string) string {
	separator := func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }
	return strings.Join(strings.FieldsFunc(text, separator), " ")
}

// AgentText lists how many agents are in each state, such as "2 thinking, 1 calling".
func AgentText(states map[assay.AgentState]int) string {
	var parts []string
	for _, s := range assay.AgentStates {
		if n := states[s]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}

// AgentsAre describes the states of agents, such as "3 agents are starting", except for agents that
// wait for their model.
func AgentsAre(states map[assay.AgentState]int) string {
	var parts []string
	for _, s := range assay.AgentStates {
		switch n := states[s]; {
		case s == assay.AgentAsking:
		case n == 1:
			parts = append(parts, fmt.Sprintf("1 agent is %s", s))
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d agents are %s", n, s))
		}
	}
	return strings.Join(parts, ", ")
}

// starting describes the states of the agents if the run waits only for agents that are starting.
func starting(total ModelState) string {
	n := total.Agents[assay.AgentStarting]
	for _, others := range total.Agents {
		n -= others
	}
	if n < 0 || total.Requests > 0 {
		return ""
	}
	return AgentsAre(total.Agents)
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// clock formats a number of seconds like 8s, 2m05s or 3h04m.
func clock(seconds float64) string {
	s := int(duration(seconds).Round(time.Second).Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
}

// count formats a number like 999, 1.2k, 35k or 2.0M.
func count(n float64) string {
	switch {
	case n >= 999_500:
		return fmt.Sprintf("%.1fM", n/1e6)
	case n >= 9_950:
		return fmt.Sprintf("%.0fk", n/1e3)
	case n >= 999.5:
		return fmt.Sprintf("%.1fk", n/1e3)
	}
	return fmt.Sprintf("%.0f", n)
}
