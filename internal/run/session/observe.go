package session

import (
	"reflect"
	"slices"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// An Observer follows a run, for other programs. The run's goroutines call it, so all its methods
// but End return at once.
type Observer interface {
	// Begin is called before the first request.
	Begin(Start, Live)
	// Request is called after each request.
	Request(lane.Exchange)
	// Attempt is called when an attempt is on disk. The observer must not change it.
	Attempt(Episode)
	// End is called when the run has ended and its summary is on disk.
	End(*Summary)
}

// Live lets a display or an observer read a run, and show notes to its user.
type Live struct {
	Progress func() terminal.Progress
	Lanes    func() []LaneReading
	// Requests counts the requests that have ended, by model and lane.
	Requests func() []LaneUse
	Note     func(text string)
}

// A LaneReading has the state of a lane and its counts so far. A lane that several models share has
// one reading, with the first of them.
type LaneReading struct {
	Model  string
	Status lane.Status
	Ledger lane.Ledger
}

// An Episode is an attempt that has ended.
type Episode struct {
	Attempt    *assay.Attempt
	Transcript *assay.Transcript
	Chats      []Chat
	// Saving is when the store was given the attempt.
	Saving assay.Span
}

// A Chat is a turn: a reply or a fault, in the time from its first request to its last.
type Chat struct {
	assay.Span
	// Request is what was asked, without its messages, which the transcript has.
	Request  assay.Request
	Response assay.Response
	Err      error
}

// observed calls f with each observer.
func (s *Session) observed(f func(Observer)) {
	for _, o := range s.options.Observers {
		f(o)
	}
}

// chat remembers a turn of an episode in flight, if an observer is interested.
func (s *Session) chat(
	id assay.TrialID, took assay.Span, req assay.Request, resp *assay.Response, err error,
) {
	if len(s.options.Observers) > 0 {
		req.Messages = nil
		s.flights.chat(id, Chat{took, req, *resp, err})
	}
}

// saved shows an attempt to the observers.
func (s *Session) saved(a *assay.Attempt, t *assay.Transcript, began time.Time) {
	s.observed(func(o Observer) {
		o.Attempt(Episode{
			Attempt: a, Transcript: t, Chats: s.flights.chats(a.ID),
			Saving: assay.Span{Began: began, Ended: time.Now()},
		})
	})
}

// chat remembers a turn. A foreign agent sends its functions with each request; they are kept once.
func (f *flights) chat(id assay.TrialID, c Chat) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.all[id]; x != nil {
		if n := len(x.chats); n > 0 {
			earlier := x.chats[n-1].Request.Functions
			if reflect.DeepEqual(earlier, c.Request.Functions) {
				c.Request.Functions = earlier
			}
		}
		x.chats = append(x.chats, c)
	}
}

func (f *flights) chats(id assay.TrialID) []Chat {
	f.mu.Lock()
	defer f.mu.Unlock()
	if x := f.all[id]; x != nil {
		return slices.Clone(x.chats)
	}
	return nil
}

func (s *Session) live() Live {
	return Live{Progress: s.progress, Lanes: s.readLanes, Requests: s.meter.byLane, Note: s.note}
}

// endpoints returns the addresses of lanes, by their names. Those of built-in models have none.
func (s *Session) endpoints() map[string]string {
	all := make(map[string]string)
	for _, configs := range s.pools.Configs {
		for _, c := range configs {
			if c.Address != "" {
				all[c.Name] = c.Address
			}
		}
	}
	return all
}

// readLanes reads all lanes, always in the same order.
func (s *Session) readLanes() (all []LaneReading) {
	for _, model := range s.pools.Apart(s.Experiment.Asked()) {
		states, _ := s.pools.ByModel[model].Status()
		for i, l := range s.pools.ByModel[model].Ledgers() {
			all = append(all, LaneReading{model, states[i], l})
		}
	}
	return all
}
