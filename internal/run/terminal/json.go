package terminal

import (
	"encoding/json"
	"fmt"
	"io"
)

// JSON writes one object per line: {"event":"progress",…} with a [Progress] and
// {"event":"note","text":…} once for each note. The field names are part of the
// contract of --display json.
type JSON struct {
	W     io.Writer
	noted int // number of notes written
}

// A progressEvent has no notes, because each of them is an event.
type progressEvent struct {
	Event string `json:"event"`
	Progress
	Notes  []string        `json:"notes,omitempty"`
	Models []oldModelEvent `json:"models"`
}

// An oldModelEvent repeats some fields under the names that events had before [Progress].
type oldModelEvent struct {
	ModelState
	Waits  string `json:"waits"`
	Closed string `json:"closed"`
	// Left is 0 if it is unknown. LeftLow and LeftHigh are its range in the plan if the endpoint is
	// unknown, or 0.
	Left     float64 `json:"left_s"`
	LeftLow  float64 `json:"left_low_s"`
	LeftHigh float64 `json:"left_high_s"`
	// SuccessLow and SuccessHigh are the 95 % interval of the rate of full success.
	SuccessLow  float64 `json:"success_low"`
	SuccessHigh float64 `json:"success_high"`
}

// Show implements [View].
func (j *JSON) Show(p Progress) {
	for _, note := range p.Notes[j.noted:] {
		j.write(map[string]string{"event": "note", "text": note})
	}
	j.noted = len(p.Notes)
	e := progressEvent{Event: "progress", Progress: p, Models: []oldModelEvent{}}
	e.Attention = append([]Attention{}, p.Attention...)
	for _, m := range p.Models {
		event := oldModelEvent{ModelState: m, Waits: m.Waits, Closed: m.Closed}
		if l := m.Left; l != nil {
			event.Left, event.LeftLow, event.LeftHigh = l.Seconds, l.Low, l.High
		}
		if m.Success != nil {
			event.SuccessLow, event.SuccessHigh = m.Success.Interval.Low, m.Success.Interval.High
		}
		e.Models = append(e.Models, event)
	}
	j.write(e)
}

// Close implements [View].
func (j *JSON) Close(last Progress) { j.Show(last) }

// write ignores errors, because a run goes on even if the reader is gone.
func (j *JSON) write(object any) {
	b, err := json.Marshal(object)
	if err != nil {
		panic("terminal: " + err.Error())
	}
	_, _ = fmt.Fprintf(j.W, "%s\n", b)
}
