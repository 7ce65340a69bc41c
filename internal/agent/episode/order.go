package episode

import (
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// orderWait is how long a call waits for the calls before it in its reply. Frameworks that carry out
// the calls of a reply at once send them within a fraction of it, also on a busy machine, and those
// that wait for each answer in another order lose no more than it in a reply. Clients give up a call
// after five seconds and more.
const orderWait = 2 * time.Second

// An arrival is a call that an agent has made.
type arrival struct {
	name, arguments string
	// call is the call of a reply that it carries out, or nil, and changed is true if the framework
	// made a different one of it.
	call    *askedCall
	changed bool
	done    chan struct{} // closed once the fields below are set
	answer  string
	failed  bool
	slow    time.Duration
}

// Call executes a tool and returns its answer as JSON. failed is true if it did not succeed, and
// slow is the time that a slow call claims to have taken. Call does not wait for it.
//
// The calls of one reply are executed in its order, however they arrive: a call waits for the calls
// before it. It no longer waits for one that has not arrived after [orderWait], or once the agent
// goes on without it: it sends its model the answers, or ends.
func (s *Stage) Call(name, arguments string) (answer string, failed bool, slow time.Duration) {
	c := s.arrive(name, arguments)
	<-c.done
	return c.answer, c.failed, c.slow
}

func (s *Stage) arrive(name, arguments string) *arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == toolCall {
		arguments = s.asked.unnested(arguments)
	}
	c := &arrival{name: name, arguments: arguments, done: make(chan struct{})}
	if s.isOver() {
		c.refuse()
		return c
	}
	c.call, c.changed = s.asked.arrive(name, arguments)
	s.waiting = append(s.waiting, c)
	s.advance()
	return c
}

// refuse answers a call after the end of the attempt.
func (c *arrival) refuse() {
	c.answer, c.failed = string(encode(map[string]any{"refused": ErrOver.Detail})), true
	close(c.done)
}

// asked returns the call as the model wrote it if the framework made a different one of it.
func (c *arrival) asked() string {
	if !c.changed {
		return ""
	}
	return strings.TrimSpace(c.call.Name + " " + c.call.Arguments)
}

// advance executes the calls that need not wait.
func (s *Stage) advance() {
	for {
		i := slices.IndexFunc(s.waiting, func(c *arrival) bool { return c.call == nil || c.call.isDue() })
		if i < 0 {
			break
		}
		c := s.waiting[i]
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.execute(c)
		close(c.done)
	}
	for _, r := range s.asked.replies {
		s.watch(r)
	}
}

// watch lets a reply pass if one of its calls waits for too long.
func (s *Stage) watch(r *askedReply) {
	waits := slices.ContainsFunc(s.waiting, func(c *arrival) bool { return c.call.reply == r })
	switch {
	case waits && r.timer == nil:
		var timer *time.Timer
		timer = time.AfterFunc(orderWait, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if r.timer == timer {
				r.passed = true
				s.advance()
			}
		})
		r.timer = timer
	case !waits && r.timer != nil:
		r.timer.Stop()
		r.timer = nil
	}
}

// isDue reports whether no call of the reply has to be executed before this one. Calls of the
// framework's own tools never arrive.
func (c *askedCall) isDue() bool {
	for _, before := range c.reply.calls {
		switch {
		case before == c:
			return true
		case before.done:
		case before.arrived, before.function != "" && !c.reply.passed:
			return false
		}
	}
	return true
}

// finish notes that the call was executed.
func (c *askedCall) finish() {
	c.done = true
	after := c.reply.calls[slices.Index(c.reply.calls, c)+1:]
	c.late = slices.ContainsFunc(after, func(c *askedCall) bool { return c.done })
}

// take notes that the agent has sent its model the answers to replies.
func (s *Stage) take(messages []assay.Message) {
	answered := make(map[string]bool)
	for _, m := range messages {
		if m.Role == assay.ToolRole {
			answered[m.CallID] = true
		}
	}
	for _, r := range s.asked.replies {
		if slices.ContainsFunc(r.calls, func(c *askedCall) bool { return answered[c.ID] }) {
			r.taken, r.passed = true, true
		}
	}
	s.advance()
}

// leave executes the calls that wait when the agent has ended, unless the run has stopped.
func (s *Stage) leave() {
	if s.ctx.Err() != nil {
		return
	}
	for _, r := range s.asked.replies {
		r.passed = true
	}
	s.advance()
}

// dismiss refuses the calls that wait.
func (s *Stage) dismiss() {
	for _, c := range s.waiting {
		c.refuse()
	}
	s.waiting = nil
}

// lost returns the calls of replies that the agent did not carry out, and those that it carried out
// too late, in an attempt that ended like this. The empty end is a fault. A reply counts if the agent
// went on after it, or ended in success, or never carries out a call. An agent may ask twice, and
// use only one of the replies, and one that crashes or hangs leaves calls behind.
func (s *Stage) lost(ended assay.Ended) (calls []assay.LostCall) {
	broke := ended == "" || ended == assay.AgentError || ended == assay.AgentTimeout
	idle := len(s.e.transcript.Calls)+len(s.refused) == 0
	for _, r := range s.asked.replies {
		last := ended == assay.Finished && r.turn == s.turn()
		counts := r.taken || !broke && (idle || last)
		for _, c := range r.calls {
			a := nativeAction(s.e.trial.Tools, assay.ToolCall{Name: c.function, Arguments: c.Arguments})
			if c.function == "" || a.wrong != nil || !(c.late || counts && !c.done) {
				continue
			}
			l := assay.LostCall{
				Turn: r.turn, Tool: c.function, Arguments: spec.Clip(c.Arguments), Late: c.late,
			}
			if a.act == call {
				own, _ := s.e.offer.of().Read(a.text, a.arguments)
				l.Tool, l.Arguments = a.text, spec.Clip(own)
			}
			calls = append(calls, l)
		}
	}
	return calls
}
