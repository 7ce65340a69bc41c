package session

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/assay-eval/assay"
)

// A Flight is an episode in flight.
type Flight struct {
	Trial   assay.TrialID `json:"trial"`
	Cell    assay.Cell    `json:"cell"`
	Task    assay.TaskID  `json:"task"`
	Started time.Time     `json:"started_at"`
	// Doing is the step that the episode waits for.
	Doing Doing `json:"doing"`
	// Since is when this wait began.
	Since time.Time `json:"since"`
	// Turns counts the replies so far.
	Turns int `json:"turns"`

	chats []Chat // for observers
}

// Doing is a step that an episode in flight waits for.
type Doing string

const (
	// Starting is an episode that has not asked its model yet.
	Starting Doing = "starting"
	// Queued is an episode that waits for a lane of its model.
	Queued Doing = "queued"
	// Asking is an episode that waits for a reply.
	Asking Doing = "asking"
	// Acting is an episode that calls tools. An agent also thinks meanwhile.
	Acting Doing = "acting"
	// Judging is an episode that has ended and waits for the model that judges it.
	Judging Doing = "judging"
	// Saving is an episode that has ended and is not on disk yet.
	Saving Doing = "saving"
)

// flights are the episodes in flight. The zero value is empty.
type flights struct {
	mu  sync.Mutex
	all map[assay.TrialID]*Flight
}

func (f *flights) begin(t *assay.Trial) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = make(map[assay.TrialID]*Flight)
	}
	now := time.Now()
	f.all[t.ID] = &Flight{
		Trial: t.ID, Cell: t.Cell, Task: t.Task, Started: now, Doing: Starting, Since: now,
	}
}

// does records the present activity of an episode.
func (f *flights) does(id assay.TrialID, doing Doing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.all[id]
	if x == nil {
		return
	}
	if x.Doing == Asking && doing == Acting {
		x.Turns++
	}
	x.Doing, x.Since = doing, time.Now()
}

func (f *flights) end(id assay.TrialID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, id)
}

// doing returns how many episodes wait for a step.
func (f *flights) doing(d Doing) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.all {
		if x.Doing == d {
			n++
		}
	}
	return n
}

// maxFlights limits the episodes in the answer to one order.
const maxFlights = 1000

// oldest returns the episodes in flight, those that started first at the front, at most 1000.
func (f *flights) oldest() []Flight {
	f.mu.Lock()
	all := make([]Flight, 0, len(f.all))
	for _, x := range f.all {
		all = append(all, *x)
	}
	f.mu.Unlock()
	slices.SortFunc(all, func(a, b Flight) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.Trial, b.Trial))
	})
	return all[:min(len(all), maxFlights)]
}
